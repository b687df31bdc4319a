// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A transport that performs scripts: the engine of ``MockTransport``, and of tests that decide step by step what happens to a transfer.
package final class ScriptedTransport: Transport {
    /// One event of a transfer.
    package enum Step: Sendable {
        case head(Int, HTTPHeaders = [:])
        case bytes(Data)
        /// So many bytes of the request's body were sent.
        case sent(Int64)
        /// Reads the request's body to its end, as a network would.
        case sendBody
        /// Waits on the transport's clock.
        case wait(Duration)
        /// Waits until the transfer is cancelled.
        case stall
        /// Calls a closure, which adds the next steps, at once or later, by ``ScriptedExchange/resume(with:)``.
        case ask(@Sendable (ScriptedExchange) -> Void)
        case complete((any Error)? = nil, trailers: HTTPHeaders = [:])
    }

    private struct State {
        var exchanges: [Int: ScriptedExchange] = [:]
        var streams: [Int: ScriptedStream] = [:]
        var isShutDown = false
    }

    /// The transfers in the order in which they were started.
    package let started = Inbox<ScriptedExchange>()
    /// The raw streams in the order in which they were opened.
    package let opened = Inbox<ScriptedStream>()
    /// Called with a transfer's number before the transport knows it.
    package let onStart = Lock<@Sendable (Int) -> Void>({ _ in })
    /// Whether cancelled transfers end only when the test performs that, by ``ScriptedExchange/pumpLater()``: as if the thread were busy.
    package let holdsCancellations = Lock(false)
    private let clock: VirtualClock?
    private let isSynchronous: Bool
    private let keepsExchanges: Bool
    private let script: @Sendable (TransferRequest) -> [Step]
    private let state = Lock(State())
    private let queue = DispatchQueue(label: "curlew.scripted-transport")

    /// - Parameters:
    ///   - isSynchronous: whether the script is performed before `start` returns, as far as nothing holds it up.
    ///   - keepsExchanges: whether ``started`` and ``opened`` are filled.
    ///   - clock: the clock of its waits; `nil` for the system's.
    ///   - script: the first steps of a transfer.
    package init(
        isSynchronous: Bool = false, keepsExchanges: Bool = true, clock: VirtualClock? = nil,
        script: @escaping @Sendable (TransferRequest) -> [Step] = { _ in [] }
    ) {
        self.isSynchronous = isSynchronous
        self.keepsExchanges = keepsExchanges
        self.clock = clock
        self.script = script
        clock?.began(self)
    }

    package func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        onStart.withLock { $0 }(id)
        let exchange = ScriptedExchange(id: id, request: request, observer: observer, queue: queue, clock: clock) { [weak self] in
            self?.remove($0)
        }
        let isRefused = state.withLock { state in
            state.exchanges[id] = exchange
            return state.isShutDown
        }
        if isRefused { exchange.end(with: CurlewError.sessionInvalidated) } else { exchange.add(script(request)) }
        clock?.changed()
        if keepsExchanges { started.put(exchange) }
        if isSynchronous { exchange.pump() } else { exchange.pumpLater() }
    }

    package func cancel(_ id: Int) {
        if !holdsCancellations.withLock({ $0 }) {
            exchange(id)?.end(with: CurlewError.cancelled)
            exchange(id)?.pumpLater()
        }
        stream(id)?.complete(CurlewError.cancelled)
    }

    package func setSuspended(_ suspended: Bool, of id: Int) {
        exchange(id)?.setSuspended(suspended)
        exchange(id)?.pumpLater()
    }

    package func resumeReceiving(_ id: Int) {
        exchange(id)?.resumeReceiving()
        exchange(id)?.pumpLater()
        stream(id)?.resumed.put(())
    }

    package func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) {
        opened.put(makeStream(request, id: id, observer: observer))
    }

    func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> ScriptedStream {
        let stream = ScriptedStream(id: id, request: request, observer: observer, queue: queue)
        let isRefused = state.withLock { state in
            state.streams[id] = stream
            return state.isShutDown
        }
        if isRefused { stream.complete(CurlewError.sessionInvalidated) }
        return stream
    }

    package func send(_ bytes: Data, endOfStream: Bool, on id: Int) {
        stream(id)?.written.put((bytes, endOfStream))
    }

    package func shutDown() {
        let (exchanges, streams) = state.withLock { state in
            state.isShutDown = true
            return (Array(state.exchanges.values), Array(state.streams.values))
        }
        for exchange in exchanges where !holdsCancellations.withLock({ $0 }) {
            exchange.end(with: CurlewError.sessionInvalidated)
            exchange.pumpLater()
        }
        for stream in streams { stream.complete(CurlewError.sessionInvalidated) }
        // It may retain a request, which retains this transport.
        onStart.withLock { $0 = { _ in } }
    }

    private func exchange(_ id: Int) -> ScriptedExchange? { state.withLock { $0.exchanges[id] } }

    private func stream(_ id: Int) -> ScriptedStream? { state.withLock { $0.streams[id] } }

    /// Releases a completed exchange, unless a follow-up has its number already.
    private func remove(_ exchange: ScriptedExchange) {
        state.withLock { state in
            if state.exchanges[exchange.id] === exchange { state.exchanges[exchange.id] = nil }
        }
    }

    // MARK: For the clock

    /// Calls a closure after what is queued now.
    func afterQueuedWork(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }

    func count(in waits: inout ExchangeWaits) {
        for exchange in state.withLock({ Array($0.exchanges.values) }) { exchange.count(in: &waits) }
    }
}

extension [ScriptedTransport.Step] {
    /// A whole response.
    package static func response(_ status: Int = 200, _ headers: HTTPHeaders = [:], _ body: String = "", readsBody: Bool = false) -> Self {
        (readsBody ? [.sendBody] : []) + [.head(status, headers)] + (body.isEmpty ? [] : [.bytes(Data(body.utf8))]) + [.complete()]
    }
}

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
        var bodySignals = 0
        var sentBody = Data()
        var received = 0
        var hasHead = false
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
        while state.withLock({ $0.hold == .body }) {
            readable.wait()
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
        case .head(let status, let headers):
            state.withLock { $0.hasHead = true }
            note { observer.transfer(id, didReceive: ResponseHead(statusCode: status, headers: headers)) }
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
            let signals = state.withLock { $0.bodySignals }
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
