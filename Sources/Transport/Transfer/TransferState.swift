// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The state machine of a transfer: events in, actions out, no I/O.
///
/// Fuzzed, as it interprets lines from peers. Implements what libcurl leaves to its caller: truncated heads, limits that libcurl doesn't
/// enforce, bodies shorter than announced, requests that it would repeat, stale connections.
struct TransferState {
    /// The action when a connection is established and the request is about to be sent.
    enum RequestAction: Equatable {
        /// Send it.
        case send
        /// Abandon this connection and restart on a new one.
        case useFreshConnection
        /// Fail: the request was sent already, and its method does not allow repeating it.
        case refuseDuplicate
        /// Fail: libcurl has sent the request as often as it may.
        case refuseRepetition
        /// Fail, or wait for a decision: the host is not trusted.
        case refuseConnection
    }

    /// The action after a line of a head.
    enum LineAction: Equatable {
        /// Continue receiving.
        case proceed
        /// The head of an interim response is complete.
        case deliverInterim(ResponseHead)
        /// The final response's head is complete.
        case deliver(ResponseHead)
        /// The response doesn't belong to the request: the transfer restarts.
        case retry
        /// The response is not acceptable.
        case fail(TransferFailure.Kind, String)
    }

    /// What libcurl's completion of the transfer means.
    enum Decision: Equatable {
        case success
        /// Restart on a new connection: the request was not sent, or may be repeated.
        case useFreshConnection
        case failure(TransferFailure.Kind, String)
    }

    private enum Head {
        /// The final head is incomplete.
        case open
        /// The head's blank line was received; a body may follow.
        case complete
    }

    private static let usualHeadSize = 512

    /// The most requests that libcurl may send by itself for one transfer: those of a connection's authentication, and repetitions on
    /// connections that were lost. NTLM and Negotiate take two or three; a server that refuses each could ask without end, and gets material
    /// to guess the password from with each.
    static let maximumRequests = 10

    private let method: HTTPMethod
    /// Whether the request may be sent again when a connection ends before a response.
    let mayRepeat: Bool
    /// Whether libcurl authenticates the connection.
    private let isAuthenticated: Bool
    private let limits: HeadLimits
    /// Whether content codings are decoded.
    private let decodesContent: Bool
    private(set) var phase: TransferFailure.Phase = .queued
    private var head = Head.open
    private var headBytes: [UInt8] = []
    private var headSize = 0
    private var fieldCount = 0
    private var interimResponses: [ResponseHead] = []
    /// How often the request was sent, or began to be.
    private(set) var requestsStarted = 0
    private var freshConnections = 0
    private var isOnReusedConnection = false
    private var wantsFreshConnection = false
    /// Whether the server has sent `100 Continue`, for which the body may wait (RFC 9110, section 10.1.1).
    private(set) var isBodyWanted = false
    private(set) var statusCode = 0
    /// The framing of the body, recorded line by line, so that the head need not be searched.
    private var framing = BodyFraming()
    /// The number of body bytes received, before decoding.
    private(set) var bodyBytes: Int64 = 0
    /// The field lines that followed the body.
    private var trailerBytes: [UInt8] = []
    /// The failure for which the transfer was ended from this side.
    private var ownFailure: (TransferFailure.Kind, String)?

    init(method: HTTPMethod, mayRepeat: Bool, isAuthenticated: Bool = false, decodesContent: Bool = true, limits: HeadLimits) {
        self.method = method
        self.decodesContent = decodesContent
        self.mayRepeat = mayRepeat
        self.isAuthenticated = isAuthenticated
        self.limits = limits
    }

    /// Whether a byte of the request may have left.
    var requestWasSent: Bool { requestsStarted > 0 }

    /// Whether the final response's head was received.
    var hasHead: Bool { head == .complete }

    /// Whether the final response has a `Content-Encoding` to decode, should there be a body.
    var isDecoded: Bool { framing.hasContentCoding && decodesContent && mayHaveBody }

    /// The announced length of the body; `nil` if there is none, or if a transfer coding delimits the body (RFC 9112, section 6.3).
    var announcedLength: Int64? {
        guard mayHaveBody, statusCode != 101 else { return nil }
        return framing.isChunked ? nil : framing.contentLength
    }

    /// The fields that followed the body; empty if there were none.
    var trailers: HTTPHeaders { trailerBytes.isEmpty ? HTTPHeaders() : ResponseHead.fields(trailerBytes) }

    /// Whether the request's method and the response's status allow a body; the head's fields don't count (RFC 9112, section 6.3, rule 1).
    private var mayHaveBody: Bool { method != .head && statusCode != 204 && statusCode != 304 }

    /// Whether the body is delimited by close (RFC 9112, section 6.3, rule 8).
    var isDelimitedByClose: Bool {
        head == .complete && mayHaveBody && statusCode >= 200 && !framing.isChunked && framing.contentLength == nil
    }

    /// The transfer was added to libcurl.
    mutating func launched() {
        phase = .resolving
        wantsFreshConnection = false
    }

    /// A connection is established and the request is about to be sent on it.
    ///
    /// Called several times if libcurl authenticates the connection: the responses so far were for libcurl only.
    ///
    /// - Parameters:
    ///   - isStale: whether the connection was pooled and is stale.
    ///   - isReused: whether the connection was pooled.
    mutating func requestStarts(isStale: Bool, isReused: Bool = false) -> RequestAction {
        if isStale {
            wantsFreshConnection = true
            return .useFreshConnection
        }
        guard requestsStarted < Self.maximumRequests else {
            let cause = isAuthenticated ? "the server refuses the connection's authentication each time" : "its connections were lost"
            ownFailure = (.protocolViolation, "The request was sent \(Self.maximumRequests) times, the limit: \(cause)")
            return .refuseRepetition
        }
        if head == .complete, isAuthenticated {
            forgetResponse()
        } else if requestsStarted > 0, !mayRepeat {
            ownFailure = (.connectionLost, "The connection ended before a response; \(method) requests are not sent twice")
            return .refuseDuplicate
        }
        requestsStarted += 1
        isBodyWanted = false
        interimResponses = []
        isOnReusedConnection = isReused
        phase = .sending
        return .send
    }

    private mutating func forgetResponse() {
        head = .open
        headSize = 0
        fieldCount = 0
        framing = BodyFraming()
        statusCode = 0
        bodyBytes = 0
        trailerBytes = []
    }

    /// Records why the connection must not be used.
    mutating func refusedConnection(_ kind: TransferFailure.Kind, _ message: String) {
        setUp(reached: .securing)
        _ = fail(kind, message)
    }

    /// Records the phase that setting up the connection has reached, which libcurl reveals only on request.
    mutating func setUp(reached setUp: TransferFailure.Phase) {
        if phase < .sending, setUp > phase { phase = setUp }
    }

    /// The last byte of the request's body was handed to libcurl.
    mutating func requestEnded() {
        if phase == .sending { phase = .waiting }
    }

    /// A line of a head or of trailers was received, with its line break.
    mutating func received(line: UnsafeRawBufferPointer) -> LineAction {
        headSize += line.count
        let beginsHead = head == .open && line.startsWithStatusLine
        // Neither the status line nor the line that ends the head counts.
        fieldCount = beginsHead ? -1 : fieldCount + 1
        guard limits.allow(size: headSize, fieldSize: line.count, fieldCount: fieldCount) else {
            return fail(.tooLarge, limits.excess(size: headSize, fieldSize: line.count))
        }
        guard head == .open else {
            trailerBytes.append(contentsOf: line)
            return .proceed
        }
        phase = .receivingHead
        if beginsHead {
            headBytes.removeAll(keepingCapacity: true)
            headBytes.reserveCapacity(Self.usualHeadSize)
            framing = BodyFraming()
        }
        guard line.first == UInt8(ascii: "\r") || line.first == UInt8(ascii: "\n") else {
            framing.note(line)
            headBytes.append(contentsOf: line)
            return .proceed
        }
        return headEnded()
    }

    private mutating func headEnded() -> LineAction {
        guard var complete = ResponseHead(bytes: headBytes, expectedBodyLength: framing.contentLength) else {
            return fail(.protocolViolation, "The response does not begin with a status line")
        }
        statusCode = complete.statusCode
        if ResponseHead.isInterim(statusCode) {
            interimResponses.append(complete)
            if statusCode == 100 { isBodyWanted = true }
            guard interimResponses.count <= limits.interimResponses else {
                return fail(.protocolViolation, "More than \(limits.interimResponses) interim responses")
            }
            return statusCode == 100 ? .proceed : .deliverInterim(complete)
        }
        // A 408 that announces the closing of an idle connection (RFC 9110, section 15.5.9) may cross with a request.
        if statusCode == 408, isOnReusedConnection, mayRepeat, freshConnections == 0 {
            wantsFreshConnection = true
            return .retry
        }
        if mayHaveBody, let violation = framing.violation(in: complete) { return fail(.protocolViolation, violation) }
        // A body that is not decoded has the announced length.
        if framing.hasContentCoding, decodesContent, complete.hasKnownCodings { complete.expectedBodyLength = nil }
        complete.initials = framing.initials
        if !interimResponses.isEmpty { complete.interimResponses = interimResponses }
        head = .complete
        phase = .receivingBody
        return .deliver(complete)
    }

    /// Body bytes were received, not yet decoded.
    mutating func received(bodyBytes count: Int) {
        bodyBytes += Int64(count)
    }

    /// Records why the transfer is ended from this side; the first reason counts.
    mutating func fail(_ kind: TransferFailure.Kind, _ message: String) -> LineAction {
        if ownFailure == nil { ownFailure = (kind, message) }
        return .fail(kind, message)
    }

    /// Whether the transfer was ended from this side.
    var hasOwnFailure: Bool { ownFailure != nil }

    /// Interprets libcurl's completion of the transfer.
    mutating func completed(code: CURLcode, message: String, usesProxy: Bool, isHTTP2: Bool = false) -> Decision {
        if wantsFreshConnection, freshConnections == 0 {
            freshConnections += 1
            return .useFreshConnection
        }
        if let (kind, message) = ownFailure { return .failure(kind, message) }
        guard code == CURLE_OK else { return failure(code: code, message: message, usesProxy: usesProxy, isHTTP2: isHTTP2) }
        guard head == .complete else {
            return .failure(.connectionLost, "The connection ended within the response's head")
        }
        if let announcedLength, bodyBytes != announcedLength {
            return .failure(.connectionLost, "The body has \(bodyBytes) bytes, \(announcedLength) were announced")
        }
        return .success
    }

    private mutating func failure(code: CURLcode, message: String, usesProxy: Bool, isHTTP2: Bool) -> Decision {
        // libcurl before 8.0 gives up after five stale connections in a row, and reports a failure of the host.
        if code == CURLE_SEND_ERROR, message.contains("tried 5 times"), freshConnections == 0 {
            freshConnections += 1
            return .useFreshConnection
        }
        // For libcurl before 8, a GOAWAY that excludes a request is an error like any other on that layer. Requests that may be repeated
        // are repeated once; RFC 9113, section 8.7, would allow that for all unprocessed ones.
        if code == CURLE_HTTP2, headSize == 0, mayRepeat, freshConnections == 0 {
            freshConnections += 1
            return .useFreshConnection
        }
        let kind = TransferFailure.Kind.of(code, phase: phase, message: message, usesProxy: usesProxy, isHTTP2: isHTTP2)
        return .failure(kind, message)
    }
}

// MARK: - Header lines

extension UnsafeRawBufferPointer {
    fileprivate var startsWithStatusLine: Bool {
        count > 5 && self[0] == UInt8(ascii: "H") && self[1] == UInt8(ascii: "T") && self[2] == UInt8(ascii: "T")
            && self[3] == UInt8(ascii: "P") && self[4] == UInt8(ascii: "/")
    }
}
