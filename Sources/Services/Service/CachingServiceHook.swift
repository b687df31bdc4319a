// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Caches the decoded results of GET requests in memory, and supplies them to equal requests.
///
/// Requests are equal if they have the same type, URL and header fields, the same session manager, options that lead to the same server (such
/// as `addresses`), and are sent the same cookies: a result obtained with a token is supplied only to requests with that token. What an
/// ``SessionManager/interceptor`` of the session, its delegate's answer to a challenge, its ``SessionConfiguration/credentialStorage`` or a
/// subclass of ``SessionManager`` adds is not known before a request is sent, so results of such sessions are not cached. Nor is a result
/// during whose request the cookies have changed, or anything if another hook calls this one outside of the task in which it is called
/// itself. HTTP's caching rules are not applied. The hook is a reference type: services with one session manager that use the same hook
/// share its cache.
public final class CachingServiceHook: ServiceHook {
    private struct Key: Hashable {
        let type: ObjectIdentifier
        let url: URL?
        /// By their bytes: texts are equal if they are canonically equivalent.
        let header: [String: [UInt8]]
        let sender: String

        init?<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest, _ identity: (Sender) -> String?) {
            guard urlRequest.httpMethod == "GET", urlRequest.httpBody == nil else { return nil }
            guard let sender = CachingServiceHook.sender.flatMap(identity) else { return nil }
            self.sender = sender
            type = ObjectIdentifier(Request.self)
            url = urlRequest.url
            header = (urlRequest.allHTTPHeaderFields ?? [:]).mapValues { Array($0.utf8) }
        }
    }

    /// The sender of an attempt of a service's request, found out only for hooks that ask.
    final class Sender: Sendable {
        private let identify: @Sendable () -> String?
        private let first = Lock<String?>(nil)

        /// - Parameter identify: returns who would send the request now; `nil` if that is known only when it is sent.
        init(_ identify: @escaping @Sendable () -> String?) { self.identify = identify }

        /// Returns the identity by which it is going to be sent.
        func before() -> String? {
            let identity = identify()
            return first.withLock { first in
                if first == nil { first = identity }
                return identity
            }
        }

        /// Returns the identity by which it was sent; `nil` if a hook, a redirect or the response has changed it since ``before()``: whose
        /// the result is, is unknown then.
        func after() -> String? {
            let identity = identify()
            return first.withLock { $0 == identity ? identity : nil }
        }
    }

    /// The sender of the request for which a hook is called; `nil` outside of a service.
    @TaskLocal static var sender: Sender?

    private struct Entry {
        let result: any Sendable
        let expiry: ContinuousClock.Instant
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        /// The keys in order of insertion, oldest first; may contain keys whose entry is gone.
        var order: [Key] = []
    }

    private let ttl: Duration
    private let limit: Int
    private let now: @Sendable () -> ContinuousClock.Instant
    private let state = Lock(State())

    /// Makes a hook with an empty cache.
    ///
    /// - Parameters:
    ///   - ttl: how long a result is cached; 600 seconds by default.
    ///   - limit: the maximum number of cached results, 1000 by default; beyond it, the oldest is removed.
    public convenience init(ttl: Duration = .seconds(600), limit: Int = 1000) {
        self.init(ttl: ttl, limit: limit) { .now }
    }

    init(ttl: Duration, limit: Int, now: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.ttl = ttl
        self.limit = max(limit, 0)
        self.now = now
    }

    /// Removes all cached results.
    public func removeAll() {
        state.withLock { $0 = State() }
    }

    var count: Int { state.withLock { $0.entries.count } }

    /// Returns the cached result of an equal request.
    public func onSchedule<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest) async -> Request.Result? {
        guard let key = Key(request, urlRequest, { $0.before() }) else { return nil }
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

    /// Caches the result.
    public func onSuccess<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest, result: Request.Result) async {
        guard limit > 0, let key = Key(request, urlRequest, { $0.after() }) else { return }
        let entry = Entry(result: result, expiry: now().advanced(by: ttl))
        state.withLock { state in
            if state.entries.updateValue(entry, forKey: key) != nil { state.order.removeAll { $0 == key } }
            state.order.append(key)
            if state.order.count > limit { state.entries[state.order.removeFirst()] = nil }
        }
    }
}
