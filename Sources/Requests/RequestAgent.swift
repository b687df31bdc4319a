// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import Dispatch

/// Sends requests, and retains them while they run.
///
/// Most programs need only ``shared``. All members are thread-safe.
public final class RequestAgent: Sendable {
    private struct Download {
        let run: RequestRun
        var waiting: [@Sendable () -> Void] = []
    }

    private struct Record {
        /// The downloads that own the partial data next to their file, by the file's path.
        var downloads: [String: Download] = [:]
        var runs: [Int: RequestRun] = [:]
        var nextNumber = 1
        var manager: SessionManager?
        var managerVersion = -1
    }

    /// The default agent of requests; its configuration is ``RequestsConfiguration/shared``.
    public static let shared = RequestAgent(configuration: .shared)

    /// The configuration shared by the agent's requests.
    public let configuration: RequestsConfiguration
    /// The concurrent queue on which responses are processed.
    let processingQueue = DispatchQueue(label: "curlew.requests", attributes: .concurrent)
    let clock: RequestClock
    private let givenManager: SessionManager?
    private let record = Lock(Record())

    /// Creates an agent with a session of its own, created when it is first needed.
    public convenience init(configuration: RequestsConfiguration) {
        self.init(configuration: configuration, manager: nil, clock: RequestClock())
    }

    /// Creates an agent that sends its requests with an existing manager; ``RequestsConfiguration/sessionConfiguration`` and
    /// ``RequestsConfiguration/securityPolicy`` have no effect on it.
    public convenience init(configuration: RequestsConfiguration, manager: SessionManager) {
        self.init(configuration: configuration, manager: manager, clock: RequestClock())
    }

    init(configuration: RequestsConfiguration, manager: SessionManager?, clock: RequestClock) {
        self.configuration = configuration
        givenManager = manager
        self.clock = clock
    }

    // MARK: Requests

    /// The running requests, in the order in which they were started.
    public var requests: [BaseRequest] {
        record.withLock { $0.runs.values }.sorted { $0.number < $1.number }.map(\.request)
    }

    /// Sends a request without notifying its accessories of the start or the end, unlike ``BaseRequest/start()``. Has no effect on a
    /// running request.
    public func addRequest(_ request: BaseRequest) {
        guard let run = makeRun(for: request) else { return }
        request.stopReportingCachedResponse()
        begin(run)
    }

    /// Sends a request for a claimed start, unless that start has been stopped.
    func addRequest(_ request: BaseRequest, start: RequestStart) {
        if let run = makeRun(for: request, start: start) { begin(run) }
    }

    /// Sends the first attempt of a run.
    func begin(_ run: RequestRun) {
        let request = run.request
        configuration.log("start \(request)")
        if request.isBuiltOnQueue {
            processingQueue.async { self.attempt(run) }
        } else {
            attempt(run)
        }
    }

    /// Cancels a request: no callback follows, and its blocks are released; its delegate is not, unlike by ``BaseRequest/stop()``.
    /// Accessories that were notified of the start are notified of the stop.
    public func cancelRequest(_ request: BaseRequest) {
        cancel(request) {}
    }

    func cancel(_ request: BaseRequest, releasing release: () -> Void) {
        let (old, events) = request.state.withLock { state in
            defer { state.beginStop() }
            return (state.stage, state.events.take())
        }
        // Already being stopped, by another thread or by an accessory that is being notified of the stop.
        if old == .stopping { return }
        events?.post(.willStop, request)
        release()
        // Its callbacks are running, or have run.
        if old == .delivering || old == .ended { return request.clearCompletionBlock() }
        let (run, waiters, blocks) = request.state.withLock { state in
            defer { state.stopped() }
            return (state.run, state.waiters, state.takeBlocks())
        }
        if let run {
            forget(run)
            run.cancelTransfer()
            run.removeBodyFile()
            configuration.log("stop \(request)")
        }
        // Released outside the lock, because releasing the captures may run arbitrary `deinit` code.
        withExtendedLifetime(blocks) {}
        events?.post(.didStop, request)
        for waiter in waiters { waiter(.stopped) }
    }

    /// Stops all requests, each as ``BaseRequest/stop()`` does.
    public func cancelAllRequests() {
        for request in requests { request.stop() }
    }

    /// Stops the requests with a tag.
    public func cancelRequests(tag: Int) {
        cancelRequests { $0.tag == tag }
    }

    /// Stops the requests for which `condition` returns `true`, such as those of a page or a class.
    public func cancelRequests(where condition: (BaseRequest) -> Bool) {
        for request in requests where condition(request) { request.stop() }
    }

    // MARK: Runs

    /// Registers a new start of a request; returns `nil` if it is running or the claimed start has been stopped.
    func makeRun(for request: BaseRequest, start: RequestStart? = nil) -> RequestRun? {
        let number = record.withLock { record in
            defer { record.nextNumber += 1 }
            return record.nextNumber
        }
        let options = start?.options ?? StartOptions(request.requestOptions)
        let run = RequestRun(number: number, start: options, request: request, agent: self)
        let isNew = request.state.withLock { state in
            guard start.map(state.isPending) ?? !state.isInFlight else { return false }
            state.begin(run)
            // Registered under the request's lock: a stop right after it must find the entry it removes.
            record.withLock { $0.runs[number] = run }
            return true
        }
        return isNew ? run : nil
    }

    /// Releases a run.
    func forget(_ run: RequestRun) {
        record.withLock { $0.runs[run.number] = nil }
    }

    // MARK: Downloads

    /// Registers a download to a file. Returns `false` if it must wait for a stopped download to release the file's partial data; `work` is
    /// then called afterwards.
    ///
    /// If both downloads are still wanted, the second one proceeds at once, without the partial data.
    func enterDownload(_ run: RequestRun, _ target: URL, _ work: @escaping @Sendable () -> Void) -> Bool {
        let other = record.withLock { $0.downloads[target.path]?.run }
        let isLeaving = other.map { $0 !== run && !$0.isRunning } ?? false
        return record.withLock { record in
            guard let now = record.downloads[target.path]?.run else {
                record.downloads[target.path] = Download(run: run)
                return true
            }
            guard now === other, isLeaving else { return true }
            record.downloads[target.path]?.waiting.append(work)
            return false
        }
    }

    /// Unregisters a download that has released the partial data next to its file, and starts those waiting for it.
    func leaveDownload(_ run: RequestRun, _ target: URL) {
        let waiting = record.withLock { record -> [@Sendable () -> Void] in
            guard record.downloads[target.path]?.run === run else { return [] }
            return record.downloads.removeValue(forKey: target.path)?.waiting ?? []
        }
        for work in waiting { processingQueue.async(execute: work) }
    }

    // MARK: Session

    /// Returns the manager of the session with the current configuration.
    func currentManager() -> SessionManager {
        if let givenManager { return givenManager }
        let (sessionConfiguration, policy, version) = configuration.session
        let (manager, old) = record.withLock { record -> (SessionManager, SessionManager?) in
            if let manager = record.manager, record.managerVersion == version { return (manager, nil) }
            let manager = SessionManager(
                configuration: sessionConfiguration ?? RequestsConfiguration.defaultSessionConfiguration, serverTrustPolicyManager: policy)
            let old = record.manager
            record.manager = manager
            record.managerVersion = version
            return (manager, old)
        }
        // Released outside the lock: the old manager may end here if no request needs it any more.
        _ = old
        return manager
    }
}

extension RequestState {
    /// Begins a new start: the last result is cleared.
    mutating func begin(_ run: RequestRun) {
        self.run = run
        options = run.start
        stage = .running
        isStopped = false
        result = RequestResult()
        task = nil
        originalRequest = nil
        identifier = 0
        totalCount = 0
        totalTime = 0
        startTime = Date()
    }

    /// Begins a stop by the caller. A request whose callbacks are running, or have run, keeps its result.
    mutating func beginStop() {
        if stage == .delivering { isStopped = true }
        if !isComplete { stage = .stopping }
    }

    mutating func stopped() {
        isStopped = true
        stage = .ended
        run = nil
        waiters = []
    }
}
