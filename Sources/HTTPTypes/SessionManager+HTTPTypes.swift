// SPDX-License-Identifier: Apache-2.0
#if HTTPTypes
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension SessionManager {
    /// Sends a request of swift-http-types, and returns the response with its body in memory.
    ///
    /// Needs `import CurlewHTTPTypes`.
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
    ///         let (response, received) =
    ///             if let body {
    ///                 try await manager.streamResponse(to: request, body: body, relativeTo: baseURL, options: options)
    ///             } else {
    ///                 try await manager.streamResponse(to: request, relativeTo: baseURL, options: options)
    ///             }
    ///         return (response, HTTPBody(received.map { ArraySlice($0) }, length: .unknown))
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - request: its scheme, authority and path are the URL; its fields replace the session's of the same name. `OPTIONS` with the path
    ///     `*` is about the server as a whole, as with ``RequestOptions/isServerWide``; of a base URL, only the server counts then.
    ///   - body: the request's body; `nil`, the default, for none.
    ///   - baseURL: for requests without scheme and authority: their path is appended to this URL's. `nil` by default.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    /// - Returns: the final response, and its body, decoded; empty if there is none. ``SessionConfiguration/maximumBodySize`` limits it.
    /// - Throws: the request's error: a ``CurlewError``, or an error of the program's own adapter; `CancellationError` if the task was
    ///   cancelled. A request without scheme or authority, one for a tunnel (`CONNECT`), and one for `*` by another method than
    ///   `OPTIONS`, fails with ``CurlewError/urlRequestValidationFailed(reason:in:)`` or ``CurlewError/invalidURL(url:in:)``; a field whose value
    ///   is not UTF-8 with the former. Nothing is sent then.
    public func send(
        _ request: HTTPRequest, body: Data? = nil, relativeTo baseURL: URL? = nil, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil
    ) async throws -> (HTTPResponse, Data) {
        let (url, method, headers, options) = try request.parts(relativeTo: baseURL, options)
        try Task.checkCancellation()
        let sent =
            if let body {
                upload(body, to: url, method: method, headers: headers, interceptor: interceptor, options: options)
            } else {
                self.request(url, method: method, headers: headers, interceptor: interceptor, options: options)
            }
        return try await response(to: sent, url)
    }

    private func response(to sent: DataRequest, _ url: String) async throws -> (HTTPResponse, Data) {
        do {
            let data = try await sent.serializingData().value
            guard let head = sent.responseHead else { throw CurlewError.cancelled }
            return (try HTTPResponse(head, url: url), data)
        } catch {
            throw thrown(error)
        }
    }

    /// Sends a request of swift-http-types with a sequence as its body, and returns the response with its body in memory.
    ///
    /// Needs `import CurlewHTTPTypes`.
    ///
    /// As ``send(_:body:relativeTo:interceptor:options:)-(_,Data?,_,_,_)``. The sequence is read as fast as it is sent, at most 256 KiB ahead. It
    /// can be sent once: a retry, or a redirect that repeats the body, fails; see
    /// ``send(_:length:relativeTo:interceptor:options:making:)``.
    ///
    /// - Parameters:
    ///   - request: method, URL and header fields.
    ///   - body: pieces of bytes, such as `Data`, `[UInt8]` or `ArraySlice<UInt8>`. An error that it throws fails the request.
    ///   - length: the number of bytes; more or fewer fail the request. With `nil`, the default, it is the request's `Content-Length`, without
    ///     which the body is sent chunked.
    ///   - baseURL: for requests without scheme and authority: their path is appended to this URL's. `nil` by default.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    public func send<Body: AsyncSequence & Sendable>(
        _ request: HTTPRequest, body: Body, length: Int64? = nil, relativeTo baseURL: URL? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) async throws -> (HTTPResponse, Data) where Body.Element: Collection, Body.Element.Element == UInt8 {
        let (sent, url) = try upload({ body }, false, length, request, baseURL, interceptor, options, isStreamed: false)
        return try await response(to: sent, url)
    }

    /// Sends a request of swift-http-types with a sequence that a closure makes for each time that it is sent.
    ///
    /// Needs `import CurlewHTTPTypes`.
    ///
    /// As ``send(_:body:length:relativeTo:interceptor:options:)``, but that retries, redirects and authentication can repeat the body.
    public func send<Body: AsyncSequence>(
        _ request: HTTPRequest, length: Int64? = nil, relativeTo baseURL: URL? = nil, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil, making makeBody: @escaping @Sendable () async throws -> Body
    ) async throws -> (HTTPResponse, Data) where Body.Element: Collection, Body.Element.Element == UInt8 {
        let (sent, url) = try upload(makeBody, true, length, request, baseURL, interceptor, options, isStreamed: false)
        return try await response(to: sent, url)
    }

    private func upload<Body: AsyncSequence>(
        _ makeBody: @escaping @Sendable () async throws -> Body, _ isRepeatable: Bool, _ length: Int64?, _ request: HTTPRequest,
        _ baseURL: URL?, _ interceptor: (any RequestInterceptor)?, _ options: RequestOptions?, isStreamed: Bool
    ) throws -> (UploadRequest, url: String) where Body.Element: Collection, Body.Element.Element == UInt8 {
        let (url, method, headers, options) = try request.parts(relativeTo: baseURL, options)
        try Task.checkCancellation()
        let sent = streamUpload(
            makeBody, isRepeatable: isRepeatable, length: length, to: url, method: method, headers: headers, interceptor: interceptor,
            options: options, isStreamed: isStreamed)
        return (sent, url)
    }

    /// Sends a request of swift-http-types, and returns the response as soon as its head is received, with its body as a sequence.
    ///
    /// Needs `import CurlewHTTPTypes`.
    ///
    /// As ``send(_:body:relativeTo:interceptor:options:)``, but that the body is received as fast as it is read: the transfer pauses when
    /// 1 MiB is buffered. Read it to its end, which throws for a truncated one; releasing it cancels the request. From the head on the
    /// request is not retried. It shares no HTTP/2 connection.
    public func streamResponse(
        to request: HTTPRequest, body: Data? = nil, relativeTo baseURL: URL? = nil, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil
    ) async throws -> (HTTPResponse, BodyStream) {
        let (url, method, headers, options) = try request.parts(relativeTo: baseURL, options)
        try Task.checkCancellation()
        let sent =
            if let body {
                streamRequest(
                    url, method: method, parameters: [:], encoding: FixedBody(data: body), headers: headers, interceptor: interceptor,
                    options: options)
            } else {
                streamRequest(url, method: method, headers: headers, interceptor: interceptor, options: options)
            }
        return try await streamedResponse(to: sent, url)
    }

    private func streamedResponse(to sent: DataRequest, _ url: String) async throws -> (HTTPResponse, BodyStream) {
        let response = try await sent.open()
        return (try HTTPResponse(response.responseHead, url: url), response.body)
    }

    /// Sends a request of swift-http-types with a sequence as its body, and returns the response as soon as its head is received, with its body
    /// as a sequence: backpressure in both directions, each independent of the other.
    ///
    /// Needs `import CurlewHTTPTypes`.
    ///
    /// As ``streamResponse(to:body:relativeTo:interceptor:options:)-(_,Data?,_,_,_)``, with the body of
    /// ``send(_:body:length:relativeTo:interceptor:options:)``. A server may answer before it has the whole body: sending continues while the
    /// response is read.
    public func streamResponse<Body: AsyncSequence & Sendable>(
        to request: HTTPRequest, body: Body, length: Int64? = nil, relativeTo baseURL: URL? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) async throws -> (HTTPResponse, BodyStream) where Body.Element: Collection, Body.Element.Element == UInt8 {
        let (sent, url) = try upload({ body }, false, length, request, baseURL, interceptor, options, isStreamed: true)
        return try await streamedResponse(to: sent, url)
    }

    /// Sends a request of swift-http-types with a sequence that a closure makes for each time that it is sent, and returns the response as soon
    /// as its head is received. As ``streamResponse(to:body:length:relativeTo:interceptor:options:)``; until the head, retries, redirects and
    /// authentication can repeat the body.
    ///
    /// Needs `import CurlewHTTPTypes`.
    public func streamResponse<Body: AsyncSequence>(
        to request: HTTPRequest, length: Int64? = nil, relativeTo baseURL: URL? = nil, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil, making makeBody: @escaping @Sendable () async throws -> Body
    ) async throws -> (HTTPResponse, BodyStream) where Body.Element: Collection, Body.Element.Element == UInt8 {
        let (sent, url) = try upload(makeBody, true, length, request, baseURL, interceptor, options, isStreamed: true)
        return try await streamedResponse(to: sent, url)
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
    /// The URL, method and header fields, validated as far as the session can't do that, and the options, with `isServerWide` for `*`.
    fileprivate func parts(
        relativeTo baseURL: URL?, _ options: RequestOptions?
    ) throws(CurlewError) -> (url: String, HTTPMethod, HTTPHeaders, RequestOptions?) {
        let url = try target(relativeTo: baseURL)
        // A string is sent as UTF-8: these bytes can't be sent as they are.
        if let field = headerFields.first(where: { $0.utf8Value == nil }) {
            throw .urlRequestValidationFailed(reason: .invalidHeader(name: field.name.rawName))
        }
        var options = options
        if isServerWide {
            options = options ?? RequestOptions()
            options?.isServerWide = true
        }
        return (url, HTTPMethod(method), HTTPHeaders(headerFields), options)
    }
}

/// `CancellationError` for a request that was cancelled with its task; else the error itself.
private func thrown(_ error: any Error) -> any Error {
    if Task.isCancelled, case CurlewError.cancelled = error { CancellationError() } else { error }
}
#endif
