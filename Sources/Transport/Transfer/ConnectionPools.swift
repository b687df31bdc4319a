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
final class ConnectionPools: DeadlineHolder {
    /// How long an unused multi handle keeps its connections, 10 seconds; the first keeps them until the end.
    static let longestDisuse: Nanoseconds = 10_000_000_000
    /// The number of hosts whose latest pool is remembered.
    private static let largestMemory = 1_024

    @exclusivity(unchecked) var deadline: Nanoseconds = 0
    @exclusivity(unchecked) var heapIndex = -1
    /// Whether it is among the schedule's lingering pools, rather than among the idle ones.
    @exclusivity(unchecked) private var isLingering = false

    // The loop owns its groups and their pools, as it owns the members.
    private unowned(unsafe) let loop: EventLoopThread
    // The group owns its pools, and leaves none open.
    private unowned(unsafe) let group: ConnectionGroup
    private let schedule: PoolSchedule
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

    /// Creates the first multi handle; `nil` if libcurl is out of memory, or rejects an option.
    ///
    /// - Parameter multiplexes: whether transfers may share HTTP/2 connections, in the first multi handle.
    init?(loop: EventLoopThread, group: ConnectionGroup, multiplexes: Bool) {
        guard let first = MultiHandle(loop: loop, place: 0) else { return nil }
        self.loop = loop
        self.group = group
        schedule = loop.schedule
        configuration = group.configuration
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
    func closeIdle() {
        for multi in pools.compactMap(\.self) where multi !== first && multi.memberCount == 0 { close(multi) }
        guard first.memberCount == 0, let fresh = MultiHandle(loop: loop, place: 0), setUp(fresh) else { return }
        first.close()
        schedule.timers.remove(first)
        first = fresh
        pools[0] = fresh
    }

    /// Closes all connections. The pools can't be used afterwards.
    func close() {
        for multi in pools.compactMap(\.self) {
            multi.close()
            schedule.timers.remove(multi)
        }
        leaveSchedule()
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
        if heapIndex >= 0 { leaveSchedule() }
        multi.reserveConnections(multi.memberCount + 1 + max(0, configuration.maximumIdleConnections) / count)
    }

    /// A multi handle has lost a member.
    func left(_ multi: MultiHandle, host: UInt64?) {
        firstWithRoom = min(firstWithRoom, multi.place)
        if count > 1 {
            if let host {
                if placesByHost.count >= Self.largestMemory { placesByHost.removeAll(keepingCapacity: true) }
                placesByHost[host] = multi.place
            }
            if multi.memberCount == 0, multi !== first {
                multi.closesAt = loop.now + Self.longestDisuse
                setTimer(of: multi)
            }
        }
        if group.isShared { considerDisuse() }
    }

    // MARK: Time

    /// Reschedules a multi handle whose deadline has changed.
    func setTimer(of multi: MultiHandle) {
        let deadline = min(multi.timerDeadline ?? .max, multi.closesAt ?? .max)
        if deadline < .max { schedule.timers.set(multi, to: deadline) } else { schedule.timers.remove(multi) }
    }

    /// The time of a multi handle's timer has passed: closes it if it has been unused for long.
    func timerPassed(of multi: MultiHandle, at now: Nanoseconds) {
        guard let end = multi.closesAt, end <= now, !multi.wasCalled else { return setTimer(of: multi) }
        close(multi)
        if group.isShared { considerDisuse() }
    }

    private func close(_ multi: MultiHandle) {
        multi.close()
        schedule.timers.remove(multi)
        pools[multi.place] = nil
        count -= 1
        firstWithRoom = min(firstWithRoom, multi.place)
    }

    // MARK: Disuse by a session that shares the loop

    /// Whether there are no transfers.
    private var isUnused: Bool { count == 1 && first.memberCount == 0 }

    /// Schedules the end of the pools if there are no transfers: soon if there are no connections, else when none can be used again.
    func considerDisuse() {
        guard isUnused else { return }
        leaveSchedule()
        let now = loop.now
        if group.resolvesUntil > now {
            isLingering = true
            return schedule.lingering.set(self, to: group.resolvesUntil)
        }
        let longest = configuration.maximumIdleTime.map { max($0.nanoseconds, ConnectionGroup.shortDisuse) } ?? .max
        let time = group.openCount == 0 ? ConnectionGroup.shortDisuse : longest
        schedule.idle.set(self, to: time < .max - now ? now + time : .max)
    }

    private func leaveSchedule() {
        if isLingering { schedule.lingering.remove(self) } else { schedule.idle.remove(self) }
        isLingering = false
    }

    /// Closes the pools, which have no transfers; others are made for a later one.
    func closeUnused() {
        // First, because closing connections makes the group consider its pools.
        group.forget(self)
        close()
        loop.closedPools(of: group)
    }

    // MARK: Ends

    /// Notes that libcurl is called for a multi handle, which may complete members.
    func willCall(_ multi: MultiHandle) {
        schedule.called.append(multi)
    }
}
