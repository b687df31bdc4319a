// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Makes an upload of bytes to a URL; POST by default.
    @discardableResult
    public func upload(
        _ data: Data, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil
    ) -> UploadRequest {
        upload(data, with: RequestParts(url: url, method: method, headers: headers), interceptor: interceptor)
    }

    /// Makes an upload of bytes as the body of a `URLRequest`, with an interceptor of its own.
    @discardableResult
    public func upload(
        _ data: Data, with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)?
    ) -> UploadRequest {
        guard interceptor != nil else { return upload(data, with: urlRequest) }
        return makeUpload(.data(data), urlRequest, interceptor)
    }

    /// Makes an upload of a file to a URL; POST by default.
    ///
    /// The file is read while it is sent, anew for each attempt, and has to stay as it is until the request is over. One that is not
    /// there fails the request with `CocoaError.fileReadNoSuchFile`.
    @discardableResult
    public func upload(
        _ fileURL: URL, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil
    ) -> UploadRequest {
        upload(fileURL, with: RequestParts(url: url, method: method, headers: headers), interceptor: interceptor)
    }

    /// Makes an upload of a file as the body of a `URLRequest`, with an interceptor of its own.
    @discardableResult
    public func upload(
        _ fileURL: URL, with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)?
    ) -> UploadRequest {
        guard interceptor != nil else { return upload(fileURL, with: urlRequest) }
        return makeUpload(.file(fileURL), urlRequest, interceptor)
    }

    /// Makes an upload of a stream to a URL; POST by default.
    ///
    /// The stream is read on a queue of its own while it is sent, and closed at its end. It can be sent once: a retry, or a redirect that
    /// asks for it again, fails. Without a `Content-Length` header its length is unknown, and it goes out chunked.
    @discardableResult
    public func upload(
        _ stream: InputStream, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil
    ) -> UploadRequest {
        upload(stream, with: RequestParts(url: url, method: method, headers: headers), interceptor: interceptor)
    }

    /// Makes an upload of a stream as the body of a `URLRequest`, with an interceptor of its own.
    @discardableResult
    public func upload(
        _ stream: InputStream, with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)?
    ) -> UploadRequest {
        guard interceptor != nil else { return upload(stream, with: urlRequest) }
        return makeUpload(.stream(StreamBody(stream)), urlRequest, interceptor)
    }

    func makeUpload(
        _ content: Uploadable.Content, _ urlRequest: any URLRequestConvertible, _ interceptor: (any RequestInterceptor)? = nil
    ) -> UploadRequest {
        let temporaryFile: TemporaryFile? = if case .temporaryFile(let file) = content { file } else { nil }
        return perform(
            UploadRequest(
                original: original(Request.RequestTask.upload) { Uploadable(request: try Requestable(urlRequest), content: content) },
                session: session, sessionDelegate: delegate, receiver: makeReceiver(), sentBody: SentBody(temporaryFile: temporaryFile),
                interceptor: interceptor))
    }
}
