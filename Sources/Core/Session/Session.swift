// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// What the requests of a manager share: configuration, transport and the queue of the delegate.
///
/// It stays until its manager and its last request are gone, but does nothing any more once it was invalidated.
public final class Session: Sendable {
    private struct State {
        var lastTask = 0
        var isInvalidated = false
        var errorTransform: (@Sendable (any Error) -> any Error)?
        weak var delegate: SessionDelegate?
        var serverTrustPolicyManager: ServerTrustPolicyManager?
    }

    /// The configuration; a copy of what the manager was made with.
    public let configuration: SessionConfiguration
    /// Runs, one after the other, what may run code of users before the handlers do: validations, the retrier, redirect and stream closures.
    let queue: DispatchQueue
    /// All waits for a point in time.
    let timers: Timers
    let transport: any Transport
    /// The transport below all others, if it is libcurl's.
    let eventLoop: CurlTransport?
    /// The configuration's options, worked out once.
    let options: PreparedOptions
    /// The cookies that its requests send and receive; `nil` for none.
    let cookies: CookieJar?
    private let state = Lock(State())

    /// Makes a session of its own for a manager: `SessionManager(session:delegate:)`.
    ///
    /// - Parameters:
    ///   - configuration: how the session works; copied.
    ///   - delegate: receives the session's events; not kept.
    public convenience init(configuration: SessionConfiguration = SessionConfiguration(), delegate: SessionDelegate) {
        self.init(configuration: configuration, transport: CurlTransport(configuration: configuration.connections), delegate: delegate)
    }

    init(
        configuration: SessionConfiguration, serverTrustPolicyManager: ServerTrustPolicyManager? = nil, transport: any Transport,
        delegate: SessionDelegate
    ) {
        self.configuration = configuration
        self.transport = configuration.completed(transport)
        eventLoop = transport as? CurlTransport
        options = PreparedOptions(configuration.options)
        cookies = CookieJar(configuration)
        queue = DispatchQueue(label: "curlew.session", target: .global(qos: .utility))
        timers = Timers(queue: queue)
        state.withLock { state in
            state.delegate = delegate
            state.serverTrustPolicyManager = serverTrustPolicyManager
        }
    }

    /// Knows what hosts have to show before anything is sent to them; `nil` leaves that to the configuration.
    public internal(set) var serverTrustPolicyManager: ServerTrustPolicyManager? {
        get { state.withLock { $0.serverTrustPolicyManager } }
        set { state.withLock { $0.serverTrustPolicyManager = newValue } }
    }

    /// Knows the session's requests; `nil` once its manager is gone.
    public var delegate: SessionDelegate? { state.withLock { $0.delegate } }

    var isInvalidated: Bool { state.withLock { $0.isInvalidated } }

    // MARK: Errors in another vocabulary

    /// From now on hands out errors as `transform` makes them, for users who know them by other names.
    package func deliverErrors(as transform: @escaping @Sendable (any Error) -> any Error) {
        state.withLock { if $0.errorTransform == nil { $0.errorTransform = transform } }
    }

    /// The error as the session's users know it.
    func delivered(_ error: any Error) -> any Error {
        state.withLock { $0.errorTransform }?(error) ?? error
    }

    /// A result with its error as the session's users know it.
    func delivered<Value>(_ result: Result<Value, any Error>) -> Result<Value, any Error> {
        guard case .failure(let error) = result else { return result }
        return .failure(delivered(error))
    }

    // MARK: Tasks

    /// A number by which a task is known; unique in the session.
    func makeTaskNumber() -> Int {
        state.withLock { state in
            state.lastTask += 1
            return state.lastTask
        }
    }

    /// Makes a task, suspended.
    func makeTask(_ work: SessionTask.Work, driver: RequestDriver) -> SessionTask {
        SessionTask(id: makeTaskNumber(), work: work, transport: transport, driver: driver)
    }

    /// A transfer's request with what the session adds to each exchange.
    func outgoing(_ request: consuming TransferRequest) -> TransferRequest {
        // Plain HTTP, the only one that is looked at for each request without need, has no servers to be trusted.
        guard cookies != nil || !request.url.hasPrefix("http:") && hasTrustRules else { return request }
        var outgoing = request
        if let cookies { outgoing = cookies.adding(to: outgoing) }
        if let tls = tlsOptions(for: outgoing.url) { outgoing.options.tls = tls }
        return outgoing
    }

    /// A raw stream's request with what the session adds.
    func outgoing(_ request: StreamTransferRequest) -> StreamTransferRequest {
        guard request.isSecure, let tls = tlsOptions(for: request.host.comparableHost, port: request.port) else { return request }
        var outgoing = request
        outgoing.options.tls = tls
        return outgoing
    }

    /// Ends the session: requests on their way fail with ``CurlewError/sessionInvalidated``, and so do new ones.
    public func invalidateAndCancel() {
        let isFirst = state.withLock { state in
            defer { state.isInvalidated = true }
            return !state.isInvalidated
        }
        transport.shutDown()
        if isFirst { delegate?.ended(self) }
    }
}

extension SessionConfiguration {
    /// A transport behind those that the configuration asks for: stubs first, then the cache.
    fileprivate func completed(_ transport: any Transport) -> any Transport {
        let cached: any Transport = urlCache.map { CachingTransport(transport, cache: $0) } ?? transport
        return protocolClasses.isEmpty ? cached : ProtocolTransport(cached, classes: protocolClasses)
    }
}
