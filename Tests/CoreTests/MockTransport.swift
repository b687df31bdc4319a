// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A transport that answers from memory: by a script, or step by step as the test wants it.
final class MockTransport: Transport {
    /// One thing that happens to a transfer.
    enum Step: Sendable {
        case head(Int, HTTPHeaders = [:])
        case bytes(Data)
        /// So much of the body was sent.
        case sent(Int64)
        /// Reads the request's body to its end, as a network would.
        case sendBody
        case complete((any Error)? = nil)
    }

    private struct State {
        var exchanges: [Int: Exchange] = [:]
        var streams: [Int: MockStream] = [:]
        var isShutDown = false
    }

    /// The transfers in the order in which they were started.
    let started = Inbox<Exchange>()
    /// The raw streams in the order in which they were opened.
    let opened = Inbox<MockStream>()
    private let state = Lock(State())
    private let queue = DispatchQueue(label: "mock.transport")
    private let isSynchronous: Bool
    /// Called with a transfer's number before the transport knows it.
    let onStart = Lock<@Sendable (Int) -> Void>({ _ in })
    /// Whether cancelled transfers end only when the test lets them go on, with ``Exchange/pumpLater()``: another thread is busy.
    let holdsCancellations = Lock(false)
    private let script: @Sendable (TransferRequest) -> [Step]

    /// - Parameters:
    ///   - isSynchronous: whether the script has run before `start` returns.
    ///   - script: what happens to a transfer by itself.
    init(isSynchronous: Bool = false, script: @escaping @Sendable (TransferRequest) -> [Step] = { _ in [] }) {
        self.isSynchronous = isSynchronous
        self.script = script
    }

    /// A transport that gives the same answer to everything.
    static func answering(_ status: Int = 200, _ headers: HTTPHeaders = [:], _ body: String = "", isSynchronous: Bool = false)
        -> MockTransport
    {
        MockTransport(isSynchronous: isSynchronous) { _ in .response(status, headers, body) }
    }

    /// A transport that gives the answers one after the other, the last one for ever.
    static func answering(inTurn answers: [[Step]]) -> MockTransport {
        let rest = Lock(answers)
        return MockTransport { _ in rest.withLock { $0.count > 1 ? $0.removeFirst() : $0.first ?? [] } }
    }

    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        onStart.withLock { $0 }(id)
        let exchange = Exchange(id: id, request: request, observer: observer, queue: queue)
        let isRefused = state.withLock { state in
            state.exchanges[id] = exchange
            return state.isShutDown
        }
        if isRefused { exchange.end(with: CurlewError.sessionInvalidated) } else { exchange.add(script(request)) }
        started.put(exchange)
        if isSynchronous { exchange.pump() } else { exchange.pumpLater() }
    }

    func cancel(_ id: Int) {
        if !holdsCancellations.withLock({ $0 }) {
            exchange(id)?.end(with: CurlewError.cancelled)
            exchange(id)?.pumpLater()
        }
        stream(id)?.complete(CurlewError.cancelled)
    }

    func setSuspended(_ suspended: Bool, of id: Int) {
        exchange(id)?.setSuspended(suspended)
        exchange(id)?.pumpLater()
    }

    func resumeReceiving(_ id: Int) {
        exchange(id)?.resumeReceiving()
        exchange(id)?.pumpLater()
        stream(id)?.resumed.put(())
    }

    func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) {
        let stream = MockStream(id: id, request: request, observer: observer, queue: queue)
        let isRefused = state.withLock { state in
            state.streams[id] = stream
            return state.isShutDown
        }
        if isRefused { stream.complete(CurlewError.sessionInvalidated) }
        opened.put(stream)
    }

    func send(_ bytes: Data, endOfStream: Bool, on id: Int) {
        stream(id)?.written.put((bytes, endOfStream))
    }

    func shutDown() {
        let (exchanges, streams) = state.withLock { state in
            state.isShutDown = true
            return (Array(state.exchanges.values), Array(state.streams.values))
        }
        for exchange in exchanges where !holdsCancellations.withLock({ $0 }) {
            exchange.end(with: CurlewError.sessionInvalidated)
            exchange.pumpLater()
        }
        for stream in streams { stream.complete(CurlewError.sessionInvalidated) }
        // It may hold a request, which holds this transport.
        onStart.withLock { $0 = { _ in } }
    }

    private func exchange(_ id: Int) -> Exchange? { state.withLock { $0.exchanges[id] } }

    private func stream(_ id: Int) -> MockStream? { state.withLock { $0.streams[id] } }
}

extension [MockTransport.Step] {
    /// A whole response.
    static func response(_ status: Int = 200, _ headers: HTTPHeaders = [:], _ body: String = "", readsBody: Bool = false) -> Self {
        (readsBody ? [.sendBody] : []) + [.head(status, headers)] + (body.isEmpty ? [] : [.bytes(Data(body.utf8))]) + [.complete()]
    }

    /// A failure before any response.
    static func failure(_ kind: TransferFailure.Kind = .connect, readsBody: Bool = false) -> Self {
        (readsBody ? [.sendBody] : []) + [.complete(CurlewError.failure(kind))]
    }
}

extension CurlewError {
    static func failure(_ kind: TransferFailure.Kind = .connect) -> CurlewError {
        .transferFailed(TransferFailure(kind: kind, url: "http://mock/", phase: .connecting, message: "It failed"))
    }
}

/// A transfer of the mock: steps that happen one at a time, in order, held up by pauses.
final class Exchange: Sendable {
    private struct State {
        var steps: [MockTransport.Step] = []
        var isPumping = false
        var isPaused = false
        /// How often it was to go on: that may be said while the pause is still being answered.
        var resumptions = 0
        var isSuspended = false
        var isOver = false
        var end: (any Error)?
        var actions: [ReceiveAction] = []
        var sentBody = Data()
    }

    let id: Int
    let request: TransferRequest
    private let observer: Lock<(any TransferObserver)?>
    private let queue: DispatchQueue
    private let state = Lock(State())

    init(id: Int, request: TransferRequest, observer: any TransferObserver, queue: DispatchQueue) {
        self.id = id
        self.request = request
        self.observer = Lock(observer)
        self.queue = queue
    }

    /// What the observer answered to heads and bytes.
    var actions: [ReceiveAction] { state.withLock { $0.actions } }
    var isPaused: Bool { state.withLock { $0.isPaused } }
    var isSuspended: Bool { state.withLock { $0.isSuspended } }
    var isOver: Bool { state.withLock { $0.isOver } }
    /// The body that was read in ``MockTransport/Step/sendBody``.
    var sentBody: Data { state.withLock { $0.sentBody } }

    /// Lets things happen, and waits until they have, as far as nothing holds them up.
    func perform(_ steps: MockTransport.Step...) {
        add(steps)
        queue.sync { pump() }
    }

    func respond(_ status: Int = 200, _ headers: HTTPHeaders = [:], _ body: String = "") {
        add(.response(status, headers, body))
        queue.sync { pump() }
    }

    func add(_ steps: [MockTransport.Step]) { state.withLock { $0.steps += steps } }

    func end(with error: any Error) { state.withLock { if $0.end == nil { $0.end = error } } }

    func setSuspended(_ suspended: Bool) { state.withLock { $0.isSuspended = suspended } }

    func resumeReceiving() {
        state.withLock { state in
            state.isPaused = false
            state.resumptions += 1
        }
    }

    func pumpLater() { queue.async { self.pump() } }

    /// Performs steps until none is left or something holds them up; one thread at a time.
    func pump() {
        guard
            state.withLock({ state in
                defer { state.isPumping = true }
                return !state.isPumping
            })
        else { return }
        while let step = next() { perform(step) }
    }

    private func next() -> MockTransport.Step? {
        state.withLock { state in
            if let end = state.end, !state.isOver { return .complete(end) }
            guard !state.isOver, !state.isPaused, !state.isSuspended, !state.steps.isEmpty else {
                state.isPumping = false
                return nil
            }
            return state.steps.removeFirst()
        }
    }

    private func perform(_ step: MockTransport.Step) {
        guard let observer = observer.withLock({ $0 }) else { return }
        switch step {
        case .head(let status, let headers):
            note { observer.transfer(id, didReceive: ResponseHead(statusCode: status, headers: headers)) }
        case .bytes(let data): note { data.withUnsafeBytes { observer.transfer(id, didReceive: $0) } }
        case .sent(let count): observer.transfer(id, didSend: count)
        case .sendBody: sendBody(to: observer)
        case .complete(let error):
            state.withLock { $0.isOver = true }
            self.observer.withLock { $0 = nil }
            var metrics = TransferMetrics()
            metrics.requestBodyBytes = Int64(sentBody.count)
            observer.transfer(id, didComplete: TransferCompletion(error: error, metrics: metrics))
        }
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

    private func sendBody(to observer: any TransferObserver) {
        guard let body = request.body else { return }
        let readable = DispatchSemaphore(value: 0)
        body.prepare { readable.signal() }
        var buffer = [UInt8](repeating: 0, count: 1000)
        while true {
            switch buffer.withUnsafeMutableBytes({ body.read(into: $0) }) {
            case .bytes(let count):
                let total = state.withLock { state in
                    state.sentBody.append(contentsOf: buffer[..<count])
                    return state.sentBody.count
                }
                observer.transfer(id, didSend: Int64(total))
            case .unavailable: readable.wait()
            case .end: return
            case .failed(let error): return end(with: error)
            }
        }
    }
}

/// A raw stream of the mock.
final class MockStream: Sendable {
    let id: Int
    let request: StreamTransferRequest
    /// What the session wrote, piece by piece.
    let written = Inbox<(Data, Bool)>()
    /// How often the session wanted to go on receiving.
    let resumed = Inbox<Void>()
    private let observer: Lock<(any StreamTransferObserver)?>
    private let queue: DispatchQueue

    init(id: Int, request: StreamTransferRequest, observer: any StreamTransferObserver, queue: DispatchQueue) {
        self.id = id
        self.request = request
        self.observer = Lock(observer)
        self.queue = queue
    }

    @discardableResult
    func receive(_ data: Data) -> ReceiveAction {
        queue.sync { observer.withLock { $0 }.map { observer in data.withUnsafeBytes { observer.stream(id, didReceive: $0) } } ?? .cancel }
    }

    func endReceiving() { queue.sync { observer.withLock { $0 }?.streamDidEndReceiving(id) } }

    func sent(_ count: Int64) { queue.sync { observer.withLock { $0 }?.stream(id, didSend: count) } }

    func complete(_ error: (any Error)? = nil) {
        queue.async { [self] in
            let last = observer.withLock { observer in
                defer { observer = nil }
                return observer
            }
            last?.stream(id, didComplete: TransferCompletion(error: error, metrics: TransferMetrics()))
        }
    }
}
