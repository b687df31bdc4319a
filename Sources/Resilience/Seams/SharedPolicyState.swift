// SPDX-License-Identifier: Apache-2.0

/// A change of a policy's state that is published to other processes.
public struct SharedChange: Sendable, Hashable, Codable {
    /// What has changed.
    ///
    /// An open set: later versions may add kinds, so a `switch` needs a `default`.
    public struct Kind: RawRepresentable, Sendable, Hashable, Codable {
        /// The kind's name.
        public let rawValue: String

        /// Creates a kind from a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A circuit breaker has opened: the group fails.
        public static let breakerOpened = Kind(rawValue: "breaker.opened")
        /// A circuit breaker has closed: the group has recovered.
        public static let breakerClosed = Kind(rawValue: "breaker.closed")
        /// A retry budget is spent.
        public static let budgetSpent = Kind(rawValue: "budget.spent")
    }

    /// What has changed.
    public let kind: Kind
    /// The policy's name, the same in each process that shares its state.
    public let policy: String
    /// The group: an origin such as `https://example.org:443`, a name, or empty for all requests of a session.
    public let group: String
    /// How long the change counts, in seconds from its publication; 0 for a change without an end.
    public let seconds: Double

    /// Creates a change.
    public init(_ kind: Kind, policy: String, group: String, lasting duration: Duration = .zero) {
        self.kind = kind
        self.policy = policy
        self.group = group
        seconds = duration.seconds
    }

    /// How long the change counts, at most a day; zero for a change without an end.
    public var duration: Duration { seconds > 0 ? .seconds(min(seconds, 86_400)) : .zero }
}

/// Publishes what the policies of this process have found to the other processes of a fleet, and delivers what those have found.
///
/// Given to ``CircuitBreaker`` and ``RetryBudget`` of a ``Resilience``; they work without it, and keep working when it fails.
public protocol SharedPolicyState: Sendable {
    /// Publishes a change. Returns at once; a change that can't be published is dropped. Called on any thread, without a lock held.
    func publish(_ change: SharedChange)

    /// Calls `receive` for each change that other processes publish, on any thread, until the returned object is released.
    ///
    /// Changes of this process may be received as well: they have no effect then.
    func subscribe(_ receive: @escaping @Sendable (SharedChange) -> Void) -> any AnyObject & Sendable
}
