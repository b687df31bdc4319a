// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP

/// The parameters of a request: names and values, the values of the kinds that the encoding takes.
public typealias Parameters = [String: Any]

/// A way to write parameters into a request.
@preconcurrency public protocol ParameterEncoding: Sendable {
    /// The request with the parameters written into it.
    ///
    /// `nil` for the parameters leaves the request as it is. Curlew's own encodings throw ``CurlewError/parameterEncodingFailed(reason:)``;
    /// whatever an encoding throws ends the request with that error.
    func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest
}

extension URLRequest {
    /// Sets the body, and the content type unless the request has one.
    mutating func setBody(_ body: Data, contentType: String) throws(CurlewError) {
        // Foundation on Linux traps when a copied request without a URL is changed; such a request can't be sent anyway.
        guard url != nil else { throw .urlRequestValidationFailed(reason: .missingURL) }
        if value(forHTTPHeaderField: "Content-Type") == nil { setValue(contentType, forHTTPHeaderField: "Content-Type") }
        httpBody = body
    }
}
