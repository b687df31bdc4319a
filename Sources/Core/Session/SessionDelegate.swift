// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Knows the requests of a session by their tasks, and the closures by which users take part in them.
///
/// Thread-safe. What happens to a request, and in which order, is its `RequestDriver`'s.
open class SessionDelegate: @unchecked Sendable {  // everything mutable is behind locks
    private struct Owner {
        weak var manager: SessionManager?
        var retrier: (any RequestRetrier)?
        var decidesAsynchronously = false
    }

    fileprivate struct Requests {
        /// By the number of their task, from their start until they have finished.
        var map = NumberMap<Request>()
        /// The finished request whose end is being reported to observers, and its task's number.
        var presented: (number: Int, request: Request)?
        /// The number of requests that are no longer in the map, and whose end was not reported to the monitors yet.
        var ending = 0
        /// Ended when there are no requests of either kind.
        var waits: [DrainWait] = []
    }

    private let requests = Lock(Requests())
    private let owner = Lock(Owner())
    let closures = Lock(SessionClosures())

    /// Creates a delegate, to be given to one manager.
    public init() {}

    /// The request that a task belongs to; `nil` for one of another session, and once the request has finished, but for observers of the
    /// notification of that (`Notification.Name.Task.DidComplete` of `CurlewAlamofire`). Any thread. Only the session enters and removes
    /// requests.
    open internal(set) subscript(task: SessionTask) -> Request? {
        get { requests.withLock { $0.map[task.taskIdentifier] ?? $0.presented(task.taskIdentifier) } }
        set { requests.withLock { $0.map[task.taskIdentifier] = newValue } }
    }

    /// The object that has the request of a task; `nil` if the request has none, or has finished.
    package func owner(of task: SessionTask) -> (any RequestOwner)? { self[task]?.settings?.options.ownership?.owner }

    /// Retains a request under the number of its task.
    func enter(_ request: Request, as number: Int) {
        requests.withLock { $0.map[number] = request }
    }

    /// Calls a closure during which the subscript finds a request that has finished. On the session's queue.
    package func present(_ request: Request, of task: SessionTask, _ body: () -> Void) {
        requests.withLock { $0.presented = (task.taskIdentifier, request) }
        body()
        requests.withLock { $0.presented = nil }
    }

    /// Releases a request, which the caller retains.
    func remove(_ number: Int) {
        let waits = requests.withLock { requests -> [DrainWait]? in
            requests.map[number] = nil
            return requests.takeWaits()
        }
        if let waits { for wait in waits { wait.end() } }
    }

    /// Releases a request, which the caller retains, before its handlers and awaiting tasks, which may end the session. The session is not
    /// without requests until ``endWasReported()`` has been called.
    func take(_ number: Int) {
        requests.withLock { requests in
            requests.map[number] = nil
            requests.ending += 1
        }
    }

    /// Notes that the end of a request that was taken was reported to the monitors.
    func endWasReported() {
        let waits = requests.withLock { requests -> [DrainWait]? in
            requests.ending -= 1
            return requests.takeWaits()
        }
        if let waits { for wait in waits { wait.end() } }
    }

    /// Ends a wait as soon as no request is in flight.
    func end(_ wait: DrainWait) {
        let waits = requests.withLock { requests -> [DrainWait]? in
            requests.waits.append(wait)
            return requests.takeWaits()
        }
        if let waits { for wait in waits { wait.end() } }
    }

    /// Ends the requests that were not started, because the session is being shut down.
    func endUnstarted() {
        for request in requestsInFlight {
            // A retry that is about to start its task belongs to a request in flight.
            let task = request.driver.state.withLock { $0.isResumed || $0.retryCount > 0 ? nil : $0.task }
            if let task, task.claimUnstarted() { task.completeUnstarted(with: CurlewError.sessionShutDown) }
        }
    }

    var requestsInFlight: [Request] { requests.withLock { $0.map.values } }

    /// The requests in flight in the order in which their last attempts began; each once, though a retry is entered before its last attempt is
    /// removed.
    package var orderedRequests: [Request] {
        var numbers: [ObjectIdentifier: Int] = [:]
        return requestsInFlight.filter { request in
            numbers.updateValue(request.driver.state.withLock { $0.number }, forKey: ObjectIdentifier(request)) == nil
        }.sorted { numbers[ObjectIdentifier($0), default: 0] < numbers[ObjectIdentifier($1), default: 0] }
    }

    /// The number of requests in flight.
    var requestCount: Int { requests.withLock { $0.map.count } }

    var retrier: (any RequestRetrier)? {
        get { owner.withLock { $0.retrier } }
        set { owner.withLock { $0.retrier = newValue } }
    }

    /// Whether a closure that decides is asynchronous.
    var decidesAsynchronously: Bool {
        get { owner.withLock { $0.decidesAsynchronously } }
        set { owner.withLock { $0.decidesAsynchronously = newValue } }
    }

    var manager: SessionManager? {
        get { owner.withLock { $0.manager } }
        set { owner.withLock { $0.manager = newValue } }
    }

    /// The session has ended: ends the requests that the transport does not know.
    func ended(_ session: Session) {
        if let notify = closures.withLock({ $0.sessionDidBecomeInvalidWithError }) { session.queue.async { notify(session, nil) } }
        let requests = requestsInFlight
        for request in requests { request.driver.sessionEnded() }
        // The tasks are cancelled at once; their ends, which may be many, are not for the thread that releases a manager.
        let unstarted = requests.compactMap(\.task).filter { $0.invalidate() }
        session.queue.async {
            for task in unstarted { task.completeUnstarted(with: CurlewError.sessionInvalidated) }
            for request in self.requestsInFlight {
                if let task = request.task, task.claimUnstarted() { task.completeUnstarted(with: CurlewError.sessionInvalidated) }
                request.driver.abandonDecision()
            }
        }
    }
}

extension SessionDelegate.Requests {
    fileprivate func presented(_ number: Int) -> Request? {
        presented.flatMap { $0.number == number ? $0.request : nil }
    }

    /// Takes the waits if there are no requests any more; `nil` if there are none to end.
    fileprivate mutating func takeWaits() -> [DrainWait]? {
        guard map.count == 0, ending == 0, !waits.isEmpty else { return nil }
        defer { waits = [] }
        return waits
    }
}
