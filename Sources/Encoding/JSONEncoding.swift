// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP

/// Encodes parameters as JSON (RFC 8259) in the body.
///
/// Accepts what `JSONSerialization` accepts: strings, finite numbers, Booleans, `NSNull`, arrays, and dictionaries with `String` keys,
/// nested at most 512 levels deep; `nil` becomes `null`. Any other value, such as a `Date` or a `URL`, is an error.
public struct JSONEncoding: ParameterEncoding {
    /// The encoding without options: compact, keys in no particular order.
    public static var `default`: JSONEncoding { JSONEncoding() }
    /// The encoding with line breaks and indentation.
    public static var prettyPrinted: JSONEncoding { JSONEncoding(options: .prettyPrinted) }

    /// The options for `JSONSerialization`.
    public let options: JSONSerialization.WritingOptions

    /// Creates an encoding; without options by default.
    public init(options: JSONSerialization.WritingOptions = []) {
        self.options = options
    }

    /// Returns the request with the parameters as a JSON object in its body.
    ///
    /// Sets the content type `application/json` unless the request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:in:)`` if JSON can't represent the parameters,
    ///   ``CurlewError/urlRequestValidationFailed(reason:in:)`` for a request without a URL; errors thrown by `urlRequest`.
    public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        try encode(urlRequest, withJSONObject: parameters)
    }

    /// Returns the request with a JSON text in its body, whose top level may be an array.
    ///
    /// `nil` leaves the request unchanged. A top level that is neither a dictionary nor an array requires the option `fragmentsAllowed`.
    /// Sets the content type `application/json` unless the request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:in:)`` if JSON can't represent the object,
    ///   ``CurlewError/urlRequestValidationFailed(reason:in:)`` for a request without a URL; errors thrown by `urlRequest`.
    public func encode(_ urlRequest: any URLRequestConvertible, withJSONObject jsonObject: Any? = nil) throws -> URLRequest {
        try encoded(urlRequest, jsonObject)
    }

    /// Same as ``encode(_:withJSONObject:)``, under a name that no other module declares.
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
            throw .unencodable("The top level is neither a dictionary nor an array; other values require the option fragmentsAllowed.")
        }
    }
}
