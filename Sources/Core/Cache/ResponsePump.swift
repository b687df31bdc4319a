// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Delivers the events of a response that was not loaded by libcurl to an observer, under the rules of the event loop: one at a time, in
/// order, and not while the transfer is paused or suspended.
final class ResponsePump: TransferHandle {
    /// An event of a transfer.
    enum Event: Sendable {
        case head(ResponseHead)
        case bytes(Data)
        /// A range of a body that is read in pieces.
        case stored(any CacheBodyReader, offset: Int64, count: Int64)
        case complete(TransferCompletion)
    }

    fileprivate struct State {
        var events: [Event] = []
        var isPumping = false
        var isPaused = false
        var isSuspended = false
        /// The number of calls of `resumeReceiving`: one may come before the observer has returned `.pause`.
        var resumeCount = 0
        var failure: (any Error)?
        var headTime: Date?
        var isComplete = false
        /// Whether stored bodies are offered as ranges of files: until the observer refuses one.
        var offersFiles = true

        /// Whether the observer's pause holds the next event back: the end of a response whose last piece it has is not.
        var isHeldBack: Bool {
            if case .complete(let completion)? = events.first, completion.error == nil { false } else { isPaused }
        }
    }

    /// The most bytes delivered at a time; larger ones would delay the other transfers of the queue.
    private static let largestPiece = 64 * 1024

    private let id: Int
    private let observer: any TransferObserver
    private let queue: DispatchQueue
    private let startDate = Date()
    private let willComplete: @Sendable () -> Void
    private let didComplete: @Sendable () -> Void
    private let state = Lock(State())

    /// - Parameters:
    ///   - queue: serial; the events are delivered there.
    ///   - willComplete: called before the completion is delivered, on the same thread.
    ///   - didComplete: called after it.
    init(
        id: Int, observer: any TransferObserver, queue: DispatchQueue, willComplete: @escaping @Sendable () -> Void,
        didComplete: @escaping @Sendable () -> Void = {}
    ) {
        self.id = id
        self.observer = observer
        self.queue = queue
        self.willComplete = willComplete
        self.didComplete = didComplete
    }

    // MARK: Any thread

    /// Appends events, which are delivered later on the queue, or before this call returns.
    func add(_ events: [Event], inPlace: Bool = false) {
        state.withLock { $0.events += events }
        if inPlace { start() } else { startLater() }
    }

    func cancel() { fail(with: CurlewError.cancelled) }

    /// Drops the remaining events and completes with an error, even while paused or suspended.
    func fail(with error: any Error) {
        state.withLock { state in
            if state.failure == nil { state.failure = error }
        }
        startLater()
    }

    func setSuspended(_ suspended: Bool) {
        state.withLock { $0.isSuspended = suspended }
        if !suspended { startLater() }
    }

    func resumeReceiving() {
        state.withLock { state in
            state.isPaused = false
            state.resumeCount += 1
        }
        startLater()
    }

    private func startLater() {
        queue.async { self.start() }
    }

    // MARK: The queue

    /// Delivers what there is, in place.
    func start() {
        let isIdle = state.withLock { state in
            defer { state.isPumping = true }
            return !state.isPumping
        }
        guard isIdle else { return }
        while let event = next() { deliver(event) }
    }

    private func next() -> Event? {
        state.withLock { state in
            if let failure = state.failure, !state.isComplete {
                state.events = []
                return .complete(TransferCompletion(error: failure, metrics: TransferMetrics()))
            }
            guard !state.isComplete, !state.isHeldBack, !state.isSuspended, !state.events.isEmpty else {
                state.isPumping = false
                return nil
            }
            return state.takeEvent(atMost: Self.largestPiece)
        }
    }

    private func deliver(_ event: Event) {
        switch event {
        case .head(let head):
            state.withLock { $0.headTime = Date() }
            apply { observer.transfer(id, didReceive: head) }
        case .bytes(let data):
            guard !data.isEmpty else { return }
            apply { data.withUnsafeBytes { observer.transfer(id, didReceive: $0) } }
        case .stored(let reader, let offset, let count):
            guard count > 0, !offer(reader, offset, count) else { return }
            do {
                let data = try reader.read(at: offset, count: Int(count))
                apply { data.withUnsafeBytes { observer.transfer(id, didReceive: $0) } }
            } catch {
                state.withLock { state in
                    if state.failure == nil { state.failure = error }
                }
            }
        case .complete(let outcome):
            let headTime = state.withLock { state in
                state.isComplete = true
                return state.headTime
            }
            willComplete()
            var metrics = outcome.metrics
            // The metrics of a revalidated response are those of its exchange.
            if metrics.total == .zero {
                metrics.startDate = startDate
                metrics.responseStart = headTime.map { .seconds(max($0.timeIntervalSince(startDate), 0)) }
                metrics.total = .seconds(max(Date().timeIntervalSince(startDate), 0))
            }
            observer.transfer(id, didComplete: TransferCompletion(error: outcome.error, metrics: metrics, trailers: outcome.trailers))
            didComplete()
        }
    }

    /// Offers a range of a body that is in a file to an observer that may take it from there.
    ///
    /// - Returns: `false` if it is to be delivered as bytes, in which case it is a small piece.
    private func offer(_ reader: any CacheBodyReader, _ offset: Int64, _ count: Int64) -> Bool {
        guard state.withLock({ $0.offersFiles }) else { return false }
        var taken: Int64?
        apply {
            guard let reader = reader as? any FileBodyReader, let observer = observer as? any FileRangeObserver else { return .proceed }
            let result = reader.withFile { descriptor, start in
                observer.transfer(id, didReceive: FileRange(descriptor: descriptor, offset: start + offset, count: count))
            }
            taken = result?.count
            return result?.action ?? .proceed
        }
        state.withLock { state in
            if taken == nil { state.offersFiles = false }
            guard case let left = count - (taken ?? 0), left > 0, state.failure == nil else { return }
            state.events.insert(.stored(reader, offset: offset + (taken ?? 0), count: left), at: 0)
        }
        return true
    }

    private func apply(_ receive: () -> ReceiveAction) {
        let before = state.withLock { $0.resumeCount }
        let action = receive()
        state.withLock { state in
            switch action {
            case .proceed: break
            case .pause: if state.resumeCount == before { state.isPaused = true }
            case .cancel: if state.failure == nil { state.failure = CurlewError.cancelled }
            }
        }
    }
}

extension ResponsePump.State {
    /// Removes and returns the next event; of a large body only a piece.
    fileprivate mutating func takeEvent(atMost count: Int) -> ResponsePump.Event {
        if case .stored(let reader, let offset, let left) = events[0], left > Int64(count), !offersFiles {
            events[0] = .stored(reader, offset: offset + Int64(count), count: left - Int64(count))
            return .stored(reader, offset: offset, count: Int64(count))
        }
        guard case .bytes(let data) = events[0], data.count > count else { return events.removeFirst() }
        events[0] = .bytes(data.dropFirst(count))
        return .bytes(data.prefix(count))
    }
}

extension TransferHandle {
    /// Ends what a pump delivers; any other transfer is ended, or refused at its start, by its own transport.
    func endWithSession() {
        (self as? ResponsePump)?.fail(with: CurlewError.sessionInvalidated)
    }
}
