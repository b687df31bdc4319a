// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A response at its head, with a body that is received as fast as it is read.
///
/// ```swift
/// let response = try await manager.open(url)
/// guard response.statusCode == 200 else { throw Refusal(status: response.statusCode) }
/// for try await piece in response.body { try file.write(contentsOf: piece) }
/// ```
///
/// Releasing the response and its body cancels the request.
public struct StreamedResponse: Sendable {
    /// The head: status and header fields, with those of the interim responses before it.
    public let responseHead: ResponseHead
    /// The body, decoded. It throws the request's error, at the latest at its end, and can be read once.
    public let body: BodyStream

    /// The status code (RFC 9110, section 15).
    public var statusCode: Int { responseHead.statusCode }

    /// The header fields, in the order received.
    public var headers: HTTPHeaders { responseHead.headers }

    /// The fields that followed the body (RFC 9110, section 6.5), in the order received; empty until the body was received to its end.
    public var trailers: HTTPHeaders { request.responseTrailers }

    /// The request, for its metrics, its URL after redirects, or to cancel it.
    public var request: DataRequest { body.request }
}

extension DataRequest {
    /// Waits for the response's head, and returns it with the body, which is received as fast as it is read.
    ///
    /// Best with ``SessionManager/streamRequest(_:method:parameters:encoding:headers:interceptor:options:)``:
    ///
    /// ```swift
    /// let response = try await manager.streamRequest(url).validate().open()
    /// ```
    ///
    /// Validators of the status have run by then, those of the content type too if the response announces a length; of a body that is refused,
    /// up to 64 KiB are received for the error's `FailedRequest`. All others, and those of a request that is not streamed, run while the body
    /// is read, which throws what they throw. Retriers take part until the head. Cancelling the waiting task cancels the request. To be called
    /// once, without other handlers.
    ///
    /// - Parameter timeout: the time until the head, with all attempts and the delays between them; the body does not count. `nil`, the default,
    ///   for none. Deadlines bound the request with its body, `firstByteTimeout` each attempt.
    /// - Throws: the request's error; ``TransferFailure/Kind/deadline`` after the timeout; `CancellationError` if the task was cancelled.
    public func open(timeout: Duration? = nil) async throws -> StreamedResponse {
        let body = bodyStream()
        let isInTime = timeout.map { driver.beginDeadline(after: $0) }
        do {
            let head = try await body.acceptedHead()
            guard isInTime?() ?? true else { throw await error(of: body) }
            return StreamedResponse(responseHead: head, body: body)
        } catch {
            _ = isInTime?()
            if Task.isCancelled, case CurlewError.cancelled = error { throw CancellationError() }
            throw error
        }
    }

    /// Waits until the body has failed, after a cancellation.
    private func error(of body: BodyStream) async -> any Error {
        do {
            for try await _ in body {}
            return delegate.error
                ?? Deadline.failure(of: originalURL ?? "", attempt: retryCount + 1, during: .receivingHead)
        } catch {
            return error
        }
    }
}

extension SessionManager {
    /// Sends a request, and returns the response as soon as its head is received, with its body as a sequence.
    ///
    /// A status such as 404 is a response and not an error, as nothing is validated; see ``DataRequest/open(timeout:)`` for a request that is.
    /// Interceptors and redirects are those of any request, and retries until the head. It shares no HTTP/2 connection, because a paused
    /// stream blocks the others of its connection.
    ///
    /// - Parameters:
    ///   - url: the URL.
    ///   - method: GET by default.
    ///   - parameters: encoded into query or body; `nil`, the default, for none.
    ///   - encoding: how parameters are encoded; by default into the query for GET, HEAD and DELETE, into a form body for other methods.
    ///   - headers: header fields, which replace the session's of the same name.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline, which bounds the body too; `nil`, the default, for the session's.
    ///   - timeout: the time until the head, with all attempts and the delays between them; `nil`, the default, for none.
    /// - Throws: as ``DataRequest/open(timeout:)``.
    public func open(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil, timeout: Duration? = nil
    ) async throws -> StreamedResponse {
        try Task.checkCancellation()
        return try await streamRequest(
            url, method: method, parameters: parameters, encoding: encoding, headers: headers, interceptor: interceptor, options: options
        ).open(timeout: timeout)
    }

    /// Sends a `URLRequest`, with its body in memory, and returns the response as soon as its head is received.
    ///
    /// As ``open(_:method:parameters:encoding:headers:interceptor:options:timeout:)``.
    public func open(
        _ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil,
        timeout: Duration? = nil
    ) async throws -> StreamedResponse {
        try Task.checkCancellation()
        return try await streamRequest(urlRequest, interceptor: interceptor, options: options).open(timeout: timeout)
    }

    /// Sends an asynchronous sequence of pieces, such as `Data` or `[UInt8]`, and returns the response as soon as its head is received.
    ///
    /// Backpressure in both directions, each independent of the other: a server may answer before it has the whole body, and sending continues
    /// while the response is read. The sequence can be sent once; to allow retries and redirects that repeat it, hand over a closure
    /// that makes the sequence.
    ///
    /// - Parameters:
    ///   - url: the URL.
    ///   - method: POST by default.
    ///   - body: the request's body. An error that it throws fails the request.
    ///   - length: the number of bytes, sent as `Content-Length`; `nil`, the default, if it is unknown, for a chunked body.
    ///   - headers: header fields, which replace the session's of the same name.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    ///   - timeout: the time until the head, with all attempts and the delays between them; `nil`, the default, for none.
    /// - Throws: as ``DataRequest/open(timeout:)``.
    public func open<Body: AsyncSequence & Sendable>(
        _ url: any URLConvertible, method: HTTPMethod = .post, body: Body, length: Int64? = nil, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil, timeout: Duration? = nil
    ) async throws -> StreamedResponse where Body.Element: Collection, Body.Element.Element == UInt8 {
        try Task.checkCancellation()
        return try await streamUpload(
            { body }, isRepeatable: false, length: length, to: url, method: method, headers: headers, interceptor: interceptor,
            options: options, isStreamed: true
        ).open(timeout: timeout)
    }

    /// Sends the asynchronous sequence that a closure returns, and returns the response as soon as its head is received.
    ///
    /// As ``open(_:method:body:length:headers:interceptor:options:timeout:)-(_,_,Body,_,_,_,_,_)``. The closure is called for each attempt, each
    /// redirect that repeats the body and each authenticated retry, and returns a sequence with the same bytes.
    public func open<Body: AsyncSequence>(
        _ url: any URLConvertible, method: HTTPMethod = .post, length: Int64? = nil, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil, timeout: Duration? = nil,
        body makeBody: @escaping @Sendable () async throws -> Body
    ) async throws -> StreamedResponse where Body.Element: Collection, Body.Element.Element == UInt8 {
        try Task.checkCancellation()
        return try await streamUpload(
            makeBody, isRepeatable: true, length: length, to: url, method: method, headers: headers, interceptor: interceptor,
            options: options, isStreamed: true
        ).open(timeout: timeout)
    }
}
