// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Has classes of the program answer requests, as `URLSession` does, and another transport those that none of them wants.
///
/// Everything that is the program's runs on one queue: a class that blocks there holds up the other requests of the session. Unlike in
/// Foundation a class is not asked for a canonical request, which the cache has no use for. The body of a request is there as `httpBody`;
/// one out of a file or a stream is not.
final class ProtocolTransport: FrontTransport {
    let base: any Transport
    let taken = TakenTransfers()
    private let classes: [URLProtocol.Type]
    private let queue = DispatchQueue(label: "curlew.protocols", target: .global(qos: .utility))

    init(_ base: any Transport, classes: [URLProtocol.Type]) {
        self.base = base
        self.classes = classes
    }

    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        let load = taken.enter(id) { forget in
            ProtocolLoad(id: id, request: request, observer: observer, base: base, queue: queue, forget: forget)
        }
        queue.async { [classes] in load.begin(classes) }
    }
}

/// A transfer for which the classes are asked; one of them loads it, or the other transport does.
private final class ProtocolLoad: TakenTransfer {
    private struct State {
        /// Whether the other transport has it.
        var isHandedOver = false
        var end: (any Error)?
        var isSuspended = false
    }

    /// A class's object, which only the queue calls.
    private struct Loader: @unchecked Sendable {  // touched on the queue only
        var object: URLProtocol?
    }

    private let id: Int
    private let request: TransferRequest
    private let observer: any TransferObserver
    private let base: any Transport
    private let queue: DispatchQueue
    private let pump: AnswerPump
    private let forget: @Sendable () -> Void
    private let state = Lock(State())
    private let loader: Lock<Loader>

    init(
        id: Int, request: TransferRequest, observer: any TransferObserver, base: any Transport, queue: DispatchQueue,
        forget: @escaping @Sendable () -> Void
    ) {
        self.id = id
        self.request = request
        self.observer = observer
        self.base = base
        self.queue = queue
        self.forget = forget
        let loader = Lock(Loader())
        self.loader = loader
        pump = AnswerPump(id: id, observer: observer, queue: queue) {
            forget()
            loader.withLock { loader in
                defer { loader.object = nil }
                return loader
            }.object?.stopLoading()
        }
    }

    // MARK: The queue

    func begin(_ classes: [URLProtocol.Type]) {
        guard state.withLock({ $0.end }) == nil else { return }
        guard let urlRequest = request.urlRequest, let type = classes.first(where: { $0.canInit(with: urlRequest) }) else {
            return handOver()
        }
        let client = ProtocolClient(pump)
        let object = type.init(request: urlRequest, cachedResponse: nil, client: client)
        loader.withLock { $0.object = object }
        object.startLoading()
    }

    /// No class wants it.
    private func handOver() {
        let isWanted = state.withLock { state in
            // A cancellation from now on goes to the other transport.
            state.isHandedOver = state.end == nil
            return state.isHandedOver
        }
        guard isWanted else { return }
        base.start(request, id: id, observer: observer)
        // It has not heard what another thread said before it knew the transfer. Only then may others speak to it without us.
        let (end, isSuspended) = state.withLock { ($0.end, $0.isSuspended) }
        if end != nil { base.cancel(id) } else if isSuspended { base.setSuspended(true, of: id) }
        forget()
    }

    // MARK: Any thread

    func end(with error: any Error) {
        let isHandedOver = state.withLock { state in
            if state.end == nil { state.end = error }
            return state.isHandedOver
        }
        if isHandedOver { base.cancel(id) } else { pump.end(with: error) }
    }

    func setSuspended(_ suspended: Bool) {
        let isHandedOver = state.withLock { state in
            state.isSuspended = suspended
            return state.isHandedOver
        }
        if isHandedOver { base.setSuspended(suspended, of: id) } else { pump.setSuspended(suspended) }
    }

    func resumeReceiving() {
        if state.withLock({ $0.isHandedOver }) { base.resumeReceiving(id) } else { pump.resumeReceiving() }
    }
}

/// What a class tells, in the events of a transfer. Classes call it on any thread.
private final class ProtocolClient: NSObject, URLProtocolClient {
    private struct State {
        var hasHead = false
        var isOver = false
    }

    private let pump: AnswerPump
    private let state = Lock(State())

    init(_ pump: AnswerPump) {
        self.pump = pump
    }

    func urlProtocol(_ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy) {
        receive(response)
    }

    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
        state.withLock { state in
            if !state.isOver { pump.add(.bytes(data)) }
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

    /// Challenges are answered from the response's 401, by whoever handles that.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
        challenge.sender?.continueWithoutCredential(for: challenge)
    }

    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}

    // The lock is kept while the pump takes an event, so that those of several threads stay in order.

    private func receive(_ response: URLResponse, location: URL? = nil) {
        state.withLock { state in
            guard !state.hasHead, !state.isOver else { return }
            state.hasHead = true
            pump.add(.head(ResponseHead(response, location: location)))
        }
    }

    private func complete(_ error: (any Error)?) {
        state.withLock { state in
            guard !state.isOver else { return }
            state.isOver = true
            pump.add(.complete(TransferCompletion(error: error, metrics: TransferMetrics())))
        }
    }
}

extension ResponseHead {
    /// The head of a response of Foundation's; one that is not of HTTP counts as a success.
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
