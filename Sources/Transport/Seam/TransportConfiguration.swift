// SPDX-License-Identifier: Apache-2.0

/// What holds for all transfers of one event loop.
public struct TransportConfiguration: Sendable, Hashable {
    /// The most transfers to one host (scheme, name and port) at a time; further ones wait, first come first served.
    ///
    /// 64 by default; `nil` for no limit.
    public var maximumConnectionsPerHost: Int? = 64

    /// The most idle connections kept for later requests; 256 by default. A burst of requests leaves more for a while.
    public var maximumIdleConnections = 256

    /// Whether several transfers share one HTTP/2 connection.
    ///
    /// `nil`, the default, does so from libcurl 8.3 on: before, transfers hang when a shared connection ends. Shared connections do not
    /// count against ``maximumConnectionsPerHost`` one by one.
    public var multiplexes: Bool?

    /// Makes a configuration with the defaults.
    public init() {}
}
