// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Holds what a raw connection brought and nobody has read yet, and those who wait for their bytes to leave.
final class StreamTaskDelegate: TaskDelegate, @unchecked Sendable {  // as its superclass
    private struct Writer {
        /// The count of sent bytes at which this one's have left.
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

    private(set) lazy var buffer = BodyBuffer { [weak self] in self?.state.withLock { $0.task }?.resumeReceiving() }
    private let streamState = Lock(StreamState())

    override init(session: Session, sessionDelegate: SessionDelegate) {
        super.init(session: session, sessionDelegate: sessionDelegate)
        _ = buffer  // made now, as several threads will ask for it
    }

    // MARK: Writing

    func write(_ data: Data) async throws {
        let wait = Lock<CheckedContinuation<Void, any Error>?>(nil)
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                wait.withLock { $0 = continuation }
                write(data) { result in wait.take()?.resume(with: result) }
                if Task.isCancelled { wait.take()?.resume(throwing: CurlewError.cancelled) }
            }
        } onCancel: {
            wait.take()?.resume(throwing: CurlewError.cancelled)
        }
    }

    /// Sends bytes; `done` is called when they have left, or the connection is over.
    func write(_ data: Data, done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        // Sent under the lock, so that what two threads write leaves in the order in which it is counted.
        let refusal = streamState.withLock { state -> Result<Void, any Error>? in
            if let end = state.end { return end.flatMap { .failure(CurlewError.cancelled) } }
            guard !state.isWriteClosed else { return .failure(CurlewError.cancelled) }
            guard !data.isEmpty else { return .success(()) }
            state.queued += Int64(data.count)
            state.writers.append(Writer(end: state.queued, continuation: done))
            self.state.withLock { $0.task }?.send(data, endOfStream: false)
            return nil
        }
        if let refusal { done(refusal) }
    }

    func closeWrite() {
        let isFirst = streamState.withLock { state in
            defer { state.isWriteClosed = true }
            return !state.isWriteClosed
        }
        if isFirst { state.withLock { $0.task }?.send(Data(), endOfStream: true) }
    }

    /// A captured stream was closed; when both are, nobody is left who could end the connection.
    func closed(_ side: Side) {
        let isLast = streamState.withLock { $0.closedSides.insert(side).inserted && $0.closedSides.count == 2 }
        if isLast { state.withLock { $0.task }?.cancel() }
    }

    override func taskWillEnd(_ outcome: TransferOutcome) {
        let end: Result<Void, any Error> = outcome.error.map { .failure($0) } ?? .success(())
        let writers = streamState.withLock { state in
            state.end = end
            defer { state.writers = [] }
            return state.writers
        }
        for writer in writers { writer.continuation(end.flatMap { .failure(CurlewError.cancelled) }) }
        buffer.finish(end)
    }
}

extension Lock where State == CheckedContinuation<Void, any Error>? {
    /// The continuation, for the first who asks.
    fileprivate func take() -> CheckedContinuation<Void, any Error>? {
        withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
    }
}

// MARK: - StreamTransferObserver

extension StreamTaskDelegate: StreamTransferObserver {
    /// Nothing to do: what was written before is on its way.
    func streamDidOpen(_ id: Int) {}

    func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        buffer.append(bytes) ? .proceed : .pause
    }

    func streamDidEndReceiving(_ id: Int) {
        buffer.finish(.success(()))
    }

    func stream(_ id: Int, didSend count: Int64) {
        let done = streamState.withLock { state in
            state.sent = count
            let done = state.writers.prefix { $0.end <= count }
            state.writers.removeFirst(done.count)
            return done
        }
        for writer in done { writer.continuation(.success(())) }
    }

    func stream(_ id: Int, didComplete outcome: TransferOutcome) {
        transfer(id, didComplete: outcome)
    }
}
