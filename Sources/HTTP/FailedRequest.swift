// SPDX-License-Identifier: Apache-2.0

/// The request that an error is about: which attempt of it failed, and how the server responded.
///
/// Made when the request fails, and part of its ``CurlewError``: ``CurlewError/request``. Errors thrown by users' code have none.
public struct FailedRequest: Sendable, Hashable {
    /// The largest number of bytes of a refused response's body in ``body`` and ``bodyData``: 64 KiB.
    package static let bodyLimit = 64 << 10

    /// The request's number, unique in the process, by which monitors and logs find it (`Request.id`); 0 if it is unknown.
    public private(set) var id: UInt64
    /// The method of the last exchange; `nil` for a raw stream, or if it is not a token.
    public let method: HTTPMethod?
    /// The URL of the last exchange, without user name and password, and with secret query items redacted (``Redaction``). Empty if it is
    /// unknown.
    public let url: String
    /// The number of the attempt, from 1: 2 is the first retry. 0 if the request could not be made, or the number is unknown.
    public private(set) var attempt: Int
    /// The status of the attempt's response; `nil` if none was received.
    public let statusCode: Int?
    /// The header fields of the attempt's response; empty if none was received. Descriptions and reflection do not show them.
    public let headers: HTTPHeaders
    /// The `Content-Type` of the attempt's response; `nil` without one.
    public let contentType: String?
    /// The first 64 KiB of the body of a response that a built-in validation refused, as text, cut between two characters.
    ///
    /// `nil` where ``bodyData`` is, and for a body that is empty or no text (its bytes are invalid in its encoding, by default UTF-8, or
    /// contain control characters other than tabs and line breaks). Not redacted, as only the server knows what it contains; descriptions
    /// and reflection do not show it.
    public let body: String?
    /// The first 64 KiB of the body of a response that a built-in validation refused, decoded.
    ///
    /// `nil` for other errors, and for a body that was handed to a closure (`stream(closure:)`). Of a body that is read as it is received,
    /// and refused at its head, what is received in two seconds.
    public let bodyData: Data?
    /// Whether the body is longer than ``bodyData``, or was not received to its end.
    public let isBodyTruncated: Bool
    /// What a `validate(decoding:)` has decoded the body of a refused response as: of the whole body, also if ``bodyData`` has only the
    /// beginning.
    ///
    /// `nil` if none was to, or could. Not redacted; descriptions and reflection do not show it, and it does not count for equality.
    public var decodedBody: (any Sendable)? { decoded.value }
    private let decoded: DecodedBody

    /// Creates a description of a failed request; the URL is redacted.
    public init(
        id: UInt64 = 0, method: HTTPMethod? = nil, url: String, attempt: Int = 0, statusCode: Int? = nil, headers: HTTPHeaders = [:],
        contentType: String? = nil, body: String? = nil, bodyData: Data? = nil, isBodyTruncated: Bool = false,
        decodedBody: (any Sendable)? = nil
    ) {
        self.id = id
        self.method = method
        self.url = Redaction.current.url(url)
        self.attempt = attempt
        self.statusCode = statusCode
        self.headers = headers
        self.contentType = contentType
        self.body = body
        self.bodyData = bodyData
        self.isBodyTruncated = isBodyTruncated
        decoded = DecodedBody(value: decodedBody)
    }

    /// Returns the same with a number.
    package func identified(by id: UInt64) -> FailedRequest {
        var result = self
        result.id = id
        return result
    }

    /// Returns the same with another number of the attempt.
    package func numbered(_ attempt: Int) -> FailedRequest {
        var result = self
        result.attempt = attempt
        return result
    }
}

/// A decoded body, which is equal to every other one: the bytes are compared.
private struct DecodedBody: Hashable, Sendable {
    let value: (any Sendable)?

    static func == (lhs: DecodedBody, rhs: DecodedBody) -> Bool { true }
    func hash(into hasher: inout Hasher) {}
}

// MARK: - CustomStringConvertible

extension FailedRequest: LineConvertible, RedactedReflectable {
    /// Method, URL, attempt and status, as far as they are known, in a line: `GET https://example.org/ (attempt 2, status 404)`.
    package var line: String { text(hasStatus: true) }

    /// All properties but the header fields, and the body as text, as bytes and decoded.
    package var shownParts: KeyValuePairs<String, Any> {
        [
            "id": id, "method": method as Any, "url": Redaction.escaped(url), "attempt": attempt, "statusCode": statusCode as Any,
            "contentType": contentType.map { Redaction.escaped($0) } as Any, "isBodyTruncated": isBodyTruncated,
        ]
    }

    private func text(hasStatus: Bool) -> String {
        let details = [attempt > 0 ? "attempt \(attempt)" : nil, hasStatus ? statusCode.map { "status \($0)" } : nil].compactMap { $0 }
        let name = [method?.rawValue, url.isEmpty ? nil : url].compactMap { $0 }.joined(separator: " ")
        return Redaction.escaped(details.isEmpty ? name : "\(name.isEmpty ? "request" : name) (\(details.joined(separator: ", ")))")
    }

    /// Returns a sentence as the reason why this request failed: `GET https://example.org/ (attempt 2): status 404 is not acceptable`.
    ///
    /// - Parameter hasStatus: whether the status is named; otherwise the sentence does.
    package func failing(because sentence: String, hasStatus: Bool = true) -> String {
        let name = text(hasStatus: hasStatus)
        guard !name.isEmpty else { return sentence }
        // A name such as URL or HTTP keeps its capitals.
        let isWord = !(sentence.dropFirst().first?.isUppercase ?? false)
        let reason = isWord ? sentence.prefix(1).lowercased() + sentence.dropFirst() : sentence
        return "\(name): \(reason.hasByteSuffix(".") ? String(reason.dropLastScalars()) : reason)"
    }
}

extension String {
    /// The text with a full stop at its end, so that a sentence can follow: descriptions of one sentence have one, those that begin with
    /// a request don't.
    package var withFullStop: String { [".", "!", "?", "…"].contains { hasByteSuffix($0) } ? self : self + "." }
}
