// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Creates an upload of an asynchronous sequence of pieces, such as `Data`, `[UInt8]` or a view of a buffer; POST by default.
    ///
    /// ```swift
    /// let reply = try await manager.upload(file.chunks, length: size, to: url, method: .put).validate().serializingData().value
    /// ```
    ///
    /// The sequence is read in a task of its own, from the start of the transfer, with the task-local values of the caller. It is read ahead
    /// by up to 256 KiB, and not while the network takes no bytes. The task is cancelled when the request finishes.
    ///
    /// An error of the sequence fails the request as it was thrown. The sequence can be sent once: a retry, a redirect that repeats the
    /// body, or an authenticated retry fails with ``CurlewError/redirectFailed(reason:in:)`` or the response's own error as soon as bytes
    /// were sent; to allow those, hand over a closure that makes the sequence.
    ///
    /// - Parameters:
    ///   - sequence: the body.
    ///   - length: the number of bytes, sent as `Content-Length`; `nil`, the default, if it is unknown, for a chunked body. A sequence with
    ///     fewer or more bytes fails the request with ``TransferFailure/Kind/requestBody``.
    ///   - url: the URL.
    ///   - method: POST by default.
    ///   - headers: header fields.
    ///   - trailers: returns the fields that follow the body, such as a checksum of it; called once the sequence has ended, in its task.
    ///     `nil`, the default, for none. A body with trailers is chunked and sent over HTTP/1.1, as libcurl sends them no other way; where
    ///     HTTP/2 is insisted on, or NTLM or Negotiate is used, it fails with ``TransferFailure/Kind/configuration``. A field that may not
    ///     be a trailer (RFC 9110, section 6.5.1) fails the request with ``CurlewError/urlRequestValidationFailed(reason:in:)``. Announce
    ///     the names in the field `Trailer`.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    @discardableResult
    public func upload<S: AsyncSequence & Sendable>(
        _ sequence: S, length: Int64? = nil, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
        trailers: (@Sendable () -> HTTPHeaders)? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> UploadRequest where S.Element: Collection, S.Element.Element == UInt8 {
        upload(
            sequence, length: length, with: RequestParts(url: url, method: method, headers: headers), trailers: trailers,
            interceptor: interceptor, options: options)
    }

    /// Creates an upload of an asynchronous sequence as the body of a `URLRequest`.
    ///
    /// Parameters as in ``upload(_:length:to:method:headers:trailers:interceptor:options:)-(S,_,_,_,_,_,_,_)``.
    @discardableResult
    public func upload<S: AsyncSequence & Sendable>(
        _ sequence: S, length: Int64? = nil, with urlRequest: any URLRequestConvertible, trailers: (@Sendable () -> HTTPHeaders)? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> UploadRequest where S.Element: Collection, S.Element.Element == UInt8 {
        let body = SequenceBody(MadeSequenceReader(make: { sequence }, trailers: trailers), length: length, makesSequences: false)
        return makeUpload(.sequence(body), urlRequest, RequestSettings.of(interceptor, options))
    }

    /// Creates an upload of the asynchronous sequence that a closure returns; POST by default.
    ///
    /// The closure is called for each attempt, each redirect that repeats the body (307, 308) and each authenticated retry, and returns a
    /// sequence with the same bytes, from the first one. An error that it throws fails the request. Everything else is as in
    /// ``upload(_:length:to:method:headers:trailers:interceptor:options:)-(S,_,_,_,_,_,_,_)``.
    ///
    /// ```swift
    /// manager.upload({ FileHandle.chunks(of: path) }, to: url)
    /// ```
    @discardableResult
    public func upload<S: AsyncSequence>(
        _ makeSequence: @escaping @Sendable () async throws -> S, length: Int64? = nil, to url: any URLConvertible,
        method: HTTPMethod = .post, headers: HTTPHeaders? = nil, trailers: (@Sendable () -> HTTPHeaders)? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> UploadRequest where S.Element: Collection, S.Element.Element == UInt8 {
        upload(
            makeSequence, length: length, with: RequestParts(url: url, method: method, headers: headers), trailers: trailers,
            interceptor: interceptor, options: options)
    }

    /// Creates an upload of the asynchronous sequence that a closure returns as the body of a `URLRequest`.
    ///
    /// Parameters as in the function above, which makes the `URLRequest` of a URL.
    @discardableResult
    public func upload<S: AsyncSequence>(
        _ makeSequence: @escaping @Sendable () async throws -> S, length: Int64? = nil, with urlRequest: any URLRequestConvertible,
        trailers: (@Sendable () -> HTTPHeaders)? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> UploadRequest where S.Element: Collection, S.Element.Element == UInt8 {
        let body = SequenceBody(MadeSequenceReader(make: makeSequence, trailers: trailers), length: length, makesSequences: true)
        return makeUpload(.sequence(body), urlRequest, RequestSettings.of(interceptor, options))
    }

    /// Creates an upload of a sequence whose response is received only as fast as it is read, with ``DataRequest/bodyStream()``.
    ///
    /// As ``streamRequest(_:method:parameters:encoding:headers:interceptor:options:)`` it shares no HTTP/2 connection. Sending and receiving are
    /// paused independently of each other.
    ///
    /// - Parameter isRepeatable: whether another call of `makeSequence` returns the same bytes, so that they can be sent again.
    package func streamUpload<S: AsyncSequence>(
        _ makeSequence: @escaping @Sendable () async throws -> S, isRepeatable: Bool, length: Int64?, to url: any URLConvertible,
        method: HTTPMethod, headers: HTTPHeaders?, interceptor: (any RequestInterceptor)?, options: RequestOptions?, isStreamed: Bool
    ) -> UploadRequest where S.Element: Collection, S.Element.Element == UInt8 {
        let body = SequenceBody(MadeSequenceReader(make: makeSequence, trailers: nil), length: length, makesSequences: isRepeatable)
        return makeUpload(
            .sequence(body), RequestParts(url: url, method: method, headers: headers), RequestSettings.of(interceptor, options),
            isStreamed: isStreamed)
    }
}
