// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// A final response that comes before the request's body is sent, from status 300 on (RFC 9112, section 9.3; RFC 9113, section 8.1). libcurl
// stops sending there, and has the connection closed behind the response.
//
// Over HTTP/1.1 a server may wait for the rest of the body before it sends the rest of its response, and wait for ever: it is told that
// nothing more comes.
//
// Over HTTP/2 the stream is reset when the response is there. libcurl from 8 on waits for the server to do that, for ever if the body had
// nothing to give; before, it ends a body of unknown length as if it were whole, and so is told to go on sending.

extension Transfer {
    /// How an early response over HTTP/2 ends the sending of a body.
    enum EarlyResponse {
        /// There is none, or libcurl deals with it.
        case none
        /// No more is sent, and the stream is reset behind the response's body.
        case resetsStream
        /// The body ends as it is: who refuses it will not keep it.
        case endsBody
        /// The response is whole, and the stream is reset.
        case complete
    }

    /// How long the rest of a response may take while the server could be waiting for the rest of the request.
    private static let longestWait: Nanoseconds = 1_000_000_000

    /// Whether libcurl would end the request's body where the response comes before its end, so that a part looks like the whole.
    var mustNotStopAtErrors: Bool {
        bodyLength == nil && request.prepared.options.httpVersion == .http2PriorKnowledge && CurlInfo.current.supportsHTTP2
            && !CurlInfo.current.hasReliableHTTP2
    }

    /// Notes that the final response has begun; `false` if the transfer is to end here, as nothing of it is left to come.
    func noteEarlyResponse(_ head: ResponseHead) -> Bool {
        guard request.body != nil, head.statusCode >= 300, !wasBodySent else { return true }
        guard connection.info?.values.isHTTP2 == true else {
            // Where the response closes the connection by itself, libcurl goes on sending.
            let closes = head.httpVersion == "HTTP/1.0" || head.value(for: "Connection")?.lowercased().contains("close") == true
            responseDeadline = closes ? nil : loop.now + Self.longestWait
            loop.armTimer(self)
            return true
        }
        if head.statusCode < 400 || state.announcedLength != nil {
            earlyResponse = .resetsStream
        } else if mustNotStopAtErrors {
            earlyResponse = .endsBody
        }
        return !endsWithResponse()
    }

    /// Whether all that was announced of an early response is there, behind which the stream is to be reset.
    ///
    /// The end of a body without a length can't be seen while the request is open: that of a redirect is not waited for.
    func endsWithResponse() -> Bool {
        guard earlyResponse == .resetsStream, state.bodyBytes >= state.announcedLength ?? 0 else { return false }
        earlyResponse = .complete
        return true
    }

    /// Whether the whole of the request's body has left, as far as libcurl knows: it reads ahead of what it sends.
    private var wasBodySent: Bool {
        hasReadBody && Int64(ccurlew_get_offset(handle.raw, CURLINFO_SIZE_UPLOAD_T)) >= bodyBytesSent
    }

    /// Tells a server that has begun its response early, and says no more, that nothing more of the request comes.
    func endSendingIfResponseStalls() {
        guard let deadline = responseDeadline, deadline <= loop.now, !pauses.isPaused else { return }
        responseDeadline = nil
        // A connection on which all was sent may be kept.
        guard !wasBodySent, connection.socket >= 0 else { return }
        if isSecure { _ = ccurlew_tls_end_sending(handle.raw) }
        shutdown(connection.socket, Int32(SHUT_WR))
    }
}
