// SPDX-License-Identifier: Apache-2.0

/// What a serializer made of a response.
public struct SerializedResponse {
    /// The value; also beside an error, where a response that was refused could be read.
    public var object: Any?
    /// Why the response was refused, or could not be read.
    public var error: (any Error)?

    /// Makes a result.
    public init(object: Any? = nil, error: (any Error)? = nil) {
        self.object = object
        self.error = error
    }
}

/// Judges a response and makes a value of it.
public protocol ResponseSerialization: Sendable {
    /// What is acceptable.
    var acceptance: ResponseAcceptance { get set }

    /// Makes the value of a body that is there; `nil` for none. Runs on the operation's queue.
    ///
    /// - Throws: why the body can't be read.
    func object(of data: Data, in response: HTTPURLResponse?) throws -> Any?

    /// Judges the response and makes the value. By itself it reads the body of a response that was refused, too, for whoever wants to know
    /// what the server had to say; then the judgement is the error.
    func serialize(_ response: HTTPURLResponse?, _ data: Data?) -> SerializedResponse
}

extension ResponseSerialization {
    /// Judges the response and makes the value.
    public func serialize(_ response: HTTPURLResponse?, _ data: Data?) -> SerializedResponse {
        let refusal = acceptance.refusal(of: response, data)
        // What is of another type is none of this serializer's.
        if let error = refusal as? URLError, error.code == .cannotDecodeContentData { return SerializedResponse(error: error) }
        guard let data, !data.isEmpty else { return SerializedResponse(error: refusal) }
        do {
            return SerializedResponse(object: try object(of: data, in: response), error: refusal)
        } catch {
            return SerializedResponse(error: refusal ?? error)
        }
    }
}

/// Which responses a serializer accepts.
public struct ResponseAcceptance: Sendable, Hashable, Codable {
    /// The statuses; 200 to 299 by default, `nil` for all.
    public var statusCodes: Set<Int>? = Set(200..<300)
    /// The content types, in lower case and without parameters; `nil` for all. A response without a body has any, one without a type none.
    public var contentTypes: Set<String>?

    /// Makes one for all content types.
    public init() {}

    /// Makes one for these content types.
    public init(contentTypes: Set<String>) {
        self.contentTypes = contentTypes
    }

    /// Why a response is not acceptable: an `URLError` with the code `cannotDecodeContentData` (−1016) for a type, `badServerResponse`
    /// (−1011) for a status; where both are wrong, the one for the type has that for the status as its underlying error.
    ///
    /// Its `userInfo` has response and body under the keys of ``OperationErrorKey``.
    public func refusal(of response: HTTPURLResponse?, _ data: Data?) -> (any Error)? {
        guard let response else { return nil }
        var error: URLError?
        if let statusCodes, !statusCodes.contains(response.statusCode) {
            error = makeError(.badServerResponse, "The status is \(response.statusCode)", response, data, underlying: nil)
        }
        let type = response.mediaType
        if let contentTypes, let data, !data.isEmpty, !(type.map(contentTypes.contains) ?? false) {
            let text = "The content type \(type ?? "is missing, which") is not acceptable"
            error = makeError(.cannotDecodeContentData, text, response, data, underlying: error)
        }
        return error
    }

    private func makeError(
        _ code: URLError.Code, _ text: String, _ response: HTTPURLResponse, _ data: Data?, underlying: URLError?
    ) -> URLError {
        var info: [String: Any] = [
            NSLocalizedDescriptionKey: Redaction.escaped(text), OperationErrorKey.response: ErrorResponse(response) ?? response,
        ]
        if let url = response.url?.redacted { info[NSURLErrorFailingURLErrorKey] = url }
        if let data { info[OperationErrorKey.data] = data }
        if let underlying { info[NSUnderlyingErrorKey] = underlying }
        return URLError(code, userInfo: info)
    }
}

extension HTTPURLResponse {
    /// The content type without its parameters, in lower case.
    fileprivate var mediaType: String? {
        value(forHTTPHeaderField: "Content-Type").map { type in
            type.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        }
    }
}
