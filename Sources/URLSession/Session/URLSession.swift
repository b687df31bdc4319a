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
    private enum Stage {
        case open
        /// No new tasks; invalidated after the last one.
        case finishing
        case invalidated
    }

    private struct State {
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
    /// Whether the delegate is one of tasks.
    let hasTaskDelegate: Bool
    private let settings: URLSessionConfiguration
    private let isShared: Bool
    private let state: Lock<State>

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
    public convenience init(configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?) {
        self.init(configuration: configuration, delegate: delegate, queue: queue, isShared: false)
    }

    /// A session with the default configuration.
    public override convenience init() {
        self.init(configuration: .default)
    }

    /// - Parameter transport: in place of the network; `nil`, the default, for that.
    package init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, queue: OperationQueue?, isShared: Bool = false,
        transport: (any Transport)? = nil
    ) {
        // A copy is of the same type, unless a subclass breaks its promise.
        settings = configuration.copy() as? URLSessionConfiguration ?? configuration
        self.isShared = isShared
        self.queue = DelegateQueue(queue)
        var completed = settings.completed
        if isShared { completed.protocolSource = ProtocolClasses.registered }
        curlew = SessionManager(configuration: completed, transport: transport ?? SharedLoop.transport(for: completed))
        state = Lock(State(delegate: delegate))
        hasTaskDelegate = delegate is any URLSessionTaskDelegate
        super.init()
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

    /// The last call of the delegate, after all others.
    private func end() {
        curlew.invalidateAndCancel()
        queue.schedule { [self] in
            let delegate = state.withLock { $0.delegate.take() }
            delegate?.urlSession(self, didBecomeInvalidWithError: nil)
        }
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

    private var orderedTasks: [URLSessionTask] {
        state.withLock { Array($0.tasks.values) }.sorted { $0.taskIdentifier < $1.taskIdentifier }
    }

    private var sortedTasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        let tasks = orderedTasks
        let uploads = tasks.compactMap { $0 as? URLSessionUploadTask }
        let data = tasks.filter { !($0 is URLSessionUploadTask) }.compactMap { $0 as? URLSessionDataTask }
        return (data, uploads, tasks.compactMap { $0 as? URLSessionDownloadTask })
    }

    /// Enters a task, and tells the delegate of it. One that is made after the session's end fails when it is resumed.
    func enter<Task: URLSessionTask>(_ make: (_ identifier: Int) -> Task) -> Task {
        let identifier = state.withLock { state in
            state.lastTask += 1
            return state.lastTask
        }
        let task = make(identifier)
        let delegate = state.withLock { state -> (any URLSessionDelegate)? in
            guard state.stage == .open else { return nil }
            state.tasks[identifier] = task
            return state.delegate
        }
        if let delegate = delegate as? any URLSessionTaskDelegate { delegate.urlSession(self, didCreateTask: task) }
        return task
    }

    /// Puts a task in the place of another one that it continues. Returns its number.
    func makeIdentifier() -> Int {
        state.withLock { state in
            state.lastTask += 1
            return state.lastTask
        }
    }

    func replace(_ task: URLSessionTask, by other: URLSessionTask) {
        state.withLock { state in
            state.tasks[task.taskIdentifier] = nil
            state.tasks[other.taskIdentifier] = other
        }
    }

    /// Whether a task may run: it was made before the session's end.
    func knows(_ task: URLSessionTask) -> Bool { state.withLock { $0.tasks[task.taskIdentifier] != nil } }

    /// A task has completed, and all calls about it were made or scheduled.
    func leave(_ task: URLSessionTask) {
        let isLast = state.withLock { state in
            state.tasks[task.taskIdentifier] = nil
            guard state.stage == .finishing, state.tasks.isEmpty else { return false }
            state.stage = .invalidated
            return true
        }
        if isLast { end() }
    }
}
