// SPDX-License-Identifier: Apache-2.0

/// The result of serializing a response.
public struct SerializedResponse {
    /// The value; also set alongside an error, if a rejected response could be read.
    public var object: Any?
    /// Why the response was rejected or could not be read.
    public var error: (any Error)?

    /// Creates a result.
    public init(object: Any? = nil, error: (any Error)? = nil) {
        self.object = object
        self.error = error
    }
}

/// Validates a response and makes a value of it.
public protocol ResponseSerialization: Sendable {
    /// The responses that are accepted.
    var acceptance: ResponseAcceptance { get set }

    /// Makes a value from a body that is not empty; `nil` for none. Runs on the operation's queue.
    ///
    /// - Throws: the reason that the body can't be read.
    func object(of data: Data, in response: HTTPURLResponse?) throws -> Any?

    /// Validates the response and makes the value. The default implementation also reads the body of a rejected response, for the details
    /// that the server gives; the validation error is then the error.
    func serialize(_ response: HTTPURLResponse?, _ data: Data?) -> SerializedResponse
}

extension ResponseSerialization {
    /// Validates the response and makes the value.
    public func serialize(_ response: HTTPURLResponse?, _ data: Data?) -> SerializedResponse {
        let rejection = acceptance.rejection(of: response, data)
        // A body of another type is not for this serializer to read.
        if let error = rejection as? URLError, error.code == .cannotDecodeContentData { return SerializedResponse(error: error) }
        guard let data, !data.isEmpty else { return SerializedResponse(error: rejection) }
        do {
            return SerializedResponse(object: try object(of: data, in: response), error: rejection)
        } catch {
            return SerializedResponse(error: rejection ?? error)
        }
    }
}

/// The responses that a serializer accepts.
public struct ResponseAcceptance: Sendable, Hashable, Codable {
    /// The accepted statuses; 200 to 299 by default, `nil` for all.
    public var statusCodes: Set<Int>? = Set(200..<300)
    /// The accepted content types, in lower case and without parameters; `nil` for all. A response without a body passes; a body without a
    /// content type does not.
    public var contentTypes: Set<String>?

    /// Accepts all content types.
    public init() {}

    /// Accepts the given content types.
    public init(contentTypes: Set<String>) {
        self.contentTypes = contentTypes
    }

    /// Returns why a response is not acceptable: a `URLError` with the code `cannotDecodeContentData` (−1016) for a content type, or
    /// `badServerResponse` (−1011) for a status. If both are wrong, the content type's error has the status's as its underlying error.
    ///
    /// Its `userInfo` has the response and the body under the keys of ``OperationErrorKey``.
    public func rejection(of response: HTTPURLResponse?, _ data: Data?) -> (any Error)? {
        guard let response else { return nil }
        var error: URLError?
        if let statusCodes, !statusCodes.contains(response.statusCode) {
            error = makeError(.badServerResponse, "status \(response.statusCode) is not acceptable", response, data, underlying: nil)
        }
        let type = response.value(forHTTPHeaderField: "Content-Type")?.mediaType.lowercased()
        if let contentTypes, let data, !data.isEmpty, !(type.map(contentTypes.contains) ?? false) {
            let accepted = contentTypes.sorted().joined(separator: ", ")
            let text = type.map { "content type \($0) is not one of \(accepted)" } ?? "the content type is missing; expected \(accepted)"
            error = makeError(.cannotDecodeContentData, text, response, data, underlying: error)
        }
        return error
    }

    private func makeError(
        _ code: URLError.Code, _ text: String, _ response: HTTPURLResponse, _ data: Data?, underlying: URLError?
    ) -> URLError {
        let url = (response.url?.absoluteString ?? "").redactedURL
        var info: [String: Any] = [
            NSLocalizedDescriptionKey: Redaction.escaped("\(url): \(text)"),
            OperationErrorKey.response: ErrorResponse(response) ?? response,
        ]
        if let url = response.url?.redacted { info[NSURLErrorFailingURLErrorKey] = url }
        if let data { info[OperationErrorKey.data] = data }
        if let underlying { info[NSUnderlyingErrorKey] = underlying }
        return URLError(code, userInfo: info)
    }
}
