// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Creates an upload of bytes to a URL; POST by default.
    @discardableResult
    public func upload(
        _ data: Data, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> UploadRequest {
        upload(data, with: RequestParts(url: url, method: method, headers: headers), interceptor: interceptor, options: options)
    }

    /// Creates an upload of bytes as the body of a `URLRequest`, with its own interceptor and options.
    @discardableResult
    public func upload(
        _ data: Data, with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)?,
        options: RequestOptions? = nil
    ) -> UploadRequest {
        guard let settings = RequestSettings.of(interceptor, options) else { return upload(data, with: urlRequest) }
        return handOver(settings) {
            upload(data, with: urlRequest)
        } or: {
            makeUpload(.data(data), urlRequest, settings)
        }
    }

    /// Creates an upload of bytes as the body of a `URLRequest`, with its own options.
    @discardableResult
    public func upload(_ data: Data, with urlRequest: any URLRequestConvertible, options: RequestOptions?) -> UploadRequest {
        upload(data, with: urlRequest, interceptor: nil, options: options)
    }

    /// Creates an upload of a file to a URL; POST by default.
    ///
    /// The file is read while it is sent, again for each attempt, and must not change until the request has finished. A missing file fails
    /// the request with `CocoaError.fileReadNoSuchFile`.
    @discardableResult
    public func upload(
        _ fileURL: URL, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> UploadRequest {
        upload(fileURL, with: RequestParts(url: url, method: method, headers: headers), interceptor: interceptor, options: options)
    }

    /// Creates an upload of a file as the body of a `URLRequest`, with its own interceptor and options.
    @discardableResult
    public func upload(
        _ fileURL: URL, with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)?,
        options: RequestOptions? = nil
    ) -> UploadRequest {
        guard let settings = RequestSettings.of(interceptor, options) else { return upload(fileURL, with: urlRequest) }
        return handOver(settings) {
            upload(fileURL, with: urlRequest)
        } or: {
            makeUpload(.file(fileURL), urlRequest, settings)
        }
    }

    /// Creates an upload of a file as the body of a `URLRequest`, with its own options.
    @discardableResult
    public func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible, options: RequestOptions?) -> UploadRequest {
        upload(fileURL, with: urlRequest, interceptor: nil, options: options)
    }

    /// Creates an upload of a stream to a URL; POST by default.
    ///
    /// The stream is read on its own queue while it is sent, and closed at its end. It can be sent once: a retry, or a redirect that
    /// repeats the body, fails. Without a `Content-Length` header it is sent chunked.
    @discardableResult
    public func upload(
        _ stream: InputStream, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> UploadRequest {
        upload(stream, with: RequestParts(url: url, method: method, headers: headers), interceptor: interceptor, options: options)
    }

    /// Creates an upload of a stream as the body of a `URLRequest`, with its own interceptor and options.
    @discardableResult
    public func upload(
        _ stream: InputStream, with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)?,
        options: RequestOptions? = nil
    ) -> UploadRequest {
        guard let settings = RequestSettings.of(interceptor, options) else { return upload(stream, with: urlRequest) }
        return handOver(settings) {
            upload(stream, with: urlRequest)
        } or: {
            makeUpload(.stream(StreamBody(stream)), urlRequest, settings)
        }
    }

    /// Creates an upload of a stream as the body of a `URLRequest`, with its own options.
    @discardableResult
    public func upload(_ stream: InputStream, with urlRequest: any URLRequestConvertible, options: RequestOptions?) -> UploadRequest {
        upload(stream, with: urlRequest, interceptor: nil, options: options)
    }

    /// - Parameter isStreamed: whether the response's body is received only as fast as it is read.
    func makeUpload(
        _ content: UploadContent, _ urlRequest: any URLRequestConvertible, _ settings: RequestSettings? = nil, isStreamed: Bool = false
    ) -> UploadRequest {
        perform(
            UploadRequest(
                original: original(Request.RequestTask.upload) {
                    Uploadable(request: try Requestable(urlRequest), content: content, isStreamed: isStreamed)
                },
                session: session, sessionDelegate: delegate, receiver: makeReceiver(isStreamed: isStreamed, settings),
                sentBody: SentBody(content), settings: settings))
    }
}
