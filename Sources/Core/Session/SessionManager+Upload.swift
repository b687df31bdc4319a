// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Creates an upload of a slice of a file to a URL, such as a part of a multipart upload; PUT by default.
    ///
    /// ```swift
    /// manager.upload(fileURL, offset: 8 << 20, length: 8 << 20, to: partURL)
    /// ```
    ///
    /// The slice is read while it is sent, again for each attempt, and never entirely in memory. The file must not change until the request
    /// has finished.
    ///
    /// - Parameters:
    ///   - fileURL: a regular file; a missing one fails the request with `CocoaError.fileReadNoSuchFile`.
    ///   - offset: where the slice begins, in bytes.
    ///   - length: its length; `nil` for all bytes up to the end of the file, as it is when the attempt is made. A file that is too short fails
    ///     the request with ``TransferFailure/Kind/requestBody``.
    ///   - url: the URL.
    ///   - method: PUT by default.
    ///   - headers: header fields, which replace the session's of the same name.
    ///   - setsContentRange: whether `Content-Range` (RFC 9110, section 14.4) says which bytes of how many these are, as servers expect that
    ///     continue an upload by it; `false` by default. An empty slice has none.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    @discardableResult
    public func upload(
        _ fileURL: URL, offset: Int64, length: Int64?, to url: any URLConvertible, method: HTTPMethod = .put, headers: HTTPHeaders? = nil,
        setsContentRange: Bool = false, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> UploadRequest {
        upload(
            fileURL, offset: offset, length: length, with: RequestParts(url: url, method: method, headers: headers),
            setsContentRange: setsContentRange, interceptor: interceptor, options: options)
    }

    /// Creates an upload of a slice of a file as the body of a `URLRequest`.
    ///
    /// As ``upload(_:offset:length:to:method:headers:setsContentRange:interceptor:options:)``.
    @discardableResult
    public func upload(
        _ fileURL: URL, offset: Int64, length: Int64?, with urlRequest: any URLRequestConvertible, setsContentRange: Bool = false,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> UploadRequest {
        let slice = FileSlice(offset: offset, length: length, setsContentRange: setsContentRange)
        return makeUpload(.file(fileURL, slice), urlRequest, RequestSettings.of(interceptor, options))
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
