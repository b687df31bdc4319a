// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Gets new credentials for all requests that were refused for want of them: once, however many there are, and sends them again then.
///
/// The requests are built anew, so that ``BaseRequest/requestHeaderFieldValueDictionary()`` or a ``UrlFilter`` puts the new credentials
/// in. What a refresh has brought holds for all requests that were built before it ended, also for those that are refused later: they are
/// sent again, or fail, without another one. Each start is sent again once: what is refused then has failed, or goes the way of its
/// retries, whose number this does not count towards.
public final class TokenRefresher: Sendable {
    /// Gets new credentials, and stores them where requests find them. Throwing, or `false`, fails the requests that wait, and those that
    /// are already on their way; one that is started later asks anew.
    public typealias Refresh = @Sendable (BaseRequest) async throws -> Bool

    private struct State {
        var isRefreshing = false
        /// Counts refreshes that have ended, so that it is known which credentials a request may have carried.
        var generation = 0
        /// Whether the last one has brought new credentials.
        var hasSucceeded = false
        var waiting: [@Sendable (Bool) -> Void] = []
    }

    /// Which statuses mean that credentials are missing or old.
    public let statusCodes: Set<Int>
    private let refresh: Refresh
    private let state = Lock(State())

    /// Makes a refresher.
    ///
    /// - Parameters:
    ///   - statusCodes: which statuses mean that credentials are missing or old; 401 by default.
    ///   - refresh: gets new credentials, given the first request that was refused. If it sends a request itself, then by another agent:
    ///     one of this agent that is refused would wait for itself.
    public init(statusCodes: Set<Int> = [401], refresh: @escaping Refresh) {
        self.statusCodes = statusCodes
        self.refresh = refresh
    }

    /// The number of refreshes that have ended.
    var generation: Int { state.withLock { $0.generation } }

    func isRefused(_ answer: RequestAnswer) -> Bool {
        answer.response.map { statusCodes.contains($0.statusCode) } ?? false
    }

    /// Calls `completion` with whether there are new credentials, when that is known.
    func refresh(for run: RequestRun, _ completion: @escaping @Sendable (Bool) -> Void) {
        let built = run.credentials
        let (known, begins) = state.withLock { state -> (Bool?, Bool) in
            if built < state.generation, !state.isRefreshing { return (state.hasSucceeded, false) }
            state.waiting.append(completion)
            defer { state.isRefreshing = true }
            return (nil, !state.isRefreshing)
        }
        if let known { return completion(known) }
        guard begins else { return }
        let request = run.request
        Task {
            let hasSucceeded = (try? await refresh(request)) ?? false
            finish(hasSucceeded)
        }
    }

    private func finish(_ hasSucceeded: Bool) {
        let waiting = state.withLock { state in
            state.isRefreshing = false
            state.generation += 1
            state.hasSucceeded = hasSucceeded
            defer { state.waiting = [] }
            return state.waiting
        }
        for completion in waiting { completion(hasSucceeded) }
    }
}
