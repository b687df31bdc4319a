// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Encodes an `Encodable` value into a request.
public protocol ParameterEncoder: Sendable {
    /// Returns the request with the encoded value.
    ///
    /// `nil` leaves the request unchanged. Curlew's encoders throw ``CurlewError/parameterEncodingFailed(reason:in:)``. The request fails
    /// with any error that an encoder throws.
    func encode<Parameters: Encodable>(_ parameters: Parameters?, into request: URLRequest) throws -> URLRequest
}

extension ParameterEncoder where Self == JSONParameterEncoder {
    /// Compact JSON in the body.
    public static var json: JSONParameterEncoder { .default }

    /// JSON in the body, written by a custom encoder.
    public static func json(encoder: JSONEncoder) -> JSONParameterEncoder { JSONParameterEncoder(encoder: encoder) }
}

extension ParameterEncoder where Self == URLEncodedFormParameterEncoder {
    /// `key=value` pairs in the query or the body, depending on the method.
    public static var urlEncodedForm: URLEncodedFormParameterEncoder { .default }

    /// `key=value` pairs, written by a custom encoder to a given destination.
    public static func urlEncodedForm(
        encoder: URLEncodedFormEncoder = URLEncodedFormEncoder(), destination: URLEncodedFormParameterEncoder.Destination = .methodDependent
    ) -> URLEncodedFormParameterEncoder {
        URLEncodedFormParameterEncoder(encoder: encoder, destination: destination)
    }
}

/// Encodes values as JSON (RFC 8259) in the body.
public struct JSONParameterEncoder: ParameterEncoder {
    /// The encoder without options: compact, keys in no particular order.
    public static var `default`: JSONParameterEncoder { JSONParameterEncoder() }
    /// The encoder with line breaks and indentation.
    public static var prettyPrinted: JSONParameterEncoder { JSONParameterEncoder(.prettyPrinted) }
    /// The encoder with sorted keys.
    public static var sortedKeys: JSONParameterEncoder { JSONParameterEncoder(.sortedKeys) }

    /// The underlying JSON encoder; must not be modified while requests use it.
    package let encoder: JSONEncoder

    /// Creates an encoder; with a default `JSONEncoder` unless given.
    public init(encoder: JSONEncoder = JSONEncoder()) {
        self.encoder = encoder
    }

    private init(_ formatting: JSONEncoder.OutputFormatting) {
        encoder = JSONEncoder()
        encoder.outputFormatting = formatting
    }

    /// Returns the request with the value as JSON in its body, and the content type `application/json` unless the request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:in:)`` if the encoder throws,
    ///   ``CurlewError/urlRequestValidationFailed(reason:in:)`` for a request without a URL.
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

/// Encodes values as `key=value` pairs in the URL's query or the body, as HTML forms do.
public struct URLEncodedFormParameterEncoder: ParameterEncoder {
    /// The destination of the pairs.
    public typealias Destination = URLEncoding.Destination

    /// The encoder with all defaults: the method decides the destination.
    public static var `default`: URLEncodedFormParameterEncoder { URLEncodedFormParameterEncoder() }

    /// The encoder of the pairs.
    package let encoder: URLEncodedFormEncoder
    /// The destination of the pairs.
    package let destination: Destination

    /// Creates an encoder; by default the method decides the destination.
    public init(encoder: URLEncodedFormEncoder = URLEncodedFormEncoder(), destination: Destination = .methodDependent) {
        self.encoder = encoder
        self.destination = destination
    }

    /// Returns the request with the value in its query or its body.
    ///
    /// An existing query is kept, and the pairs are appended to it; a fragment is kept. A value without pairs leaves the URL unchanged.
    /// The body is replaced, even by an empty one, and gets the content type `application/x-www-form-urlencoded; charset=utf-8` unless the
    /// request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:in:)`` for a value that a form can't represent, and for a query without a
    ///   URL; ``CurlewError/urlRequestValidationFailed(reason:in:)`` for a body without a URL.
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
