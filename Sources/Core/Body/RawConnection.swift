// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The bytes of a raw connection: those received and not yet read, and the writers that wait until theirs have been sent.
///
/// A ``BodyReceiver``, so that its request is driven like the others, although there is no response whose body the bytes are.
final class RawConnection: BodyReceiver {
    fileprivate struct Writer {
        /// The number of bytes, sent by all writers, at which this writer's have been sent.
        let end: Int64
        let continuation: @Sendable (Result<Void, any Error>) -> Void
    }

    /// A captured stream.
    enum Side {
        case input, output
    }

    fileprivate struct StreamState {
        var closedSides: Set<Side> = []
        var queued: Int64 = 0
        /// The number of bytes that the handshake has sent on the connection, before those of the writers.
        var openingCount: Int64 = 0
        var writers: [Writer] = []
        var isWriteClosed = false
        var end: Result<Void, any Error>?
        /// Whether the connection was established: what was sent and received from then on can't be repeated.
        var hasOpened = false
        /// What was written before that, which another attempt has to send.
        var unopened: [(bytes: Data, endOfStream: Bool)] = []
        /// Whether ``unopened`` is sent once the connection is established: there was no attempt yet, or it has failed.
        var mustResend = false
        /// Whether a layer or a reader learns how the connection ends.
        var hasReader = false
        /// `nil` without a handshake, and after it.
        var handshake: Handshake?
        /// The exchange of the handshake's last attempt, until it ends; `nil` if nothing observes it.
        var exchange: (attempt: Int, value: HandshakeExchange)?
    }

    /// The opening of a protocol on the connection: an attempt that fails during it can be repeated.
    fileprivate struct Handshake {
        /// The bytes that are sent once the connection is established.
        var opening = Data()
        /// Counts the attempts.
        var attempt = 1
        /// Whether the attempt has completed: the next one that is made has the next number.
        var hasCompleted = false
        /// Waits for the next attempt.
        var waiter: (@Sendable (Result<Void, any Error>) -> Void)?
    }

    /// What the connection needs of its task.
    protocol Link: AnyObject, Sendable {
        /// Resumes receiving after a pause.
        func resumeReceiving()
        /// Returns `false` if there is no attempt yet.
        func send(_ bytes: Data, endOfStream: Bool) -> Bool
        func cancelTask()
        /// Returns the error with what is known about the request.
        func describing(_ error: any Error) -> any Error
        /// Whether a retrier decides about the failed attempt.
        func asksRetrier(about request: Request, after error: any Error) -> Bool
    }

    /// The received bytes.
    let buffer: BodyBuffer
    private let state = Lock(StreamState())
    private let link = Lock(WeakLink())

    private struct WeakLink {
        weak var value: (any Link)?
        weak var request: Request?
    }

    init() {
        buffer = BodyBuffer { [link] in link.withLock { $0.value }?.resumeReceiving() }
    }

    /// Connects the bytes to the task that sends and receives them. Once, before the connection is opened.
    func connect(to link: any Link, of request: Request) {
        self.link.withLock { $0 = WeakLink(value: link, request: request) }
    }

    /// The connection is established.
    func opened(_ metrics: TransferMetrics) {
        state.withLock { state in
            state.hasOpened = true
            let link = link.withLock { $0.value }
            if let handshake = state.handshake {
                state.exchange?.value.opened(metrics, requestBytes: handshake.opening.count)
                state.openingCount = Int64(handshake.opening.count)
                _ = link?.send(handshake.opening, endOfStream: false)
            }
            if state.mustResend {
                for piece in state.unopened { _ = link?.send(piece.bytes, endOfStream: piece.endOfStream) }
                state.mustResend = false
            }
            state.unopened = []
        }
    }

    // MARK: Writing

    func write(_ data: Data) async throws {
        let wait = Lock<CheckedContinuation<Void, any Error>?>(nil)
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                wait.withLock { $0 = continuation }
                write(data) { result in wait.take()?.resume(with: result) }
                if Task.isCancelled { wait.take()?.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            wait.take()?.resume(throwing: CancellationError())
        }
    }

    /// Sends bytes; calls `done` when they have been sent, or the connection has completed.
    func write(_ data: Data, done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        // Sent inside the lock, so that what two threads write is sent in the order in which it is counted.
        let refusal = state.withLock { state -> Result<Void, any Error>? in
            if let end = state.end { return end.flatMap { .failure(CurlewError.cancelled) } }
            guard !state.isWriteClosed else { return .failure(CurlewError.cancelled) }
            guard !data.isEmpty else { return .success(()) }
            state.queued += Int64(data.count)
            state.writers.append(Writer(end: state.queued, continuation: done))
            send(data, endOfStream: false, &state)
            return nil
        }
        if let refusal { done(refusal) }
    }

    func closeWrite() {
        state.withLock { state in
            guard !state.isWriteClosed else { return }
            state.isWriteClosed = true
            send(Data(), endOfStream: true, &state)
        }
    }

    private func send(_ bytes: Data, endOfStream: Bool, _ state: inout StreamState) {
        if !state.hasOpened { state.unopened.append((bytes, endOfStream)) }
        guard !state.mustResend else { return }
        state.mustResend = link.withLock { $0.value }?.send(bytes, endOfStream: endOfStream) == false
    }

    /// A captured stream was closed; the connection ends when both are.
    func closed(_ side: Side) {
        let isLast = state.withLock { $0.closedSides.insert(side).inserted && $0.closedSides.count == 2 }
        if isLast { link.withLock { $0.value }?.cancelTask() }
    }

    // MARK: - BodyReceiver

    /// `false`: a raw connection may never complete.
    var retainsManager: Bool { false }

    /// `nil`: the bytes are read, not handed to handlers.
    var data: Data? { nil }

    var receivedCount: Int64 { 0 }

    var hasReader: Bool { state.withLock { $0.hasReader } }

    /// Notes that a reader is attached, which receives the end of the connection from now on.
    func noteReader() { state.withLock { $0.hasReader = true } }

    /// Never called: a raw connection has no response.
    func receive(_ head: ResponseHead, _ exchange: Exchange) throws -> HeadAction { .proceed }

    func receive(_ bytes: UnsafeRawBufferPointer) throws -> ReceiveAction {
        buffer.append(bytes) ? .proceed : .pause
    }

    /// The peer has closed its sending side.
    func endReceiving() {
        buffer.finish(.success(()))
    }

    /// Resumes the writers whose bytes have been sent.
    ///
    /// - Parameter count: the number of bytes sent so far on the connection, those of the handshake included.
    func sent(_ count: Int64) {
        let done = state.withLock { state in
            let done = state.writers.prefix { $0.end <= count - state.openingCount }
            state.writers.removeFirst(done.count)
            return done
        }
        for writer in done { writer.continuation(.success(())) }
    }

    func complete(_ outcome: TransferCompletion) throws {
        let (link, request) = link.withLock { ($0.value, $0.request) }
        guard let error = outcome.error else { return finish(.success(())) }
        endExchange(of: 0, error: error, failed: outcome.metrics)
        let isRepeatable = state.withLock { state in
            state.handshake?.hasCompleted = true
            return state.isRepeatable
        }
        // Otherwise the request's end is the connection's.
        guard isRepeatable, let link, let request, link.asksRetrier(about: request, after: error) else {
            // Before a read or a write fails with it.
            request?.driver.state.withLock { $0.fail(error) }
            return finish(.failure(link?.describing(error) ?? error))
        }
    }

    /// Ends the connection for its readers and writers. Only the first call counts.
    private func finish(_ end: Result<Void, any Error>) {
        let (writers, waiter) = state.withLock { state -> ([Writer], (@Sendable (Result<Void, any Error>) -> Void)?) in
            guard state.end == nil else { return ([], nil) }
            state.end = end
            state.unopened = []
            defer {
                state.writers = []
                state.handshake = nil
            }
            return (state.writers, state.handshake?.waiter)
        }
        for writer in writers { writer.continuation(end.flatMap { .failure(CurlewError.cancelled) }) }
        buffer.finish(end)
        waiter?(end.flatMap { .failure(CurlewError.cancelled) })
    }

    var concludesOnQueue: Bool { false }

    func settle(_ attempt: CompletedAttempt) throws {}

    func commit(_ attempt: CompletedAttempt) throws {}

    /// Until the connection is established, or during a handshake: what was sent otherwise can't be sent again.
    func holdForRetry() -> Bool { state.withLock { $0.isRepeatable } }

    func requestDidFinish(_ request: Request) {
        endExchange(of: 0, error: request.delegate.error)
        finish(request.delegate.error.map { .failure($0) } ?? .success(()))
    }

    func reset() {
        buffer.restart()
        let waiter = state.withLock { state in
            state.hasOpened = false
            state.mustResend = true
            state.handshake?.attempt += 1
            state.handshake?.hasCompleted = false
            defer { state.handshake?.waiter = nil }
            return state.handshake?.waiter
        }
        waiter?(.success(()))
    }
}

// MARK: - Handshakes

extension RawConnection {
    /// Begins a handshake, before the request is started.
    func beginHandshake() {
        state.withLock { state in
            state.handshake = Handshake()
            state.hasReader = true
        }
    }

    /// Begins an attempt: its exchange for the session's instruments and the layer, and the bytes that it sends first.
    func beginAttempt(_ handshake: StreamHandshake) {
        guard let attempt = state.withLock({ $0.handshake.map { $0.hasCompleted ? $0.attempt + 1 : $0.attempt } }) else { return }
        guard let request = link.withLock({ $0.request }) else { return }
        let (exchange, headers) = handshake.beginExchange(of: request, attempt: attempt)
        let bytes = handshake.request.bytes(with: headers)
        let last = state.withLock { state in
            state.handshake?.opening = bytes
            defer { state.exchange = exchange.map { (attempt, $0) } }
            return state.exchange
        }
        last?.value.end(with: CurlewError.cancelled)
    }

    /// Ends the exchange of an attempt, unless it has ended.
    ///
    /// - Parameters:
    ///   - attempt: 0 for the last one.
    ///   - failed: what was measured of the connection that has failed.
    func endExchange(
        of attempt: Int, _ received: ReceivedHandshake = ReceivedHandshake(), error: (any Error)?, failed: TransferMetrics? = nil
    ) {
        let exchange = state.withLock { state -> HandshakeExchange? in
            guard let exchange = state.exchange, attempt == 0 || attempt == exchange.attempt else { return nil }
            state.exchange = nil
            return exchange.value
        }
        exchange?.end(with: error, received, failed: failed)
    }

    /// The number of the attempt, from 1; 0 after the handshake.
    var handshakeAttempt: Int { state.withLock { $0.handshake?.attempt ?? 0 } }

    /// The number of the attempt, from 1, on whose connection the piece was received that a reader has taken last.
    var lastReadAttempt: Int { buffer.restartsAtDelivery + 1 }

    /// The handshake of an attempt is complete: from now on nothing can be repeated. Returns `false` if another attempt has begun.
    func endHandshake(of attempt: Int) -> Bool {
        state.withLock { state in
            guard state.handshake?.attempt == attempt else { return false }
            state.handshake = nil
            return true
        }
    }

    /// Waits until another attempt than this one has begun; calls `fail`, which ends the attempt, unless it has ended.
    ///
    /// - Throws: why the request has failed.
    func waitForNextAttempt(after attempt: Int, fail: () -> Void) async throws {
        let (continuations, continuation) = AsyncThrowingStream<Never, any Error>.makeStream()
        let (mustFail, end) = state.withLock { state -> (Bool, Result<Void, any Error>?) in
            if let end = state.end { return (false, end.flatMap { .failure(CurlewError.cancelled) }) }
            guard let handshake = state.handshake else { return (false, .failure(CurlewError.cancelled)) }
            guard handshake.attempt == attempt else { return (false, .success(())) }
            state.handshake?.waiter = { result in
                switch result {
                case .success: continuation.finish()
                case .failure(let error): continuation.finish(throwing: error)
                }
            }
            return (true, nil)
        }
        if let end { return try end.get() }
        if mustFail { fail() }
        for try await _ in continuations {}
        try Task.checkCancellation()
    }
}

extension RawConnection.StreamState {
    /// Whether another attempt can take the place of one that failed.
    fileprivate var isRepeatable: Bool { end == nil && (!hasOpened || handshake != nil) }
}

extension Lock where State == CheckedContinuation<Void, any Error>? {
    /// Takes the continuation; `nil` if it was taken before.
    fileprivate func take() -> CheckedContinuation<Void, any Error>? {
        withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
    }
}
