// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// What a scripted transport has started, and ends when it is shut down.
protocol ScriptedTransfer: AnyObject, Sendable {
    /// Ends it soon; the first reason counts.
    func stop(_ error: CurlewError)
}

/// A transfer of a scripted transport: steps that are performed one at a time, in order, and held up by pauses.
package final class ScriptedExchange: TransferHandle, ScriptedTransfer {
    /// What the next step waits for.
    private enum Hold: Equatable {
        /// A wait of the clock, by its number.
        case time(Int?)
        case stall
        /// The script, or the closure of ``ScriptedTransport/Step/ask(_:)``.
        case steps
        /// Bytes of the request's body.
        case body
    }

    private struct State {
        /// Released when the completion was delivered.
        var transport: ScriptedTransport?
        /// Released when the completion is delivered.
        var observer: (any TransferObserver)?
        /// `nil` before the start.
        var startTime: ContinuousClock.Instant?
        /// Called once before the completion is delivered.
        var willComplete: (@Sendable () -> Void)?
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
        var interim: [ResponseHead] = []
        /// As what it is counted.
        var counted: ExchangeWaits.Kind?

        /// Whether the observer's pause holds the next step back: the end of a response whose last piece it has is not.
        var isHeldBack: Bool {
            if case .complete(nil, _)? = steps.first, hasHead { false } else { isPaused }
        }
        /// Whether steps go on as soon as the body is readable, or is already.
        var awaitsBody: Bool { isBodyUnread && !isOver && !isPaused && !isSuspended && (hold == nil || hold == .body) }

        /// What the clock of the transport counts it as; `nil` for nothing.
        var wait: ExchangeWaits.Kind? {
            guard startTime != nil, !isOver else { return nil }
            guard end == nil, !isPumping else { return .busy }
            guard !isHeldBack, !isSuspended else { return nil }
            return switch hold {
            case .time, .stall: .timed
            case .steps: .busy
            case .body: nil
            case nil: steps.isEmpty ? .timed : .busy
            }
        }
    }

    package let id: Int
    package let request: TransferRequest
    /// What the request's signer has thrown.
    let failure: (any Error)?
    private let queue: DispatchQueue
    private let clock: VirtualClock?
    private let state: Lock<State>
    /// Signalled whenever the body is readable.
    private let readable = DispatchSemaphore(value: 0)

    init(
        _ request: TransferRequest, id: Int, _ observer: any TransferObserver, on transport: ScriptedTransport,
        failing failure: (any Error)?
    ) {
        self.id = id
        self.request = request
        self.failure = failure
        queue = transport.queue
        clock = transport.clock
        state = Lock(State(transport: transport, observer: observer))
    }

    /// Changes the state, and what the clock counts: nothing before the start.
    private func change<Value>(_ body: (inout State) -> Value) -> Value {
        state.withLock { state in
            let value = body(&state)
            let wait = state.wait
            if wait != state.counted { state.transport?.waitChanged(from: state.counted, to: wait) }
            state.counted = wait
            return value
        }
    }

    // MARK: TransferHandle

    package func start() {
        let (transport, isRefused) = change { state -> (ScriptedTransport?, Bool) in
            guard state.startTime == nil, state.end == nil, let transport = state.transport else { return (nil, false) }
            state.startTime = .now
            // Without steps it would seem to wait for time, and the clock could jump before it has begun.
            state.hold = .steps
            // Together with the start: a cancellation after it is no reason any more.
            if !transport.enter(self) { state.end = CurlewError.sessionInvalidated }
            return (transport, state.end != nil)
        }
        transport?.begin(self, isRefused: isRefused)
    }

    package func cancel() { stop(.cancelled) }

    func stop(_ error: CurlewError) {
        guard !state.withLock({ $0.startTime != nil && $0.transport?.holdsCancellations.withLock { $0 } == true }) else { return }
        end(with: error)
        pumpLater()
    }

    package func setSuspended(_ suspended: Bool) {
        change { $0.isSuspended = suspended }
        pumpLater()
    }

    package func resumeReceiving() {
        change { state in
            state.isPaused = false
            state.resumptions += 1
        }
        pumpLater()
    }

    // MARK: Steps

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

    package func add(_ steps: [ScriptedTransport.Step]) {
        change { state in
            state.steps += steps
            if state.hold == .steps { state.hold = nil }
        }
    }

    /// Adds the steps for which ``ScriptedTransport/Step/ask(_:)`` waits.
    package func resume(with steps: [ScriptedTransport.Step]) {
        add(steps)
        clock?.changed()
        pumpLater()
    }

    /// Calls a closure before the completion is delivered.
    func beforeCompletion(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.willComplete = body } }

    package func end(with error: any Error) { change { if $0.end == nil { $0.end = error } } }

    package func pumpLater() { queue.async { self.pump() } }

    /// Performs steps until none is left or something holds them up; on one thread at a time.
    package func pump() {
        guard
            change({ state in
                defer { state.isPumping = true }
                return !state.isPumping
            })
        else { return }
        while let step = next() { perform(step) }
        clock?.changed()
    }

    private func next() -> ScriptedTransport.Step? {
        change { state in
            if let end = state.end, !state.isOver { return .complete(end) }
            guard !state.isOver, !state.isHeldBack, !state.isSuspended, state.hold == nil, !state.steps.isEmpty else {
                state.isPumping = false
                return nil
            }
            return state.steps.removeFirst()
        }
    }

    private func perform(_ step: ScriptedTransport.Step) {
        guard let observer = state.withLock({ $0.observer }) else { return }
        switch step {
        case .interim(let head):
            state.withLock { $0.interim.append(head) }
            if head.statusCode != 100 { observer.transfer(id, didReceiveInterim: head) }
        case .head(let status, let headers): receive(ResponseHead(statusCode: status, headers: headers), observer)
        case .received(let head): receive(head, observer)
        case .bytes(let data):
            guard !data.isEmpty else { return }
            state.withLock { $0.received += data.count }
            note { data.withUnsafeBytes { observer.transfer(id, didReceive: $0) } }
        case .sent(let count): observer.transfer(id, didSend: count)
        case .sendBody: sendBody(to: observer)
        case .wait(let delay): wait(delay)
        case .stall: change { $0.hold = .stall }
        case .ask(let body):
            change { $0.hold = .steps }
            body(self)
        case .complete(let error, let trailers): complete(error, trailers, observer)
        }
    }

    private func receive(_ head: ResponseHead, _ observer: any TransferObserver) {
        var head = head
        state.withLock { state in
            state.hasHead = true
            if head.interimResponses.isEmpty, !state.interim.isEmpty { head.interimResponses = state.interim }
        }
        note { observer.transfer(id, didReceive: head) }
    }

    private func complete(_ error: (any Error)?, _ trailers: HTTPHeaders, _ observer: any TransferObserver) {
        let over = change { state in
            state.isOver = true
            state.observer = nil
            return state
        }
        if case .time(let number?) = over.hold { clock?.cancel(number) }
        if over.isBodyPrepared { request.body?.transferDidComplete() }
        var metrics = TransferMetrics()
        metrics.requestBodyBytes = Int64(over.sentBody.count)
        metrics.responseBodyBytes = Int64(over.received)
        if over.hasHead { metrics.httpVersion = .http1_1 }
        if let start = over.startTime { metrics.total = start.duration(to: .now) }
        over.willComplete?()
        observer.transfer(id, didComplete: TransferCompletion(error: error, metrics: metrics, trailers: trailers))
        state.withLock { state in
            state.willComplete = nil
            return state.transport.take()
        }?.remove(self)
    }

    private func note(_ receive: () -> ReceiveAction) {
        let before = state.withLock { $0.resumptions }
        let action = receive()
        change { state in
            state.actions.append(action)
            if action == .pause, state.resumptions == before { state.isPaused = true }
            if action == .cancel { state.end = CurlewError.cancelled }
        }
    }

    // MARK: Waits

    private func wait(_ delay: Duration) {
        change { $0.hold = .time(nil) }
        guard let clock else {
            return queue.asyncAfter(deadline: .now() + .nanoseconds(Int(clamping: delay.nanoseconds))) { self.waitEnded() }
        }
        let number = clock.wait(delay, on: queue) { self.waitEnded() }
        change { if $0.hold == .time(nil) { $0.hold = .time(number) } }
    }

    private func waitEnded() {
        change { state in
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
                return change { state in
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
        change { state in
            state.bodySignals += 1
            if state.hold == .body { state.hold = nil }
        }
        readable.signal()
        clock?.changed()
        pumpLater()
    }
}
