// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

/// Creates requests and runs them in its session.
///
/// A request that is awaited retains its manager until it has finished. One with handlers only does not: releasing the manager ends the
/// session, and such requests in flight fail with ``CurlewError/sessionInvalidated``. ``shutdown(gracePeriod:)`` ends it in order.
/// Thread-safe.
open class SessionManager: @unchecked Sendable {  // the settings are behind a lock
    private struct Settings {
        var startRequestsImmediately = true
        var interception = Interception()
    }

    /// The manager of the free functions ``request(_:method:parameters:encoding:headers:interceptor:options:)`` and so on; its requests have
    /// ``defaultHTTPHeaders``.
    public static let `default`: SessionManager = {
        var configuration = SessionConfiguration()
        configuration.headers = defaultHTTPHeaders
        return SessionManager(configuration: configuration)
    }()

    /// The session in which the requests run.
    public let session: Session
    /// Looks up requests by their tasks, and has the closures for the session's events.
    public let delegate: SessionDelegate
    private let settings = Lock(Settings())

    /// Whether requests start as soon as they are created; `true` by default. Otherwise ``Request/resume()`` starts them.
    open var startRequestsImmediately: Bool {
        get { settings.withLock { $0.startRequestsImmediately } }
        set { settings.withLock { $0.startRequestsImmediately = newValue } }
    }

    /// Adapts the session's requests and decides about their retries; `nil`, the default, does neither.
    ///
    /// ``adapter`` and ``retrier`` are views on it: setting them sets its halves. Changes apply to attempts that begin later.
    open var interceptor: (any RequestInterceptor)? {
        get { settings.withLock { $0.interception.interceptor } }
        set { changeInterception { $0.set(newValue) } }
    }

    /// Adapts each attempt of a request before it is sent; `nil` by default.
    ///
    /// An adapter that is also a ``RequestRetrier`` decides about retries as well, after ``retrier`` if that is another one.
    open var adapter: (any RequestAdapter)? {
        get { settings.withLock { $0.interception.adapter } }
        set { changeInterception { $0.adapter = newValue } }
    }

    /// Decides whether failed requests are retried; `nil`, the default, retries none.
    ///
    /// A retrier that is also a ``RequestAdapter`` adapts requests as well, after ``adapter`` if that is another one.
    open var retrier: (any RequestRetrier)? {
        get { settings.withLock { $0.interception.retrier } }
        set { changeInterception { $0.retrier = newValue } }
    }

    private func changeInterception(_ change: (inout Interception) -> Void) {
        settings.withLock { settings in
            change(&settings.interception)
            delegate.retrier = settings.interception.effectiveRetrier
        }
    }

    /// Creates a manager with a new session, on libcurl.
    ///
    /// - Parameters:
    ///   - configuration: the settings of the session; copied.
    ///   - delegate: receives the session's events. Has one manager only.
    ///   - serverTrustPolicyManager: the trust policies of hosts; `nil`, the default, evaluates certificates by the configuration.
    ///   - interceptor: adapts the requests and decides about their retries; `nil`, the default, for none. See ``interceptor``.
    public convenience init(
        configuration: SessionConfiguration = SessionConfiguration(), delegate: SessionDelegate = SessionDelegate(),
        serverTrustPolicyManager: ServerTrustPolicyManager? = nil, interceptor: (any RequestInterceptor)? = nil
    ) {
        self.init(
            configuration: configuration, delegate: delegate, serverTrustPolicyManager: serverTrustPolicyManager,
            interceptor: interceptor, transport: CurlTransport(configuration: configuration.connections))
    }

    /// Creates a manager on another transport, such as one that responds from memory, records or replays.
    public init(
        configuration: SessionConfiguration = SessionConfiguration(), delegate: SessionDelegate = SessionDelegate(),
        serverTrustPolicyManager: ServerTrustPolicyManager? = nil, interceptor: (any RequestInterceptor)? = nil, transport: any Transport
    ) {
        session = Session(
            configuration: configuration, serverTrustPolicyManager: serverTrustPolicyManager, transport: transport, delegate: delegate)
        self.delegate = delegate
        delegate.manager = self
        if let interceptor { changeInterception { $0.set(interceptor) } }
    }

    /// Creates a manager with the settings of Foundation's configuration; ``SessionConfiguration/init(_:)`` lists those that are used.
    ///
    /// - Parameters:
    ///   - configuration: the settings of the session; copied.
    ///   - delegate: receives the session's events. Has one manager only.
    ///   - serverTrustPolicyManager: the trust policies of hosts; `nil`, the default, trusts the system's root certificates.
    ///   - interceptor: adapts the requests and decides about their retries; `nil`, the default, for none. See ``interceptor``.
    public init(
        configuration: URLSessionConfiguration, delegate: SessionDelegate = SessionDelegate(),
        serverTrustPolicyManager: ServerTrustPolicyManager? = nil, interceptor: (any RequestInterceptor)? = nil
    ) {
        let configuration = SessionConfiguration(configuration)
        session = Session(configuration: configuration, delegate: delegate)
        session.serverTrustPolicyManager = serverTrustPolicyManager
        self.delegate = delegate
        delegate.manager = self
        if let interceptor { changeInterception { $0.set(interceptor) } }
    }

    /// Creates a manager for an existing session, which ends when the manager is released.
    ///
    /// `nil` if the session was created with another delegate, was invalidated, or has a manager.
    public init?(
        session: Session, delegate: SessionDelegate, serverTrustPolicyManager: ServerTrustPolicyManager? = nil,
        interceptor: (any RequestInterceptor)? = nil
    ) {
        guard session.delegate === delegate, !session.isInvalidated, delegate.manager == nil else { return nil }
        self.session = session
        self.delegate = delegate
        session.serverTrustPolicyManager = serverTrustPolicyManager
        delegate.manager = self
        if let interceptor { changeInterception { $0.set(interceptor) } }
    }

    deinit {
        invalidateAndCancel()
    }

    /// Ends the session: requests in flight fail with ``CurlewError/sessionInvalidated``, and so do new ones.
    public func invalidateAndCancel() {
        session.invalidateAndCancel()
    }

    /// Runs tasks on the event loop's thread: for programs with many small requests; `nil` for sessions on another transport.
    ///
    /// ```swift
    /// try await withTaskExecutorPreference(manager.taskExecutor) {
    ///     let data = try await manager.request(url).serializingData().value
    /// }
    /// ```
    ///
    /// A request awaited by such a task involves no context switch, neither on its way to the loop nor back. In return, the task's code
    /// between two `await`s delays every transfer of the loop, so it must not block: no file access, no contended lock or semaphore, no
    /// `Thread.sleep`, no long computation such as decoding a large body. Run slow work in a task without this preference.
    ///
    /// Actors have their own executors and are not affected. Once the session has ended, tasks run on a global queue instead; no task is
    /// lost. Thread-safe, and may outlive the session.
    ///
    /// With several loops it is the first one's; ``taskExecutors`` has them all. Transfers that a task starts on a loop's thread run on that
    /// loop, unless they share a connection of another, or another has the host's idle connection or clearly less to do.
    @available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
    public var taskExecutor: (any TaskExecutor)? { session.eventLoop?.taskExecutor }

    /// The executors of all event loops, of which there are several with ``SessionConfiguration/loops``: ``taskExecutor`` is the first. Empty
    /// for sessions on another transport.
    @available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
    public var taskExecutors: [any TaskExecutor] { session.eventLoop?.taskExecutors ?? [] }

    // MARK: Requests, to be overridden

    // The other functions of these names call these, so that overriding one catches all; interceptor and options reach the original around
    // the override, which has to call `super`. Streamed requests, resumed downloads, uploads of sequences and forms, and raw connections
    // are made by functions of their own, which can't be overridden.

    /// Creates a request from a `URLRequest`.
    ///
    /// An override is called for every data request, with or without an interceptor and options, which `super` adds; call `super` in it.
    @discardableResult
    open func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
        takeOver { other in makeDataRequest(isStreamed: false, other?.settings) { try Requestable(urlRequest) } }
    }

    /// Creates a download from a `URLRequest`. `destination` returns the file's destination when the body is complete; with `nil`, the
    /// default, the file stays in the session's temporary directory.
    ///
    /// An override is called for every download that is not resumed from data, with or without an interceptor and options, which `super` adds;
    /// call `super` in it. For a download to a known file `destination` is a closure that returns that, which an override can't replace.
    @discardableResult
    open func download(
        _ urlRequest: any URLRequestConvertible, to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        takeOver { other in
            makeDownload(urlRequest, other?.settings, other?.destination ?? destination.map { .asked($0) } ?? .none)
        }
    }

    /// Creates an upload with bytes as the body of a `URLRequest`.
    ///
    /// An override is called for every upload of bytes, with or without an interceptor and options, which `super` adds; call `super` in it.
    @discardableResult
    open func upload(_ data: Data, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        takeOver { other in makeUpload(.data(data), urlRequest, other?.settings) }
    }

    /// Creates an upload with a file as the body of a `URLRequest`.
    ///
    /// An override is called for every upload of a file, with or without an interceptor and options, which `super` adds; call `super` in it.
    @discardableResult
    open func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        takeOver { other in makeUpload(.file(fileURL), urlRequest, other?.settings) }
    }

    /// Creates an upload with a stream as the body of a `URLRequest`.
    ///
    /// An override is called for every upload of a stream, with or without an interceptor and options, which `super` adds; call `super` in it.
    @discardableResult
    open func upload(_ stream: InputStream, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        takeOver { other in makeUpload(.stream(StreamBody(stream)), urlRequest, other?.settings) }
    }

    // MARK: The path of every request

    /// Starts a request. The only entry for requests of all kinds, which all finish when ``RequestDriver`` releases their handlers.
    ///
    /// The request is encoded already; its driver adapts it, creates its task, enters that into the delegate's map, and starts it.
    func perform<R: Request>(_ request: R) -> R {
        request.driver.start(request, by: self)
        return request
    }

    /// The adapter of a request: its own before the session's. A subclass may have overridden ``adapter``.
    func effectiveAdapter(of request: Request) -> (any RequestAdapter)? {
        let adapter = isSubclassed ? Interception.effective(adapter, retrier) : settings.withLock { $0.interception.effectiveAdapter }
        // The usual way first, as each optional existential below is copied, even where it is `nil`.
        guard request.settings != nil || request.driver.isSigned else { return adapter }
        let effective = request.adapter(before: adapter)
        guard let signer = request.driver.signer else { return effective }
        let preparation = SignerPreparation(signer: signer)
        return effective.map { Interceptor(adapters: [$0, preparation]) } ?? preparation
    }

    /// Whether the request runs asynchronous code, and so needs a task of its own from its creation on.
    func needsTask(_ request: Request) -> Bool {
        settings.withLock { $0.interception.isAsynchronous } || request.settings?.interceptor?.isAsynchronous == true
            || delegate.decidesAsynchronously
    }

    /// Whether the request runs asynchronous code after the first attempt's adapter, which is asynchronous.
    func runsMoreSteps(_ request: Request) -> Bool {
        if request.settings?.interceptor?.mayRetry == true || needsTask(request) { return true }
        // A subclass may have overridden ``retrier``.
        guard isSubclassed else { return settings.withLock { $0.interception.mayRetry } }
        return delegate.retrier?.mayRetry == true || retrier?.mayRetry == true
    }

    /// Creates the task of an attempt, from the original or from what an adapter has made of it.
    func makeTask(for request: Request, adapted: AdaptableRequest?) throws -> SessionTask {
        var work = try request.original.get().original.work(in: session, adapted: adapted)
        if let settings = request.settings { try work.apply(settings, in: session) }
        return session.makeTask(work, driver: request.driver)
    }

    /// Returns the original of a request, or why it could not be made.
    func original<Kind: TaskConvertible>(
        _ kind: (any TaskConvertible, SessionTask?) -> Request.RequestTask, _ make: () throws -> Kind
    ) -> Result<Request.RequestTask, any Error> {
        Result { kind(try make(), nil) }
    }
}
