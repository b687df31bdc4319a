// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// What a session has of an event loop for itself: its connections, with the names and TLS sessions that libcurl keeps beside them, its
/// limits, and what is known of its hosts. Nothing of it serves a transfer of another session.
///
/// A transport of one session has one group, whose number is 0. Those of a ``SharedTransport`` have multi handles only while they have
/// connections or transfers: each multi handle has two descriptors of its own. For the event loop's thread only.
final class ConnectionGroup {
    /// How long the multi handles of a session without connections are kept for its next transfer: a second.
    static let shortDisuse: Nanoseconds = 1_000_000_000
    /// How long multi handles are kept through which a name may still be resolved when their session ends: 30 seconds. Some libcurls wait
    /// for the system's resolver when one is closed, which would block the other sessions.
    static let resolverTime: Nanoseconds = 30_000_000_000

    let number: Int
    let configuration: TransportConfiguration
    /// The longest time for which connections may be idle; `nil` for none of the configuration's own.
    let ownIdleTime: Nanoseconds?
    /// The same for libcurl.
    let idleSeconds: Int?
    /// Shares TLS sessions between transfers, which a multi handle alone does not.
    let share: UnsafeMutableRawPointer?
    @exclusivity(unchecked) var sharing: ConnectionSharing
    @exclusivity(unchecked) var launchQueue: LaunchQueue
    @exclusivity(unchecked) private(set) var pools: ConnectionPools?
    /// For transfers that may be paused for long: they must not block others on a shared connection.
    @exclusivity(unchecked) private(set) var poolsForPausing: ConnectionPools?
    /// The pooled connections that are open.
    @exclusivity(unchecked) private(set) var openCount = 0
    /// The connections opened so far, streams included.
    @exclusivity(unchecked) var openedCount = 0
    /// How often a transfer has used a connection of another.
    @exclusivity(unchecked) var reusedCount = 0
    /// Until when libcurl may resolve a name for a transfer that has ended.
    @exclusivity(unchecked) var resolvesUntil: Nanoseconds = 0

    init(number: Int, configuration: TransportConfiguration) {
        self.number = number
        self.configuration = configuration
        ownIdleTime = configuration.ownIdleTime
        idleSeconds = configuration.idleSeconds
        sharing = ConnectionSharing(isEnabled: configuration.multiplexes ?? CurlInfo.current.hasReliableHTTP2)
        launchQueue = LaunchQueue(limit: configuration.maximumConnectionsPerHost)
        share = curl_share_init()
        if let share { _ = ccurlew_share_tls_sessions(share) }
    }

    deinit {
        if let share { curl_share_cleanup(share) }
    }

    /// Whether there are other sessions on the loop, so that what is not used is closed.
    var isShared: Bool { number != 0 }

    /// The pools, which are made if there are none; `nil` if libcurl is out of memory.
    func pools(on loop: EventLoopThread) -> ConnectionPools? {
        if pools == nil { pools = ConnectionPools(loop: loop, group: self, multiplexes: sharing.isEnabled) }
        return pools
    }

    /// Those for transfers that may pause; `nil` if libcurl is out of memory.
    func poolsForPausing(on loop: EventLoopThread) -> ConnectionPools? {
        if poolsForPausing == nil { poolsForPausing = ConnectionPools(loop: loop, group: self, multiplexes: false) }
        return poolsForPausing
    }

    /// A connection was opened that later transfers may use.
    func opened() { openCount += 1 }

    /// One of those was closed.
    func closed() {
        openCount -= 1
        guard isShared, openCount == 0 else { return }
        pools?.considerDisuse()
        poolsForPausing?.considerDisuse()
    }

    /// Forgets pools that were closed.
    func forget(_ closed: ConnectionPools) {
        if pools === closed { pools = nil }
        if poolsForPausing === closed { poolsForPausing = nil }
    }

    /// Closes all connections. The handles that use the share have to be released, or given another one, before the group is.
    func close() {
        for pools in [pools, poolsForPausing] { pools?.close() }
        pools = nil
        poolsForPausing = nil
    }
}
