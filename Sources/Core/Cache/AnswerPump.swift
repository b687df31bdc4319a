// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Hands the events of an answer that does not come from the network to an observer: one at a time, in order, held up by pauses.
final class AnswerPump: Sendable {
    /// Something that happens to a transfer.
    enum Event: Sendable {
        case head(ResponseHead)
        case bytes(Data)
        case complete(TransferCompletion)
    }

    fileprivate struct State {
        var events: [Event] = []
        var isPumping = false
        var isPaused = false
        var isSuspended = false
        /// How often it was to go on: that may be said while the pause is still being answered.
        var resumptions = 0
        var end: (any Error)?
        var headTime: Date?
        var isOver = false
    }

    /// What libcurl hands over at a time is smaller; what is more would keep others waiting.
    private static let largestPiece = 64 * 1024

    private let id: Int
    private let observer: any TransferObserver
    private let queue: DispatchQueue
    private let start = Date()
    private let willComplete: @Sendable () -> Void
    private let state = Lock(State())

    /// - Parameters:
    ///   - queue: serial; where the events are handed over.
    ///   - willComplete: called there before the last one.
    init(id: Int, observer: any TransferObserver, queue: DispatchQueue, willComplete: @escaping @Sendable () -> Void) {
        self.id = id
        self.observer = observer
        self.queue = queue
        self.willComplete = willComplete
    }

    // MARK: Any thread

    func add(_ events: Event...) {
        state.withLock { $0.events += events }
        pumpLater()
    }

    /// Ends it before its time, whatever holds it up.
    func end(with error: any Error) {
        state.withLock { state in
            if state.end == nil { state.end = error }
        }
        pumpLater()
    }

    func setSuspended(_ suspended: Bool) {
        state.withLock { $0.isSuspended = suspended }
        if !suspended { pumpLater() }
    }

    func resumeReceiving() {
        state.withLock { state in
            state.isPaused = false
            state.resumptions += 1
        }
        pumpLater()
    }

    private func pumpLater() {
        queue.async { self.pump() }
    }

    // MARK: The queue

    private func pump() {
        let isFirst = state.withLock { state in
            defer { state.isPumping = true }
            return !state.isPumping
        }
        guard isFirst else { return }
        while let event = next() { handOver(event) }
    }

    private func next() -> Event? {
        state.withLock { state in
            if let end = state.end, !state.isOver {
                state.events = []
                return .complete(TransferCompletion(error: end, metrics: TransferMetrics()))
            }
            guard !state.isOver, !state.isPaused, !state.isSuspended, !state.events.isEmpty else {
                state.isPumping = false
                return nil
            }
            return state.takeEvent(atMost: Self.largestPiece)
        }
    }

    private func handOver(_ event: Event) {
        switch event {
        case .head(let head):
            state.withLock { $0.headTime = Date() }
            note { observer.transfer(id, didReceive: head) }
        case .bytes(let data):
            guard !data.isEmpty else { return }
            note { data.withUnsafeBytes { observer.transfer(id, didReceive: $0) } }
        case .complete(let outcome):
            let headTime = state.withLock { state in
                state.isOver = true
                return state.headTime
            }
            willComplete()
            var metrics = outcome.metrics
            // One that an exchange has measured says so itself.
            if metrics.total == .zero {
                metrics.startDate = start
                metrics.responseStart = headTime.map { .seconds(max($0.timeIntervalSince(start), 0)) }
                metrics.total = .seconds(max(Date().timeIntervalSince(start), 0))
            }
            observer.transfer(id, didComplete: TransferCompletion(error: outcome.error, metrics: metrics))
        }
    }

    private func note(_ receive: () -> ReceiveAction) {
        let before = state.withLock { $0.resumptions }
        let action = receive()
        state.withLock { state in
            switch action {
            case .proceed: break
            case .pause: if state.resumptions == before { state.isPaused = true }
            case .cancel: if state.end == nil { state.end = CurlewError.cancelled }
            }
        }
    }
}

extension AnswerPump.State {
    /// The next event, of a large body only a piece.
    fileprivate mutating func takeEvent(atMost count: Int) -> AnswerPump.Event {
        guard case .bytes(let data) = events[0], data.count > count else { return events.removeFirst() }
        events[0] = .bytes(data.dropFirst(count))
        return .bytes(data.prefix(count))
    }
}
