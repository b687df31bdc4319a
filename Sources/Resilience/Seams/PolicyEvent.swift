// SPDX-License-Identifier: Apache-2.0

/// The policies of this module.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum Policy: String, Sendable, Hashable, CaseIterable, Codable {
    /// ``CircuitBreaker``.
    case circuitBreaker = "circuit_breaker"
    /// ``RateLimiter``.
    case rateLimiter = "rate_limiter"
    /// ``ConcurrencyLimiter``.
    case concurrencyLimiter = "concurrency_limiter"
    /// ``Bulkhead``.
    case bulkhead
    /// ``RetryBudget``.
    case retryBudget = "retry_budget"
    /// ``Hedging``.
    case hedging
    /// ``Coalescing``.
    case coalescing
    /// ``Fallback``.
    case fallback
}

/// What a policy has decided, or how its state has changed.
public struct PolicyEvent: Sendable, Hashable {
    /// What has happened.
    ///
    /// Later versions may add cases, so a `switch` needs a `default`.
    public enum Action: Sendable, Hashable {
        /// The policy refused a request; the time is when to try again, if the policy knows.
        case refused(retryAfter: Duration?)
        /// A request waited for the policy, and was then sent.
        case waited(Duration)
        /// A circuit breaker changed its phase.
        case changed(from: CircuitBreaker.Phase, to: CircuitBreaker.Phase)
        /// An adaptive limit changed.
        case limitChanged(from: Int, to: Int)
        /// A second attempt of a request was started, after this time.
        case hedged(after: Duration)
        /// The second attempt responded first.
        case hedgeWon
        /// A request shares the transfer of an equal one.
        case coalesced
        /// The server asked to wait: `Retry-After`, or a `RateLimit` that is used up.
        case heldBack(Duration)
        /// The shared store failed; the policy does what it is set to do then. The text is the store's error.
        case storeFailed(String)
        /// Another process has published a change.
        case received(SharedChange.Kind)
        /// A value was used in place of a failed response.
        case fellBack
    }

    /// The policy.
    public let policy: Policy
    /// The policy's name; empty unless it was given one.
    public let name: String
    /// The group: an origin such as `https://example.org:443`, a name, or empty for all requests of a session.
    public let group: String
    /// What has happened.
    public let action: Action

    /// Creates an event.
    public init(_ policy: Policy, name: String = "", group: String = "", _ action: Action) {
        self.policy = policy
        self.name = name
        self.group = group
        self.action = action
    }
}

/// Receives the events of policies, the changes of a group's breaker or limit in their order. Called on any thread, the event loop's
/// included: must not block, and must not send requests in the call.
public protocol PolicyObserver: Sendable {
    /// A policy has acted.
    func policyDidAct(_ event: PolicyEvent)
}

/// An observer made from a closure.
public struct ClosurePolicyObserver: PolicyObserver {
    private let body: @Sendable (PolicyEvent) -> Void

    /// Creates an observer that calls a closure; see ``PolicyObserver``.
    public init(_ body: @escaping @Sendable (PolicyEvent) -> Void) { self.body = body }

    /// Calls the closure.
    public func policyDidAct(_ event: PolicyEvent) { body(event) }
}
