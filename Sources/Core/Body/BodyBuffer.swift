// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Buffers a body between the transport, whose thread must not block, and a reader that takes pieces at its own pace.
///
/// Backpressure: the transfer is paused when ``highWaterMark`` is reached, and resumed when half of that has been read. Thread-safe.
final class BodyBuffer: Sendable {
    /// Identifies one wait, so that a cancellation ends that one and not a later one.
    private final class UniqueWait: Sendable {
        static func ~= (pattern: UniqueWait, value: UniqueWait) -> Bool { pattern === value }
    }

    /// Receives a piece, and calls the completion when it has taken it, at once or later.
    typealias Taker = @Sendable (Data, _ taken: @escaping @Sendable () -> Void) -> Void

    /// Returns a taker that has taken a piece when the closure returns.
    static func taker(_ closure: @escaping @Sendable (Data) -> Void) -> Taker {
        { piece, taken in
            closure(piece)
            taken()
        }
    }

    private enum Reader {
        case absent
        /// A task awaits the next piece.
        case waiting(CheckedContinuation<Data?, any Error>, UniqueWait)
        /// A closure is called with each piece, on a queue.
        case draining(DispatchQueue, Taker)
        /// The body is dropped.
        case dropping
    }

    private enum HeadReader {
        case absent
        case waiting(CheckedContinuation<ResponseHead?, any Error>)
        /// The head was handed out: another attempt would contradict it.
        case served
    }

    /// What to do with a piece after unlocking.
    private enum Delivery {
        case none
        case resume(CheckedContinuation<Data?, any Error>)
        case drain(DispatchQueue)
    }

    private struct State {
        var bytes = Data()
        /// The sizes of the pieces in it; `nil` if pieces are joined.
        var sizes: [Int]?
        /// How many of the sizes belong to pieces that were taken.
        var takenSizes = 0
        /// The number of bytes that a closure was called with and has not taken.
        var handedOut = 0
        var reader = Reader.absent
        var isPaused = false
        var isDrainScheduled = false
        /// Whether a reader has received a piece.
        var hasDelivered = false
        /// How often another attempt has begun.
        var restarts = 0
        /// How often one had when a reader last received a piece.
        var restartsAtDelivery = 0
        /// Whether readers have to wait until the retrier has decided: a retry discards the buffered bytes.
        var isHeld = false
        var end: Result<Void, any Error>?
        /// The accepted response's head; `nil` until it is received.
        var head: ResponseHead?
        /// The task that awaits the head, or that has received it.
        var headReader = HeadReader.absent

        mutating func receive(_ piece: UnsafeRawBufferPointer) -> Delivery {
            switch reader {
            case .dropping: return .none
            case .waiting(let continuation, _):
                reader = .absent
                noteDelivery()
                return .resume(continuation)
            case .absent:
                buffer(piece)
                return .none
            case .draining(let queue, _):
                buffer(piece)
                guard !isDrainScheduled else { return .none }
                isDrainScheduled = true
                return .drain(queue)
            }
        }

        /// A reader receives a piece.
        mutating func noteDelivery() { (hasDelivered, restartsAtDelivery) = (true, restarts) }

        private mutating func buffer(_ piece: UnsafeRawBufferPointer) {
            bytes.append(contentsOf: piece)
            sizes?.append(piece.count)
            if bytes.count + handedOut >= BodyBuffer.highWaterMark { isPaused = true }
        }
    }

    static let highWaterMark = 1 << 20

    private let state: Lock<State>
    private let resume: @Sendable () -> Void

    /// - Parameter keepsPieces: whether a closure gets the pieces as they were received, and not joined.
    init(keepsPieces: Bool = false, resume: @escaping @Sendable () -> Void) {
        state = Lock(State(sizes: keepsPieces ? [] : nil))
        self.resume = resume
    }

    var hasDrain: Bool {
        state.withLock { if case .draining = $0.reader { true } else { false } }
    }

    /// Withholds the buffered bytes until it is known whether another attempt begins.
    ///
    /// - Returns: `false` if a reader has received a piece or the head, which can't be revoked. A closure's pieces can: it is called again.
    func holdForRetry() -> Bool {
        state.withLock { state in
            if case .draining = state.reader { return true }
            if case .served = state.headReader { return false }
            state.isHeld = !state.hasDelivered
            return state.isHeld
        }
    }

    // MARK: Writing

    /// Discards the buffered bytes of the failed attempt, because another one begins.
    func restart() {
        state.withLock { state in
            state.restarts += 1
            state.bytes = Data()
            if state.sizes != nil { (state.sizes, state.takenSizes) = ([], 0) }
            state.isPaused = false
            state.isHeld = false
            state.head = nil
            // A raw connection's peer may have closed its side during a handshake.
            state.end = nil
        }
    }

    /// Receives the head of the accepted response, before its body.
    func receive(_ head: ResponseHead) {
        let waiting = state.withLock { state -> CheckedContinuation<ResponseHead?, any Error>? in
            state.head = head
            guard case .waiting(let continuation) = state.headReader else { return nil }
            state.headReader = .served
            return continuation
        }
        waiting?.resume(returning: head)
    }

    /// Appends a piece; returns `false` if the transfer has to pause.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let delivery = state.withLock { $0.receive(bytes) }
        switch delivery {
        case .none: break
        case .resume(let continuation): continuation.resume(returning: Data(bytes))
        case .drain(let queue): queue.async { self.drainNow() }
        }
        return !state.withLock { $0.isPaused }
    }

    /// Ends the body: no more pieces will be appended. Only the first call counts.
    func finish(_ end: Result<Void, any Error>) {
        let waiting = state.withLock { state -> (CheckedContinuation<Data?, any Error>, Result<Data?, any Error>)? in
            guard state.end == nil else { return nil }
            state.end = end
            state.isHeld = false
            guard case .waiting(let continuation, _) = state.reader else { return nil }
            state.reader = .absent
            return (continuation, state.bytes.isEmpty ? end.map { nil } : .success(takeAll(&state)))
        }
        if let (continuation, result) = waiting { continuation.resume(with: result) }
        let (headReader, head) = state.withLock { state in
            defer { state.headReader = .served }
            return (state.headReader, state.head)
        }
        // A head that was held for a retry is the response's; what failed after it is the body's.
        if case .waiting(let continuation) = headReader { continuation.resume(with: head.map { .success($0) } ?? end.map { nil }) }
    }

    // MARK: Reading

    /// Waits for the head of the accepted response; `nil` if the request succeeded without one, as its body went elsewhere.
    ///
    /// From then on the request is not retried. To be called once. If the request fails after its head, this returns the head however
    /// late it is called, and reading the body throws.
    ///
    /// - Throws: the error with which the request failed before a head.
    func head() async throws -> ResponseHead? {
        try await withCheckedThrowingContinuation { continuation in
            let result = state.withLock { state -> Result<ResponseHead?, any Error>? in
                // While the retrier decides, the head may be that of an attempt that does not count.
                if state.head == nil || state.isHeld, state.end == nil {
                    state.headReader = .waiting(continuation)
                    return nil
                }
                state.headReader = .served
                if let head = state.head { return .success(head) }
                return state.end?.map { nil }
            }
            if let result { continuation.resume(with: result) }
        }
    }

    /// How often another attempt had begun when a reader last received a piece: from which attempt that is.
    var restartsAtDelivery: Int { state.withLock { $0.restartsAtDelivery } }

    /// Puts bytes of the last piece, which its reader has not used, in front of the others; discards them if another attempt has begun.
    func putBack(_ bytes: Data) {
        state.withLock { if $0.restarts == $0.restartsAtDelivery { $0.bytes = bytes + $0.bytes } }
    }

    /// Returns all buffered bytes, and waits for the next piece if there are none; `nil` at the end. One reader at a time.
    ///
    /// - Throws: the error with which the body failed; `CancellationError` if the reading task is cancelled; ``CurlewError/cancelled`` if
    ///   another task is waiting already.
    func next() async throws -> Data? {
        // A reader that is slower than the peer never waits. It gives other tasks a turn nevertheless.
        if state.withLock({ !$0.bytes.isEmpty }) { await Task.yield() }
        let wait = UniqueWait()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result = state.withLock { state -> Result<Data?, any Error>? in
                    if state.bytes.isEmpty || state.isHeld, let end = state.end { return end.map { nil } }
                    guard !Task.isCancelled else { return .failure(CancellationError()) }
                    guard state.bytes.isEmpty || state.isHeld else { return .success(takeAll(&state)) }
                    guard case .absent = state.reader else { return .failure(CurlewError.cancelled) }
                    state.reader = .waiting(continuation, wait)
                    return nil
                }
                if let result { continuation.resume(with: result) }
                resumeIfEmptied()
            }
        } onCancel: {
            let waiting = state.withLock { state -> CheckedContinuation<Data?, any Error>? in
                guard case .waiting(let continuation, wait) = state.reader else { return nil }
                state.reader = .absent
                return continuation
            }
            waiting?.resume(throwing: CancellationError())
        }
    }

    /// Calls a closure on a queue with the buffered bytes, and with all later ones.
    func drain(on queue: DispatchQueue, to closure: @escaping Taker) {
        state.withLock {
            $0.reader = .draining(queue, closure)
            $0.isDrainScheduled = true
        }
        queue.async { self.drainNow() }
    }

    /// Calls the closure with the buffered bytes: all before this returns, as the end may come next. On its queue.
    func drainNow() {
        while drainOnce() {}
    }

    /// Returns whether pieces are left.
    private func drainOnce() -> Bool {
        let (bytes, closure, hasMore) = state.withLock { state -> (Data, Taker?, Bool) in
            state.isDrainScheduled = false
            guard case .draining(_, let closure) = state.reader else { return (Data(), nil, false) }
            let taken = takeNext(&state)
            state.handedOut += taken.count
            state.isDrainScheduled = !state.bytes.isEmpty
            return (taken, closure, state.isDrainScheduled)
        }
        guard !bytes.isEmpty, let closure else {
            resumeIfEmptied()
            return false
        }
        closure(bytes) { [self, count = bytes.count] in
            state.withLock { $0.handedOut -= count }
            resumeIfEmptied()
        }
        return hasMore
    }

    /// Discards the buffered bytes and all later ones; fails a waiting reader.
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

    /// Takes all bytes, or the first piece if pieces are kept.
    private func takeNext(_ state: inout State) -> Data {
        guard let sizes = state.sizes, state.takenSizes < sizes.count, sizes[state.takenSizes] < state.bytes.count else {
            return takeAll(&state)
        }
        let count = sizes[state.takenSizes]
        state.takenSizes += 1
        let piece = Data(state.bytes.prefix(count))
        state.bytes = state.bytes.dropFirst(count)
        state.noteDelivery()
        return piece
    }

    private func takeAll(_ state: inout State) -> Data {
        let bytes = state.bytes
        state.bytes = Data()
        if state.sizes != nil { (state.sizes, state.takenSizes) = ([], 0) }
        state.noteDelivery()
        return bytes
    }

    private func resumeIfEmptied() {
        let mustResume = state.withLock { state in
            guard state.isPaused, state.bytes.count + state.handedOut <= Self.highWaterMark / 2 else { return false }
            state.isPaused = false
            return true
        }
        if mustResume { resume() }
    }
}
