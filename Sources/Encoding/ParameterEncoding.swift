// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP

/// The parameters of a request, by name. The encoding determines which types of values are valid.
public typealias Parameters = [String: Any]

/// Encodes parameters into a request.
@preconcurrency public protocol ParameterEncoding: Sendable {
    /// Returns the request with the encoded parameters.
    ///
    /// `nil` parameters leave the request unchanged. Curlew's encodings throw ``CurlewError/parameterEncodingFailed(reason:in:)``. The
    /// request fails with any error that an encoding throws.
    func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest
}

extension URLRequest {
    /// Sets the body, and the content type unless the request has one.
    mutating func setBody(_ body: Data, contentType: String) throws(CurlewError) {
        // Foundation on Linux traps when a copied request without a URL is modified; such a request can't be sent anyway.
        guard url != nil else { throw .urlRequestValidationFailed(reason: .missingURL) }
        if value(forHTTPHeaderField: "Content-Type") == nil { setValue(contentType, forHTTPHeaderField: "Content-Type") }
        httpBody = body
    }
}
