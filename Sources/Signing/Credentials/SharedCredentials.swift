// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Keeps credentials, and obtains others before they expire: once for all that need them.
///
/// Obtaining them is work of all that wait: it has no deadline of the first, and is not cancelled with any of them. The present credentials
/// are used meanwhile, until shortly before they expire, and if it fails until they expire.
final class SharedCredentials: Sendable {
    private typealias Outcome = Result<AWSCredentials, any Error>

    private struct State {
        var current: AWSCredentials?
        /// Those before, with which exchanges may be under way that were begun before the refresh.
        var previous: AWSCredentials?
        var isRefreshing = false
        var waiters: [AsyncStream<Outcome>.Continuation] = []
        /// The time before which credentials that are still valid are not refreshed again.
        var nextRefresh = Date.distantPast
    }

    /// How long before their expiration credentials are refreshed, in seconds.
    static let margin: TimeInterval = 300
    /// How long before their expiration a refresh is waited for, in seconds.
    private static let reserve: TimeInterval = 60

    private let pause: TimeInterval
    private let now: @Sendable () -> Date
    private let obtain: @Sendable () async throws -> AWSCredentials
    private let state = Lock(State())

    /// Creates a place for credentials, without any.
    ///
    /// - Parameters:
    ///   - pause: the time between two refreshes of credentials that are still valid, in seconds, so that a service that fails, or returns the
    ///     same ones, is not asked before each request.
    ///   - now: the time.
    ///   - obtain: returns credentials; bounded in time.
    init(
        pause: TimeInterval = 10, now: @escaping @Sendable () -> Date = { Date() },
        _ obtain: @escaping @Sendable () async throws -> AWSCredentials
    ) {
        (self.pause, self.now, self.obtain) = (pause, now, obtain)
    }

    /// The credentials, and those before.
    var known: [AWSCredentials] { state.withLock { [$0.current, $0.previous].compactMap(\.self) } }

    /// Returns credentials that are valid now, as far as is known: what is obtained is used at least once, as this computer's clock may be
    /// wrong.
    ///
    /// - Throws: what obtaining them throws; `CancellationError` as soon as the calling task is cancelled.
    func credentials() async throws -> AWSCredentials {
        let (outcomes, waiter) = AsyncStream.makeStream(of: Outcome.self)
        let (present, isFirst) = state.withLock { state -> (AWSCredentials?, Bool) in
            let now = now()
            let left = state.current.map { $0.expiration?.timeIntervalSince(now) ?? .infinity } ?? 0
            let isFirst = !state.isRefreshing && left <= Self.margin && (left <= 0 || state.nextRefresh <= now)
            if isFirst { state.isRefreshing = true }
            if left > Self.reserve || left > 0 && !state.isRefreshing { return (state.current, isFirst) }
            state.waiters.append(waiter)
            return (nil, isFirst)
        }
        if isFirst { SharedWork.task { await self.refresh() } }
        if let present { return present }
        for await outcome in outcomes { return try outcome.get() }
        throw CancellationError()
    }

    private func refresh() async {
        let obtained: Outcome
        do {
            obtained = .success(try await obtain())
        } catch {
            obtained = .failure(error)
        }
        let now = now()
        let (waiters, outcome) = state.withLock { state -> ([AsyncStream<Outcome>.Continuation], Outcome) in
            defer { state.waiters = [] }
            state.isRefreshing = false
            state.nextRefresh = now.addingTimeInterval(pause)
            return (state.waiters, Self.replace(with: obtained, at: now, in: &state))
        }
        for waiter in waiters {
            waiter.yield(outcome)
            waiter.finish()
        }
    }

    private static func replace(with obtained: Outcome, at now: Date, in state: inout State) -> Outcome {
        if case .success(let new) = obtained {
            if new != state.current { (state.previous, state.current) = (state.current, new) }
            return obtained
        }
        guard let current = state.current, let expiration = current.expiration, expiration > now else { return obtained }
        return .success(current)
    }
}

// MARK: - Descriptions

extension SharedCredentials: CustomStringConvertible, CustomReflectable {
    /// The name of the type; no credentials.
    var description: String { "SharedCredentials()" }
    /// Shows nothing.
    var customMirror: Mirror { .redacted(self) }
}
