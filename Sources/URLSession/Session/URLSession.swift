// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

/// Makes tasks that load URLs, and calls a delegate with what happens to them: Apple's `URLSession` on Curlew.
///
/// ``curlew`` is the manager under it. Tasks begin suspended. Delegates and completion handlers are called on the ``delegateQueue``, one at a
/// time. A session that is released without being invalidated ends when its last task has. Thread-safe.
open class URLSession: NSObject, @unchecked Sendable {  // everything mutable is behind a lock
    enum Stage {
        case open
        /// No new tasks; invalidated after the last one.
        case finishing
        case invalidated
    }

    struct State {
        var lastTask = 0
        /// From their creation to their completion.
        var tasks: [Int: URLSessionTask] = [:]
        var delegate: (any URLSessionDelegate)?
        var description: String?
        var stage = Stage.open
    }

    private static let sharedSession = URLSession(configuration: .default, delegate: nil, queue: nil, isShared: true)

    /// The session with the default configuration and without a delegate. It can't be invalidated.
    open class var shared: URLSession { sharedSession }

    /// The manager that makes the requests of the tasks: for Curlew's own options, monitors and statistics.
    public let curlew: SessionManager
    let queue: DelegateQueue
    let calls = DelegateCalls()
    let closures = TaskClosures()
    /// Whether there is a delegate for tasks: also one that is a session's only is asked about their connections.
    let hasDelegate: Bool
    private let settings: URLSessionConfiguration
    private let isShared: Bool
    let state: Lock<State>

    /// Creates a session without a delegate.
    public convenience init(configuration: URLSessionConfiguration) {
        self.init(configuration: configuration, delegate: nil, delegateQueue: nil)
    }

    /// Creates a session.
    ///
    /// - Parameters:
    ///   - configuration: the settings; copied.
    ///   - delegate: receives events; retained until the session is invalidated. `nil` for none.
    ///   - queue: where delegates and completion handlers are called; `nil` for a new serial queue.
    public convenience init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?
    ) {
        self.init(configuration: configuration, delegate: delegate, queue: queue, isShared: false)
    }

    /// Creates a session with the default configuration. Not convenience, so that a subclass can be made: those of tests are.
    public override init() {
        (settings, queue, curlew, state, hasDelegate) = Self.parts(.default, nil, nil, false, nil)
        isShared = false
        super.init()
    }

    /// - Parameter transport: in place of the network; `nil`, the default, for that.
    package init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, queue: OperationQueue?, isShared: Bool = false,
        transport: (any Transport)? = nil
    ) {
        (settings, self.queue, curlew, state, hasDelegate) = Self.parts(configuration, delegate, queue, isShared, transport)
        self.isShared = isShared
        super.init()
    }

    private static func parts(
        _ configuration: URLSessionConfiguration, _ delegate: (any URLSessionDelegate)?, _ queue: OperationQueue?, _ isShared: Bool,
        _ transport: (any Transport)?
    ) -> (URLSessionConfiguration, DelegateQueue, SessionManager, Lock<State>, Bool) {
        // A copy is of the same type, unless a subclass breaks its promise.
        let settings = configuration.copy() as? URLSessionConfiguration ?? configuration
        var completed = settings.completed
        if isShared { completed.protocolSource = ProtocolClasses.registered }
        let manager = SessionManager(configuration: completed, transport: transport ?? SharedLoop.transport(for: completed))
        return (settings, DelegateQueue(queue), manager, Lock(State(delegate: delegate)), delegate != nil)
    }

    deinit {
        // Its tasks have ended: they retain it.
        curlew.invalidateAndCancel()
    }

    // MARK: Properties

    /// Where delegates and completion handlers are called.
    open var delegateQueue: OperationQueue { queue.operations }

    /// The delegate; `nil` without one, and once the session is invalidated.
    open var delegate: (any URLSessionDelegate)? { state.withLock { $0.delegate } }

    /// A copy of the settings; changing it has no effect.
    open var configuration: URLSessionConfiguration { settings.copy() as? URLSessionConfiguration ?? settings }

    /// A text for the program's own use; `nil` by default.
    open var sessionDescription: String? {
        get { state.withLock { $0.description } }
        set { state.withLock { $0.description = newValue } }
    }

    var waitsForConnectivity: Bool { settings.waitsForConnectivity }

    /// Whether tasks are offered to classes.
    var offersToClasses: Bool { curlew.session.offersToClasses }

    /// Whether the configuration has a field of its own of this name, in place of a default.
    func adds(_ header: HTTPHeader) -> Bool { settings.curlew.headers.value(for: header.name) != nil }

    // MARK: Its end

    /// Makes no new tasks, and invalidates the session when those that there are have completed. Has no effect on ``shared``.
    open func finishTasksAndInvalidate() {
        guard !isShared else { return }
        let isLast = state.withLock { state in
            guard state.stage == .open else { return false }
            state.stage = state.tasks.isEmpty ? .invalidated : .finishing
            return state.stage == .invalidated
        }
        if isLast { end() }
    }

    /// Cancels all tasks, and invalidates the session when they have completed. Has no effect on ``shared``.
    open func invalidateAndCancel() {
        guard !isShared else { return }
        let (tasks, isLast) = state.withLock { state -> ([URLSessionTask], Bool) in
            guard state.stage != .invalidated else { return ([], false) }
            state.stage = state.tasks.isEmpty ? .invalidated : .finishing
            return (Array(state.tasks.values), state.stage == .invalidated)
        }
        for task in tasks { task.cancel() }
        if isLast { end() }
    }

    /// Removes the cookies, cached responses and credentials of the session's storages, closes idle connections, and calls
    /// `completionHandler` on the delegate queue. Storages that are shared are empty for other sessions, too.
    @preconcurrency open func reset(completionHandler: @escaping @Sendable () -> Void) {
        let manager = curlew
        manager.session.queue.async { [queue] in
            let configuration = manager.session.configuration
            try? configuration.cookies?.removeAll()
            for cookie in configuration.cookieStorage?.cookies ?? [] { configuration.cookieStorage?.deleteCookie(cookie) }
            try? configuration.cache?.removeAll()
            configuration.urlCache?.removeAllCachedResponses()
            let credentials = configuration.credentialStorage
            for (space, users) in credentials?.allCredentials ?? [:] {
                for credential in users.values { credentials?.remove(credential, for: space) }
            }
            Task {
                await manager.closeIdleConnections()
                queue.schedule(completionHandler)
            }
        }
    }

    /// ``reset(completionHandler:)``.
    open func reset() async {
        await withCheckedContinuation { continuation in reset { continuation.resume() } }
    }

    /// Closes idle connections, so that later tasks open others, and calls `completionHandler` on the delegate queue.
    @preconcurrency open func flush(completionHandler: @escaping @Sendable () -> Void) {
        Task { [curlew, queue] in
            await curlew.closeIdleConnections()
            queue.schedule(completionHandler)
        }
    }

    /// ``flush(completionHandler:)``.
    open func flush() async {
        await withCheckedContinuation { continuation in flush { continuation.resume() } }
    }

    // MARK: Its tasks

    /// Calls `completionHandler` on the delegate queue with the tasks that have not completed.
    @preconcurrency open func getTasksWithCompletionHandler(
        _ completionHandler: @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) {
        queue.schedule { [self] in
            let (data, uploads, downloads) = sortedTasks
            completionHandler(data, uploads, downloads)
        }
    }

    /// The tasks that have not completed.
    open var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async { sortedTasks }
    }

    /// Calls `completionHandler` on the delegate queue with the tasks that have not completed.
    @preconcurrency open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        queue.schedule { [self] in completionHandler(orderedTasks) }
    }

    /// The tasks that have not completed.
    open var allTasks: [URLSessionTask] {
        get async { orderedTasks }
    }

    // A task with a completion handler does not call the delegate's methods for its response, body and completion. The makers are here and in
    // no extension, so that subclasses can override them, as those of tests do.

    // MARK: Data tasks

    /// Makes a task that receives the response to a request.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask {
        enter { URLSessionDataTask(self, $0, .request(request), .delegate) }
    }

    /// Makes a task that receives the response to a GET of a URL.
    open func dataTask(with url: URL) -> URLSessionDataTask { dataTask(with: URLRequest(url: url)) }

    /// Makes a task that calls a handler with the response to a request.
    @preconcurrency open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        enter { URLSessionDataTask(self, $0, .request(request), .data(completionHandler)) }
    }

    /// Makes a task that calls a handler with the response to a GET of a URL.
    @preconcurrency open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask { dataTask(with: URLRequest(url: url), completionHandler: completionHandler) }

    // MARK: Upload tasks

    /// Makes a task that sends a file as the body of a request.
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        enter { URLSessionUploadTask(self, $0, .upload(request, .file(fileURL)), .delegate) }
    }

    /// Makes a task that sends bytes as the body of a request.
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        enter { URLSessionUploadTask(self, $0, .upload(request, .data(bodyData)), .delegate) }
    }

    /// Makes a task that sends the stream of the delegate's `needNewBodyStream` as the body of a request or, without one, the request's own.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        enter { URLSessionUploadTask(self, $0, .upload(request, .asked), .delegate) }
    }

    /// Makes a task that sends a file, and calls a handler.
    @preconcurrency open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        enter { URLSessionUploadTask(self, $0, .upload(request, .file(fileURL)), .data(completionHandler)) }
    }

    /// Makes a task that sends bytes, none if they are `nil`, and calls a handler.
    @preconcurrency open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        enter { URLSessionUploadTask(self, $0, .upload(request, .data(bodyData ?? Data())), .data(completionHandler)) }
    }

    // MARK: Download tasks

    /// Makes a task that downloads the response to a request to a file.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        enter { URLSessionDownloadTask(self, $0, .request(request), .delegate) }
    }

    /// Makes a task that downloads a URL to a file.
    open func downloadTask(with url: URL) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url)) }

    /// Makes a task that resumes a download. The data is that of ``URLSessionDownloadTask/cancel(byProducingResumeData:)``, or of an error
    /// under ``NSURLSessionDownloadTaskResumeData``; other data fails the task.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        enter { URLSessionDownloadTask(self, $0, .resumedDownload(resumeData), .delegate) }
    }

    /// Makes a task that downloads the response to a request, and calls a handler with the file.
    @preconcurrency open func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        enter { URLSessionDownloadTask(self, $0, .request(request), .file(completionHandler)) }
    }

    /// Makes a task that downloads a URL, and calls a handler with the file.
    @preconcurrency open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url), completionHandler: completionHandler) }

    /// Makes a task that resumes a download, and calls a handler with the file.
    @preconcurrency open func downloadTask(
        withResumeData resumeData: Data, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        enter { URLSessionDownloadTask(self, $0, .resumedDownload(resumeData), .file(completionHandler)) }
    }

    // MARK: Connections

    // They have a delegate only, and no handler.

    /// Makes a task that opens a WebSocket (RFC 6455). The URL's scheme is `ws` or `wss`; with another one than these, `http` and `https`,
    /// the task fails with `URLError.unsupportedURL`.
    open func webSocketTask(with url: URL) -> URLSessionWebSocketTask { webSocketTask(with: url, protocols: []) }

    /// Makes a task that opens a WebSocket and offers subprotocols, in the order of preference; the server's choice is passed to
    /// ``URLSessionWebSocketDelegate/urlSession(_:webSocketTask:didOpenWithProtocol:)``. The task fails with `URLError.badURL` if one is no
    /// token, or there twice.
    open func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        enter { URLSessionWebSocketTask(self, $0, URLRequest(url: url), protocols) }
    }

    /// Makes a task that opens a WebSocket with the URL and the header fields of a request. Those that the handshake sets itself,
    /// `Connection` or `Sec-WebSocket-Key` for example, are replaced; subprotocols are offered with `Sec-WebSocket-Protocol`. The task
    /// fails with `URLError.badURL` unless the method is GET and there is no body.
    open func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
        enter { URLSessionWebSocketTask(self, $0, request, []) }
    }

    /// Makes a task that connects to a host, by name or address, over TCP. The port is 1 to 65535; with another one the task fails with
    /// `URLError.badURL`.
    open func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        enter { URLSessionStreamTask(self, $0, host: hostname, port: port) }
    }
}
