// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import Dispatch

/// One start of a request, through all its attempts.
///
/// Created and retained by the agent until ``finish(_:)``, the only exit for every kind of end but a stop.
final class RequestRun: Sendable {
    private struct Attempt {
        var request: Request?
        /// The generation of the credentials that the attempt may have carried.
        var credentials = 0
        var mayRetryAuthenticated = true
        var authenticatedRetries = 0
        /// The body of a download's response that was rejected for its status.
        var rejectedBody: Data?
        /// A form above the memory threshold; removed with the attempt.
        var bodyFile: URL?
    }

    let number: Int
    let request: BaseRequest
    let agent: RequestAgent
    let startedAt: ContinuousClock.Instant
    let start: StartOptions
    private let attempt: Lock<Attempt>

    init(number: Int, start: StartOptions, request: BaseRequest, agent: RequestAgent) {
        self.number = number
        self.start = start
        self.request = request
        self.agent = agent
        startedAt = agent.clock.now()
        attempt = Lock(Attempt())
    }

    var configuration: RequestsConfiguration { agent.configuration }
    var options: RequestOptions? { start.options }
    /// Bounds all attempts and the waits between them.
    var deadline: Deadline? { start.deadline }
    var elapsed: TimeInterval { startedAt.duration(to: agent.clock.now()).seconds }

    /// Whether the deadline has passed: then nothing is retried.
    var isTooLate: Bool { deadline?.hasPassed ?? false }

    /// The error of a start whose deadline has passed between two attempts.
    var deadlineFailure: CurlewError {
        let (count, url) = request.state.withLock { ($0.totalCount, $0.originalRequest?.url?.absoluteString) }
        return Deadline.failure(of: url ?? "", attempt: UInt(max(count, 1)), during: .concluding)
    }

    /// Whether this is the request's current run and its callbacks have not begun.
    var isRunning: Bool { request.state.withLock { $0.run === self && $0.stage == .running } }

    // MARK: Attempts

    /// The generation of the credentials that the newest attempt may have carried.
    var credentials: Int { attempt.withLock { $0.credentials } }

    func noteBuilding() {
        let generation = configuration.tokenRefresher?.generation ?? 0
        removeBodyFile()
        attempt.withLock { attempt in
            attempt.credentials = generation
            attempt.rejectedBody = nil
        }
    }

    func keep(rejectedBody: Data) {
        attempt.withLock { $0.rejectedBody = rejectedBody }
    }

    var rejectedBody: Data? { attempt.withLock { $0.rejectedBody } }

    func keep(bodyFile: URL) {
        attempt.withLock { $0.bodyFile = bodyFile }
    }

    func removeBodyFile() {
        if let file = attempt.withLock({ $0.bodyFile.take() }) { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
    }

    /// Retains the newest attempt's request; cancels it at once if the run has ended in the meantime.
    func keep(_ newest: Request) {
        attempt.withLock { $0.request = newest }
        if !isRunning { cancelTransfer() }
    }

    /// Claims the only retry with new credentials; returns whether it was still available.
    func claimAuthenticatedRetry() -> Bool {
        attempt.withLock { attempt in
            defer { attempt.mayRetryAuthenticated = false }
            return attempt.mayRetryAuthenticated
        }
    }

    /// The number of retries with new credentials.
    var authenticatedRetries: Int { attempt.withLock { $0.authenticatedRetries } }

    func noteAuthenticatedRetry() {
        attempt.withLock { $0.authenticatedRetries += 1 }
    }

    /// Cancels the transfer, if there is one, and releases it, because it retains the run.
    func cancelTransfer() {
        attempt.withLock { $0.request.take() }?.cancel()
    }

    /// The running transfer, for suspending and resuming it.
    var transfer: Request? { attempt.withLock { $0.request } }

    // MARK: Completion

    /// Lets the callbacks begin, unless the request was stopped or started again. Also returns the events of this start.
    func claimDelivery() -> (isClaimed: Bool, events: RunEvents?) {
        request.state.withLock { state in
            guard state.run === self, state.stage == .running else { return (false, nil) }
            state.stage = .delivering
            return (true, state.events.take())
        }
    }

    /// Whether further callbacks may run: none of them has stopped the request or started it again.
    var isDelivering: Bool { request.state.withLock { $0.run === self && $0.stage == .delivering && !$0.isStopped } }

    /// Finishes this start: the agent and the request release it, the blocks are released, and waiters are called.
    func finish(_ ending: RequestEnding) {
        agent.forget(self)
        attempt.withLock { $0.request = nil }
        removeBodyFile()
        let (waiters, blocks) = request.state.withLock { state in
            // The request may have been started again by its own block: blocks and waiters then belong to the new start.
            guard state.run === self, state.stage == .delivering else { return ([@Sendable (RequestEnding) -> Void](), [Any?]()) }
            state.run = nil
            state.stage = .ended
            defer { state.waiters = [] }
            return (state.waiters, state.takeBlocks())
        }
        // Released outside the lock, because releasing the captures may run arbitrary `deinit` code.
        withExtendedLifetime(blocks) {}
        for waiter in waiters { waiter(ending) }
    }
}

/// Clock and timer; replaced in tests.
struct RequestClock: Sendable {
    var now: @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    var schedule: @Sendable (_ delay: TimeInterval, DispatchQueue, _ work: @escaping @Sendable () -> Void) -> Void = { delay, queue, work in
        if delay > 0 { queue.asyncAfter(deadline: .now() + delay, execute: work) } else { queue.async(execute: work) }
    }
}
