// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// libcurl's run of one request, with all of its state.
///
/// The event loop owns transfers and pools them for later requests; libcurl's callbacks borrow them by an unretained pointer. For the event
/// loop's thread only, and deliberately not Sendable.
final class Transfer: MultiMember, DeadlineHolder {
    @exclusivity(unchecked) var deadline: Nanoseconds = 0
    @exclusivity(unchecked) var heapIndex = -1

    // Set by `begin`, for one request.
    /// The number by which the loop knows it.
    @exclusivity(unchecked) private(set) var number = 0
    @exclusivity(unchecked) private var source = CurlTransfer.idle
    @exclusivity(unchecked) private var startDate = Date(timeIntervalSinceReferenceDate: 0)
    @exclusivity(unchecked) private(set) var hostKey: UInt64 = 0
    @exclusivity(unchecked) private(set) var isSecure = false
    @exclusivity(unchecked) var state = TransferState(method: .get, mayRepeat: true, limits: TransferState.HeadLimits())
    @exclusivity(unchecked) private var observer: (any TransferObserver)?

    @exclusivity(unchecked) var exchange = Exchange()
    @exclusivity(unchecked) var run = Run()
    @exclusivity(unchecked) var lastActivity: Nanoseconds = 0
    @exclusivity(unchecked) var multi: MultiHandle?
    @exclusivity(unchecked) var connection = Connection()
    /// Whether the handle has sent trailers, and must not be used for another exchange.
    ///
    /// libcurl remembers that even after `curl_easy_reset`, and then leaves no room for the size of a chunk before its upload buffer, but
    /// writes it there all the same (seen with 7.88.1).
    @exclusivity(unchecked) private(set) var hasSentTrailers = false
    /// The question to the session's resolver, or its answer.
    @exclusivity(unchecked) var resolution: Resolution?

    /// The progress of a request; the next one begins without it.
    struct Exchange {
        /// The failure to report instead of libcurl's: a cancellation, or the error of the request's body.
        fileprivate(set) var ownError: (any Error)?
        /// The length of the request's body; `nil` if it is unknown.
        fileprivate(set) var bodyLength: Int64?
        fileprivate(set) var bodyBytesSent: Int64 = 0
        var bodyBytesUploaded: Int64 = 0
        var expectation = Expectation.none
        var launchedAt: Nanoseconds = 0
        var requestSentAt: Nanoseconds?
        var pauses = Pauses()
        var needsFreshConnection = false
        /// The decision on the host's certificates, or on the one that it gets, that is needed before the request is sent.
        var question: TrustQuestion?
        /// Since when it waits for that decision; `nil` if it does not.
        var askedAt: Nanoseconds?
        /// Whether it is counted by the loop's queue, rather than by libcurl's.
        var isQueuedByLoop = true
        /// The place of the host's HTTP/3 that the transfer uses; `nil` for none.
        var alternative: RouteTarget?
        /// Whether an alternative could not be reached, so that none is tried again.
        var hasLeftAlternative = false
        /// Whether it has opened a connection ahead, over TLS and for HTTP/1.1.
        var hasOpenedHTTP1 = false
    }

    /// The progress of libcurl's run of the request; the next run begins without it.
    struct Run {
        var decoder: BodyDecoder?
        /// The head of a 401 that libcurl may answer with credentials: whether it does shows only in its next action.
        var heldHead: ResponseHead?
        var earlyResponse = EarlyResponse.none
        /// The deadline by which the rest of an early response has to begin to arrive.
        var responseDeadline: Nanoseconds?
        /// Whether libcurl has read the request's body to its end.
        fileprivate(set) var hasReadBody = false
    }

    // Borrowed instead of copied, because it is large and read often.
    var request: TransferRequest { _read { yield source.request } }
    var limits: TimeLimits { request.limits }

    /// When the request was posted to the loop.
    var postedAt: Nanoseconds { source.time }

    /// The place among those of several loops; `nil` with one loop.
    var slot: LoopSlot? { source.slot }

    /// Whether there is a request; otherwise the transfer is pooled.
    var isInUse: Bool { observer != nil }

    /// Assigns a request of a group. `isCounted` says whether the host's hash is needed.
    func begin(_ source: CurlTransfer, in group: ConnectionGroup, isCounted: Bool) {
        enter(group)
        self.source = source
        startDate = loop.date(of: source.time)
        number = source.number
        observer = source.observer
        isSecure = request.isSecure
        hostKey = source.slot?.host ?? (isCounted ? Self.hostKey(of: request.url, group: group.number) : 0)
        exchange.bodyLength = request.body.flatMap { $0.length ?? request.announcedLength }
        let mayRepeat = request.method.isIdempotent || request.headers["Idempotency-Key"] != nil
        state = TransferState(
            method: request.method, mayRepeat: mayRepeat, isAuthenticated: request.authentication != nil,
            decodesContent: request.prepared.options.decodesContent, limits: request.prepared.options.headLimits)
    }

    /// Releases the request; the handle is kept for the next one.
    func end() {
        observer = nil
        source = .idle
        exchange = Exchange()
        run = Run()
        multi = nil
        connection.forget()
        if questionCount > 0 { questionCount = 0 }
        if route != nil { route = nil }
        if resolution != nil { endResolution() }
    }

    /// Releases the request without completing it, for another loop.
    func giveAway() -> CurlTransfer {
        defer { end() }
        return source
    }

    /// Configures the handle for libcurl; called again after a stale connection.
    func prepare() throws(OptionError) {
        state.launched()
        connection.forgetSockets()
        connection.socket = -1
        connection.tlsSession = nil
        connection.info = nil
        addressRefusal = nil
        rejectedSocketOption = nil
        run = Run()
        if hasSentTrailers {
            guard renewHandle() else { throw OptionError(CURLE_OUT_OF_MEMORY, CURLOPT_TRAILERFUNCTION) }
            hasSentTrailers = false
        }
        do {
            try handle.configure(for: self)
        } catch {
            // libcurl keeps the receive buffer of a transfer that ended without a connection, and then rejects CURLOPT_BUFFERSIZE.
            guard handle.wasUsed, exchange.ownError == nil, renewHandle() else { throw error }
            try handle.configure(for: self)
        }
    }

    /// The request with its signature, if it has a signer, whose error becomes the transfer's.
    func signedRequest() throws(OptionError) -> TransferRequest {
        do {
            return try request.signed()
        } catch {
            exchange.ownError = error
            throw OptionError(CURLE_BAD_FUNCTION_ARGUMENT, CURLOPT_HTTPHEADER)
        }
    }

    override var proxy: Proxy? { loop.proxies.proxy(for: request.url, isSecure: isSecure, options: request.prepared) }

    /// Whether QUIC can be tried: it has neither proxies nor Unix domain sockets.
    var mayUseHTTP3: Bool { isSecure && proxy == nil && request.unixSocket == nil }

    /// The target of a request about the server as a whole; `nil` for others.
    ///
    /// To an HTTP proxy that is the URL without a path, of which the last proxy makes an asterisk (RFC 9112, section 3.2.4).
    var serverWideTarget: String? {
        guard request.isServerWide else { return nil }
        guard !isSecure, let proxy, !proxy.isSOCKS else { return "*" }
        let url = request.url.droppingUserInfo
        return url.authority.map { String(url[..<$0.endIndex]) } ?? "*"
    }

    // MARK: Sending

    override var addresses: AddressPolicy { request.prepared.options.addresses }

    override var socketOptions: SocketOptions? { request.prepared.options.reachBox?.value.socket }
    override var tls: TLSOptions { request.prepared.options.tls }
    override var url: String { request.url }

    override var isConnecting: Bool { multi != nil && connection.info == nil }

    override func note(_ decision: TrustRegister.Decision) {
        switch decision {
        case .trusted: break
        case .refused(let message): state.refusedConnection(.serverCertificate, message)
        case .undecided(let question):
            state.setUp(reached: .securing)
            exchange.question = question
        }
    }

    override func opened(_ socket: Int32) {
        super.opened(socket)
        connection.openedSockets.append(socket)
    }

    /// Fills libcurl's buffer with the next bytes of the request's body.
    func send(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let body = request.body else { return 0 }
        guard !exchange.pauses.isSuspended, !mustAwaitContinue(), run.earlyResponse != .resetsStream else { return stopSending() }
        guard run.earlyResponse == .none else { return 0 }
        if mustHoldBack { return holdBack() }
        switch body.read(into: buffer) {
        case .bytes(let count):
            guard exchange.bodyBytesSent + Int64(count) <= exchange.bodyLength ?? .max else { return failBody(BodyLengthMismatch(.more)) }
            exchange.bodyBytesSent += Int64(count)
            lastActivity = loop.now
            if exchange.bodyBytesSent == exchange.bodyLength {
                run.hasReadBody = true
                requestEnded()
            }
            observer?.transfer(source.id, didSend: exchange.bodyBytesSent)
            return count
        case .unavailable:
            return stopSending()
        case .end:
            guard exchange.bodyBytesSent == exchange.bodyLength ?? exchange.bodyBytesSent else {
                return failBody(BodyLengthMismatch(.fewer))
            }
            run.hasReadBody = true
            requestEnded()
            return 0
        case .failed(let error):
            if let mismatch = error as? BodyLengthMismatch { return failBody(mismatch) }
            exchange.ownError = error
            return Int(CURL_READFUNC_ABORT)
        }
    }

    /// Fails a body with fewer or more bytes than announced: libcurl would send it, and the server wait for the rest, or take the surplus
    /// for another request.
    private func failBody(_ mismatch: BodyLengthMismatch) -> Int {
        _ = state.fail(.requestBody, mismatch.message(announced: exchange.bodyLength ?? 0))
        return Int(CURL_READFUNC_ABORT)
    }

    /// Appends the fields that follow the body to libcurl's list; `false` if one of them is invalid, which ends the transfer.
    func sendTrailers(_ append: (String) -> Bool) -> Bool {
        hasSentTrailers = true
        guard let trailers = request.body?.trailers else { return true }
        for field in trailers {
            guard field.isValid, field.mayBeTrailer else {
                exchange.ownError = CurlewError.urlRequestValidationFailed(reason: .invalidHeader(name: field.name))
                return false
            }
            guard append("\(field.name): \(field.value)") else { return false }
        }
        return true
    }

    func requestEnded() {
        state.requestEnded()
        exchange.requestSentAt = loop.now
        loop.armTimer(self)
    }

    /// Rewinds the body to its start.
    func rewind() -> Bool {
        guard let body = request.body, body.rewind() else { return false }
        exchange.bodyBytesSent = 0
        exchange.bodyBytesUploaded = 0
        run.hasReadBody = false
        return true
    }

    // MARK: Receiving

    /// Receives a line of the response's head; `false` ends the transfer.
    func receive(line: UnsafeRawBufferPointer) -> Bool {
        lastActivity = loop.now
        exchange.requestSentAt = nil
        run.responseDeadline = nil
        switch state.received(line: line) {
        case .proceed:
            if state.isBodyWanted, exchange.expectation.isOpen { resumeSending() }
            return true
        case .fail, .retry: return false
        case .deliverInterim(let head):
            observer?.transfer(source.id, didReceiveInterim: head)
            return true
        case .deliver(let head):
            resumeSending()
            guard request.authentication != nil, head.statusCode == 401 else {
                let isExpected = noteEarlyResponse(head)
                return deliver(head) && isExpected
            }
            run.heldHead = head
            return true
        }
    }

    /// Delivers the head of a 401 that libcurl did not answer; `false` ends the transfer.
    private func deliverHeldHead() -> Bool {
        run.heldHead.take().map { deliver($0) } ?? true
    }

    private func deliver(_ head: ResponseHead) -> Bool {
        if request.prepared.options.reachBox != nil { noteAlternatives(in: head) }
        noteKeepAlive(in: head)
        guard makeDecoder(for: head) else { return false }
        switch observer?.transfer(source.id, didReceive: head) ?? .cancel {
        case .proceed: return true
        case .pause:
            exchange.pauses.isHeld = true
            return true
        case .cancel:
            exchange.ownError = CurlewError.cancelled
            return false
        }
    }

    /// Receives bytes of the response's body. Returns their number, or libcurl's codes to pause or to end.
    func receive(bytes: UnsafeRawBufferPointer) -> Int {
        if run.heldHead != nil, !deliverHeldHead() { return -1 }
        guard !exchange.pauses.isSuspended, !exchange.pauses.isHeld else {
            exchange.pauses.receivingStopped = true
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        guard !bytes.isEmpty else { return 0 }
        run.responseDeadline = nil
        if run.decoder != nil { return decode(bytes) }
        lastActivity = loop.now
        state.received(bodyBytes: bytes.count)
        return deliver(bytes) != .cancel && !endsWithResponse() ? bytes.count : -1
    }

    func deliver(_ bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        let action = observer?.transfer(source.id, didReceive: bytes) ?? .cancel
        switch action {
        case .proceed: break
        case .pause: exchange.pauses.isHeld = true
        case .cancel: exchange.ownError = CurlewError.cancelled
        }
        return action
    }

    // MARK: Ending

    override func completed(_ code: CURLcode) {
        if run.heldHead != nil, code == CURLE_OK { _ = deliverHeldHead() }
        loop.completed(self, code)
    }

    /// Reports the completion to the observer, and releases it.
    func complete(_ error: (any Error)?) {
        var metrics = TransferMetrics(startDate: startDate)
        measure(&metrics)
        request.body?.transferDidComplete()
        observer?.transfer(source.id, didComplete: TransferCompletion(error: error, metrics: consume metrics, trailers: state.trailers))
        observer = nil
    }

    private func measure(_ metrics: inout TransferMetrics) {
        let now = MonotonicTime.now()
        metrics.nanoseconds.total = Int64(now - min(postedAt, now))
        metrics.timesSent = state.requestsStarted
        metrics.requestBodyBytes = exchange.bodyBytesSent
        metrics.responseBodyBytes = state.bodyBytes
        guard exchange.launchedAt > 0 else { return }
        let queued = Int64(exchange.launchedAt - min(postedAt, exchange.launchedAt))
        metrics.nanoseconds.queue = queued
        handle.readMetrics(into: &metrics, since: queued, connection: connection.info)
        if state.statusCode == 0 { metrics.httpVersion = nil }
    }
}
