// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Asks a session's instruments before each exchange, and notifies them of its events.
///
/// A transport rather than a step of every request: sessions without instruments have no overhead, and below the cache there are only the
/// exchanges on the wire.
final class InstrumentingTransport: ForwardingTransport {
    let base: any Transport
    private let instruments: [any ExchangeInstrument]
    fileprivate let isShutDown = Lock(false)

    init(_ base: any Transport, instruments: [any ExchangeInstrument]) {
        self.base = base
        self.instruments = instruments
    }

    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        guard let source = request.source as? ExchangeSource else { return base.makeTransfer(request, id: id, observer: observer) }
        return LateTransfer(self, request, source, id: id, observer)
    }

    /// Asks the instruments, and makes the transfer.
    fileprivate func makeObserved(
        _ request: TransferRequest, _ source: ExchangeSource, id: Int, _ observer: any TransferObserver
    ) -> any TransferHandle {
        let observations = Observations(instruments, source.exchange(request))
        guard !observations.isEmpty else { return base.makeTransfer(request, id: id, observer: observer) }
        let observed = ObservedTransfer(observer, observations, of: source, id: id)
        guard let headers = observations.headers(of: request) else { return base.makeTransfer(request, id: id, observer: observed) }
        var outgoing = request
        outgoing.headers = headers
        return base.makeTransfer(outgoing, id: id, observer: observed)
    }

    func shutDown() {
        base.shutDown()
        isShutDown.withLock { $0 = true }
    }
}

/// A transfer that is made only when it is started: instruments see what is sent, not what is made early, or made and never started.
private final class LateTransfer: TransferHandle {
    private struct State {
        var isStarted = false
        var isCancelled = false
        var isSuspended = false
        var handle: (any TransferHandle)?
    }

    private let transport: InstrumentingTransport
    private let request: TransferRequest
    private let source: ExchangeSource
    private let id: Int
    private let observer: any TransferObserver
    private let state = Lock(State())

    init(
        _ transport: InstrumentingTransport, _ request: TransferRequest, _ source: ExchangeSource, id: Int, _ observer: any TransferObserver
    ) {
        self.transport = transport
        self.request = request
        self.source = source
        self.id = id
        self.observer = observer
    }

    func start() {
        let isFirst = state.withLock { state in
            defer { state.isStarted = true }
            return !state.isStarted && !state.isCancelled
        }
        guard isFirst else { return }
        let handle = transport.makeObserved(request, source, id: id, observer)
        state.withLock { state in
            state.handle = handle
            if state.isSuspended { handle.setSuspended(true) }
            // Cancelled while the instruments were asked: their observations have to end.
            if state.isCancelled { handle.cancel() }
        }
        handle.start()
    }

    func cancel() {
        state.withLock { state in
            // The transfer's start, which may be on its way, finds the end of the session.
            if state.isStarted, transport.isShutDown.withLock({ $0 }) { return }
            if let handle = state.handle { return handle.cancel() }
            if !state.isStarted, !state.isCancelled { observer.completeUnstarted(id) }
            state.isCancelled = true
        }
    }

    func setSuspended(_ suspended: Bool) {
        state.withLock { state in
            state.isSuspended = suspended
            state.handle?.setSuspended(suspended)
        }
    }

    func resumeReceiving() {
        state.withLock { $0.handle?.resumeReceiving() }
    }
}

/// The observations of one exchange, which end once.
struct Observations {
    private var observations: [any ExchangeObservation]

    init(_ instruments: [any ExchangeInstrument], _ exchange: OutgoingExchange) {
        observations = instruments.compactMap { $0.willStart(exchange) }
    }

    var isEmpty: Bool { observations.isEmpty }

    /// Sets the fields that the instruments want.
    func setFields(of headers: inout HTTPHeaders) {
        for observation in observations {
            for field in observation.headers where field.isValid { headers.update(field) }
        }
    }

    /// The fields of a request with those that the instruments want; `nil` if they want none, so that the request need not be copied.
    func headers(of request: TransferRequest) -> HTTPHeaders? {
        var headers: HTTPHeaders?
        for observation in observations {
            for field in observation.headers where field.isValid {
                var changed = headers ?? request.headers
                changed.update(field)
                headers = changed
            }
        }
        return headers
    }

    func receivedInterim(_ head: ResponseHead) {
        for observation in observations { observation.didReceiveInterim(head) }
    }

    func received(_ head: ResponseHead) {
        for observation in observations { observation.didReceive(head) }
    }

    func ended(_ completion: ExchangeCompletion) {
        for observation in observations { observation.didEnd(completion) }
    }
}

/// Where an exchange comes from: passed through the transports above the instruments with the transfer's request.
final class ExchangeSource: Sendable {
    private struct State {
        var reason: OutgoingExchange.Reason
        var cacheReason: CacheReason?
    }

    let driver: RequestDriver
    private let isInBackground: Bool
    private let state: Lock<State>

    /// - Parameter isInBackground: whether the request does not wait for the exchange.
    init(_ driver: RequestDriver, _ reason: OutgoingExchange.Reason, cacheReason: CacheReason? = nil, isInBackground: Bool = false) {
        self.driver = driver
        self.isInBackground = isInBackground
        state = Lock(State(reason: reason, cacheReason: cacheReason))
    }

    /// Why the next exchange is sent.
    var currentReason: OutgoingExchange.Reason { state.withLock { $0.reason } }
    var isRetry: Bool { state.withLock { $0.reason == .retry } }
    var requestID: UInt64 { driver.requestID }
    var name: String? { driver.settings?.options.name }
    /// The source of a second exchange beside this one.
    var hedge: ExchangeSource { ExchangeSource(driver, .hedge, cacheReason: state.withLock { $0.cacheReason }) }

    /// The source of a validation in the background.
    var validation: ExchangeSource { ExchangeSource(driver, .validation, isInBackground: true) }

    /// Notes why the cache does not answer the request, before it sends the exchange.
    func note(_ reason: CacheReason) {
        state.withLock { $0.cacheReason = reason }
    }

    /// Returns the next exchange on the wire. A second one of the same source is one that the cache has restarted.
    func exchange(_ request: TransferRequest) -> OutgoingExchange {
        let now = state.withLock { state in
            defer { state.reason = .restart }
            return state
        }
        let number = driver.state.withLock { $0.countExchange() }
        return driver.outgoingExchange(request, now.reason, number: number, cacheReason: now.cacheReason, isInBackground: isInBackground)
    }

    /// Returns the next exchange, which is not sent: it does not count.
    func unsentExchange(_ request: TransferRequest) -> OutgoingExchange {
        driver.outgoingExchange(request, currentReason, number: driver.state.withLock { $0.transactionCount } + 1)
    }

    /// Why the exchange with this number has failed.
    func error(after completion: TransferCompletion, of id: Int) -> (any Error)? {
        driver.exchangeError(after: completion, of: id)
    }
}

/// Forwards the events of a transfer, and reports them to the instruments.
private final class ObservedTransfer: TransferObserver {
    private struct State {
        /// `nil` after the end.
        var observations: Observations?
        var head: ResponseHead?
    }

    private let observer: any TransferObserver
    private let source: ExchangeSource
    private let id: Int
    private let state: Lock<State>

    init(_ observer: any TransferObserver, _ observations: Observations, of source: ExchangeSource, id: Int) {
        self.observer = observer
        self.source = source
        self.id = id
        state = Lock(State(observations: observations))
    }

    deinit {
        // A transport has released the transfer without its completion, against its contract.
        end(TransferCompletion(error: CurlewError.cancelled, metrics: TransferMetrics()))
    }

    func transfer(_ id: Int, didReceiveInterim head: ResponseHead) {
        state.withLock { $0.observations }?.receivedInterim(head)
        observer.transfer(id, didReceiveInterim: head)
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        let observations = state.withLock { state in
            state.head = head
            return state.observations
        }
        observations?.received(head)
        return observer.transfer(id, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        observer.transfer(id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) {
        observer.transfer(id, didSend: count)
    }

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        // Before the driver's turn: it may finish the request, whose instruments have seen the end then.
        end(completion)
        observer.transfer(id, didComplete: completion)
    }

    private func end(_ completion: TransferCompletion) {
        let (observations, head) = state.withLock { state in
            defer { state.observations = nil }
            return (state.observations, state.head)
        }
        guard let observations else { return }
        let error = source.error(after: completion, of: id)
        observations.ended(ExchangeCompletion(head: head, error: error, metrics: completion.metrics))
    }
}
