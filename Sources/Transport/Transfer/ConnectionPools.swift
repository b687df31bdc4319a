// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The multi handles over which transfers are spread, each with connections of its own.
///
/// libcurl walks over its connections in search of the transfer's whenever one ends, and over those to its host whenever one begins. Of
/// ten thousand that wait for something else, that costs a small request twenty times as much as all the rest. So a multi handle gets no
/// more transfers than are walked over in no time. The first that has room is taken: a session with few transfers at a time has one.
///
/// Event-loop thread only.
final class ConnectionPools {
    /// How long one that nobody uses keeps its connections; the first keeps them for good.
    static let longestDisuse: Nanoseconds = 10_000_000_000
    /// How many hosts' connections are remembered.
    private static let largestMemory = 1_024

    // Owned by the loop, as the members are.
    private unowned(unsafe) let loop: EventLoopThread
    private let configuration: TransportConfiguration
    /// The one for transfers that share connections.
    let first: MultiHandle
    @exclusivity(unchecked) private var pools: [MultiHandle?]
    /// How many there are.
    @exclusivity(unchecked) private(set) var count = 1
    /// All before it are full.
    @exclusivity(unchecked) private var firstWithRoom = 0
    /// Where the latest transfer to a host left its connection.
    @exclusivity(unchecked) private var placesByHost: [UInt64: Int] = [:]
    @exclusivity(unchecked) private var timers = DeadlineHeap<MultiHandle>()
    /// Those in which libcurl may be done with members.
    @exclusivity(unchecked) private var called: [MultiHandle] = []

    /// `nil` when libcurl has no memory, or refuses to be set up.
    ///
    /// - Parameter multiplexes: whether transfers may share HTTP/2 connections, in the first.
    init?(loop: EventLoopThread, configuration: TransportConfiguration, multiplexes: Bool) {
        guard let first = MultiHandle(loop: loop, place: 0) else { return nil }
        self.loop = loop
        self.configuration = configuration
        self.first = first
        pools = [first]
        let limit = multiplexes ? configuration.maximumConnectionsPerHost : nil
        guard first.setUp(for: self, multiplexes: multiplexes, maximumConnectionsPerHost: limit) else { return nil }
    }

    /// Closes all connections.
    func close() {
        for multi in pools { multi?.close() }
    }

    // MARK: Choosing

    /// The one for a transfer that shares its connection with none: where its host's latest connection is, else the first with room.
    ///
    /// - Parameter host: a hash of the host; `nil` for what takes no kept connection.
    func pool(forHost host: UInt64?) -> MultiHandle {
        let multi = knownPool(forHost: host) ?? poolWithRoom() ?? first
        reserveConnections(of: multi)
        return multi
    }

    /// The one for a transfer that may share its connection.
    func poolForSharing() -> MultiHandle {
        reserveConnections(of: first)
        return first
    }

    private func knownPool(forHost host: UInt64?) -> MultiHandle? {
        guard count > 1, let host, let place = placesByHost[host], let multi = pools[place], multi.hasRoom else { return nil }
        return multi
    }

    /// `nil` when all are full, and libcurl has no memory for another one.
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

    /// One has lost a member.
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

    /// When to call ``timerAction(at:)``.
    var timerDeadline: Nanoseconds? { timers.earliest }

    /// When one has to be called has changed.
    func setTimer(of multi: MultiHandle) {
        let deadline = min(multi.timerDeadline ?? .max, multi.closesAt ?? .max)
        if deadline < .max { timers.set(multi, to: deadline) } else { timers.remove(multi) }
    }

    /// Calls libcurl where its timers have run out, and closes what nobody has used for long.
    func timerAction(at now: Nanoseconds) {
        // Each once: what libcurl wants again at once waits for the next turn.
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

    /// libcurl is called for one: it may be done with members.
    func willCall(_ multi: MultiHandle) {
        called.append(multi)
    }

    /// Hands out the members that libcurl is done with, and their results.
    func takeFinished(_ body: (MultiMember, CURLcode) -> Void) {
        while let multi = called.popLast() {
            multi.wasCalled = false
            while let (member, code) = multi.nextFinished() { body(member, code) }
        }
    }
}
