// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A way to write an `Encodable` value into a request.
public protocol ParameterEncoder: Sendable {
    /// The request with the value written into it.
    ///
    /// `nil` leaves the request as it is. Curlew's own encoders throw ``CurlewError/parameterEncodingFailed(reason:)``; whatever an encoder
    /// throws ends the request with that error.
    func encode<Parameters: Encodable>(_ parameters: Parameters?, into request: URLRequest) throws -> URLRequest
}

extension ParameterEncoder where Self == JSONParameterEncoder {
    /// The value as compact JSON in the body.
    public static var json: JSONParameterEncoder { .default }

    /// The value as JSON in the body, written by an encoder of one's own.
    public static func json(encoder: JSONEncoder) -> JSONParameterEncoder { JSONParameterEncoder(encoder: encoder) }
}

extension ParameterEncoder where Self == URLEncodedFormParameterEncoder {
    /// The value as pairs in the query or the body, as the method has it.
    public static var urlEncodedForm: URLEncodedFormParameterEncoder { .default }

    /// The value as pairs, written by an encoder of one's own into a place of one's own.
    public static func urlEncodedForm(
        encoder: URLEncodedFormEncoder = URLEncodedFormEncoder(), destination: URLEncodedFormParameterEncoder.Destination = .methodDependent
    ) -> URLEncodedFormParameterEncoder {
        URLEncodedFormParameterEncoder(encoder: encoder, destination: destination)
    }
}

/// Writes values as JSON (RFC 8259) into the body.
public struct JSONParameterEncoder: ParameterEncoder {
    /// The encoder without options: compact, names in no particular order.
    public static var `default`: JSONParameterEncoder { JSONParameterEncoder() }
    /// The encoder with line breaks and indentation.
    public static var prettyPrinted: JSONParameterEncoder { JSONParameterEncoder(.prettyPrinted) }
    /// The encoder with the names sorted.
    public static var sortedKeys: JSONParameterEncoder { JSONParameterEncoder(.sortedKeys) }

    /// What writes the JSON; not to be changed while requests are made with it.
    public let encoder: JSONEncoder

    /// Makes an encoder; by default on a `JSONEncoder` as it comes.
    public init(encoder: JSONEncoder = JSONEncoder()) {
        self.encoder = encoder
    }

    private init(_ formatting: JSONEncoder.OutputFormatting) {
        encoder = JSONEncoder()
        encoder.outputFormatting = formatting
    }

    /// The request with the value as JSON in its body; the content type is `application/json` unless the request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:)`` when the encoder refuses the value,
    ///   ``CurlewError/urlRequestValidationFailed(reason:)`` for a request without a URL.
    public func encode<Parameters: Encodable>(_ parameters: Parameters?, into request: URLRequest) throws -> URLRequest {
        guard let parameters else { return request }
        var request = request
        do {
            try request.setBody(encoder.encode(parameters), contentType: "application/json")
        } catch let error as CurlewError {
            throw error
        } catch {
            throw CurlewError.parameterEncodingFailed(reason: .jsonEncodingFailed(error: error))
        }
        return request
    }
}

/// Writes values as `key=value` pairs into the URL's query or into the body, as HTML forms do.
public struct URLEncodedFormParameterEncoder: ParameterEncoder {
    /// Where the pairs go.
    public typealias Destination = URLEncoding.Destination

    /// The encoder with all defaults: the method says where the pairs go.
    public static var `default`: URLEncodedFormParameterEncoder { URLEncodedFormParameterEncoder() }

    /// What writes the pairs.
    public let encoder: URLEncodedFormEncoder
    /// Where the pairs go.
    public let destination: Destination

    /// Makes an encoder; by default the method says where the pairs go.
    public init(encoder: URLEncodedFormEncoder = URLEncodedFormEncoder(), destination: Destination = .methodDependent) {
        self.encoder = encoder
        self.destination = destination
    }

    /// The request with the value in its query or its body.
    ///
    /// A query that the URL has stays as it is, in front; so does a fragment, behind. A value that gives no pair leaves the URL alone. A
    /// body replaces the one before it, be it empty, and its content type is `application/x-www-form-urlencoded; charset=utf-8` unless
    /// the request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:)`` for a value that no form can hold, and for a query without a URL;
    ///   ``CurlewError/urlRequestValidationFailed(reason:)`` for a body without one.
    public func encode<Parameters: Encodable>(_ parameters: Parameters?, into request: URLRequest) throws -> URLRequest {
        guard let parameters else { return request }
        var request = request
        let pairs: String
        do {
            pairs = try encoder.encode(parameters)
        } catch {
            throw CurlewError.parameterEncodingFailed(reason: .formEncodingFailed(error: error))
        }
        try request.setPairs(pairs, destination)
        return request
    }
}
