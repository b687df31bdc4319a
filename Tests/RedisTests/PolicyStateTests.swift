// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewResilience
import CurlewTestSupport
import Testing

@testable import CurlewRedis

@Suite(.enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(2))) struct PolicyStateTests {
    private func change(_ kind: SharedChange.Kind, _ group: String, lasting time: Duration = .zero) -> SharedChange {
        SharedChange(kind, policy: "breaker", group: group, lasting: time)
    }

    /// Subscribes, and waits until a change of the group is received that is published again and again.
    private func reaches(_ one: RedisPolicyState, _ other: RedisPolicyState, _ group: String) async -> [SharedChange] {
        let received = Log<SharedChange>()
        let subscription = other.subscribe { if $0.group == group { received.append($0) } }
        let publishing = Task {
            while !Task.isCancelled, received.count == 0 {
                one.publish(change(.budgetSpent, group))
                try await Task.sleep(for: .milliseconds(10))
            }
        }
        await received.wait(for: 1)
        publishing.cancel()
        withExtendedLifetime(subscription) {}
        return received.elements
    }

    @Test("changes of policies reach the other processes") func published() async throws {
        let server = try await RedisServer()
        let (one, other) = (RedisPolicyState(try server.client()), RedisPolicyState(try server.client()))
        let received = await reaches(one, other, "https://example.org:443")
        #expect(received.first == change(.budgetSpent, "https://example.org:443"))
    }

    @Test("a process that subscribes later reads which breakers are open, with the time that is left") func late() async throws {
        let server = try await RedisServer()
        let one = RedisPolicyState(try server.client())
        for number in 0..<3 { one.publish(change(.breakerOpened, "\(number)", lasting: .seconds(60))) }
        one.publish(change(.breakerClosed, "1"))
        one.publish(change(.budgetSpent, "budget"))
        // The last one in the pipeline.
        try await one.client.ping()
        #expect(try await one.client.run(["HLEN", .text(one.place)]) == .integer(2))
        let left = try #require(try await one.client.run(["PTTL", .text(one.place)]).integer)
        #expect(left > 50_000 && left <= 60_000)
        let received = Log<SharedChange>()
        let subscription = RedisPolicyState(try server.client()).subscribe { received.append($0) }
        await received.wait(for: 2)
        #expect(Set(received.elements.map(\.group)) == ["0", "2"])
        for change in received.elements {
            #expect(change.kind == .breakerOpened && change.policy == "breaker")
            #expect(change.duration > .seconds(50) && change.duration <= .seconds(60))
        }
        withExtendedLifetime(subscription) {}
    }

    @Test("after a lost connection the open breakers are read again, and a server that was restarted knows none") func again() async throws
    {
        let server = try await RedisServer()
        let one = RedisPolicyState(try server.client())
        one.publish(change(.breakerOpened, "first", lasting: .seconds(60)))
        try await one.client.ping()
        let received = Log<SharedChange>()
        let other = try server.client()
        let subscription = RedisPolicyState(other).subscribe { received.append($0) }
        await received.wait(for: 1)
        try await server.restart()
        #expect(await one.client.becomesReady())
        one.publish(change(.breakerOpened, "second", lasting: .seconds(60)))
        await received.wait(for: 2)
        #expect(received.elements.map(\.group).prefix(2) == ["first", "second"])
        withExtendedLifetime(subscription) {}
    }

    @Test("an entry whose time has passed is not read, and one that is no change is skipped") func ended() async throws {
        let server = try await RedisServer()
        let one = RedisPolicyState(try server.client())
        one.publish(change(.breakerOpened, "open", lasting: .seconds(60)))
        for value in ["1 {}", "99999999999999 {}", "no number", ""] {
            _ = try await one.client.run(["HSET", .text(one.place), .text(value), .text(value)])
        }
        let received = Log<SharedChange>()
        let subscription = RedisPolicyState(try server.client()).subscribe { received.append($0) }
        await received.wait(for: 1)
        // Everything that is read is delivered at once: what is published after that comes later.
        one.publish(change(.breakerClosed, "last"))
        await received.wait(for: 2)
        #expect(received.elements.map(\.group) == ["open", "last"])
        withExtendedLifetime(subscription) {}
    }

    @Test("a full server publishes changes, and keeps none") func full() async throws {
        let server = try await RedisServer()
        let one = RedisPolicyState(try server.client())
        _ = try await one.client.run(["CONFIG", "SET", "maxmemory", "1"])
        let received = Log<SharedChange>()
        let subscription = RedisPolicyState(try server.client()).subscribe { received.append($0) }
        let publishing = Task {
            while !Task.isCancelled, received.count == 0 {
                one.publish(change(.breakerOpened, "full", lasting: .seconds(60)))
                try await Task.sleep(for: .milliseconds(10))
            }
        }
        await received.wait(for: 1)
        publishing.cancel()
        #expect(received.elements.first == change(.breakerOpened, "full", lasting: .seconds(60)))
        #expect(try await one.client.run(["EXISTS", .text(one.place)]) == .integer(0))
        withExtendedLifetime(subscription) {}
    }

    @Test("a process that starts after another one has opened its breaker spares the host") func processes() async throws {
        let server = try await RedisServer()
        let host = try LoopbackServer { _, _ in .status(503) }
        let first = try await Fleet(1, "break", on: server, host.url("/"))
        first.begin()
        let opened = await first.reports()
        #expect(opened.first?["refused"] == 1)
        let before = host.requestCount
        #expect(before > 0)
        // The first one has ended: nothing but the server knows.
        let later = try await Fleet(3, "late", on: server, host.url("/"))
        later.begin()
        let reports = await later.reports()
        #expect(reports.map { $0["refused"] } == [1, 1, 1])
        #expect(host.requestCount == before)
    }
}
#endif
