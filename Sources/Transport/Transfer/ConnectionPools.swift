// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The multi handles among which transfers are distributed, each with its own connections.
///
/// libcurl iterates over all its connections whenever a transfer completes, and over those to its host whenever one starts. With ten
/// thousand idle transfers that makes a small request twenty times as expensive. So each multi handle gets only as many transfers as take
/// negligible time to iterate over (``MultiHandle/capacity``). The first multi handle with room is used: a session with few concurrent
/// transfers has one.
///
/// Transfers that share HTTP/2 connections stay in the first multi handle, because connections can't be shared across multi handles.
/// Transfers that may pause then have pools of their own: a paused one would block the others on its connection.
///
/// For the event loop's thread only.
final class ConnectionPools {
    /// How long an unused multi handle keeps its connections, 10 seconds; the first keeps them until the end.
    static let longestDisuse: Nanoseconds = 10_000_000_000
    /// The number of hosts whose latest pool is remembered.
    private static let largestMemory = 1_024

    // The loop owns its pools, as it owns the members.
    private unowned(unsafe) let loop: EventLoopThread
    private let configuration: TransportConfiguration
    private let multiplexes: Bool
    /// The multi handle for transfers that share connections.
    private(set) var first: MultiHandle
    @exclusivity(unchecked) private var pools: [MultiHandle?]
    /// The number of multi handles.
    @exclusivity(unchecked) private(set) var count = 1
    /// All multi handles before this index are full.
    @exclusivity(unchecked) private var firstWithRoom = 0
    /// The index of the pool to which the latest transfer to a host left its connection.
    @exclusivity(unchecked) private var placesByHost: [UInt64: Int] = [:]
    @exclusivity(unchecked) private var timers = DeadlineHeap<MultiHandle>()
    /// The multi handles that may have completed members.
    @exclusivity(unchecked) private var called: [MultiHandle] = []

    /// Creates the first multi handle; `nil` if libcurl is out of memory, or rejects an option.
    ///
    /// - Parameter multiplexes: whether transfers may share HTTP/2 connections, in the first multi handle.
    init?(loop: EventLoopThread, configuration: TransportConfiguration, multiplexes: Bool) {
        guard let first = MultiHandle(loop: loop, place: 0) else { return nil }
        self.loop = loop
        self.configuration = configuration
        self.multiplexes = multiplexes
        self.first = first
        pools = [first]
        guard setUp(first) else { return nil }
    }

    /// Sets up the multi handle for transfers that share connections.
    private func setUp(_ first: MultiHandle) -> Bool {
        let limit = multiplexes ? configuration.maximumConnectionsPerHost : nil
        return first.setUp(for: self, multiplexes: multiplexes, maximumConnectionsPerHost: limit)
    }

    /// Closes the idle connections of multi handles without members, which have no others.
    func closeUnused() {
        for multi in pools.compactMap(\.self) where multi !== first && multi.memberCount == 0 { close(multi) }
        guard first.memberCount == 0, let fresh = MultiHandle(loop: loop, place: 0), setUp(fresh) else { return }
        first.close()
        timers.remove(first)
        first = fresh
        pools[0] = fresh
    }

    /// Closes all connections.
    func close() {
        for multi in pools { multi?.close() }
    }

    // MARK: Choosing

    /// The multi handle for a transfer that doesn't share its connection: the one with its host's latest connection, otherwise the first
    /// with room.
    ///
    /// - Parameter host: a hash of the host; `nil` for members that don't reuse pooled connections.
    func pool(forHost host: UInt64?) -> MultiHandle {
        let multi = knownPool(forHost: host) ?? poolWithRoom() ?? first
        reserveConnections(of: multi)
        return multi
    }

    /// The multi handle for a transfer that may share its connection.
    func poolForSharing() -> MultiHandle {
        reserveConnections(of: first)
        return first
    }

    private func knownPool(forHost host: UInt64?) -> MultiHandle? {
        guard count > 1, let host, let place = placesByHost[host], let multi = pools[place], multi.hasRoom else { return nil }
        return multi
    }

    /// `nil` if all are full, and libcurl is out of memory for another one.
    private func poolWithRoom() -> MultiHandle? {
        while firstWithRoom < pools.count, let multi = pools[firstWithRoom] {
            if multi.hasRoom { return multi }
            firstWithRoom += 1
        }
        guard let multi = MultiHandle(loop: loop, place: firstWithRoom), multi.setUp(for: self) else { return nil }
        if firstWithRoom == pools.count { pools.append(multi) } else { pools[firstWithRoom] = multi }
        count += 1
        return multi
    }

    private func reserveConnections(of multi: MultiHandle) {
        multi.reserveConnections(multi.memberCount + 1 + max(0, configuration.maximumIdleConnections) / count)
    }

    /// A multi handle has lost a member.
    func left(_ multi: MultiHandle, host: UInt64?) {
        firstWithRoom = min(firstWithRoom, multi.place)
        guard count > 1 else { return }
        if let host {
            if placesByHost.count >= Self.largestMemory { placesByHost.removeAll(keepingCapacity: true) }
            placesByHost[host] = multi.place
        }
        guard multi.memberCount == 0, multi !== first else { return }
        multi.closesAt = loop.now + Self.longestDisuse
        setTimer(of: multi)
    }

    // MARK: Time

    /// The earliest time to call ``timerAction(at:)``.
    var timerDeadline: Nanoseconds? { timers.earliest }

    /// Reschedules a multi handle whose deadline has changed.
    func setTimer(of multi: MultiHandle) {
        let deadline = min(multi.timerDeadline ?? .max, multi.closesAt ?? .max)
        if deadline < .max { timers.set(multi, to: deadline) } else { timers.remove(multi) }
    }

    /// Runs expired libcurl timers, and closes multi handles that have been unused for long.
    func timerAction(at now: Nanoseconds) {
        // Each multi handle once: a timer that libcurl sets to now waits for the next turn.
        var left = timers.count
        while left > 0, let multi = timers.popExpired(at: now) {
            left -= 1
            multi.timerAction(at: now)
            let isDone = multi.closesAt.map { $0 <= now } ?? false
            if isDone, !multi.wasCalled { close(multi) } else { setTimer(of: multi) }
        }
    }

    private func close(_ multi: MultiHandle) {
        multi.close()
        timers.remove(multi)
        pools[multi.place] = nil
        count -= 1
        firstWithRoom = min(firstWithRoom, multi.place)
    }

    // MARK: Ends

    /// Notes that libcurl is called for a multi handle, which may complete members.
    func willCall(_ multi: MultiHandle) {
        called.append(multi)
    }

    /// Calls `body` with each completed member and its result.
    func takeCompleted(_ body: (MultiMember, CURLcode) -> Void) {
        while let multi = called.popLast() {
            multi.wasCalled = false
            while let (member, code) = multi.nextCompleted() { body(member, code) }
        }
    }
}
