// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A transfer of a scripted transport: steps that are performed one at a time, in order, and held up by pauses.
package final class ScriptedExchange: Sendable {
    /// What the next step waits for.
    private enum Hold: Equatable {
        /// A wait of the clock, by its number.
        case time(Int?)
        case stall
        /// The closure of ``ScriptedTransport/Step/ask(_:)``.
        case steps
        /// Bytes of the request's body.
        case body
    }

    private struct State {
        var steps: [ScriptedTransport.Step] = []
        var isPumping = false
        var isPaused = false
        /// The number of calls of `resumeReceiving`: one may come before the observer has returned `.pause`.
        var resumptions = 0
        var isSuspended = false
        var isOver = false
        var end: (any Error)?
        var hold: Hold?
        var actions: [ReceiveAction] = []
        var isBodyPrepared = false
        /// Whether the body was not readable when it was last read, and so has to be read again.
        var isBodyUnread = false
        var bodySignals = 0
        var sentBody = Data()
        var received = 0
        var hasHead = false

        /// Whether steps go on as soon as the body is readable, or is already.
        var awaitsBody: Bool { isBodyUnread && !isOver && !isPaused && !isSuspended && (hold == nil || hold == .body) }
    }

    package let id: Int
    package let request: TransferRequest
    private let observer: Lock<(any TransferObserver)?>
    private let queue: DispatchQueue
    private let clock: VirtualClock?
    private let willComplete: @Sendable (ScriptedExchange) -> Void
    private let state = Lock(State())
    private let start = ContinuousClock.now
    /// Signalled whenever the body is readable.
    private let readable = DispatchSemaphore(value: 0)

    init(
        id: Int, request: TransferRequest, observer: any TransferObserver, queue: DispatchQueue, clock: VirtualClock?,
        willComplete: @escaping @Sendable (ScriptedExchange) -> Void
    ) {
        self.id = id
        self.request = request
        self.observer = Lock(observer)
        self.queue = queue
        self.clock = clock
        self.willComplete = willComplete
    }

    /// What the observer has returned for heads and bytes.
    package var actions: [ReceiveAction] { state.withLock { $0.actions } }
    package var isPaused: Bool { state.withLock { $0.isPaused } }
    package var isSuspended: Bool { state.withLock { $0.isSuspended } }
    package var isOver: Bool { state.withLock { $0.isOver } }
    /// The body that was read in ``ScriptedTransport/Step/sendBody``.
    package var sentBody: Data { state.withLock { $0.sentBody } }

    /// Performs steps, and returns when they were performed, as far as nothing but the request's body holds them up.
    package func perform(_ steps: ScriptedTransport.Step...) {
        add(steps)
        queue.sync { pump() }
        while case (true, let isHeldUp) = state.withLock({ ($0.awaitsBody, $0.hold == .body) }) {
            if isHeldUp { readable.wait() }
            queue.sync { pump() }
        }
    }

    package func respond(_ status: Int = 200, _ headers: HTTPHeaders = [:], _ body: String = "") {
        add(.response(status, headers, body))
        queue.sync { pump() }
    }

    package func add(_ steps: [ScriptedTransport.Step]) { state.withLock { $0.steps += steps } }

    /// Adds the steps for which ``ScriptedTransport/Step/ask(_:)`` waits.
    package func resume(with steps: [ScriptedTransport.Step]) {
        state.withLock { state in
            state.steps += steps
            if state.hold == .steps { state.hold = nil }
        }
        clock?.changed()
        pumpLater()
    }

    package func end(with error: any Error) { state.withLock { if $0.end == nil { $0.end = error } } }

    package func setSuspended(_ suspended: Bool) { state.withLock { $0.isSuspended = suspended } }

    package func resumeReceiving() {
        state.withLock { state in
            state.isPaused = false
            state.resumptions += 1
        }
    }

    package func pumpLater() { queue.async { self.pump() } }

    /// Performs steps until none is left or something holds them up; on one thread at a time.
    package func pump() {
        guard
            state.withLock({ state in
                defer { state.isPumping = true }
                return !state.isPumping
            })
        else { return }
        while let step = next() { perform(step) }
        clock?.changed()
    }

    func count(in waits: inout ExchangeWaits) {
        state.withLock { state in
            guard !state.isOver else { return }
            guard state.end == nil, !state.isPumping else { return waits.busy += 1 }
            guard !state.isPaused, !state.isSuspended else { return }
            switch state.hold {
            case .time, .stall: waits.timed += 1
            case .steps: waits.busy += 1
            case .body: break
            case nil: if state.steps.isEmpty { waits.timed += 1 } else { waits.busy += 1 }
            }
        }
    }

    private func next() -> ScriptedTransport.Step? {
        state.withLock { state in
            if let end = state.end, !state.isOver { return .complete(end) }
            guard !state.isOver, !state.isPaused, !state.isSuspended, state.hold == nil, !state.steps.isEmpty else {
                state.isPumping = false
                return nil
            }
            return state.steps.removeFirst()
        }
    }

    private func perform(_ step: ScriptedTransport.Step) {
        guard let observer = observer.withLock({ $0 }) else { return }
        switch step {
        case .head(let status, let headers): receive(ResponseHead(statusCode: status, headers: headers), observer)
        case .received(let head): receive(head, observer)
        case .bytes(let data):
            guard !data.isEmpty else { return }
            state.withLock { $0.received += data.count }
            note { data.withUnsafeBytes { observer.transfer(id, didReceive: $0) } }
        case .sent(let count): observer.transfer(id, didSend: count)
        case .sendBody: sendBody(to: observer)
        case .wait(let delay): wait(delay)
        case .stall: state.withLock { $0.hold = .stall }
        case .ask(let body):
            state.withLock { $0.hold = .steps }
            body(self)
        case .complete(let error, let trailers): complete(error, trailers, observer)
        }
    }

    private func receive(_ head: ResponseHead, _ observer: any TransferObserver) {
        state.withLock { $0.hasHead = true }
        note { observer.transfer(id, didReceive: head) }
    }

    private func complete(_ error: (any Error)?, _ trailers: HTTPHeaders, _ observer: any TransferObserver) {
        let (hold, isBodyPrepared, hasHead) = state.withLock { state in
            state.isOver = true
            return (state.hold, state.isBodyPrepared, state.hasHead)
        }
        if case .time(let number?) = hold { clock?.cancel(number) }
        self.observer.withLock { $0 = nil }
        if isBodyPrepared { request.body?.transferDidComplete() }
        var metrics = TransferMetrics()
        metrics.requestBodyBytes = Int64(sentBody.count)
        metrics.responseBodyBytes = Int64(state.withLock { $0.received })
        if hasHead { metrics.httpVersion = .http1_1 }
        metrics.total = start.duration(to: .now)
        willComplete(self)
        observer.transfer(id, didComplete: TransferCompletion(error: error, metrics: metrics, trailers: trailers))
    }

    private func note(_ receive: () -> ReceiveAction) {
        let before = state.withLock { $0.resumptions }
        let action = receive()
        state.withLock { state in
            state.actions.append(action)
            if action == .pause, state.resumptions == before { state.isPaused = true }
            if action == .cancel { state.end = CurlewError.cancelled }
        }
    }

    // MARK: Waits

    private func wait(_ delay: Duration) {
        state.withLock { $0.hold = .time(nil) }
        guard let clock else {
            return queue.asyncAfter(deadline: .now() + .nanoseconds(Int(clamping: delay.nanoseconds))) { self.waitEnded() }
        }
        let number = clock.wait(delay, on: queue) { self.waitEnded() }
        state.withLock { if $0.hold == .time(nil) { $0.hold = .time(number) } }
    }

    private func waitEnded() {
        state.withLock { state in
            if case .time = state.hold { state.hold = nil }
        }
        pump()
    }

    private func sendBody(to observer: any TransferObserver) {
        guard let body = request.body else { return }
        let isPrepared = state.withLock { state in
            defer { state.isBodyPrepared = true }
            return state.isBodyPrepared
        }
        if !isPrepared { body.prepare { [weak self] in self?.bodyIsReadable() } }
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let signals = state.withLock { state in
                state.isBodyUnread = false
                return state.bodySignals
            }
            switch buffer.withUnsafeMutableBytes({ body.read(into: $0) }) {
            case .bytes(let count):
                let total = state.withLock { state in
                    state.sentBody.append(contentsOf: buffer[..<count])
                    return state.sentBody.count
                }
                observer.transfer(id, didSend: Int64(total))
            case .unavailable:
                return state.withLock { state in
                    state.steps.insert(.sendBody, at: 0)
                    state.isBodyUnread = true
                    if state.bodySignals == signals { state.hold = .body }
                }
            case .end: return
            case .failed(let error): return end(with: error)
            }
        }
    }

    private func bodyIsReadable() {
        state.withLock { state in
            state.bodySignals += 1
            if state.hold == .body { state.hold = nil }
        }
        readable.signal()
        clock?.changed()
        pumpLater()
    }
}

/// A raw stream of a scripted transport.
package final class ScriptedStream: Sendable {
    package let id: Int
    package let request: StreamTransferRequest
    /// What the session has sent, piece by piece.
    package let written = Inbox<(Data, Bool)>()
    /// How often the session has withdrawn a pause.
    package let resumed = Inbox<Void>()
    /// Called once after the last event.
    let onEnd = Lock<(@Sendable () -> Void)?>(nil)
    private let observer: Lock<(any StreamTransferObserver)?>
    private let queue: DispatchQueue

    init(id: Int, request: StreamTransferRequest, observer: any StreamTransferObserver, queue: DispatchQueue) {
        self.id = id
        self.request = request
        self.observer = Lock(observer)
        self.queue = queue
    }

    package func open() { queue.sync { observer.withLock { $0 }?.streamDidOpen(id) } }

    @discardableResult
    package func receive(_ data: Data) -> ReceiveAction {
        queue.sync { observer.withLock { $0 }.map { observer in data.withUnsafeBytes { observer.stream(id, didReceive: $0) } } ?? .cancel }
    }

    package func endReceiving() { queue.sync { observer.withLock { $0 }?.streamDidEndReceiving(id) } }

    package func sent(_ count: Int64) { queue.sync { observer.withLock { $0 }?.stream(id, didSend: count) } }

    package var isOver: Bool { observer.withLock { $0 } == nil }

    package func complete(_ error: (any Error)? = nil) {
        queue.async { [self] in
            let last = observer.withLock { observer in
                defer { observer = nil }
                return observer
            }
            last?.stream(id, didComplete: TransferCompletion(error: error, metrics: TransferMetrics()))
            let onEnd = onEnd.withLock { onEnd in
                defer { onEnd = nil }
                return onEnd
            }
            onEnd?()
        }
    }
}
