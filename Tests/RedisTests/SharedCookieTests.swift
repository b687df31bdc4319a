// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewCookies
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@testable import CurlewRedis

@Suite(.enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(2))) struct SharedCookieTests {
    private static let later = Date(timeIntervalSince1970: 4_000_000_000)

    private func cookie(_ name: String, _ value: String = "1", domain: String = "example.org") -> Cookie {
        Cookie(name: name, value: value, domain: domain, expirationDate: Self.later)
    }

    private func names(_ store: CookieStore) -> [String]? { try? store.cookies().map(\.name).sorted() }

    @Test("what one process changes the others have, merged by name, domain and path") func shared() async throws {
        let server = try await RedisServer()
        let (one, other) = (CookieStore.redis(try server.client()), CookieStore.redis(try server.client()))
        try one.set(cookie("a"))
        try one.set(Cookie(name: "session", value: "1", domain: "example.org"))
        #expect(names(other) == ["a", "session"])
        try other.set(cookie("b"))
        try other.set(cookie("a", "2"))
        #expect(await eventually { names(one) == ["a", "b", "session"] })
        #expect(try one.cookies().first { $0.name == "a" }?.value == "2")
        #expect(try one.remove(cookie("b").id))
        #expect(await eventually { names(other) == ["a", "session"] })
        try one.removeAll()
        #expect(await eventually { names(other) == [] })
        #expect(names(.redis(try server.client(), name: "apart")) == [])
        #expect(one.lastError == nil && other.lastError == nil)
    }

    @Test("changes of several processes at once are all kept") func together() async throws {
        let server = try await RedisServer()
        let stores = try (0..<4).map { _ in CookieStore.redis(try server.client()) }
        await withTaskGroup(of: Void.self) { group in
            for (index, store) in stores.enumerated() {
                group.addTask {
                    for number in 0..<20 { _ = try? store.set(cookie("\(index)-\(number)")) }
                }
            }
        }
        let expected = (0..<4).flatMap { index in (0..<20).map { "\(index)-\($0)" } }.sorted()
        #expect(names(.redis(try server.client())) == expected)
        for store in stores { #expect(await eventually { names(store) == expected }) }
    }

    @Test("a cookie that a response has set is sent by the other process, and what did not change asks nothing of the server")
    func sessions() async throws {
        let server = try await RedisServer()
        let host = try LoopbackServer { request, _ in
            guard request.path == "/login" else { return .ok(request.header("Cookie") ?? "") }
            return .status(204, headers: [ServerField("Set-Cookie", "id=7; Path=/")])
        }
        let client = try server.client()
        let places = [
            RedisPlace(try server.client(), store: "cookies1", name: "default", sealedWith: nil),
            RedisPlace(client, store: "cookies1", name: "default", sealedWith: nil),
        ]
        let stores = places.map { CookieStore(place: $0, keepsSessionCookies: true, limits: .init()) }
        let managers = stores.map { store in makeManager { $0.cookies = store } }
        #expect(await eventually { places.allSatisfy(\.isSubscribed) })
        _ = try await managers[0].request(host.url("/login")).validate().serializingData().value
        func sent() async throws -> String { try await managers[1].request(host.url("/")).validate().serializingString().value }
        // By the time of a second exchange, the message has been received.
        var found = try await sent()
        while found.isEmpty { found = try await sent() }
        #expect(found == "id=7")
        let before = try await calls(client, "hget")
        for _ in 0..<20 { #expect(try await sent() == "id=7") }
        #expect(try await calls(client, "hget") == before)
    }

    /// How often a command was called.
    private func calls(_ client: RedisClient, _ command: String) async throws -> Int {
        let statistics = try #require(try await client.run(["INFO", "commandstats"]).text)
        let line = statistics.split(whereSeparator: \.isNewline).first { $0.hasPrefix("cmdstat_\(command):") }
        return line.flatMap { $0.split { !$0.isNumber }.first.flatMap { Int($0) } } ?? 0
    }

    @Test("without the server memory counts, and is stored afterwards, also in an empty one") func faults() async throws {
        let server = try await RedisServer()
        let client = try server.client()
        let (one, other) = (CookieStore.redis(client), CookieStore.redis(try server.client()))
        try one.set(cookie("before"))
        #expect(names(other) == ["before"])
        await server.kill()
        #expect(await eventually { client.refusal != nil })
        #expect(throws: RedisError.self) { try one.set(cookie("meanwhile")) }
        #expect(one.lastError is RedisError)
        let host = try LoopbackServer { request, _ in .ok(request.header("Cookie") ?? "") }
        try? one.set(Cookie(name: "local", value: "1", domain: "127.0.0.1"))
        let manager = makeManager { $0.cookies = one }
        #expect(try await manager.request(host.url("/")).validate().serializingString().value == "local=1")
        try await server.restart()
        #expect(await eventually { (try? one.synchronize()) != nil })
        #expect(await eventually { names(other) == ["before", "local", "meanwhile"] })
        #expect(one.lastError == nil)
    }

    @Test("a sealed value is read with its key only, and one of another format is left alone") func sealed() async throws {
        let server = try await RedisServer()
        let client = try server.client()
        let key = try SealingKeys.Key(id: "first", bytes: repeatElement(1, count: 32))
        let one = CookieStore.redis(client, sealedWith: try SealingKeys(key))
        try one.set(cookie("secret", "confidential"))
        #expect(names(.redis(client, sealedWith: try SealingKeys(key))) == ["secret"])
        let place = client.key("cookies1", "default")
        let raw = try #require(try await client.run(["HGET", .text(place), "v"]).data)
        #expect(raw.firstRange(of: Data("confidential".utf8)) == nil)
        let plain = CookieStore.redis(client)
        #expect(throws: RedisError.self) { try plain.cookies() }
        #expect(throws: RedisError.self) { try plain.set(cookie("other")) }
        #expect(try await client.run(["HGET", .text(place), "v"]).data == raw)
        _ = try await client.run(["HSET", .text(place), "r", "none"])
        #expect(throws: RedisError.self) { try CookieStore.redis(client).cookies() }
    }

    @Test("a host that one process knows to want TLS, the others know as well") func hosts() async throws {
        let server = try await RedisServer()
        let (one, other) = (HSTSStore.redis(try server.client()), HSTSStore.redis(try server.client()))
        try one.set(HSTSHost(host: "example.org", includesSubdomains: true, expirationDate: Self.later))
        #expect(try other.isKnown("www.example.org"))
        #expect(try other.upgradedURL(of: "http://example.org/")?.absoluteString == "https://example.org/")
        #expect(try other.remove("example.org"))
        #expect(await eventually { (try? one.isKnown("example.org")) == false })
    }
}
#endif
