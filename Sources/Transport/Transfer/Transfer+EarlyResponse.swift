// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// Early responses: a final response with status 300 or above, received before the request's body is sent (RFC 9112, section 9.3; RFC 9113,
// section 8.1). libcurl then stops sending, and closes the connection after the response.
//
// Over HTTP/1.1 a server may wait indefinitely for the rest of the body before it sends the rest of its response: closing the sending side
// signals that the body has ended.
//
// Over HTTP/2 the stream is reset once the response is complete. libcurl from 8 on waits for the server to reset it, indefinitely if the
// body has no bytes available; older versions end a body of unknown length as if it were complete, and are therefore made to continue
// sending.

extension Transfer {
    /// How sending of a body ends after an early response over HTTP/2.
    enum EarlyResponse {
        /// There is no early response, or libcurl handles it.
        case none
        /// Sending stops, and the stream is reset after the response's body.
        case resetsStream
        /// The body ends where it is: a server that rejects it doesn't store it.
        case endsBody
        /// The response is complete, and the stream is reset.
        case complete
    }

    /// The time that the rest of a response may take while the server could be waiting for the rest of the request: one second.
    private static let longestWait: Nanoseconds = 1_000_000_000

    /// Whether libcurl would end the request's body at an early response, so that a part looks like a complete body.
    var mustNotStopAtErrors: Bool {
        exchange.bodyLength == nil && request.prepared.options.httpVersion == .http2PriorKnowledge && CurlInfo.current.supportsHTTP2
            && !CurlInfo.current.hasReliableHTTP2
    }

    /// Notes that the final response has begun; `false` ends the transfer, because the response is complete.
    func noteEarlyResponse(_ head: ResponseHead) -> Bool {
        guard request.body != nil, head.statusCode >= 300, !wasBodySent else { return true }
        guard connection.info?.values.isHTTP2 == true else {
            // If the response closes the connection, libcurl continues sending.
            let closes = head.httpVersion == "HTTP/1.0" || head.value(for: "Connection")?.lowercased().contains("close") == true
            run.responseDeadline = closes ? nil : loop.now + Self.longestWait
            loop.armTimer(self)
            return true
        }
        if head.statusCode < 400 || state.announcedLength != nil {
            run.earlyResponse = .resetsStream
        } else if mustNotStopAtErrors {
            run.earlyResponse = .endsBody
        }
        return !endsWithResponse()
    }

    /// Whether an early response was received as far as announced, so that the stream can be reset.
    ///
    /// The end of a body of unknown length is unknown while the request is open: a redirect's body is not waited for.
    func endsWithResponse() -> Bool {
        guard run.earlyResponse == .resetsStream, state.bodyBytes >= state.announcedLength ?? 0 else { return false }
        run.earlyResponse = .complete
        return true
    }

    /// Whether the request's body was sent completely, as far as libcurl knows, which reads ahead of what it sends.
    private var wasBodySent: Bool {
        run.hasReadBody && Int64(ccurlew_get_offset(handle.raw, CURLINFO_SIZE_UPLOAD_T)) >= exchange.bodyBytesSent
    }

    /// Closes the sending side if a server has begun an early response and then stalls.
    func endSendingIfResponseStalls() {
        guard let deadline = run.responseDeadline, deadline <= loop.now, !exchange.pauses.isPaused else { return }
        run.responseDeadline = nil
        // A connection on which the body was sent completely can be reused.
        guard !wasBodySent, connection.socket >= 0 else { return }
        if isSecure { _ = ccurlew_tls_end_sending(handle.raw) }
        shutdown(connection.socket, Int32(SHUT_WR))
    }
}
