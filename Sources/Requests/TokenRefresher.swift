// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Refreshes credentials once for all requests that were rejected without valid ones, however many there are, and then sends them again.
///
/// The requests are rebuilt, so that ``BaseRequest/requestHeaderFieldValueDictionary()`` or a ``UrlFilter`` adds the new credentials. The
/// outcome of a refresh applies to all requests built before it ended, including those rejected later: they are sent again, or fail,
/// without another refresh. No request's deadline or cancellation ends a refresh. Each start is sent again once; a second rejection is a
/// failure, subject to the request's retries, whose count the authenticated retry does not affect.
public final class TokenRefresher: Sendable {
    /// Obtains new credentials and stores them where requests find them. Throwing or returning `false` fails the waiting requests and those
    /// already in flight; a request started later triggers another refresh.
    public typealias Refresh = @Sendable (BaseRequest) async throws -> Bool

    private struct State {
        var isRefreshing = false
        /// Counts completed refreshes, to determine which credentials a request may have carried.
        var generation = 0
        /// Whether the last refresh obtained new credentials.
        var hasSucceeded = false
        var waiting: [@Sendable (Bool) -> Void] = []
    }

    /// The status codes for missing or expired credentials.
    public let statusCodes: Set<Int>
    private let refresh: Refresh
    private let state = Lock(State())

    /// Creates a refresher.
    ///
    /// - Parameters:
    ///   - statusCodes: the status codes for missing or expired credentials; 401 by default.
    ///   - refresh: obtains new credentials; called with the first request that was rejected. Requests it sends itself must use another
    ///     agent: a rejected request of the same agent would wait for the refresh it is part of.
    public init(statusCodes: Set<Int> = [401], refresh: @escaping Refresh) {
        self.statusCodes = statusCodes
        self.refresh = refresh
    }

    /// The number of completed refreshes.
    var generation: Int { state.withLock { $0.generation } }

    func isRejected(_ result: RequestResult) -> Bool {
        result.response.map { statusCodes.contains($0.statusCode) } ?? false
    }

    /// Calls `completion` with whether new credentials are available, at once or when the running refresh completes.
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
        SharedWork.task { [self] in
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
