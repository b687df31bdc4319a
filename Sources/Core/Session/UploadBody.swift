// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// What an upload sends: `Data`, the `URL` of a file, an `InputStream` or a `MultipartFormData`.
///
/// ```swift
/// manager.upload(Data("curlew".utf8), to: url)
/// manager.upload(URL(fileURLWithPath: "/tmp/call.ogg"), to: url)
/// ```
///
/// - A file is read while it is sent, again for each attempt, and must not change until the request has finished. A missing file fails the
///   request with `CocoaError.fileReadNoSuchFile`.
/// - A stream is read on its own queue while it is sent, and closed at its end. It can be sent once: a retry, or a redirect that repeats the
///   body, fails. Without a `Content-Length` header it is sent chunked.
/// - A form's parts are sent from where they lie, with the exact `Content-Length`: nothing is written to disk, and files are read while they
///   are sent, again for each attempt. They must not change until the request has finished: a file that has another length by then fails
///   the request with ``CurlewError/multipartEncodingFailed(reason:in:)``, as does a part that could not be appended. A form with an
///   `InputStream`, or a sequence that is not made by a closure, can be sent once. Changes of the form after the call have no effect; its
///   streams belong to the request from then on. The request's `Content-Type` is replaced by the form's.
///
/// A type of your own is one if its ``makeUpload(_:)`` calls that of one of these.
public protocol UploadBody {
    /// Makes the upload; called by the functions of this name of a ``SessionManager``, once for a request.
    func makeUpload(_ target: UploadTarget) -> UploadRequest
}

/// Where an upload goes, with its own interceptor and options. Only a ``SessionManager`` makes one, for ``UploadBody/makeUpload(_:)``.
public struct UploadTarget {
    fileprivate let manager: SessionManager
    fileprivate let request: any URLRequestConvertible
    fileprivate let settings: RequestSettings?

    /// Makes the request: by the function that may be overridden, or without it.
    fileprivate func make(_ content: @autoclosure () -> UploadContent, overridable: () -> UploadRequest) -> UploadRequest {
        guard let settings else { return overridable() }
        return manager.handOver(settings, to: overridable) { manager.makeUpload(content(), request, settings) }
    }
}

extension Data: UploadBody {
    /// Makes an upload of the bytes.
    public func makeUpload(_ target: UploadTarget) -> UploadRequest {
        target.make(.data(self)) { target.manager.upload(self, with: target.request) }
    }
}

extension URL: UploadBody {
    /// Makes an upload of the file.
    public func makeUpload(_ target: UploadTarget) -> UploadRequest {
        target.make(.file(self)) { target.manager.upload(self, with: target.request) }
    }
}

extension InputStream: UploadBody {
    /// Makes an upload of the stream.
    public func makeUpload(_ target: UploadTarget) -> UploadRequest {
        target.make(.stream(StreamBody(self))) { target.manager.upload(self, with: target.request) }
    }
}

extension MultipartFormData: UploadBody {
    /// Makes an upload of the form.
    public func makeUpload(_ target: UploadTarget) -> UploadRequest {
        let request: any URLRequestConvertible
        if let parts = target.request as? RequestParts {
            request = RequestParts(parts, contentType: contentType)
        } else {
            request = FormRequest(request: target.request, contentType: contentType)
        }
        return target.manager.makeUpload(.init(self), request, target.settings)
    }
}

extension RequestParts {
    /// The same with the content type of a form.
    init(_ parts: RequestParts, contentType: String) {
        var headers = parts.headers ?? [:]
        headers.update(.contentType(contentType))
        self.init(url: parts.url, method: parts.method, parameters: parts.parameters, encoding: parts.encoding, headers: headers)
    }
}

extension UploadContent {
    /// A form that is sent from where its parts lie.
    fileprivate init(_ form: MultipartFormData) {
        do {
            self = .form(try UploadForm(form))
        } catch {
            self = .unreadable(error)
        }
    }
}

extension SessionManager {
    /// Creates an upload of bytes, a file, a stream or a form to a URL.
    ///
    /// Does not throw: a request that can't be created runs its handlers with the error.
    ///
    /// - Parameters:
    ///   - body: what is sent: `Data`, a file's `URL`, an `InputStream` or a `MultipartFormData`; see ``UploadBody``.
    ///   - url: the URL.
    ///   - method: POST by default.
    ///   - headers: header fields, which replace the session's of the same name.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    @discardableResult
    public func upload(
        _ body: some UploadBody, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> UploadRequest {
        upload(body, with: RequestParts(url: url, method: method, headers: headers), interceptor: interceptor, options: options)
    }

    /// Creates an upload of bytes, a file, a stream or a form as the body of a `URLRequest`, with its own interceptor and options.
    ///
    /// As ``upload(_:to:method:headers:interceptor:options:)``.
    @discardableResult
    public func upload(
        _ body: some UploadBody, with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil
    ) -> UploadRequest {
        body.makeUpload(UploadTarget(manager: self, request: urlRequest, settings: RequestSettings.of(interceptor, options)))
    }
}
