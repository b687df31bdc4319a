// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Keeps the results of GET requests in memory, decoded, and answers equal requests with them.
///
/// Equal are requests of one type with the same URL and header fields; so results that were had with a token are answers for that token
/// only. Knows nothing of HTTP's rules for caches. Copies of a hook share what they keep.
public final class CachingServiceHook: ServiceHook {
    private struct Key: Hashable {
        let type: ObjectIdentifier
        let url: URL?
        let header: [String: String]

        init?<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest) {
            guard urlRequest.httpMethod == "GET", urlRequest.httpBody == nil else { return nil }
            type = ObjectIdentifier(Request.self)
            url = urlRequest.url
            header = urlRequest.allHTTPHeaderFields ?? [:]
        }
    }

    private struct Entry {
        let result: any Sendable
        let expiry: ContinuousClock.Instant
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        /// The keys, those first that were stored first; ones without an entry may be among them.
        var order: [Key] = []
    }

    private let ttl: Duration
    private let limit: Int
    private let now: @Sendable () -> ContinuousClock.Instant
    private let state = Lock(State())

    /// Makes a hook that keeps nothing yet.
    ///
    /// - Parameters:
    ///   - ttl: how long a result is an answer; 600 seconds by default.
    ///   - limit: how many results are kept at the most, 1000 by default; beyond that the oldest goes.
    public convenience init(ttl: Duration = .seconds(600), limit: Int = 1000) {
        self.init(ttl: ttl, limit: limit) { .now }
    }

    init(ttl: Duration, limit: Int, now: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.ttl = ttl
        self.limit = max(limit, 0)
        self.now = now
    }

    /// Forgets all results.
    public func removeAll() {
        state.withLock { $0 = State() }
    }

    var count: Int { state.withLock { $0.entries.count } }

    /// The result that is kept for an equal request.
    public func onSchedule<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest) async -> Request.Result? {
        guard let key = Key(request, urlRequest) else { return nil }
        let now = now()
        let result = state.withLock { state -> (any Sendable)? in
            guard let entry = state.entries[key] else { return nil }
            if entry.expiry > now { return entry.result }
            state.entries[key] = nil
            state.order.removeAll { $0 == key }
            return nil
        }
        return result as? Request.Result
    }

    /// Keeps the result.
    public func onSuccess<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest, result: Request.Result) async {
        guard limit > 0, let key = Key(request, urlRequest) else { return }
        let entry = Entry(result: result, expiry: now().advanced(by: ttl))
        state.withLock { state in
            if state.entries.updateValue(entry, forKey: key) != nil { state.order.removeAll { $0 == key } }
            state.order.append(key)
            if state.order.count > limit { state.entries[state.order.removeFirst()] = nil }
        }
    }
}
