// SPDX-License-Identifier: Apache-2.0
#if HTTPTypes
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension SessionManager {
    /// Sends a request of swift-http-types, and returns the response with its body in memory.
    ///
    /// A status such as 404 is a response and not an error, and nothing is validated. Redirects are followed as for any request of the
    /// session, its adapters and retriers take part; a retrier sees failed transfers only. Cancelling the awaiting task cancels the request.
    ///
    /// The transport of a client that swift-openapi-generator has generated:
    ///
    /// ```swift
    /// struct CurlewClientTransport: ClientTransport {
    ///     let manager: SessionManager
    ///
    ///     func send(
    ///         _ request: HTTPRequest, body: HTTPBody?, baseURL: URL, operationID: String
    ///     ) async throws -> (HTTPResponse, HTTPBody?) {
    ///         let options = RequestOptions(name: operationID)
    ///         var sent: Data?
    ///         if let body { sent = try await Data(collecting: body, upTo: 1 << 20) }
    ///         let (response, received) = try await manager.streamResponse(
    ///             to: request, body: sent, relativeTo: baseURL, options: options)
    ///         return (response, HTTPBody(received.map { ArraySlice($0) }, length: .unknown))
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - request: its scheme, authority and path are the URL; its fields replace the session's of the same name.
    ///   - body: the request's body; `nil`, the default, for none.
    ///   - baseURL: for requests without scheme and authority: their path is appended to this URL's. `nil` by default.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    /// - Returns: the final response, and its body, decoded; empty if there is none. ``SessionConfiguration/maximumBodySize`` limits it.
    /// - Throws: the request's error: a ``CurlewError``, or an error of the program's own adapter; `CancellationError` if the task was
    ///   cancelled. A request without scheme or authority, and one for a tunnel (`CONNECT`) or for `*`, fails with
    ///   ``CurlewError/urlRequestValidationFailed(reason:)`` or ``CurlewError/invalidURL(url:)``; a field whose value is not UTF-8 with the
    ///   former. Nothing is sent then.
    public func send(
        _ request: HTTPRequest, body: Data? = nil, relativeTo baseURL: URL? = nil, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil
    ) async throws -> (HTTPResponse, Data) {
        let (url, method, headers) = try request.parts(relativeTo: baseURL)
        try Task.checkCancellation()
        let sent =
            if let body {
                upload(body, to: url, method: method, headers: headers, interceptor: interceptor, options: options)
            } else {
                self.request(url, method: method, headers: headers, interceptor: interceptor, options: options)
            }
        do {
            let data = try await sent.serializingData().value
            guard let head = sent.responseHead else { throw CurlewError.cancelled }
            return (try HTTPResponse(head, url: url), data)
        } catch {
            throw thrown(error)
        }
    }

    /// Sends a request of swift-http-types, and returns the response as soon as its head is received, with its body as a sequence.
    ///
    /// As ``send(_:body:relativeTo:interceptor:options:)``, but that the body is received as fast as it is read: the transfer pauses when
    /// 1 MiB is buffered. Read it to its end, which throws for a truncated one; releasing it cancels the request. From the head on the
    /// request is not retried. It shares no HTTP/2 connection.
    public func streamResponse(
        to request: HTTPRequest, body: Data? = nil, relativeTo baseURL: URL? = nil, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil
    ) async throws -> (HTTPResponse, BodyStream) {
        let (url, method, headers) = try request.parts(relativeTo: baseURL)
        try Task.checkCancellation()
        let sent =
            if let body {
                streamRequest(
                    url, method: method, parameters: [:], encoding: FixedBody(data: body), headers: headers, interceptor: interceptor,
                    options: options)
            } else {
                streamRequest(url, method: method, headers: headers, interceptor: interceptor, options: options)
            }
        let stream = sent.bodyStream()
        do {
            return (try HTTPResponse(try await stream.head(), url: url), stream)
        } catch {
            throw thrown(error)
        }
    }
}

/// An encoding of no parameters that sets the body: so the header fields keep their order and repetitions, which a `URLRequest` loses.
private struct FixedBody: ParameterEncoding {
    let data: Data

    func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        var request = try urlRequest.asURLRequest()
        request.httpBody = data
        return request
    }
}

extension HTTPRequest {
    /// The URL, method and header fields, validated as far as the session can't do that.
    fileprivate func parts(relativeTo baseURL: URL?) throws(CurlewError) -> (url: String, HTTPMethod, HTTPHeaders) {
        let url = try target(relativeTo: baseURL)
        // A string is sent as UTF-8: these bytes can't be sent as they are.
        if let field = headerFields.first(where: { $0.utf8Value == nil }) {
            throw .urlRequestValidationFailed(reason: .invalidHeader(name: field.name.rawName))
        }
        return (url, HTTPMethod(method), HTTPHeaders(headerFields))
    }
}

/// `CancellationError` for a request that was cancelled with its task; else the error itself.
private func thrown(_ error: any Error) -> any Error {
    if Task.isCancelled, case CurlewError.cancelled = error { CancellationError() } else { error }
}
#endif
