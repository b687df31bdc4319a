// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// Pieces of a body between the transport, which must not wait, and somebody who takes them at their own pace.
///
/// When more waits than ``highWaterMark`` the transport is told to pause, and called back when half of that is gone.
final class BodyBuffer: Sendable {
    /// Tells one wait from the next, so that a cancellation ends its own.
    private final class UniqueWait: Sendable {
        static func ~= (pattern: UniqueWait, value: UniqueWait) -> Bool { pattern === value }
    }

    private enum Reader {
        case nobody
        /// Somebody waits for the next piece.
        case waiting(CheckedContinuation<Data?, any Error>, UniqueWait)
        /// A closure takes everything, on a queue.
        case draining(DispatchQueue, @Sendable (Data) -> Void)
        /// Nobody wants it.
        case dropping
    }

    /// What is to be done with a piece outside the lock.
    private enum Delivery {
        case none
        case resume(CheckedContinuation<Data?, any Error>)
        case drain(DispatchQueue)
    }

    private struct State {
        var bytes = Data()
        var reader = Reader.nobody
        var isPaused = false
        var isDrainScheduled = false
        /// Whether somebody has got a piece.
        var hasGiven = false
        /// Whether readers have to wait until it is known that no retry takes the bytes back.
        var isHeld = false
        var end: Result<Void, any Error>?

        mutating func take(_ piece: UnsafeRawBufferPointer) -> Delivery {
            switch reader {
            case .dropping: return .none
            case .waiting(let continuation, _):
                reader = .nobody
                hasGiven = true
                return .resume(continuation)
            case .nobody:
                keep(piece)
                return .none
            case .draining(let queue, _):
                keep(piece)
                guard !isDrainScheduled else { return .none }
                isDrainScheduled = true
                return .drain(queue)
            }
        }

        private mutating func keep(_ piece: UnsafeRawBufferPointer) {
            bytes.append(contentsOf: piece)
            if bytes.count >= BodyBuffer.highWaterMark { isPaused = true }
        }
    }

    static let highWaterMark = 1 << 20

    private let state = Lock(State())
    private let resume: @Sendable () -> Void

    init(resume: @escaping @Sendable () -> Void) {
        self.resume = resume
    }

    var hasDrain: Bool {
        state.withLock { if case .draining = $0.reader { true } else { false } }
    }

    /// Holds back what is there until it is known whether another attempt begins; `false` when a reader has got a piece, which can't be
    /// taken back. A closure's pieces can: it is called again.
    func holdForRetry() -> Bool {
        state.withLock { state in
            if case .draining = state.reader { return true }
            state.isHeld = !state.hasGiven
            return state.isHeld
        }
    }

    // MARK: Writing

    /// Another attempt begins: what nobody has got of the failed one is forgotten.
    func restart() {
        state.withLock { state in
            state.bytes = Data()
            state.isPaused = false
            state.isHeld = false
        }
    }

    /// Adds a piece; `false` when it is time to pause.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let delivery = state.withLock { $0.take(bytes) }
        switch delivery {
        case .none: break
        case .resume(let continuation): continuation.resume(returning: Data(bytes))
        case .drain(let queue): queue.async { self.drainNow() }
        }
        return !state.withLock { $0.isPaused }
    }

    /// No more will come.
    func finish(_ end: Result<Void, any Error>) {
        let waiting = state.withLock { state -> (CheckedContinuation<Data?, any Error>, Result<Data?, any Error>)? in
            guard state.end == nil else { return nil }
            state.end = end
            state.isHeld = false
            guard case .waiting(let continuation, _) = state.reader else { return nil }
            state.reader = .nobody
            return (continuation, state.bytes.isEmpty ? end.map { nil } : .success(takeAll(&state)))
        }
        if let (continuation, result) = waiting { continuation.resume(with: result) }
    }

    // MARK: Reading

    /// The next bytes, all that are there; `nil` at the end. One reader at a time.
    ///
    /// - Throws: why the end is none; ``CurlewError/cancelled`` when the task that waits is cancelled, or another one waits already.
    func next() async throws -> Data? {
        let wait = UniqueWait()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result = state.withLock { state -> Result<Data?, any Error>? in
                    guard state.bytes.isEmpty || state.isHeld else { return .success(takeAll(&state)) }
                    if let end = state.end { return end.map { nil } }
                    guard case .nobody = state.reader, !Task.isCancelled else { return .failure(CurlewError.cancelled) }
                    state.reader = .waiting(continuation, wait)
                    return nil
                }
                if let result { continuation.resume(with: result) }
                resumeIfEmptied()
            }
        } onCancel: {
            let waiting = state.withLock { state -> CheckedContinuation<Data?, any Error>? in
                guard case .waiting(let continuation, wait) = state.reader else { return nil }
                state.reader = .nobody
                return continuation
            }
            waiting?.resume(throwing: CurlewError.cancelled)
        }
    }

    /// Has a closure take everything on a queue.
    func drain(on queue: DispatchQueue, to closure: @escaping @Sendable (Data) -> Void) {
        state.withLock {
            $0.reader = .draining(queue, closure)
            $0.isDrainScheduled = true
        }
        queue.async { self.drainNow() }
    }

    /// Hands what is there to the closure; on its queue.
    func drainNow() {
        let (bytes, closure) = state.withLock { state -> (Data, (@Sendable (Data) -> Void)?) in
            state.isDrainScheduled = false
            guard case .draining(_, let closure) = state.reader else { return (Data(), nil) }
            return (takeAll(&state), closure)
        }
        if !bytes.isEmpty { closure?(bytes) }
        resumeIfEmptied()
    }

    /// Lets everything go that is there and comes.
    func drop() {
        let waiting = state.withLock { state -> CheckedContinuation<Data?, any Error>? in
            defer {
                state.reader = .dropping
                state.bytes = Data()
            }
            guard case .waiting(let continuation, _) = state.reader else { return nil }
            return continuation
        }
        waiting?.resume(throwing: CurlewError.cancelled)
        resumeIfEmptied()
    }

    private func takeAll(_ state: inout State) -> Data {
        let bytes = state.bytes
        state.bytes = Data()
        state.hasGiven = true
        return bytes
    }

    private func resumeIfEmptied() {
        let mustResume = state.withLock { state in
            guard state.isPaused, state.bytes.count <= Self.highWaterMark / 2 else { return false }
            state.isPaused = false
            return true
        }
        if mustResume { resume() }
    }
}
