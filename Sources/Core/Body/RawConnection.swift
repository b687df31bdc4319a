// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The bytes of a raw connection: those received and not yet read, and the writers that wait until theirs have been sent.
///
/// A ``BodyReceiver``, so that its request is driven like the others, although there is no response whose body the bytes are.
final class RawConnection: BodyReceiver {
    private struct Writer {
        /// The number of sent bytes at which this writer's have been sent.
        let end: Int64
        let continuation: @Sendable (Result<Void, any Error>) -> Void
    }

    /// A captured stream.
    enum Side {
        case input, output
    }

    private struct StreamState {
        var closedSides: Set<Side> = []
        var queued: Int64 = 0
        var sent: Int64 = 0
        var writers: [Writer] = []
        var isWriteClosed = false
        var end: Result<Void, any Error>?
    }

    /// What the connection needs of its task.
    protocol Link: AnyObject, Sendable {
        /// Resumes receiving after a pause.
        func resumeReceiving()
        func send(_ bytes: Data, endOfStream: Bool)
        func cancelTask()
        /// Returns the error with what is known about the request.
        func describing(_ error: any Error) -> any Error
    }

    /// The received bytes.
    let buffer: BodyBuffer
    private let state = Lock(StreamState())
    private let link = Lock(WeakLink())

    private struct WeakLink {
        weak var value: (any Link)?
    }

    init() {
        buffer = BodyBuffer { [link] in link.withLock { $0.value }?.resumeReceiving() }
    }

    /// Connects the bytes to the task that sends and receives them. Once, before the connection is opened.
    func connect(to link: any Link) {
        self.link.withLock { $0.value = link }
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
            link.withLock { $0.value }?.send(data, endOfStream: false)
            return nil
        }
        if let refusal { done(refusal) }
    }

    func closeWrite() {
        let isFirst = state.withLock { state in
            defer { state.isWriteClosed = true }
            return !state.isWriteClosed
        }
        if isFirst { link.withLock { $0.value }?.send(Data(), endOfStream: true) }
    }

    /// A captured stream was closed; the connection ends when both are.
    func closed(_ side: Side) {
        let isLast = state.withLock { $0.closedSides.insert(side).inserted && $0.closedSides.count == 2 }
        if isLast { link.withLock { $0.value }?.cancelTask() }
    }

    // MARK: - BodyReceiver

    /// `nil`: the bytes are read, not handed to handlers.
    /// A raw connection may never complete.
    var retainsManager: Bool { false }

    var data: Data? { nil }

    var receivedCount: Int64 { 0 }

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
    /// - Parameter count: the number of bytes sent so far on the connection.
    func sent(_ count: Int64) {
        let done = state.withLock { state in
            state.sent = count
            let done = state.writers.prefix { $0.end <= count }
            state.writers.removeFirst(done.count)
            return done
        }
        for writer in done { writer.continuation(.success(())) }
    }

    func complete(_ outcome: TransferCompletion) throws {
        let link = link.withLock { $0.value }
        let end: Result<Void, any Error> = outcome.error.map { .failure(link?.describing($0) ?? $0) } ?? .success(())
        let writers = state.withLock { state in
            state.end = end
            defer { state.writers = [] }
            return state.writers
        }
        for writer in writers { writer.continuation(end.flatMap { .failure(CurlewError.cancelled) }) }
        buffer.finish(end)
    }

    var concludesOnQueue: Bool { false }

    func settle(_ attempt: CompletedAttempt) throws {}

    func commit(_ attempt: CompletedAttempt) throws {}

    /// `false`: what was sent on a raw connection can't be sent again.
    func holdForRetry() -> Bool { false }

    func reset() {}
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
