// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// A raw connection that libcurl sets up (`CURLOPT_CONNECT_ONLY`); afterwards, the loop itself reads from and writes to it.
///
/// For the event loop's thread only. The handle stays in the multi handle as long as the stream, because libcurl finds the connection
/// through it.
final class StreamTransfer: MultiMember, DeadlineHolder {
    var deadline: Nanoseconds = 0
    var heapIndex = -1
    /// The number by which the loop knows it.
    let number: Int
    let request: StreamTransferRequest
    /// The place among those of several loops; `nil` with one loop.
    let slot: LoopSlot?
    /// The number that its events have.
    private let id: Int
    private var observer: (any StreamTransferObserver)?
    private var multi: MultiHandle?
    private(set) var socket: Int32 = -1
    /// The decision on the host's certificates, or on the one that it gets, that is needed before the stream opens.
    private(set) var question: TrustQuestion?
    /// The question to the session's resolver, or its answer.
    private(set) var resolution: Resolution?
    /// How long it waits for the one or the other.
    private var waitLimit = NextLimit()
    /// Why the host's certificates were refused.
    private var refusal: String?
    /// Whether the connection's certificates were accepted; always `false` without TLS.
    private var isTrusted = false
    private let startedAt = MonotonicTime.now()
    private let startDate = Date()
    /// When libcurl began to connect, the last time; 0 before.
    private var launchedAt: Nanoseconds = 0
    /// The ends of a connection over TLS, and its TLS, once its certificates were accepted.
    private var connection: ConnectionInfo?

    private var outgoing: [Data] = []
    /// The number of pieces of `outgoing` that were sent, and of bytes of the next one.
    private var piecesSent = 0
    private var offset = 0
    private var bytesSent: Int64 = 0
    private var bytesReceived: Int64 = 0
    private var isHeld = false
    private var wantsToEndSending = false
    private var hasEndedSending = false
    private var hasEndedReceiving = false

    private static let readSize = 64 * 1024
    /// The number of reads after which other streams get their turn.
    private static let readsPerTurn = 16

    /// Creates a stream; `nil` if libcurl is out of memory.
    init?(_ stream: CurlStream, loop: EventLoopThread, group: ConnectionGroup) {
        number = stream.number
        slot = stream.slot
        request = stream.request
        id = stream.id
        observer = stream.observer
        super.init(loop: loop, group: group)
    }

    private(set) lazy var prepared = PreparedOptions(request.options)

    override var proxy: Proxy? { loop.proxies.proxy(for: request.url, isSecure: request.isSecure, options: prepared) }

    // MARK: Opening

    /// Starts connecting. Returns an error if libcurl rejects it.
    func connect() -> (any Error)? {
        loop.streamTimers.remove(self)
        // In a URL, these characters would end the host.
        guard request.host.utf8.allSatisfy({ $0 > 0x20 && !"/?#@\\".utf8.contains($0) }) else {
            return failure(.invalidURL, "The host name is not valid: \(request.host.debugDescription)")
        }
        if let reason = prepared.invalidity { return failure(.configuration, reason) }
        if let (kind, message) = guardRefusal(of: request.url, request.options) { return failure(kind, message) }
        if let reach = request.options.reachBox?.value {
            switch RouteDecision(to: request.url, proxy: proxy, options: reach, resolved: resolution?.addresses) {
            case .usual: route = nil
            case .route(let chosen): route = chosen
            case .ask(let resolver, let target):
                resolution = loop.ask(resolver, about: target, for: number)
                limitWait(.connect)
                return nil
            }
        }
        do {
            try handle.configure(for: self)
        } catch {
            noteFailure(error.kind, isRequested: false)
            return failure(error.kind, error.message, code: error.code)
        }
        multi = group.pools(on: loop)?.pool(forHost: nil)
        launchedAt = MonotonicTime.now()
        guard multi?.add(handle) == CURLM_OK else {
            self.multi = nil
            return failure(.configuration, "libcurl rejected the stream")
        }
        return nil
    }

    override func completed(_ code: CURLcode) {
        loop.opened(self, code)
    }

    override var addresses: AddressPolicy { request.options.addresses }

    override var socketOptions: SocketOptions? { request.options.reachBox?.value.socket }

    override var tls: TLSOptions { request.options.tls }

    override var url: String { request.url }

    /// Whether the connection's certificates are accepted; otherwise the reason is recorded.
    func mayOpen() -> Bool {
        let decision = decision(on: -1, isReused: false)
        note(decision)
        if case .trusted = decision {
            isTrusted = true
            // Later, libcurl gives no access to TLS until bytes are received.
            connection = ConnectionInfo(handle.connectionInfo) { handle.readTLS(into: &$0) }
        }
        return isTrusted
    }

    override var isConnecting: Bool { multi != nil && socket < 0 }

    override func note(_ decision: TrustRegister.Decision) {
        switch decision {
        case .trusted: break
        case .refused(let message): refusal = message
        case .undecided(let question): self.question = question
        }
    }

    /// libcurl has connected or failed. Returns the error in the latter case.
    func connected(_ code: CURLcode) -> (any Error)? {
        if code == CURLE_OPERATION_TIMEDOUT { giveUp() }
        if let question { return ask(question) }
        if let refusal { return failure(.serverCertificate, refusal) }
        guard code == CURLE_OK else {
            if let (kind, message) = socketFailure(code) { return failure(kind, message, code: code) }
            let message = handle.message(for: code)
            let kind = TransferFailure.Kind.of(code, phase: phase, message: message, usesProxy: proxy != nil)
            noteFailure(kind, isRequested: true)
            let socket = request.options.reachBox?.value.routing.unixSocket
            let text = setUpFailure(code, message, url: request.url, socket: socket).text
            let requirement = kind == .serverCertificate ? request.options.tls.trust : nil
            return failure(kind, requirement?.message(text) ?? text, code: code)
        }
        guard isTrusted || !request.isSecure else {
            return failure(.serverCertificate, "libcurl gave no access to the host's certificates")
        }
        let socket = ccurlew_get_active_socket(handle.raw)
        guard socket >= 0 else { return failure(.connectionLost, "The connection ended immediately after it was established") }
        self.socket = socket
        group.openedCount += 1
        let metrics = metrics
        loop.connectionReporter?.uses(number, socket, url: request.url, info: metrics.connection, isReused: false)
        observer?.stream(id, didOpen: metrics)
        watch()
        // TLS may have read beyond the handshake; polling doesn't report those bytes.
        socketReady([.readable, .writable])
        return nil
    }

    /// Closes the connection until the host's certificates, or the one that it gets, were decided on.
    private func ask(_ question: TrustQuestion) -> (any Error)? {
        multi?.remove(handle)
        multi = nil
        handle.reset()
        if question.isAnswered {
            self.question = nil
            return connect()
        }
        guard loop.ask(question, for: self, number) else { return failure(.serverCertificate, question.endlessness) }
        limitWait(.decision)
        return nil
    }

    /// Applies the connect timeout to what libcurl has no part in.
    private func limitWait(_ limit: NextLimit.Limit) {
        waitLimit = NextLimit()
        waitLimit.consider(Nanoseconds(prepared.connectTimeoutMilliseconds) * 1_000_000, since: loop.now, limit)
        loop.streamTimers.set(self, to: waitLimit.time)
    }

    /// The error for a wait that has taken too long.
    var waitExceeded: CurlewError { failure(waitLimit.failureKind, waitLimit.message) }

    /// Handles the decision that it has waited for. Returns an error if it was a refusal.
    func decided(_ answer: TrustQuestion.Answer) -> (any Error)? {
        guard let question else { return nil }
        if let error = question.error(after: answer, { failure($0, $1) }) { return error }
        self.question = nil
        return connect()
    }

    /// Handles the answer of the session's resolver. Returns an error if it can't be used.
    func resolved(_ result: Result<[String], any Error>) -> (any Error)? {
        do throws(UnusableAnswer) {
            try resolution?.answered(result, at: loop.now)
            return connect()
        } catch {
            return failure(.nameResolution, error.message)
        }
    }

    // MARK: Sending

    /// Queues bytes for sending. Bytes after the end of the stream are ignored.
    func send(_ bytes: Data, endOfStream: Bool) {
        guard !wantsToEndSending else { return }
        if !bytes.isEmpty { outgoing.append(bytes) }
        wantsToEndSending = endOfStream
        guard socket >= 0 else { return }
        socketReady(.writable)
    }

    /// Sends queued bytes as far as the socket accepts them. Returns an error if the connection failed.
    private func flush() -> (any Error)? {
        let before = bytesSent
        defer { if bytesSent > before { observer?.stream(id, didSend: bytesSent) } }
        while piecesSent < outgoing.count {
            let piece = outgoing[piecesSent]
            var count = 0
            let code = piece.withUnsafeBytes {
                curl_easy_send(handle.raw, $0.baseAddress.map { $0 + offset }, $0.count - offset, &count)
            }
            if code == CURLE_AGAIN { return nil }
            guard code == CURLE_OK else { return failure(.connectionLost, handle.message(for: code), code: code) }
            bytesSent += Int64(count)
            offset += count
            if offset == piece.count { dropFirstPiece() }
        }
        endSendingIfWanted()
        return nil
    }

    private func dropFirstPiece() {
        outgoing[piecesSent] = Data()
        piecesSent += 1
        offset = 0
        guard piecesSent == outgoing.count else { return }
        outgoing.removeAll(keepingCapacity: true)
        piecesSent = 0
    }

    private func endSendingIfWanted() {
        guard wantsToEndSending, !hasEndedSending else { return }
        // Without close_notify, the peer would see a truncated stream. The socket may not accept it immediately.
        if request.isSecure, !ccurlew_tls_end_sending(handle.raw) { return }
        hasEndedSending = true
        shutdown(socket, Int32(SHUT_WR))
    }

    // MARK: Receiving

    /// The observer accepts bytes again.
    func resumeReceiving() {
        isHeld = false
        guard socket >= 0 else { return }
        // TLS may have buffered bytes, which polling doesn't report.
        socketReady(.readable)
    }

    /// Reads until no bytes are left or the observer pauses. Returns an error if the connection failed.
    private func receive() -> (any Error)? {
        withUnsafeTemporaryAllocation(byteCount: Self.readSize, alignment: 16) { buffer in
            var reads = 0
            while !isHeld, !hasEndedReceiving {
                // Polling doesn't report bytes buffered by TLS, so the next turn must not wait for the socket.
                guard reads < Self.readsPerTurn else {
                    loop.readLater(self)
                    return nil
                }
                reads += 1
                var count = 0
                let code = curl_easy_recv(handle.raw, buffer.baseAddress, buffer.count, &count)
                if code == CURLE_AGAIN { return nil }
                guard code == CURLE_OK else {
                    // In TLS 1.3, a host refuses a certificate only after the handshake.
                    if bytesReceived == 0 { noteFailure(.connectionLost, isRequested: true) }
                    return failure(.connectionLost, handle.message(for: code), code: code)
                }
                guard count > 0 else {
                    hasEndedReceiving = true
                    observer?.streamDidEndReceiving(id)
                    return nil
                }
                bytesReceived += Int64(count)
                switch observer?.stream(id, didReceive: UnsafeRawBufferPointer(rebasing: buffer[..<count])) ?? .cancel {
                case .proceed: break
                case .pause: isHeld = true
                case .cancel: return CurlewError.cancelled
                }
            }
            return nil
        }
    }

    // MARK: Events

    /// Handles events of the socket, or checks for them.
    func socketReady(_ events: SocketEvents) {
        guard socket >= 0 else { return }
        var error: (any Error)?
        if !events.isDisjoint(with: [.readable, .failed]) { error = receive() }
        if error == nil, events.contains(.writable) || hasToSend { error = flush() }
        if error != nil || (hasEndedReceiving && hasEndedSending) { return loop.complete(self, error: error) }
        watch()
    }

    private func watch() {
        var wanted: SocketEvents = []
        if !isHeld, !hasEndedReceiving { wanted.insert(.readable) }
        if hasToSend { wanted.insert(.writable) }
        loop.want(wanted, of: socket, for: self)
    }

    private var hasToSend: Bool { !outgoing.isEmpty || (wantsToEndSending && !hasEndedSending) }

    // MARK: Ending

    /// Closes the connection.
    func close() {
        loop.streamTimers.remove(self)
        resolution?.task.cancel()
        if socket >= 0 { loop.unwatch(socket) }
        multi?.remove(handle)
        multi = nil
        socket = -1
    }

    /// What was measured until now.
    private var metrics: TransferMetrics {
        var metrics = TransferMetrics(startDate: startDate)
        metrics.nanoseconds.total = Int64(MonotonicTime.now() - startedAt)
        metrics.requestBodyBytes = bytesSent
        metrics.responseBodyBytes = bytesReceived
        guard launchedAt > 0 else { return metrics }
        let queued = Int64(launchedAt - startedAt)
        metrics.nanoseconds.queue = queued
        handle.readMetrics(into: &metrics, since: queued, connection: connection)
        metrics.httpVersion = nil
        return metrics
    }

    func complete(_ error: (any Error)?) {
        observer?.stream(id, didComplete: TransferCompletion(error: error, metrics: metrics))
        observer = nil
    }

    private var phase: TransferFailure.Phase {
        if question != nil || refusal != nil { return .securing }
        if multi == nil { return .queued }
        return socket < 0 ? handle.setUpPhase(isSecure: request.isSecure) : .receivingBody
    }

    /// The error for a connection that can no longer be used.
    func lost(_ message: String) -> CurlewError { failure(phase < .sending ? .connect : .connectionLost, message) }

    private func failure(_ kind: TransferFailure.Kind, _ message: String, code: CURLcode = CURLE_OK) -> CurlewError {
        var failure = TransferFailure(
            kind: kind, url: request.url, phase: phase, code: Int(code.rawValue), message: message,
            requestWasSent: bytesSent > 0, bytesReceived: bytesReceived)
        if code == CURLE_COULDNT_CONNECT { failure.systemError = handle.systemError }
        failure.isRefusedByPolicy = kind == .serverCertificate && request.options.tls.trust != nil
        return .transferFailed(failure)
    }
}

extension StreamTransfer {
    /// Called when the connection is established and before bytes are sent: the last opportunity to refuse.
    static let prereqCallback: ccurlew_prereq_callback = { context, _, _, _, _ in
        guard let context else { return CURL_PREREQFUNC_ABORT }
        return context.borrow(StreamTransfer.self) {
            $0.mayOpen() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
    }
}
