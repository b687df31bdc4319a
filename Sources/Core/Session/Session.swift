// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// What the requests of a manager share: configuration, transport, timers and queue.
///
/// Requests retain their session and not their manager, so that releasing the ``SessionManager`` ends them: its `deinit` invalidates the
/// session. The session is deallocated after its manager and its last request. Thread-safe.
public final class Session: Sendable {
    private enum SessionStage {
        case open
        /// ``SessionManager/shutdown(gracePeriod:)`` was called: new requests are refused, those in flight run.
        case draining
        case invalidated
        /// Invalidated by ``SessionManager/shutdown(gracePeriod:)``.
        case shutDown
    }

    private struct State {
        var lastTask = 0
        /// `nil` until a server has accepted an answer to a Digest challenge.
        var digests: DigestMemory?
        var stage = SessionStage.open
        var errorTransform: (@Sendable (any Error) -> any Error)?
        weak var delegate: SessionDelegate?
        var serverTrustPolicyManager: ServerTrustPolicyManager?
    }

    /// A copy of the configuration with which the session was created.
    public let configuration: SessionConfiguration
    /// Runs users' code before the handlers, serially: validators, adapters that wait, the retrier, the delegate's closures. Also opens and
    /// moves files, which may block.
    package let queue: DispatchQueue
    /// The context carriers of the configuration and of its instruments.
    let contextCarriers: [any ContextCarrier]
    let carriesContext: Bool
    /// The monitors of the configuration and of its instruments.
    let monitors: SessionMonitors
    let isInstrumented: Bool
    /// Whether exchanges of retries are marked for layers.
    let marksRetries: Bool
    /// Whether exchanges are reported to monitors.
    let reportsExchanges: Bool
    /// The classes that may load requests in place of the network; `nil` for none.
    private let protocols: (any ProtocolSource)?
    /// The timers of all requests: of the configuration's clock.
    let timers: Timers
    /// The timers of short waits of the library's own, which are always of the system's clock.
    let systemTimers: Timers
    let transport: any Transport
    /// The transport to the network, if it is libcurl's.
    package let eventLoop: (any EventLoopTransport)?
    /// The configuration's options, prepared once for all transfers.
    let options: PreparedOptions
    /// The configuration's header fields as they are for a request without any; `nil` if one is not valid.
    let preparedHeaders: HTTPHeaders?
    /// The cookies that the requests send and store; `nil` without a cookie storage.
    let cookies: CookieJar?
    /// The hosts that are connected to over TLS only; `nil` without a store.
    let hsts: HSTSStore?
    /// Whether responses are searched for cookies and `Strict-Transport-Security`.
    let keepsHostState: Bool
    /// Whether the last step before an exchange may wait for a disk, as stores are in files.
    let readsFiles: Bool
    private let state = Lock(State())
    /// What no other session has: what its closures decide is shared within it only.
    let token = String.makeToken()
    /// What its delegate has chosen for hosts that request a certificate.
    let certificateChoices = CertificateChoices()

    /// Creates a session on libcurl, to be given to a manager: `SessionManager(session:delegate:)`.
    ///
    /// - Parameters:
    ///   - configuration: the settings; copied.
    ///   - delegate: receives the session's events; not retained.
    public convenience init(configuration: SessionConfiguration = SessionConfiguration(), delegate: SessionDelegate) {
        self.init(configuration: configuration, transport: CurlTransport(configuration: configuration.connections), delegate: delegate)
    }

    init(
        configuration: SessionConfiguration, serverTrustPolicyManager: ServerTrustPolicyManager? = nil, transport: any Transport,
        delegate: SessionDelegate
    ) {
        self.configuration = configuration
        eventLoop = transport as? any EventLoopTransport
        options = PreparedOptions(configuration.options, transportPartition: transport.cachePartition)
        preparedHeaders = configuration.headers.prepared
        cookies = configuration.makeCookieJar()
        hsts = configuration.hsts
        keepsHostState = cookies != nil || hsts != nil
        readsFiles = cookies?.sendingMayBlock == true || hsts?.hasFile == true
        contextCarriers = configuration.installedCarriers
        carriesContext = !contextCarriers.isEmpty
        monitors = SessionMonitors(configuration)
        let tellsPolicies = monitors.events.contains(.policies)
        isInstrumented = !configuration.instruments.isEmpty || configuration.layers.contains { $0.neededSources == .all || tellsPolicies }
        marksRetries = configuration.layers.contains { $0.neededSources == .retries }
        reportsExchanges = monitors.events.contains(.exchanges) || configuration.hasCache && monitors.events.contains(.cache)
        protocols = configuration.protocols
        queue = DispatchQueue(label: "curlew.session", target: .global(qos: .utility))
        timers = Timers(queue: queue, clock: configuration.clock)
        systemTimers = configuration.clock == nil ? timers : Timers(queue: queue)
        self.transport = configuration.completed(transport, LayerContext(timers: timers, queue: queue, monitors: monitors))
        state.withLock { state in
            state.delegate = delegate
            state.serverTrustPolicyManager = serverTrustPolicyManager
        }
        configuration.clock?.began(self)
        observeConnections()
    }

    /// The trust policies of hosts; `nil` evaluates certificates by the configuration.
    public internal(set) var serverTrustPolicyManager: ServerTrustPolicyManager? {
        get { state.withLock { $0.serverTrustPolicyManager } }
        set { state.withLock { $0.serverTrustPolicyManager = newValue } }
    }

    /// The delegate, which looks up the session's requests; `nil` after its release, as the session does not retain it.
    public var delegate: SessionDelegate? { state.withLock { $0.delegate } }

    /// Whether there are classes that requests are offered to.
    package var offersToClasses: Bool { protocols.map { !$0.isEmpty } ?? false }

    /// Whether only a class can load a URL, and there are some: its scheme is not one of HTTP.
    func loadsByClasses(_ url: String) -> Bool { offersToClasses && !url.hasHTTPScheme }

    var isInvalidated: Bool {
        switch state.withLock({ $0.stage }) {
        case .open, .draining: false
        case .invalidated, .shutDown: true
        }
    }

    /// Whether requests may start: not once the session has ended, or is being shut down.
    var isOpen: Bool { state.withLock { $0.stage } == .open }

    /// Why new requests are refused; `nil` if they are not. An invalidated session's are refused by its transport.
    var refusal: CurlewError? {
        switch state.withLock({ $0.stage }) {
        case .open, .invalidated: nil
        case .draining, .shutDown: .sessionShutDown
        }
    }

    /// Why requests fail that the session's end concerns.
    var endError: CurlewError {
        switch state.withLock({ $0.stage }) {
        case .draining, .shutDown: .sessionShutDown
        case .open, .invalidated: .sessionInvalidated
        }
    }

    /// Returns a completion with its error replaced by ``endError`` if that is how a transport reports its end.
    func explained(_ completion: TransferCompletion) -> TransferCompletion {
        guard case CurlewError.sessionInvalidated? = completion.error else { return completion }
        return TransferCompletion(error: endError, metrics: completion.metrics)
    }

    /// Traps in debug builds if it is not called on the session's queue.
    func assertOnQueue() { assert(dispatchPrecondition(condition: .onQueue(queue)) == ()) }

    /// Releases a manager that a request has retained. If that ends it, on the session's queue, as users' subclasses may have a `deinit`.
    func release(_ manager: consuming SessionManager) {
        var manager = Optional(manager)
        guard isKnownUniquelyReferenced(&manager) else { return }
        queue.async { [manager] in withExtendedLifetime(manager) {} }
    }

    // MARK: Translated errors

    /// Translates errors with `transform` from now on, for programs written for Alamofire, which know them as other types. Only the first
    /// call counts.
    ///
    /// Errors are translated when users read them, and not when they occur, so that decisions inside always see ``CurlewError``.
    /// Thread-safe.
    package func deliverErrors(as transform: @escaping @Sendable (any Error) -> any Error) {
        state.withLock { if $0.errorTransform == nil { $0.errorTransform = transform } }
    }

    /// How errors are translated; `nil` if they are not.
    var errorTransform: (@Sendable (any Error) -> any Error)? { state.withLock { $0.errorTransform } }

    /// Returns the error as users see it.
    func delivered(_ error: any Error) -> any Error {
        errorTransform?(error) ?? error
    }

    /// Returns the result with its error as users see it.
    func delivered<Value>(_ result: Result<Value, any Error>) -> Result<Value, any Error> {
        guard case .failure(let error) = result else { return result }
        return .failure(delivered(error))
    }

    // MARK: Tasks

    /// Returns a new task number, unique in the session.
    func makeTaskNumber() -> Int {
        state.withLock { state in
            state.lastTask += 1
            return state.lastTask
        }
    }

    /// Creates a task, which is suspended.
    func makeTask(_ work: SessionTask.Work, driver: RequestDriver) -> SessionTask {
        let (number, digests) = state.withLock { state in
            state.lastTask += 1
            return (state.lastTask, state.digests)
        }
        return SessionTask(id: number, work: work, transport: transport, driver: driver, digests: digests)
    }

    /// The nonces of Digest that the session's servers have accepted, created if there are none.
    func digestMemory() -> DigestMemory {
        state.withLock { state in
            let digests = state.digests ?? DigestMemory()
            state.digests = digests
            return digests
        }
    }

    /// Returns the request of a transfer with what the session adds to each exchange: cookies and the host's trust policy.
    ///
    /// - Parameter owned: the task whose owner evaluates in place of the session's delegate; `nil`, the default, for none.
    func outgoing(_ request: consuming TransferRequest, _ owned: OwnedTask? = nil) -> TransferRequest {
        // Plain HTTP has no certificate to evaluate: looking for a policy would be overhead for each request.
        guard keepsHostState || request.isSecure && (owned != nil || hasTrustRules) || request.hasFiles else { return request }
        var outgoing = request
        if let cookies { outgoing = cookies.adding(to: outgoing) }
        if let tls = tlsOptions(for: outgoing.url, owned) { outgoing.options.tls = tls }
        if hsts != nil, let tls = strictOptions(outgoing.options.tls, for: outgoing.url) { outgoing.options.tls = tls }
        if outgoing.hasFiles { outgoing.readFiles() }
        return outgoing
    }

    /// Returns the request of a raw stream with the host's trust policy.
    func outgoing(_ request: StreamTransferRequest, _ owned: OwnedTask?) -> StreamTransferRequest {
        guard request.isSecure else { return request }
        let tls = tlsOptions(for: request.host.comparableHost, port: request.port, owned)
        let strict = hsts == nil ? nil : strictOptions(tls ?? request.options.tls, host: request.host)
        guard let tls = strict ?? tls else { return request }
        var outgoing = request
        outgoing.options.tls = tls
        return outgoing
    }

    /// Ends the session: requests in flight fail with ``CurlewError/sessionInvalidated``, and so do new ones. Only the first call has an
    /// effect.
    public func invalidateAndCancel() {
        end(.invalidated)
    }

    /// Refuses new requests from now on, unless the session has ended.
    func startDraining() {
        state.withLock { if $0.stage == .open { $0.stage = .draining } }
    }

    /// Ends the session: requests in flight fail with ``CurlewError/sessionShutDown``.
    func endShutdown() {
        end(.shutDown)
    }

    private func end(_ stage: SessionStage) {
        let isFirst = state.withLock { state in
            guard state.stage == .open || state.stage == .draining else { return false }
            state.stage = stage
            return true
        }
        transport.shutDown()
        if isFirst { delegate?.ended(self) }
    }
}

extension SessionConfiguration {
    /// Returns the transport wrapped in those of the configuration. From outside: the layers above the cache, `URLProtocol` classes, the
    /// cache, the layers below it, the instruments.
    fileprivate func completed(_ transport: any Transport, _ context: @autoclosure () -> LayerContext) -> any Transport {
        let observed: any Transport = instruments.isEmpty ? transport : InstrumentingTransport(transport, instruments: instruments)
        guard !layers.isEmpty else { return cached(observed) }
        let context = context()
        let below = layers.reversed().reduce(observed) { $1.transport(over: $0, at: .belowCache, in: context) }
        return layers.reversed().reduce(cached(below)) { $1.transport(over: $0, at: .aboveCache, in: context) }
    }

    private func cached(_ observed: any Transport) -> any Transport {
        let store: (any ResponseStoring)? = cache.map { SharedResponseStore(cache: $0) } ?? urlCache.map { URLCacheStore(cache: $0) }
        let cached: any Transport = store.map { CachingTransport(observed, store: $0, limits: options, now: wallClock) } ?? observed
        return protocols.map { ProtocolTransport(cached, source: $0) } ?? cached
    }

    fileprivate var protocols: (any ProtocolSource)? {
        protocolSource ?? (protocolClasses.isEmpty ? nil : FoundationClasses(classes: protocolClasses))
    }

    /// The time in seconds since 1970; on the session's clock, if it has one, from the time of its creation.
    private var wallClock: @Sendable () -> Double {
        guard let clock else { return { Date().timeIntervalSince1970 } }
        let (start, time) = (Date().timeIntervalSince1970, clock.time)
        return { start + Double(clock.time - time) / 1_000_000_000 }
    }

    /// The carriers, and those of the instruments whose type is not among them.
    fileprivate var installedCarriers: [any ContextCarrier] {
        var carriers = contextCarriers
        for carrier in instruments.compactMap(\.contextCarrier) where !carriers.contains(where: { type(of: $0) == type(of: carrier) }) {
            carriers.append(carrier)
        }
        return carriers
    }
}
