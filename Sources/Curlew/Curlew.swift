// SPDX-License-Identifier: Apache-2.0
@_exported import CurlewCache
@_exported import CurlewCookies
@_exported import CurlewCore
@_exported import CurlewEncoding
@_exported import CurlewHTTP
@_exported import CurlewTransport
import Dispatch

// Requests of the default manager. Each of these functions forwards to the member of that name of `SessionManager.default`, whose
// parameters it has: `interceptor` adapts the request and decides about its retries before the session's, `options` (for downloads
// `requestOptions`) are the request's own settings, such as its deadline; `nil`, the default, for none.

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

/// Creates a data request for a URL, with an `Encodable` value encoded into it, in ``SessionManager/default``.
@_disfavoredOverload @discardableResult
public func request<Parameters: Encodable & Sendable>(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters?,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> DataRequest {
    SessionManager.default.request(
        url, method: method, parameters: parameters, encoder: encoder, headers: headers, interceptor: interceptor, options: options)
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

/// Creates a download of a URL with an `Encodable` value encoded into the request, in ``SessionManager/default``.
@_disfavoredOverload @discardableResult
public func download<Parameters: Encodable & Sendable>(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters?,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
    to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(
        url, method: method, parameters: parameters, encoder: encoder, headers: headers, interceptor: interceptor,
        requestOptions: requestOptions, to: destination)
}

/// Creates a download of a URL to a file with an `Encodable` value encoded into the request, in ``SessionManager/default``.
@_disfavoredOverload @discardableResult
public func download<Parameters: Encodable & Sendable>(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters?,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
    to fileURL: URL, options: DownloadRequest.DownloadOptions = []
) -> DownloadRequest {
    SessionManager.default.download(
        url, method: method, parameters: parameters, encoder: encoder, headers: headers, interceptor: interceptor,
        requestOptions: requestOptions, to: fileURL, options: options)
}

/// Creates a download of a `URLRequest`, in ``SessionManager/default``.
@preconcurrency @discardableResult
public func download(
    _ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
    to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(urlRequest, interceptor: interceptor, requestOptions: requestOptions, to: destination)
}

/// Creates a download of a URL to a file, in ``SessionManager/default``.
@discardableResult
public func download(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
    to fileURL: URL, options: DownloadRequest.DownloadOptions = []
) -> DownloadRequest {
    SessionManager.default.download(
        url, method: method, parameters: parameters, encoding: encoding, headers: headers, interceptor: interceptor,
        requestOptions: requestOptions, to: fileURL, options: options)
}

/// Creates a download of a `URLRequest` to a file, in ``SessionManager/default``.
@discardableResult
public func download(
    _ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
    to fileURL: URL, options: DownloadRequest.DownloadOptions = []
) -> DownloadRequest {
    SessionManager.default.download(urlRequest, interceptor: interceptor, requestOptions: requestOptions, to: fileURL, options: options)
}

/// Resumes a download from its resume data, in ``SessionManager/default``.
@discardableResult
public func download(
    resumingWith resumeData: Data, interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
    to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(resumingWith: resumeData, interceptor: interceptor, requestOptions: requestOptions, to: destination)
}

/// Resumes a download from its resume data to a file, in ``SessionManager/default``.
@discardableResult
public func download(
    resumingWith resumeData: Data, interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
    to fileURL: URL, options: DownloadRequest.DownloadOptions = []
) -> DownloadRequest {
    SessionManager.default.download(
        resumingWith: resumeData, interceptor: interceptor, requestOptions: requestOptions, to: fileURL, options: options)
}

/// Creates an upload of bytes, in ``SessionManager/default``.
@discardableResult
public func upload(
    _ data: Data, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> UploadRequest {
    SessionManager.default.upload(data, to: url, method: method, headers: headers, interceptor: interceptor, options: options)
}

/// Creates an upload of bytes as the body of a `URLRequest`, in ``SessionManager/default``.
@discardableResult
public func upload(
    _ data: Data, with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
    options: RequestOptions? = nil
) -> UploadRequest {
    SessionManager.default.upload(data, with: urlRequest, interceptor: interceptor, options: options)
}

/// Creates an upload of a file, in ``SessionManager/default``.
@discardableResult
public func upload(
    _ fileURL: URL, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> UploadRequest {
    SessionManager.default.upload(fileURL, to: url, method: method, headers: headers, interceptor: interceptor, options: options)
}

/// Creates an upload of a file as the body of a `URLRequest`, in ``SessionManager/default``.
@discardableResult
public func upload(
    _ fileURL: URL, with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
    options: RequestOptions? = nil
) -> UploadRequest {
    SessionManager.default.upload(fileURL, with: urlRequest, interceptor: interceptor, options: options)
}

/// Creates an upload of a stream, in ``SessionManager/default``.
@discardableResult
public func upload(
    _ stream: InputStream, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> UploadRequest {
    SessionManager.default.upload(stream, to: url, method: method, headers: headers, interceptor: interceptor, options: options)
}

/// Creates an upload of a stream as the body of a `URLRequest`, in ``SessionManager/default``.
@discardableResult
public func upload(
    _ stream: InputStream, with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
    options: RequestOptions? = nil
) -> UploadRequest {
    SessionManager.default.upload(stream, with: urlRequest, interceptor: interceptor, options: options)
}

/// Creates an upload of an asynchronous sequence of pieces, in ``SessionManager/default``; `length` is the number of bytes, if it is known.
@discardableResult
public func upload<S: AsyncSequence & Sendable>(
    _ sequence: S, length: Int64? = nil, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    trailers: (@Sendable () -> HTTPHeaders)? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> UploadRequest where S.Element: Collection, S.Element.Element == UInt8 {
    SessionManager.default.upload(
        sequence, length: length, to: url, method: method, headers: headers, trailers: trailers, interceptor: interceptor, options: options)
}

/// Creates an upload of an asynchronous sequence of pieces as the body of a `URLRequest`, in ``SessionManager/default``.
@discardableResult
public func upload<S: AsyncSequence & Sendable>(
    _ sequence: S, length: Int64? = nil, with urlRequest: any URLRequestConvertible,
    trailers: (@Sendable () -> HTTPHeaders)? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> UploadRequest where S.Element: Collection, S.Element.Element == UInt8 {
    SessionManager.default.upload(
        sequence, length: length, with: urlRequest, trailers: trailers, interceptor: interceptor, options: options)
}

/// Creates an upload of the asynchronous sequence that a closure returns for each attempt, in ``SessionManager/default``.
@discardableResult
public func upload<S: AsyncSequence>(
    _ makeSequence: @escaping @Sendable () async throws -> S, length: Int64? = nil, to url: any URLConvertible, method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil,
    trailers: (@Sendable () -> HTTPHeaders)? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> UploadRequest where S.Element: Collection, S.Element.Element == UInt8 {
    SessionManager.default.upload(
        makeSequence, length: length, to: url, method: method, headers: headers, trailers: trailers, interceptor: interceptor,
        options: options)
}

/// Creates an upload of the asynchronous sequence that a closure returns for each attempt as the body of a `URLRequest`, in
/// ``SessionManager/default``.
@discardableResult
public func upload<S: AsyncSequence>(
    _ makeSequence: @escaping @Sendable () async throws -> S, length: Int64? = nil, with urlRequest: any URLRequestConvertible,
    trailers: (@Sendable () -> HTTPHeaders)? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> UploadRequest where S.Element: Collection, S.Element.Element == UInt8 {
    SessionManager.default.upload(
        makeSequence, length: length, with: urlRequest, trailers: trailers, interceptor: interceptor, options: options)
}

/// Creates an upload of a form, sent from where its parts lie, in ``SessionManager/default``.
@discardableResult
public func upload(
    _ form: MultipartFormData, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> UploadRequest {
    SessionManager.default.upload(form, to: url, method: method, headers: headers, interceptor: interceptor, options: options)
}

/// Creates an upload of a form as the body of a `URLRequest`, in ``SessionManager/default``.
@discardableResult
public func upload(
    _ form: MultipartFormData, with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
    options: RequestOptions? = nil
) -> UploadRequest {
    SessionManager.default.upload(form, with: urlRequest, interceptor: interceptor, options: options)
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

/// Creates a request whose body is read with ``DataRequest/bodyStream()`` as fast as it is received, in ``SessionManager/default``.
@discardableResult
public func streamRequest(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> DataRequest {
    SessionManager.default.streamRequest(
        url, method: method, parameters: parameters, encoding: encoding, headers: headers, interceptor: interceptor, options: options)
}

/// Creates a request with an `Encodable` value encoded into it, whose body is read with ``DataRequest/bodyStream()``, in
/// ``SessionManager/default``.
@_disfavoredOverload @discardableResult
public func streamRequest<Parameters: Encodable & Sendable>(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters?,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> DataRequest {
    SessionManager.default.streamRequest(
        url, method: method, parameters: parameters, encoder: encoder, headers: headers, interceptor: interceptor, options: options)
}

/// Creates a request from a `URLRequest` whose body is read with ``DataRequest/bodyStream()``, in ``SessionManager/default``.
@discardableResult
public func streamRequest(
    _ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> DataRequest {
    SessionManager.default.streamRequest(urlRequest, interceptor: interceptor, options: options)
}

/// Opens a raw TCP connection, in ``SessionManager/default``.
@discardableResult
public func stream(
    withHostName hostName: String, port: Int, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> StreamRequest {
    SessionManager.default.stream(withHostName: hostName, port: port, interceptor: interceptor, options: options)
}

/// Opens a TLS connection, in ``SessionManager/default``.
@discardableResult
public func stream(
    withSecureHostName hostName: String, port: Int, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
) -> StreamRequest {
    SessionManager.default.stream(withSecureHostName: hostName, port: port, interceptor: interceptor, options: options)
}
