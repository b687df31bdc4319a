// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

// A dictionary literal may be both `Parameters` and `Encodable`. Disfavoring these overloads makes it `Parameters` without an `encoder`;
// otherwise the call would be ambiguous.

extension SessionManager {
    /// Creates a data request for a URL, with an `Encodable` value encoded into it.
    ///
    /// Does not throw: a request that can't be created runs its handlers with the error.
    ///
    /// - Parameters:
    ///   - url: the URL.
    ///   - method: GET by default.
    ///   - parameters: encoded into query or body; `nil` for none.
    ///   - encoder: how parameters are encoded; by default into the query for GET, HEAD and DELETE, into a form body for other methods.
    ///   - headers: header fields, which replace the session's of the same name.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    @_disfavoredOverload @discardableResult
    public func request<Parameters: Encodable & Sendable>(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters?,
        encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> DataRequest {
        request(
            RequestParts(url: url, method: method, parameters: parameters, encoder: encoder, headers: headers), interceptor: interceptor,
            options: options)
    }

    /// Creates a request with an `Encodable` value encoded into it, whose body is read with ``DataRequest/bodyStream()``.
    ///
    /// Parameters as in ``request(_:method:parameters:encoder:headers:interceptor:options:)``.
    @_disfavoredOverload @discardableResult
    public func streamRequest<Parameters: Encodable & Sendable>(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters?,
        encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> DataRequest {
        streamRequest(
            RequestParts(url: url, method: method, parameters: parameters, encoder: encoder, headers: headers), interceptor: interceptor,
            options: options)
    }

    /// Creates a download of a URL, with an `Encodable` value encoded into the request.
    ///
    /// Parameters as in ``request(_:method:parameters:encoder:headers:interceptor:options:)``. `destination` returns the file's destination
    /// once the body is complete; with `nil`, the default, the file remains in the session's temporary directory.
    @_disfavoredOverload @discardableResult
    public func download<Parameters: Encodable & Sendable>(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters?,
        encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        download(
            RequestParts(url: url, method: method, parameters: parameters, encoder: encoder, headers: headers), interceptor: interceptor,
            requestOptions: requestOptions, to: destination)
    }

    /// Creates a download of a URL to a file, with an `Encodable` value encoded into the request.
    ///
    /// Parameters as in ``request(_:method:parameters:encoder:headers:interceptor:options:)``; file and options as for other
    /// downloads to a file.
    @_disfavoredOverload @discardableResult
    public func download<Parameters: Encodable & Sendable>(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters?,
        encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil, to fileURL: URL,
        options: DownloadRequest.DownloadOptions = []
    ) -> DownloadRequest {
        download(
            RequestParts(url: url, method: method, parameters: parameters, encoder: encoder, headers: headers), interceptor: interceptor,
            requestOptions: requestOptions, to: fileURL, options: options)
    }
}

/// An encoding that encodes an `Encodable` value with an encoder, and ignores its parameters.
private struct EncodedParameters<Value: Encodable & Sendable>: ParameterEncoding {
    let value: Value
    let encoder: any ParameterEncoder

    func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        try encoder.encode(value, into: urlRequest.asURLRequest())
    }
}

extension RequestParts {
    fileprivate init(
        url: any URLConvertible, method: HTTPMethod, parameters: (some Encodable & Sendable)?, encoder: any ParameterEncoder,
        headers: HTTPHeaders?
    ) {
        guard let parameters else {
            self.init(url: url, method: method, headers: headers)
            return
        }
        self.init(
            url: url, method: method, parameters: [:], encoding: EncodedParameters(value: parameters, encoder: encoder), headers: headers)
    }
}
