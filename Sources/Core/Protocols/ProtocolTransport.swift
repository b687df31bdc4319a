// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading
import Dispatch

/// Has `URLProtocol` classes load requests, as `URLSession` does; requests that no class accepts are forwarded to another transport.
///
/// A transport rather than a step of every request, so that sessions without protocol classes have no overhead. All calls to the classes
/// run on one queue: a class that blocks there delays the session's other requests. An instance gets the request that its class's
/// `canonicalRequest(for:)` returns, which has no other effect. A body in memory is passed as `httpBody`, one of a file or a stream as
/// `httpBodyStream`. Raw streams are not offered.
final class ProtocolTransport: ForwardingTransport {
    let base: any Transport
    fileprivate let source: any ProtocolSource
    /// Those that are offered to the classes, or loaded by one.
    fileprivate let running = RunningTransfers<ProtocolLoad>()
    fileprivate let queue = DispatchQueue(label: "curlew.protocols", target: .global(qos: .utility))

    init(_ base: any Transport, source: any ProtocolSource) {
        self.base = base
        self.source = source
    }

    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        // One for which there is no network fails there.
        guard !source.isEmpty || !request.isOfNetwork else { return base.makeTransfer(request, id: id, observer: observer) }
        return ProtocolLoad(id: id, request: request, observer: observer, transport: self)
    }

    func shutDown() { running.shutDown(with: base) { $0.shutDown() } }

    /// Waits for the base transport and the transfers, then for the calls of the classes.
    func waitUntilShutDown() async { await running.waitUntilShutDown(with: base, queue: queue) }
}

/// A transfer that is offered to the classes: the first that accepts the request loads it, else the base transport does.
private final class ProtocolLoad: TransferHandle {
    private struct State {
        var isStarted = false
        var isSuspended = false
        /// Cancelled, ended with the session, or complete.
        var isEnded = false
        /// What delivers the events: a pump, or the base transport's if no class accepts the request.
        var handle: (any TransferHandle)?
        /// The instance of the class, called on the queue only.
        var loader: (any ProtocolLoader)?
        /// The body, if it is a file or a stream.
        var body: BodyInputStream?
        /// What the instance reports to.
        var events: ProtocolEvents?
    }

    private let id: Int
    private let request: TransferRequest
    private let observer: any TransferObserver
    private let transport: ProtocolTransport
    private let state = Lock(State())

    init(id: Int, request: TransferRequest, observer: any TransferObserver, transport: ProtocolTransport) {
        self.id = id
        self.request = request
        self.observer = observer
        self.transport = transport
    }

    // MARK: Any thread

    // The calls of handles are made inside of the lock, so that they get them in the order in which this one has got them.

    func start() {
        let pump = ResponsePump(id: id, observer: observer, queue: transport.queue) { [self] in stop() }
        let isRefused = state.withLock { state in
            guard !state.isStarted, !state.isEnded else { return false }
            state.isStarted = true
            guard transport.running.insert(self) else {
                state.isEnded = true
                return true
            }
            if state.isSuspended { pump.setSuspended(true) }
            state.handle = pump
            transport.queue.async { self.begin(pump) }
            return false
        }
        guard isRefused else { return }
        observer.transfer(id, didComplete: TransferCompletion(error: CurlewError.sessionInvalidated, metrics: TransferMetrics()))
    }

    func cancel() {
        state.withLock { state in
            guard !state.isEnded else { return }
            state.isEnded = true
            if let handle = state.handle { handle.cancel() } else { observer.completeUnstarted(id) }
        }
    }

    /// Ends the load with its session.
    func shutDown() {
        state.withLock { state in
            guard !state.isEnded else { return }
            state.isEnded = true
            state.handle?.endWithSession()
        }
    }

    func setSuspended(_ suspended: Bool) {
        state.withLock { state in
            state.isSuspended = suspended
            if !suspended { state.events?.touch() }
            state.handle?.setSuspended(suspended)
        }
    }

    func resumeReceiving() {
        state.withLock { $0.handle?.resumeReceiving() }
    }

    // MARK: The queue

    private func begin(_ pump: ResponsePump) {
        guard !state.withLock({ $0.isEnded }) else { return }
        guard var urlRequest = request.urlRequest else { return forward(pump) }
        var body: BodyInputStream?
        if let source = request.body, !(source is DataBody) {
            body = BodyInputStream(source)
            urlRequest.httpBodyStream = body
        }
        let source = request.source as? ExchangeSource
        let events = ProtocolEvents(pump, id: id, source: source, queue: transport.queue)
        let offer = ProtocolOffer(request: urlRequest, owner: source?.owner, events: events)
        guard let loader = transport.source.makeLoader(of: offer) else { return forward(pump) }
        state.withLock { state in
            state.loader = loader
            state.body = body
            state.events = events
        }
        if transport.source.limitsTime {
            watch(events, pump, until: request.options.totalTimeout.map { MonotonicTime.now() &+ $0.nanoseconds })
        }
        loader.startLoading()
    }

    /// Fails the load when nothing was reported for the idle timeout, or its time is over. A suspended one is not idle.
    private func watch(_ events: ProtocolEvents, _ pump: ResponsePump, until end: Nanoseconds?) {
        let (isEnded, isSuspended) = state.withLock { ($0.isEnded, $0.isSuspended) }
        if isSuspended { events.touch() }
        guard !isEnded, let last = events.lastTime else { return }
        let idleEnd = request.options.idleTimeout.map { last &+ $0.nanoseconds }
        guard let due = [idleEnd, end].compactMap({ $0 }).min() else { return }
        let now = MonotonicTime.now()
        guard due > now else {
            let kind: TransferFailure.Kind = due == idleEnd ? .idleTimeout : .totalTimeout
            let message = kind == .idleTimeout ? "The protocol class has reported nothing for too long" : "The load has taken too long"
            let failure = TransferFailure(kind: kind, url: request.url, phase: .waiting, message: message)
            return pump.fail(with: CurlewError.transferFailed(failure))
        }
        transport.queue.asyncAfter(deadline: .now() + .nanoseconds(Int(clamping: due - now))) { [weak self, weak events, weak pump] in
            if let self, let events, let pump { watch(events, pump, until: end) }
        }
    }

    /// Has the base transport run the transfer, as no class accepts the request.
    private func forward(_ pump: ResponsePump) {
        guard request.isOfNetwork else {
            let error = URL(string: request.url).map { CurlewError.urlRequestValidationFailed(reason: .unsupportedScheme(url: $0)) }
            return pump.fail(with: error ?? .urlRequestValidationFailed(reason: .missingURL))
        }
        let handle = transport.base.makeTransfer(request, id: id, observer: observer)
        let isWanted = state.withLock { state in
            guard !state.isEnded else { return false }
            if state.isSuspended { handle.setSuspended(true) }
            state.handle = handle
            return true
        }
        guard isWanted else { return }
        handle.start()
        // From here on it ends with the base transport.
        transport.running.remove(self)
    }

    /// Called before the completion of a load that was not forwarded.
    private func stop() {
        let (loader, body) = state.withLock { state in
            state.isEnded = true
            state.handle = nil
            state.events = nil
            return (state.loader.take(), state.body.take())
        }
        transport.running.remove(self)
        loader?.stopLoading()
        // A class that still reads it waits no longer.
        body?.close()
    }
}

extension TransferRequest {
    /// Whether the URL is one of HTTP: others are loaded by classes only.
    fileprivate var isOfNetwork: Bool { url.hasHTTPScheme }
}

extension String {
    /// Whether the text begins with `http:` or `https:`, in any case.
    var hasHTTPScheme: Bool {
        let start = utf8.prefix(6).map { $0.asciiLowercased }
        return start.starts(with: "http:".utf8) || start.elementsEqual("https:".utf8)
    }
}
