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
/// `canonicalRequest(for:)` returns, which has no other effect. A body in memory is passed as `httpBody`; bodies of files and streams are
/// not passed.
final class ProtocolTransport: ForwardingTransport {
    let base: any Transport
    fileprivate let classes: [URLProtocol.Type]
    /// Those that are offered to the classes, or loaded by one.
    fileprivate let running = RunningTransfers<ProtocolLoad>()
    fileprivate let queue = DispatchQueue(label: "curlew.protocols", target: .global(qos: .utility))

    init(_ base: any Transport, classes: [URLProtocol.Type]) {
        self.base = base
        self.classes = classes
    }

    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        ProtocolLoad(id: id, request: request, observer: observer, transport: self)
    }

    func shutDown() { running.shutDown(with: base) { $0.shutDown() } }

    /// Waits for the base transport, then for the calls of the classes.
    func waitUntilShutDown() async {
        await base.waitUntilShutDown()
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }
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
        var loader: URLProtocol?
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
            state.handle?.setSuspended(suspended)
        }
    }

    func resumeReceiving() {
        state.withLock { $0.handle?.resumeReceiving() }
    }

    // MARK: The queue

    private func begin(_ pump: ResponsePump) {
        guard !state.withLock({ $0.isEnded }) else { return }
        guard let urlRequest = request.urlRequest, let type = transport.classes.first(where: { $0.canInit(with: urlRequest) }) else {
            return forward()
        }
        let loader = type.init(request: type.canonicalRequest(for: urlRequest), cachedResponse: nil, client: ProtocolClient(pump))
        state.withLock { $0.loader = loader }
        loader.startLoading()
    }

    /// Has the base transport run the transfer, as no class accepts the request.
    private func forward() {
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
        let loader = state.withLock { state in
            state.isEnded = true
            state.handle = nil
            return state.loader.take()
        }
        transport.running.remove(self)
        loader?.stopLoading()
    }
}

/// Turns the calls of a class, on any thread, into events of a transfer.
private final class ProtocolClient: NSObject, URLProtocolClient {
    private struct State {
        var hasHead = false
        var isComplete = false
    }

    private let pump: ResponsePump
    private let state = Lock(State())

    init(_ pump: ResponsePump) {
        self.pump = pump
    }

    func urlProtocol(_ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy) {
        receive(response)
    }

    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
        state.withLock { state in
            if !state.isComplete { pump.add([.bytes(data)]) }
        }
    }

    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {
        complete(nil)
    }

    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) {
        complete(error)
    }

    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse) {
        receive(redirectResponse, location: request.url)
        complete(nil)
    }

    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
        receive(cachedResponse.response)
        urlProtocol(`protocol`, didLoad: cachedResponse.data)
        complete(nil)
    }

    /// Declines the challenge: the session's own handling of challenges starts from the response's 401.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
        challenge.sender?.continueWithoutCredential(for: challenge)
    }

    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}

    // The lock is held while an event is added to the pump, to keep the order of calls from several threads.

    private func receive(_ response: URLResponse, location: URL? = nil) {
        state.withLock { state in
            guard !state.hasHead, !state.isComplete else { return }
            state.hasHead = true
            pump.add([.head(ResponseHead(response, location: location))])
        }
    }

    private func complete(_ error: (any Error)?) {
        state.withLock { state in
            guard !state.isComplete else { return }
            state.isComplete = true
            pump.add([.complete(TransferCompletion(error: error, metrics: TransferMetrics()))])
        }
    }
}

extension ResponseHead {
    /// The head of a `URLResponse`; one that is not an `HTTPURLResponse` counts as status 200.
    fileprivate init(_ response: URLResponse, location: URL?) {
        guard let response = response as? HTTPURLResponse else {
            let headers = response.mimeType.map { HTTPHeaders([.contentType($0)]) } ?? [:]
            self.init(statusCode: 200, headers: headers)
            return
        }
        var headers = HTTPHeaders(response)
        if let location, headers.value(for: "Location") == nil { headers.append(name: "Location", value: location.absoluteString) }
        self.init(statusCode: response.statusCode, headers: headers)
    }
}
