// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Knows the requests of a session by their tasks, and the closures by which users take part in them.
///
/// Thread-safe. What happens to a request, and in which order, is its ``RequestDriver``'s.
open class SessionDelegate: @unchecked Sendable {  // everything mutable is behind locks
    private struct Owner {
        weak var manager: SessionManager?
        var retrier: (any RequestRetrier)?
        var decidesAsynchronously = false
    }

    /// By the number of their task, from their start until they have finished.
    private let requests = Lock(NumberMap<Request>())
    private let owner = Lock(Owner())
    let closures = Lock(SessionClosures())

    /// Makes a delegate, to be given to one manager.
    public init() {}

    /// The request that a task belongs to; `nil` for a task that has completed, or is not of this session. Any thread. Only the session
    /// enters and removes requests.
    open internal(set) subscript(task: SessionTask) -> Request? {
        get { requests.withLock { $0[task.taskIdentifier] } }
        set { requests.withLock { $0[task.taskIdentifier] = newValue } }
    }

    /// Retains a request under the number of its task.
    func enter(_ request: Request, as number: Int) {
        requests.withLock { $0[number] = request }
    }

    /// Releases a request, which the caller retains.
    func remove(_ number: Int) {
        requests.withLock { $0[number] = nil }
    }

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
        if let tell = closures.withLock({ $0.sessionDidBecomeInvalidWithError }) { session.queue.async { tell(session, nil) } }
        let requests = self.requests.withLock { Array($0.values) }
        for request in requests { request.driver.sessionEnded() }
        // The tasks are cancelled at once; their ends, which may be many, are not for the thread that releases a manager.
        let unstarted = requests.compactMap(\.task).filter { $0.invalidate() }
        session.queue.async {
            for task in unstarted { task.completeUnstarted(with: CurlewError.sessionInvalidated) }
            for request in self.requests.withLock({ Array($0.values) }) {
                if let task = request.task, task.claimUnstarted() { task.completeUnstarted(with: CurlewError.sessionInvalidated) }
                request.driver.abandonDecision()
            }
        }
    }
}
