// SPDX-License-Identifier: Apache-2.0

/// Kinds of events of which an ``EventMonitor`` is notified.
public struct MonitoredEvents: OptionSet, Sendable, Hashable {
    /// One bit for each kind.
    public let rawValue: UInt16

    /// Creates a set from its bits.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// A task was created, or an attempt has completed.
    public static let attempts = MonitoredEvents(rawValue: 1 << 0)
    /// A request was resumed, suspended or cancelled.
    public static let control = MonitoredEvents(rawValue: 1 << 1)
    /// The head of a response, final or interim, was received, or a follow-up is sent.
    public static let responses = MonitoredEvents(rawValue: 1 << 2)
    /// An exchange has completed.
    public static let exchanges = MonitoredEvents(rawValue: 1 << 3)
    /// The cache was used or bypassed.
    public static let cache = MonitoredEvents(rawValue: 1 << 4)
    /// A request will be retried.
    public static let retries = MonitoredEvents(rawValue: 1 << 5)
    /// A request has failed for good.
    public static let failures = MonitoredEvents(rawValue: 1 << 6)
    /// A request has finished.
    public static let end = MonitoredEvents(rawValue: 1 << 7)
    /// A connection was opened, reused, became idle, or was closed.
    public static let connections = MonitoredEvents(rawValue: 1 << 8)
    /// A policy that protects the session has acted.
    public static let policies = MonitoredEvents(rawValue: 1 << 9)

    /// All kinds, those of later versions included.
    public static let all = MonitoredEvents(rawValue: .max)
}
