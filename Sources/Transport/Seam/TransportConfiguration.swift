// SPDX-License-Identifier: Apache-2.0

/// The configuration of all transfers of an event loop.
public struct TransportConfiguration: Sendable, Hashable {
    /// The most transfers to one host (scheme, name and port) at a time; further ones are queued, first come first served.
    ///
    /// 64 by default; `nil` for no limit.
    public var maximumConnectionsPerHost: Int? = 64

    /// The most idle connections pooled for later requests; 256 by default. Exceeded for a while after a burst of requests.
    public var maximumIdleConnections = 256

    /// Whether several transfers share one HTTP/2 connection.
    ///
    /// `nil`, the default, shares connections with libcurl 8.3 and later: before, transfers hang when a shared connection ends. Transfers
    /// on a shared connection do not count individually against ``maximumConnectionsPerHost``.
    public var multiplexes: Bool?

    /// Creates a configuration with the defaults.
    public init() {}
}
