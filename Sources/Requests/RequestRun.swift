// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import Dispatch

/// One start of a request, through all its attempts.
///
/// Made by the agent, which keeps it until ``end(_:)``: the only way out, whatever the end is.
final class RequestRun: Sendable {
    private struct Attempt {
        var request: Request?
        /// The generation of the credentials that it may have carried.
        var credentials = 0
        var mayReplay = true
        var replays = 0
        /// The body of a download's answer that was refused for its status.
        var refusedBody: Data?
        /// Removed with the attempt: a form that is too large for the memory.
        var bodyFile: URL?
    }

    let number: Int
    let request: BaseRequest
    let agent: RequestAgent
    let startedAt: ContinuousClock.Instant
    private let attempt: Lock<Attempt>

    init(number: Int, request: BaseRequest, agent: RequestAgent) {
        self.number = number
        self.request = request
        self.agent = agent
        startedAt = agent.clock.now()
        attempt = Lock(Attempt())
    }

    var configuration: RequestsConfiguration { agent.configuration }
    var elapsed: TimeInterval { startedAt.duration(to: agent.clock.now()).seconds }

    /// Whether this is what the request does now, and its callbacks have not begun.
    var isRunning: Bool { request.state.withLock { $0.run === self && $0.stage == .running } }

    // MARK: Attempts

    /// The generation of the credentials that the newest attempt may have carried.
    var credentials: Int { attempt.withLock { $0.credentials } }

    func noteBuilding() {
        let generation = configuration.tokenRefresher?.generation ?? 0
        removeBodyFile()
        attempt.withLock { attempt in
            attempt.credentials = generation
            attempt.refusedBody = nil
        }
    }

    func keep(refusedBody: Data) {
        attempt.withLock { $0.refusedBody = refusedBody }
    }

    var refusedBody: Data? { attempt.withLock { $0.refusedBody } }

    func keep(bodyFile: URL) {
        attempt.withLock { $0.bodyFile = bodyFile }
    }

    func removeBodyFile() {
        if let file = attempt.withLock({ $0.bodyFile.take() }) { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
    }

    /// The newest attempt's request; cancelled at once if the run is over by now.
    func keep(_ newest: Request) {
        attempt.withLock { $0.request = newest }
        if !isRunning { cancelTransfer() }
    }

    /// Whether the request may be sent again with new credentials; only once.
    func claimReplay() -> Bool {
        attempt.withLock { attempt in
            defer { attempt.mayReplay = false }
            return attempt.mayReplay
        }
    }

    /// How often it was sent again with new credentials.
    var replays: Int { attempt.withLock { $0.replays } }

    func noteReplay() {
        attempt.withLock { $0.replays += 1 }
    }

    /// Ends the transfer, if there is one, and lets go of it, which holds the run.
    func cancelTransfer() {
        attempt.withLock { $0.request.take() }?.cancel()
    }

    /// The transfer that runs, to be held up for a while.
    var transfer: Request? { attempt.withLock { $0.request } }

    // MARK: The end

    /// Lets callbacks begin; `false` when the request was stopped, or started anew.
    func claimDelivery() -> Bool {
        request.state.withLock { state in
            guard state.run === self, state.stage == .running else { return false }
            state.stage = .delivering
            return true
        }
    }

    /// The end of this start: the agent lets go of it, the blocks go, and who waits is told.
    func end(_ ending: RequestEnding) {
        agent.forget(self)
        attempt.withLock { $0.request = nil }
        removeBodyFile()
        let (waiters, blocks) = request.state.withLock { state in
            // The request may have been started anew by its own block: then blocks and waiters are the new start's.
            guard state.run === self, state.stage == .delivering else { return ([@Sendable (RequestEnding) -> Void](), [Any?]()) }
            state.run = nil
            state.stage = .ended
            defer { state.waiters = [] }
            return (state.waiters, state.takeBlocks())
        }
        // What they hold is released outside of the lock.
        withExtendedLifetime(blocks) {}
        for waiter in waiters { waiter(ending) }
    }
}

extension Duration {
    var seconds: TimeInterval {
        let (seconds, attoseconds) = components
        return TimeInterval(seconds) + TimeInterval(attoseconds) * 1e-18
    }
}

/// The time, and what is done later: replaced in tests.
struct RequestClock: Sendable {
    var now: @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    var schedule: @Sendable (_ delay: TimeInterval, DispatchQueue, _ work: @escaping @Sendable () -> Void) -> Void = { delay, queue, work in
        if delay > 0 { queue.asyncAfter(deadline: .now() + delay, execute: work) } else { queue.async(execute: work) }
    }
}
