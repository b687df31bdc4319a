// SPDX-License-Identifier: Apache-2.0
@_exported import CurlewCache
@_exported import CurlewCookies
@_exported import CurlewCore
@_exported import CurlewEncoding
@_exported import CurlewHTTP
@_exported import CurlewTransport
import Dispatch

// Requests of the default manager: the functions of Alamofire 4, and no more. Each forwards to the member of that name of
// `SessionManager.default`, whose parameters it has: `interceptor` adapts the request and decides about its retries before the session's,
// `options` (for downloads `requestOptions`) are the request's own settings, such as its deadline; `nil`, the default, for none.

/// Creates a data request for a URL, with parameters encoded into it, in ``SessionManager/default``.
@discardableResult
public func request(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> DataRequest {
    SessionManager.default.request(
        url, method: method, parameters: parameters, encoding: encoding, headers: headers, interceptor: interceptor, options: options)
}

/// Creates a data request from a `URLRequest`, in ``SessionManager/default``.
@discardableResult
public func request(
    _ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> DataRequest {
    SessionManager.default.request(urlRequest, interceptor: interceptor, options: options)
}

/// Creates a download of a URL, in ``SessionManager/default``.
@preconcurrency @discardableResult
public func download(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
    to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(
        url, method: method, parameters: parameters, encoding: encoding, headers: headers, interceptor: interceptor,
        requestOptions: requestOptions, to: destination)
}

/// Creates a download of a `URLRequest`, in ``SessionManager/default``.
@preconcurrency @discardableResult
public func download(
    _ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
    to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(urlRequest, interceptor: interceptor, requestOptions: requestOptions, to: destination)
}

/// Resumes a download from its resume data, in ``SessionManager/default``.
@discardableResult
public func download(
    resumingWith resumeData: Data, interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
    to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(resumingWith: resumeData, interceptor: interceptor, requestOptions: requestOptions, to: destination)
}

/// Creates an upload of bytes, a file, a stream or a form, in ``SessionManager/default``.
@discardableResult
public func upload(
    _ body: some UploadBody, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> UploadRequest {
    SessionManager.default.upload(body, to: url, method: method, headers: headers, interceptor: interceptor, options: options)
}

/// Creates an upload of bytes, a file, a stream or a form as the body of a `URLRequest`, in ``SessionManager/default``.
@discardableResult
public func upload(
    _ body: some UploadBody, with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
    options: RequestOptions? = nil
) -> UploadRequest {
    SessionManager.default.upload(body, with: urlRequest, interceptor: interceptor, options: options)
}

/// Encodes a form and creates an upload of it to a URL, in ``SessionManager/default``.
@preconcurrency
public func upload(
    multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
    usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
    to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil, queue: DispatchQueue? = nil,
    encodingCompletion: (@Sendable (SessionManager.MultipartFormDataEncodingResult) -> Void)?
) {
    SessionManager.default.upload(
        multipartFormData: multipartFormData, usingThreshold: encodingMemoryThreshold, to: url, method: method, headers: headers,
        interceptor: interceptor, options: options, queue: queue,
        encodingCompletion: encodingCompletion)
}

/// Encodes a form and creates an upload of it as the body of a `URLRequest`, in ``SessionManager/default``.
@preconcurrency
public func upload(
    multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
    usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
    with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil,
    queue: DispatchQueue? = nil, encodingCompletion: (@Sendable (SessionManager.MultipartFormDataEncodingResult) -> Void)?
) {
    SessionManager.default.upload(
        multipartFormData: multipartFormData, usingThreshold: encodingMemoryThreshold, with: urlRequest, interceptor: interceptor,
        options: options, queue: queue,
        encodingCompletion: encodingCompletion)
}

/// Opens a raw TCP connection, in ``SessionManager/default``.
@discardableResult
public func stream(
    withHostName hostName: String, port: Int, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> StreamRequest {
    SessionManager.default.stream(withHostName: hostName, port: port, interceptor: interceptor, options: options)
}
