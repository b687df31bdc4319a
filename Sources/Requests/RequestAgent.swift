// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import Dispatch

/// Sends requests, and keeps them alive as long as they run.
///
/// Most programs need ``shared`` only. All members may be used from any thread.
public final class RequestAgent: Sendable {
    private struct Download {
        let run: RequestRun
        var waiting: [@Sendable () -> Void] = []
    }

    private struct Record {
        /// The downloads that hold on to what lies beside their file, by its path.
        var downloads: [String: Download] = [:]
        var runs: [Int: RequestRun] = [:]
        var nextNumber = 1
        var manager: SessionManager?
        var managerVersion = -1
    }

    /// The agent of requests that are given no other; its configuration is ``RequestsConfiguration/shared``.
    public static let shared = RequestAgent(configuration: .shared)

    /// What the requests have in common.
    public let configuration: RequestsConfiguration
    /// Where answers are worked on, several at a time.
    let processingQueue = DispatchQueue(label: "curlew.requests", attributes: .concurrent)
    let clock: RequestClock
    private let givenManager: SessionManager?
    private let record = Lock(Record())

    /// Makes an agent, with a session of its own that is made when it is first needed.
    public convenience init(configuration: RequestsConfiguration) {
        self.init(configuration: configuration, manager: nil, clock: RequestClock())
    }

    /// Makes an agent that sends its requests by a manager that is there; ``RequestsConfiguration/sessionConfiguration`` and
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

    /// The requests that run, in the order in which they were started.
    public var requests: [BaseRequest] {
        record.withLock { $0.runs.values }.sorted { $0.number < $1.number }.map(\.request)
    }

    /// Sends a request, without telling its accessories that it starts: ``BaseRequest/start()`` does that. One that runs is left alone.
    public func addRequest(_ request: BaseRequest) {
        addRequest(request, start: nil)
    }

    /// The same for a start that was claimed, unless it was stopped by now.
    func addRequest(_ request: BaseRequest, start: Int?) {
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

    /// Ends a request: no callback follows, and its blocks are let go of. Accessories are not told: ``BaseRequest/stop()`` does that.
    public func cancelRequest(_ request: BaseRequest) {
        let (run, waiters, blocks) = request.state.withLock { state in
            defer { state.stopped() }
            return (state.isOver ? nil : state.run, state.isOver ? [] : state.waiters, state.takeBlocks())
        }
        if let run {
            forget(run)
            run.cancelTransfer()
            run.removeBodyFile()
            configuration.log("stop \(request)")
        }
        // What they hold is released outside of the lock.
        withExtendedLifetime(blocks) {}
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

    /// Stops the requests of which `condition` says so: those of a page, of a class.
    public func cancelRequests(where condition: (BaseRequest) -> Bool) {
        for request in requests where condition(request) { request.stop() }
    }

    // MARK: Runs

    /// Enters a new start of a request; `nil` when it runs, or the start that was claimed was stopped.
    func makeRun(for request: BaseRequest, start: Int? = nil) -> RequestRun? {
        let number = record.withLock { record in
            defer { record.nextNumber += 1 }
            return record.nextNumber
        }
        let run = RequestRun(number: number, request: request, agent: self)
        let isNew = request.state.withLock { state in
            guard start.map(state.holds) ?? (state.stage != .running && state.stage != .stopping) else { return false }
            state.begin(run)
            // Before anybody can stop it, who would take out what is not in yet.
            record.withLock { $0.runs[number] = run }
            return true
        }
        return isNew ? run : nil
    }

    /// Lets go of a run.
    func forget(_ run: RequestRun) {
        record.withLock { $0.runs[run.number] = nil }
    }

    // MARK: Downloads

    /// Enters a download to a file; `false` when it has to wait for one that was stopped, after which `work` is done.
    ///
    /// Of two that are both wanted the second one goes at once, and downloads for itself.
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

    /// A download has let go of what lies beside its file.
    func leaveDownload(_ run: RequestRun, _ target: URL) {
        let waiting = record.withLock { record -> [@Sendable () -> Void] in
            guard record.downloads[target.path]?.run === run else { return [] }
            return record.downloads.removeValue(forKey: target.path)?.waiting ?? []
        }
        for work in waiting { processingQueue.async(execute: work) }
    }

    // MARK: Session

    /// The manager of the session as the configuration has it now.
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
        // Its end, if no request needs it any more, is none of the lock's business.
        _ = old
        return manager
    }
}

extension RequestState {
    /// A new start: what the last one has brought is gone.
    mutating func begin(_ run: RequestRun) {
        self.run = run
        stage = .running
        isStopped = false
        answer = RequestAnswer()
        task = nil
        originalRequest = nil
        identifier = 0
        totalCount = 0
        totalTime = 0
        startTime = Date()
    }

    /// The user wants no more. A request whose callbacks run, or have run, keeps what it has brought.
    mutating func stopped() {
        stops += 1
        guard stage != .ended else { return }
        isStopped = true
        guard stage != .delivering else { return }
        stage = .ended
        run = nil
        waiters = []
    }
}
