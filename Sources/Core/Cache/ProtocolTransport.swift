// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Has `URLProtocol` classes load requests, as `URLSession` does; requests that no class accepts are forwarded to another transport.
///
/// A transport rather than a step of every request, so that sessions without protocol classes have no overhead. All calls to the classes
/// run on one queue: a class that blocks there delays the session's other requests. Unlike in Foundation `canonicalRequest(for:)` is not
/// called, because the cache does not use canonical requests. A body in memory is passed as `httpBody`; bodies of files and streams are not
/// passed.
final class ProtocolTransport: InterceptingTransport {
    let base: any Transport
    let intercepted = InterceptedTransfers()
    private let classes: [URLProtocol.Type]
    let queue = DispatchQueue(label: "curlew.protocols", target: .global(qos: .utility))

    init(_ base: any Transport, classes: [URLProtocol.Type]) {
        self.base = base
        self.classes = classes
    }

    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        let load = intercepted.insert(id) { remove in
            ProtocolLoad(id: id, request: request, observer: observer, base: base, queue: queue, remove: remove)
        }
        queue.async { [classes] in load.begin(classes) }
    }
}

/// A transfer that is offered to the classes: the first that accepts the request loads it, else the base transport does.
private final class ProtocolLoad: InterceptedTransfer {
    private struct State {
        /// Whether the base transport runs the transfer.
        var isForwarded = false
        var failure: (any Error)?
        var isSuspended = false
    }

    /// The instance of the class, called on the queue only.
    private struct Loader: @unchecked Sendable {  // touched on the queue only
        var object: URLProtocol?
    }

    private let id: Int
    private let request: TransferRequest
    private let observer: any TransferObserver
    private let base: any Transport
    private let queue: DispatchQueue
    private let pump: ResponsePump
    private let remove: @Sendable () -> Void
    private let state = Lock(State())
    private let loader: Lock<Loader>

    init(
        id: Int, request: TransferRequest, observer: any TransferObserver, base: any Transport, queue: DispatchQueue,
        remove: @escaping @Sendable () -> Void
    ) {
        self.id = id
        self.request = request
        self.observer = observer
        self.base = base
        self.queue = queue
        self.remove = remove
        let loader = Lock(Loader())
        self.loader = loader
        pump = ResponsePump(id: id, observer: observer, queue: queue) {
            remove()
            loader.withLock { loader in
                defer { loader.object = nil }
                return loader
            }.object?.stopLoading()
        }
    }

    // MARK: The queue

    func begin(_ classes: [URLProtocol.Type]) {
        guard state.withLock({ $0.failure }) == nil else { return }
        guard let urlRequest = request.urlRequest, let type = classes.first(where: { $0.canInit(with: urlRequest) }) else {
            return forward()
        }
        let client = ProtocolClient(pump)
        let object = type.init(request: urlRequest, cachedResponse: nil, client: client)
        loader.withLock { $0.object = object }
        object.startLoading()
    }

    /// Forwards the transfer, as no class accepts the request.
    private func forward() {
        let isWanted = state.withLock { state in
            // From here on a cancellation is forwarded to the base transport.
            state.isForwarded = state.failure == nil
            return state.isForwarded
        }
        guard isWanted else { return }
        base.start(request, id: id, observer: observer)
        // A call of another thread before `start` did not reach the base transport, so it is repeated before calls may bypass this object.
        let (failure, isSuspended) = state.withLock { ($0.failure, $0.isSuspended) }
        if failure != nil { base.cancel(id) } else if isSuspended { base.setSuspended(true, of: id) }
        remove()
    }

    // MARK: Any thread

    func fail(with error: any Error) {
        let isForwarded = state.withLock { state in
            if state.failure == nil { state.failure = error }
            return state.isForwarded
        }
        if isForwarded { base.cancel(id) } else { pump.fail(with: error) }
    }

    func setSuspended(_ suspended: Bool) {
        let isForwarded = state.withLock { state in
            state.isSuspended = suspended
            return state.isForwarded
        }
        if isForwarded { base.setSuspended(suspended, of: id) } else { pump.setSuspended(suspended) }
    }

    func resumeReceiving() {
        if state.withLock({ $0.isForwarded }) { base.resumeReceiving(id) } else { pump.resumeReceiving() }
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
