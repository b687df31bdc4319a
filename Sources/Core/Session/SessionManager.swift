// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Makes requests and runs them in a session of its own.
///
/// Letting go of the manager ends the session: what is on its way fails with ``CurlewError/sessionInvalidated``. Keep it as long as its
/// requests matter. All members may be used from any thread.
open class SessionManager: @unchecked Sendable {  // the settings are behind a lock
    private struct Settings {
        var startRequestsImmediately = true
        var adapter: (any RequestAdapter)?
    }

    /// The manager behind the functions ``request(_:method:parameters:encoding:headers:interceptor:)`` and so on; its requests carry
    /// ``defaultHTTPHeaders``.
    public static let `default`: SessionManager = {
        var configuration = SessionConfiguration()
        configuration.headers = defaultHTTPHeaders
        return SessionManager(configuration: configuration)
    }()

    /// What the requests share.
    public let session: Session
    /// Knows the requests by their tasks.
    public let delegate: SessionDelegate
    private let settings = Lock(Settings())

    /// Whether requests start as soon as they are made; `true` by default. If not, ``Request/resume()`` starts them.
    open var startRequestsImmediately: Bool {
        get { settings.withLock { $0.startRequestsImmediately } }
        set { settings.withLock { $0.startRequestsImmediately = newValue } }
    }

    /// Changes each request before it is sent, again for each retry; `nil` by default.
    open var adapter: (any RequestAdapter)? {
        get { settings.withLock { $0.adapter } }
        set { settings.withLock { $0.adapter = newValue } }
    }

    /// Decides whether failed requests are tried again; `nil`, the default, tries nothing again.
    open var retrier: (any RequestRetrier)? {
        get { delegate.retrier }
        set { delegate.retrier = newValue }
    }

    /// Makes a manager with a session of its own, on libcurl.
    ///
    /// - Parameters:
    ///   - configuration: how the session works; copied.
    ///   - delegate: receives the session's events; may serve one manager only.
    ///   - serverTrustPolicyManager: knows what hosts have to show before anything is sent to them; `nil`, the default, leaves that to the
    ///     configuration.
    public convenience init(
        configuration: SessionConfiguration = SessionConfiguration(), delegate: SessionDelegate = SessionDelegate(),
        serverTrustPolicyManager: ServerTrustPolicyManager? = nil
    ) {
        self.init(
            configuration: configuration, delegate: delegate, serverTrustPolicyManager: serverTrustPolicyManager,
            transport: CurlTransport(configuration: configuration.connections))
    }

    /// Makes a manager on another transport: one that answers from memory, records or replays.
    public init(
        configuration: SessionConfiguration = SessionConfiguration(), delegate: SessionDelegate = SessionDelegate(),
        serverTrustPolicyManager: ServerTrustPolicyManager? = nil, transport: any Transport
    ) {
        session = Session(
            configuration: configuration, serverTrustPolicyManager: serverTrustPolicyManager, transport: transport, delegate: delegate)
        self.delegate = delegate
        delegate.manager = self
    }

    /// Makes a manager that works as a configuration of Foundation's says; ``SessionConfiguration/init(_:)`` tells what of it counts.
    ///
    /// - Parameters:
    ///   - configuration: how the session works; copied.
    ///   - delegate: receives the session's events; may serve one manager only.
    ///   - serverTrustPolicyManager: knows what hosts have to show before anything is sent to them; `nil`, the default, leaves that to the
    ///     system's certificates.
    public init(
        configuration: URLSessionConfiguration, delegate: SessionDelegate = SessionDelegate(),
        serverTrustPolicyManager: ServerTrustPolicyManager? = nil
    ) {
        let configuration = SessionConfiguration(configuration)
        session = Session(configuration: configuration, delegate: delegate)
        session.serverTrustPolicyManager = serverTrustPolicyManager
        self.delegate = delegate
        delegate.manager = self
    }

    /// Makes a manager of a session that was made for its delegate; from then on letting go of the manager ends the session.
    ///
    /// `nil` when the session was made for another delegate, was ended, or has a manager.
    public init?(session: Session, delegate: SessionDelegate, serverTrustPolicyManager: ServerTrustPolicyManager? = nil) {
        guard session.delegate === delegate, !session.isInvalidated, delegate.manager == nil else { return nil }
        self.session = session
        self.delegate = delegate
        session.serverTrustPolicyManager = serverTrustPolicyManager
        delegate.manager = self
    }

    deinit {
        invalidateAndCancel()
    }

    /// Ends the session: requests on their way fail with ``CurlewError/sessionInvalidated``, and so do new ones.
    public func invalidateAndCancel() {
        session.invalidateAndCancel()
    }

    /// Runs tasks on the thread that moves the session's bytes: ``CurlewTransport/CurlTransport/taskExecutor``, which tells what such tasks
    /// must not do. For programs that make many small requests; `nil` for sessions on another transport.
    ///
    /// ```swift
    /// await withTaskExecutorPreference(manager.taskExecutor) {
    ///     let data = try await manager.request(url).serializingData().value
    /// }
    /// ```
    @available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
    public var taskExecutor: (any TaskExecutor)? { session.eventLoop?.taskExecutor }

    // MARK: Requests, to be overridden

    // The other functions of these names call these where no interceptor is given: overriding one catches all.

    /// Makes a request of a `URLRequest`.
    @discardableResult
    open func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
        makeDataRequest(isStreamed: false, nil) { try Requestable(urlRequest) }
    }

    /// Makes a download of a `URLRequest`; `destination` is asked at the end where the file goes, `nil` leaves it in its place.
    @discardableResult
    open func download(
        _ urlRequest: any URLRequestConvertible, to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        makeDownload(urlRequest, nil, destination.map { .asked($0) } ?? .none)
    }

    /// Makes an upload of bytes as the body of a `URLRequest`.
    @discardableResult
    open func upload(_ data: Data, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        makeUpload(.data(data), urlRequest)
    }

    /// Makes an upload of a file as the body of a `URLRequest`.
    @discardableResult
    open func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        makeUpload(.file(fileURL), urlRequest)
    }

    /// Makes an upload of a stream as the body of a `URLRequest`.
    @discardableResult
    open func upload(_ stream: InputStream, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        makeUpload(.stream(StreamBody(stream)), urlRequest)
    }

    /// Whether somebody may have overridden the functions above.
    var isSubclassed: Bool { type(of: self) != SessionManager.self }

    // MARK: The way of every request

    /// Starts a request. Every request of every kind enters here, and leaves by ``RequestDriver``'s release of its handlers.
    ///
    /// What the request is was encoded before; its driver adapts it, makes a task of it, enters that into the delegate's map, and starts it.
    func perform<R: Request>(_ request: R) -> R {
        request.driver.start(request, by: self)
        return request
    }

    /// The task of an attempt: the original request, adapted.
    func makeTask(for request: Request) throws -> SessionTask {
        let adapter = request.interceptor == nil ? adapter : request.adapter(before: adapter)
        let work = try request.original.get().original.work(in: session, adapter: adapter)
        return session.makeTask(work, driver: request.driver)
    }

    /// The original of a request: what it is made of, or why it could not be.
    func original<Kind: TaskConvertible>(
        _ kind: (any TaskConvertible, SessionTask?) -> Request.RequestTask, _ make: () throws -> Kind
    ) -> Result<Request.RequestTask, any Error> {
        Result { kind(try make(), nil) }
    }
}
