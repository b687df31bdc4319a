// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP

/// Writes parameters as JSON (RFC 8259) into the body.
///
/// Takes what `JSONSerialization` takes: strings, finite numbers, Booleans, `NSNull`, arrays, and dictionaries with strings for keys, at
/// most 512 levels deep; `nil` becomes `null`. Anything else, a `Date` or a `URL` too, is an error.
public struct JSONEncoding: ParameterEncoding {
    /// The encoding without options: compact, names in no particular order.
    public static var `default`: JSONEncoding { JSONEncoding() }
    /// The encoding with line breaks and indentation.
    public static var prettyPrinted: JSONEncoding { JSONEncoding(options: .prettyPrinted) }

    /// The options for `JSONSerialization`.
    public let options: JSONSerialization.WritingOptions

    /// Makes an encoding; without options by default.
    public init(options: JSONSerialization.WritingOptions = []) {
        self.options = options
    }

    /// The request with the parameters as a JSON object in its body.
    ///
    /// The content type is `application/json` unless the request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:)`` when the parameters hold what JSON can't,
    ///   ``CurlewError/urlRequestValidationFailed(reason:)`` for a request without a URL; what `urlRequest` throws.
    public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        try encode(urlRequest, withJSONObject: parameters)
    }

    /// The request with a JSON text in its body, whose top level may be an array.
    ///
    /// `nil` leaves the request as it is. Any other top level takes the option `fragmentsAllowed`. The content type is
    /// `application/json` unless the request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:)`` when the object holds what JSON can't,
    ///   ``CurlewError/urlRequestValidationFailed(reason:)`` for a request without a URL; what `urlRequest` throws.
    public func encode(_ urlRequest: any URLRequestConvertible, withJSONObject jsonObject: Any? = nil) throws -> URLRequest {
        try encoded(urlRequest, jsonObject)
    }

    /// The same by a name that no other module uses.
    package func encoded(_ urlRequest: any URLRequestConvertible, _ jsonObject: Any?) throws -> URLRequest {
        var request = try urlRequest.asURLRequest()
        guard let jsonObject else { return request }
        try request.setBody(data(of: jsonObject), contentType: "application/json")
        return request
    }

    private func data(of object: Any) throws(CurlewError) -> Data {
        do {
            try validate(object)
            return try JSONSerialization.data(withJSONObject: object, options: options)
        } catch {
            throw .parameterEncodingFailed(reason: .jsonEncodingFailed(error: error))
        }
    }

    private func validate(_ object: Any) throws(CocoaError) {
        try ParameterTree(format: "JSON") { $0 is String || JSONSerialization.isValidJSONObject([$0]) }.validate(object)
        guard options.contains(.fragmentsAllowed) || object is [String: Any] || object is [Any] else {
            throw .unencodable("The top level is neither a dictionary nor an array, and fragments are not allowed.")
        }
    }
}
