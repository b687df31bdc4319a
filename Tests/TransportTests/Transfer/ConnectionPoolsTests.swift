// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct ConnectionPoolsTests {
    /// The pools of a loop that does not run, on the test's thread.
    private final class Fixture {
        let loop: EventLoopThread
        let group: ConnectionGroup
        let pools: ConnectionPools
        private var members: [(EasyHandle, MultiHandle)] = []

        init() throws {
            var configuration = TransportConfiguration()
            configuration.maximumConnectionsPerHost = nil
            let mailbox = Mailbox(configuration: configuration, makePoller: { try CountingPoller() })
            loop = try #require(EventLoopThread(configuration: configuration, mailbox: mailbox, poller: CountingPoller()))
            group = ConnectionGroup(number: 0, configuration: configuration)
            pools = try #require(ConnectionPools(loop: loop, group: group, multiplexes: false))
        }

        deinit {
            for (handle, multi) in members { multi.remove(handle) }
            pools.close()
            loop.stopAll()
        }

        /// Adds a transfer to a host, and returns its pool.
        @discardableResult
        func add(host: UInt64? = 1) throws -> MultiHandle {
            let handle = try #require(EasyHandle())
            let multi = pools.pool(forHost: host)
            try #require(multi.add(handle) == CURLM_OK)
            members.append((handle, multi))
            return multi
        }

        /// Removes the latest transfer from a pool.
        func remove(from multi: MultiHandle, host: UInt64 = 1) throws {
            let index = try #require(members.lastIndex { $0.1 === multi })
            multi.remove(members.remove(at: index).0, host: host)
        }

        /// The time at which a pool that is unused from now on is closed.
        var endOfDisuse: Nanoseconds { loop.now + ConnectionPools.longestDisuse }
    }

    @Test("a pool has at most its capacity of transfers, and the next the rest")
    func capacity() throws {
        let fixture = try Fixture()
        let places = try (0..<3 * MultiHandle.capacity).map { _ in try fixture.add().place }
        #expect(places == (0..<3 * MultiHandle.capacity).map { $0 / MultiHandle.capacity })
        #expect(fixture.pools.count == 3)
    }

    @Test("a vacated place is filled again")
    func freePlace() throws {
        let fixture = try Fixture()
        for _ in 0...MultiHandle.capacity { try fixture.add() }
        try fixture.remove(from: fixture.pools.first)
        #expect(try fixture.add(host: 2) === fixture.pools.first)
        #expect(try fixture.add(host: 2).place == 1)
    }

    @Test("a transfer is added to the pool with its host's latest connection, if it has room")
    func knownHost() throws {
        let fixture = try Fixture()
        for _ in 0..<MultiHandle.capacity { try fixture.add(host: 1) }
        let second = try fixture.add(host: 2)
        try fixture.remove(from: second, host: 2)
        try fixture.remove(from: fixture.pools.first, host: 1)
        #expect(try fixture.add(host: 2) === second)
        #expect(try fixture.add(host: 1) === fixture.pools.first)
        #expect(try fixture.add(host: 1) === second)
        try fixture.remove(from: fixture.pools.first, host: 3)
        #expect(try fixture.add(host: nil) === fixture.pools.first)
        #expect(try fixture.add(host: 3) === second)
    }

    @Test("all transfers that share connections are in one pool")
    func sharing() throws {
        let fixture = try Fixture()
        for _ in 0...MultiHandle.capacity { try fixture.add() }
        #expect(fixture.pools.poolForSharing() === fixture.pools.first)
    }

    @Test("unused pools are closed after a while, except the first")
    func disuse() throws {
        let fixture = try Fixture()
        for _ in 0...MultiHandle.capacity { try fixture.add() }
        let second = try fixture.add()
        for _ in 0..<2 { try fixture.remove(from: second) }
        for _ in 0..<MultiHandle.capacity { try fixture.remove(from: fixture.pools.first) }
        let end = fixture.endOfDisuse
        fixture.loop.schedule.timerAction(at: end - 1)
        #expect(fixture.pools.count == 2)
        fixture.loop.schedule.timerAction(at: end)
        #expect(fixture.pools.count == 1)
        #expect(fixture.loop.schedule.timerDeadline == nil)
        for _ in 0..<MultiHandle.capacity { #expect(try fixture.add() === fixture.pools.first) }
        let third = try fixture.add()
        #expect(third !== second)
        #expect(third.place == 1)
        #expect(fixture.pools.count == 2)
    }

    @Test("a pool that is used again in time is kept")
    func usedAgain() throws {
        let fixture = try Fixture()
        for _ in 0..<MultiHandle.capacity { try fixture.add() }
        let second = try fixture.add(host: 2)
        try fixture.remove(from: second, host: 2)
        let end = fixture.endOfDisuse
        #expect(try fixture.add(host: 2) === second)
        fixture.loop.schedule.timerAction(at: end)
        #expect(fixture.pools.count == 2)
        #expect(try fixture.add(host: 2) === second)
    }

    @Test("hosts beyond the number remembered still get a pool")
    func manyHosts() throws {
        let fixture = try Fixture()
        for _ in 0..<MultiHandle.capacity { try fixture.add() }
        let second = try fixture.add()
        for host in 2..<5_000 {
            #expect(try fixture.add(host: UInt64(host)) === second)
            try fixture.remove(from: second, host: UInt64(host))
        }
        try fixture.remove(from: fixture.pools.first)
        #expect(try fixture.add(host: 4_999) === second)
    }
}
