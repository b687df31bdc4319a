// SPDX-License-Identifier: Apache-2.0

/// The adapter and the retrier of a session, each of which may be both: an object that is both is used as both.
struct Interception {
    var adapter: (any RequestAdapter)? {
        didSet { update() }
    }
    var retrier: (any RequestRetrier)? {
        didSet { update() }
    }

    /// What adapts: the adapter, then the retrier if it adapts, too.
    private(set) var effectiveAdapter: (any RequestAdapter)?
    /// What decides about retries: the retrier, then the adapter if it retries, too.
    private(set) var effectiveRetrier: (any RequestRetrier)?
    /// Whether a retrier is asynchronous.
    private(set) var isAsynchronous = false
    /// Whether there is a retrier that may retry.
    private(set) var mayRetry = false

    /// Both halves as one; `nil` if there are none.
    var interceptor: (any RequestInterceptor)? {
        if let both = adapter as? any RequestInterceptor, retrier.map({ isSame($0, both) }) ?? true { return both }
        if adapter == nil, let both = retrier as? any RequestInterceptor { return both }
        guard adapter != nil || retrier != nil else { return nil }
        return Interceptor(adapters: effectiveAdapter.map { [$0] } ?? [], retriers: effectiveRetrier.map { [$0] } ?? [])
    }

    mutating func set(_ interceptor: (any RequestInterceptor)?) {
        adapter = interceptor
        retrier = interceptor
    }

    private mutating func update() {
        effectiveAdapter = Self.effective(adapter, retrier)
        effectiveRetrier = Self.effective(retrier, adapter)
        isAsynchronous = effectiveRetrier?.isAsynchronous ?? false
        mayRetry = effectiveRetrier?.mayRetry ?? false
    }

    static func effective(_ adapter: (any RequestAdapter)?, _ retrier: (any RequestRetrier)?) -> (any RequestAdapter)? {
        guard let second = retrier as? any RequestAdapter else { return adapter }
        guard let adapter else { return second }
        return isSame(adapter, second) ? adapter : Interceptor(adapters: [adapter, second])
    }

    private static func effective(_ retrier: (any RequestRetrier)?, _ adapter: (any RequestAdapter)?) -> (any RequestRetrier)? {
        guard let second = adapter as? any RequestRetrier else { return retrier }
        guard let retrier else { return second }
        return isSame(retrier, second) ? retrier : Interceptor(retriers: [retrier, second])
    }

    private func isSame(_ first: Any, _ second: Any) -> Bool { Self.isSame(first, second) }

    /// Whether both are the same object or value: programs set the same one as adapter and retrier, which then adapts and decides once.
    ///
    /// Values of one type are taken for the same unless they can be distinguished.
    private static func isSame(_ first: Any, _ second: Any) -> Bool {
        guard type(of: first) == type(of: second) else { return false }
        if type(of: first) is AnyClass { return first as AnyObject === second as AnyObject }
        if let first = first as? Interceptor, let second = second as? Interceptor { return first.isSame(as: second) }
        func equals<Value: Equatable>(_ value: Value) -> Bool { value == second as? Value }
        return (first as? any Equatable).map { equals($0) } ?? true
    }
}

// MARK: - Requests with their own interceptor

extension Request {
    /// The adapter of the request's attempts: its own before its session's.
    func adapter(before next: (any RequestAdapter)?) -> (any RequestAdapter)? {
        guard let interceptor = settings?.interceptor else { return next }
        guard let next else { return interceptor }
        return Interceptor(adapters: [interceptor, next])
    }

    /// The retrier of the request: its own before its session's.
    func retrier(before next: (any RequestRetrier)?) -> (any RequestRetrier)? {
        guard let interceptor = settings?.interceptor else { return next }
        guard let next else { return interceptor }
        return Interceptor(retriers: [interceptor, next])
    }
}
