// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// How far a transfer has come, and what that means for the next event: events in, actions out, no I/O.
///
/// What libcurl leaves to its caller is decided here: a head that breaks off, limits it does not apply, bodies shorter than announced,
/// requests it would send a second time, connections on which bytes wait that nobody asked for.
struct TransferState {
    /// What to do when a connection stands and the request is about to go out.
    enum RequestAction: Equatable {
        /// Send it.
        case send
        /// Leave this connection alone and start again on a new one.
        case useFreshConnection
        /// Give up: the request was sent already, and its method does not allow to send it twice.
        case refuseDuplicate
        /// Give up, for now at least: the host is not known to be the right one.
        case refuseConnection
    }

    /// What a line of a head means.
    enum LineAction: Equatable {
        /// More to come, or nothing of interest.
        case proceed
        /// The final response's head is whole.
        case deliver(ResponseHead)
        /// The response is not the request's: the transfer is to begin again.
        case retry
        /// The response can't be accepted.
        case fail(TransferFailure.Kind, String)
    }

    /// How libcurl's end of the transfer is to be taken.
    enum Verdict: Equatable {
        case success
        /// Once more, on a new connection: nothing was sent, or it may be sent twice.
        case useFreshConnection
        case failure(TransferFailure.Kind, String)
    }

    private enum Head {
        /// No complete final head yet.
        case open
        /// The blank line was there; a body may follow.
        case complete
    }

    /// What a response's head may be at most, as in the options of the same names.
    struct HeadLimits {
        var size = 0
        var fieldSize = 0
        var fieldCount = 0
        var interimResponses = 0
    }

    private static let usualHeadSize = 512

    private let method: HTTPMethod
    /// Whether the request may be sent again when a connection ends before a response.
    let mayRepeat: Bool
    /// Whether libcurl authenticates the connection.
    private let isAuthenticated: Bool
    private let limits: HeadLimits
    /// Whether content codings are undone.
    private let decodesContent: Bool
    private(set) var phase: TransferFailure.Phase = .queued
    private var head = Head.open
    private var headBytes: [UInt8] = []
    private var headSize = 0
    private var fieldCount = 0
    private var interimResponses = 0
    private var requestsStarted = 0
    private var freshConnections = 0
    private var isOnKeptConnection = false
    private var wantsFreshConnection = false
    /// Whether the server has asked for the request's body, which may wait for that (RFC 9110, section 10.1.1).
    private(set) var isBodyWanted = false
    private(set) var statusCode = 0
    /// What of the head decides how the body is to be read; noted line by line, so that nobody searches the head for it.
    private var framing = BodyFraming()
    /// Body bytes as they came, before decoding.
    private(set) var bodyBytes: Int64 = 0
    /// Why we ended the transfer ourselves.
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

    /// Whether the head of the final response is there.
    var hasHead: Bool { head == .complete }

    /// Whether the final response has a `Content-Encoding` that is to be undone, should a body come.
    var isDecoded: Bool { framing.hasContentCoding && decodesContent && mayHaveBody }

    /// The announced length of the body; `nil` where there is none, or a transfer coding frames it (RFC 9112, section 6.3).
    var announcedLength: Int64? {
        guard mayHaveBody, statusCode != 101 else { return nil }
        return framing.isChunked ? nil : framing.contentLength
    }

    /// Whether the request's method and the response's status allow a body; the head's fields don't count (RFC 9112, section 6.3, rule 1).
    private var mayHaveBody: Bool { method != .head && statusCode != 204 && statusCode != 304 }

    /// Whether the body ends where the connection does (RFC 9112, section 6.3, rule 8).
    var isFramedByEnd: Bool {
        head == .complete && mayHaveBody && statusCode >= 200 && !framing.isChunked && framing.contentLength == nil
    }

    /// The transfer was handed to libcurl.
    mutating func launched() {
        phase = .resolving
        wantsFreshConnection = false
    }

    /// A connection stands and the request is about to go out on it.
    ///
    /// It does so several times where libcurl authenticates the connection: what has come by then was meant for libcurl alone.
    ///
    /// - Parameters:
    ///   - isSpoilt: whether the connection was kept from before and is of no more use.
    ///   - isKept: whether it was kept from before.
    mutating func requestStarts(isSpoilt: Bool, isKept: Bool = false) -> RequestAction {
        if isSpoilt {
            wantsFreshConnection = true
            return .useFreshConnection
        }
        if head == .complete, isAuthenticated {
            forgetResponse()
        } else if requestsStarted > 0, !mayRepeat {
            ownFailure = (.connectionLost, "The connection ended before a response; \(method) requests are not sent twice")
            return .refuseDuplicate
        }
        requestsStarted += 1
        isBodyWanted = false
        isOnKeptConnection = isKept
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
    }

    /// The connection is not to be used, as the message says.
    mutating func refusedConnection(_ kind: TransferFailure.Kind, _ message: String) {
        setUp(reached: .securing)
        _ = fail(kind, message)
    }

    /// How far setting up the connection has come, which libcurl tells when it is asked.
    mutating func setUp(reached setUp: TransferFailure.Phase) {
        if phase < .sending, setUp > phase { phase = setUp }
    }

    /// The last byte of the request's body was handed over.
    mutating func requestEnded() {
        if phase == .sending { phase = .waiting }
    }

    /// A line of a head or of trailers, with its line break.
    mutating func received(line: UnsafeRawBufferPointer) -> LineAction {
        headSize += line.count
        let beginsHead = head == .open && line.startsWithStatusLine
        // Counts neither that line nor the one that ends the head.
        fieldCount = beginsHead ? -1 : fieldCount + 1
        guard headSize <= limits.size, line.count <= limits.fieldSize, fieldCount <= limits.fieldCount else { return headTooLarge(line) }
        guard head == .open else { return .proceed }  // a trailer
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

    private mutating func headTooLarge(_ line: UnsafeRawBufferPointer) -> LineAction {
        let excess =
            if headSize > limits.size {
                "The response's head exceeds the limit of \(limits.size) bytes"
            } else if line.count > limits.fieldSize {
                "A field of the response's head exceeds the limit of \(limits.fieldSize) bytes"
            } else {
                "The response's head exceeds the limit of \(limits.fieldCount) fields"
            }
        return fail(.tooLarge, excess)
    }

    private mutating func headEnded() -> LineAction {
        guard var complete = ResponseHead(bytes: headBytes, expectedBodyLength: framing.contentLength) else {
            return fail(.protocolViolation, "The response does not begin with a status line")
        }
        statusCode = complete.statusCode
        if (100..<200).contains(statusCode), statusCode != 101 {
            interimResponses += 1
            if statusCode == 100 { isBodyWanted = true }
            guard interimResponses <= limits.interimResponses else {
                return fail(.protocolViolation, "More than \(limits.interimResponses) interim responses")
            }
            return .proceed
        }
        // What a server says that closes a connection which was idle for long (RFC 9110, section 15.5.9) may meet a request on its way.
        if statusCode == 408, isOnKeptConnection, mayRepeat, freshConnections == 0 {
            wantsFreshConnection = true
            return .retry
        }
        if mayHaveBody, let defect = framing.defect(in: complete) { return fail(.protocolViolation, defect) }
        // What is not decoded comes in the announced length.
        if framing.hasContentCoding, decodesContent, complete.hasKnownCodings { complete.expectedBodyLength = nil }
        head = .complete
        phase = .receivingBody
        return .deliver(complete)
    }

    /// Bytes of the body came, not yet decoded.
    mutating func received(bodyBytes count: Int) {
        bodyBytes += Int64(count)
    }

    /// Notes why the transfer is ended from this side; the first reason counts.
    mutating func fail(_ kind: TransferFailure.Kind, _ message: String) -> LineAction {
        if ownFailure == nil { ownFailure = (kind, message) }
        return .fail(kind, message)
    }

    /// What libcurl's end of the transfer means.
    mutating func ended(code: CURLcode, message: String, usesProxy: Bool, isHTTP2: Bool = false) -> Verdict {
        if wantsFreshConnection, freshConnections == 0 {
            freshConnections += 1
            return .useFreshConnection
        }
        if let (kind, message) = ownFailure { return .failure(kind, message) }
        guard code == CURLE_OK else { return failure(code: code, message: message, usesProxy: usesProxy, isHTTP2: isHTTP2) }
        guard head == .complete else {
            return .failure(.connectionLost, "The connection ended inside the response's head")
        }
        if let announcedLength, bodyBytes != announcedLength {
            return .failure(.connectionLost, "The body has \(bodyBytes) bytes, \(announcedLength) were announced")
        }
        return .success
    }

    private mutating func failure(code: CURLcode, message: String, usesProxy: Bool, isHTTP2: Bool) -> Verdict {
        // libcurl before 8.0 gives up when five pooled connections in a row turn out dead, and blames the host.
        if code == CURLE_SEND_ERROR, message.contains("tried 5 times"), freshConnections == 0 {
            freshConnections += 1
            return .useFreshConnection
        }
        // A GOAWAY that says a request was not looked at is an error to libcurl before 8, like any other on that layer. What may be
        // repeated is, once; RFC 9113, section 8.7, would allow it for all that were not looked at.
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
