// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A server's response to a forwarded request, as the gateway sends it to its client.
public struct ForwardedResponse: Sendable {
    /// The status code.
    public var statusCode: Int { response.statusCode }
    /// The header fields, without those of the connection. Of a body that the session decodes, without its coding, length and digests, and
    /// with a weak entity tag.
    public let headers: HTTPHeaders
    /// The body, received as fast as it is read. Releasing it cancels the request.
    public var body: BodyStream { response.body }
    /// The fields that followed the body, without those of the connection; empty until it was received to its end.
    public var trailers: HTTPHeaders { response.trailers.removingConnectionFields() }
    /// The response as it was received.
    public let response: StreamedResponse
}

extension SessionManager {
    /// Forwards a request without a body that a gateway has received, and returns the response at its head.
    ///
    /// ```swift
    /// let request = ForwardedRequest(received.method, to: upstream + received.target, headers: received.headers, client: peer)
    /// let response = try await manager.forward(request)
    /// ```
    ///
    /// The target has to begin with a slash: `@other.example/` after an authority leads to another server.
    ///
    /// Fields of the connection are forwarded in neither direction (RFC 9110, section 7.6.1). Redirects are not followed, and the session's
    /// cookies neither sent nor stored: both are the client's. Its header fields are added where the client sends none, interceptors take
    /// part. A deadline of the calling task bounds the request, and releasing the response, or cancelling the task, cancels it.
    ///
    /// Bodies pass as they are with ``SessionConfiguration/decodesContent`` set to `false`; else they are decoded, and sent without coding.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    ///   - timeout: the time until the head, with all attempts and the delays between them; `nil`, the default, for none.
    ///   - onInterimResponse: receives each interim response but 100 as it is received, such as `103 Early Hints`, with all of its fields, on
    ///     the configuration's callback queue. `nil`, the default, drops them.
    /// - Throws: as ``DataRequest/open(timeout:)``. A method `CONNECT` fails with
    ///   ``CurlewError/urlRequestValidationFailed(reason:in:)``.
    public func forward(
        _ request: ForwardedRequest, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil,
        timeout: Duration? = nil, onInterimResponse: (@Sendable (ResponseHead) -> Void)? = nil
    ) async throws -> ForwardedResponse {
        try Task.checkCancellation()
        let parts = try ForwardedParts(request, in: session)
        let sent = streamRequest(parts, interceptor: interceptor, options: Self.forwarding(options))
        return try await opened(sent, timeout, onInterimResponse)
    }

    /// Forwards a request with a body while that is received. As ``forward(_:interceptor:options:timeout:onInterimResponse:)``.
    ///
    /// The body can be sent once: nothing is retried after bytes of it were read.
    ///
    /// - Parameters:
    ///   - request: the request. A `Content-Length` of it is the body's; without one the body is sent chunked.
    ///   - body: the body, read as fast as it is sent.
    ///   - trailers: returns the fields that follow the body, once it has ended; `nil`, the default, for none. They need HTTP/1.1.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    ///   - timeout: the time until the head, with all attempts and the delays between them; `nil`, the default, for none.
    ///   - onInterimResponse: receives each interim response but 100 as it is received; `nil`, the default, drops them.
    public func forward<Body: AsyncSequence & Sendable>(
        _ request: ForwardedRequest, body: Body, trailers: (@Sendable () -> HTTPHeaders)? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil, timeout: Duration? = nil,
        onInterimResponse: (@Sendable (ResponseHead) -> Void)? = nil
    ) async throws -> ForwardedResponse where Body.Element: Collection, Body.Element.Element == UInt8 {
        try Task.checkCancellation()
        let parts = try ForwardedParts(request, in: session)
        let length = request.headers["Content-Length"].flatMap { Int64($0) }
        var last: (@Sendable () -> HTTPHeaders)?
        if let trailers { last = { trailers().removingConnectionFields() } }
        let reader = MadeSequenceReader(make: { body }, trailers: last)
        let sequence = SequenceBody(reader, length: trailers == nil ? length : nil, makesSequences: false)
        let settings = RequestSettings.of(interceptor, Self.forwarding(options))
        let sent = makeUpload(.sequence(sequence), parts, settings, isStreamed: true)
        return try await opened(sent, timeout, onInterimResponse)
    }

    private func opened(
        _ sent: DataRequest, _ timeout: Duration?, _ onInterimResponse: (@Sendable (ResponseHead) -> Void)?
    ) async throws -> ForwardedResponse {
        if let onInterimResponse { sent.onInterimResponse(perform: onInterimResponse) }
        let response = try await sent.open(timeout: timeout)
        var headers = response.headers.removingConnectionFields()
        if session.configuration.decodesContent, response.responseHead.hasKnownCodings {
            // What describes the bytes as they were coded (RFC 9110, section 7.7).
            for name in ["Content-Encoding", "Content-Length", "Content-Digest", "Repr-Digest"] { headers.remove(name: name) }
            if let tag = headers["ETag"], !tag.hasBytePrefix("W/") { headers.update(name: "ETag", value: "W/\(tag)") }
        }
        return ForwardedResponse(headers: headers, response: response)
    }

    /// The options, with which no redirect is followed.
    private static func forwarding(_ options: RequestOptions?) -> RequestOptions {
        var options = options ?? RequestOptions()
        var redirects = RedirectPolicy()
        redirects.limit = 0
        options.redirects = redirects
        return options
    }
}

/// The parts of a forwarded request, whose cookies are the client's alone.
private struct ForwardedParts: URLRequestConvertible {
    let urlRequest: URLRequest

    init(_ request: ForwardedRequest, in session: Session) throws {
        guard request.method != .connect else { throw CurlewError.urlRequestValidationFailed(reason: .invalidMethod("CONNECT")) }
        guard HTTPToken.isToken(request.gatewayName),
            request.receivedVersion.splitScalars(separator: "/").allSatisfy({ HTTPToken.isToken(String($0)) })
        else {
            throw CurlewError.urlRequestValidationFailed(reason: .invalidHeader(name: "Via"))
        }
        var headers = request.forwardedHeaders
        // A client that sends no such field may understand no coding; and a part of a coded body can't be decoded.
        let decodes = session.configuration.decodesContent
        if decodes ? headers["Range"] != nil : headers["Accept-Encoding"] == nil {
            headers.update(name: "Accept-Encoding", value: "identity")
        }
        var urlRequest = try URLRequest(url: request.url, method: request.method, headers: headers)
        urlRequest.httpShouldHandleCookies = false
        self.urlRequest = urlRequest
    }

    func asURLRequest() -> URLRequest { urlRequest }
}
