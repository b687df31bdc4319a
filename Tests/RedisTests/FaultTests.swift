// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewCache
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewResilience
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@testable import CurlewRedis

/// What requests get from each store in each fault of its server, how long they wait for it, and that all works again afterwards.
@Suite(.enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(3))) struct FaultTests {
    /// What happens to the server.
    enum Fault: CaseIterable {
        case killed, paused, full, oldVersion, garbage
    }

    /// A store, as it is set.
    enum Store: CaseIterable {
        case limitLocal, limitOpen, limitClosed, tokenLocal, tokenStrict, cache, cookies, hosts, breaker

        /// What a request gets without the server.
        var expected: String {
            switch self {
            case .limitClosed: "refused"
            case .tokenLocal: "1"
            case .tokenStrict: "RedisError"
            case .cookies: "local=1"
            default: "text"
            }
        }
    }

    static let setting = Duration.milliseconds(20)
    /// What a machine that is busy may add at most to the fastest of three.
    static let slack = Duration.milliseconds(TestLength.value(200, long: 30))

    /// A server in a state, with the way out of it.
    private final class Place: Sendable {
        let server: RedisServer
        let client: RedisClient
        private let fake = Lock<FakeServer?>(nil)

        init() async throws {
            server = try await RedisServer()
            client = try server.client(timeout: FaultTests.setting)
        }

        func begin(_ fault: Fault) async throws {
            switch fault {
            case .killed:
                await server.kill()
                _ = await eventually { self.client.refusal != nil }
            case .paused: server.send(SIGSTOP)
            case .full: _ = try await server.client().run(["CONFIG", "SET", "maxmemory", "1"])
            case .oldVersion: try await replace("$21\r\nredis_version:3.2.1\r\n\r\n")
            case .garbage: try await replace("garbage\r\n")
            }
        }

        private func replace(_ response: String) async throws {
            await server.kill()
            try? FileManager.default.removeItem(atPath: server.socket)
            let fake = try FakeServer(response: response, path: server.socket)
            self.fake.withLock { $0 = fake }
            _ = await eventually { self.client.refusal != nil }
        }

        func end(_ fault: Fault) async throws {
            switch fault {
            case .killed: try await server.restart()
            case .paused: server.send(SIGCONT)
            case .full: _ = try await server.client().run(["CONFIG", "SET", "maxmemory", "0"])
            case .oldVersion, .garbage:
                fake.withLock { $0 }?.end()
                try await server.restart()
            }
        }
    }

    /// A store in use: by requests, and by a change that only the server can make.
    private struct Subject: Sendable {
        let use: @Sendable () async -> String
        let works: @Sendable () async -> Bool
    }

    private func subject(_ store: Store, _ place: Place, _ host: LoopbackServer) throws -> Subject {
        let client = place.client
        switch store {
        case .limitLocal: return limit(.local, client, host)
        case .limitOpen: return limit(.open, client, host)
        case .limitClosed: return limit(.closed, client, host)
        case .tokenLocal: return token(.refreshLocally, client)
        case .tokenStrict: return token(.fail, client)
        case .cache:
            let storage = RedisCacheStorage(client)
            let manager = makeManager { $0.cache = .redis(storage) }
            return Subject(use: { await get(host, manager) }) {
                let key = CacheKey("works")
                do {
                    try storage.store(CacheEntry(body: Data()), for: key)
                    return try storage.entry(for: key) != nil
                } catch { return false }
            }
        case .cookies:
            let cookies = CookieStore.redis(client)
            // In memory, also if the server is late.
            try? cookies.set(Cookie(name: "local", value: "1", domain: "127.0.0.1"))
            let manager = makeManager { $0.cookies = cookies }
            return Subject(use: { await get(host, manager, "/cookies") }) {
                (try? cookies.set(Cookie(name: UUID().uuidString, value: "1", domain: "example.org"))) != nil
            }
        case .hosts:
            let hosts = HSTSStore.redis(client)
            let manager = makeManager { $0.hsts = hosts }
            return Subject(use: { await get(host, manager) }) {
                (try? hosts.set(
                    HSTSHost(host: "\(UUID()).example.org", includesSubdomains: true, expirationDate: Date(timeIntervalSinceNow: 60))))
                    != nil
            }
        case .breaker:
            var breaker = CircuitBreaker(name: "breaker", minimumCalls: 1_000)
            breaker.shared = RedisPolicyState(client)
            let manager = makeManager { [breaker] in $0.use(Resilience(breaker: breaker)) }
            return Subject(use: { await get(host, manager) }) {
                (try? await client.run(["SET", "works", "1"])) != nil
            }
        }
    }

    private func limit(_ failure: RateLimiter.StoreFailure, _ client: RedisClient, _ host: LoopbackServer) -> Subject {
        let (store, rate) = (RedisRateLimitStore(client), RateLimit(1_000_000, burst: 1_000))
        var limiter = RateLimiter(rate, name: "faults", store: store)
        limiter.storeFailure = failure
        let manager = makeManager { [limiter] in $0.use(Resilience(rateLimiter: limiter)) }
        return Subject(use: { await get(host, manager) }) { (try? await store.acquire(1, of: "works", limit: rate)) != nil }
    }

    private func token(_ mode: FleetAuthenticator<TestAuthenticator>.Unavailability, _ client: RedisClient) -> Subject {
        let manager = makeManager()
        return Subject {
            let shared = FleetAuthenticator(TestAuthenticator(), client: client, name: "faults", whenUnavailable: mode)
            do {
                return "\(try await shared.credential(replacing: nil, for: manager).number)"
            } catch { return error is RedisError ? "RedisError" : "\(error)" }
        } works: {
            let shared = FleetAuthenticator(TestAuthenticator(), client: client, name: UUID().uuidString, whenUnavailable: .fail)
            return (try? await shared.credential(replacing: nil, for: manager)) != nil
        }
    }

    @Test(
        "without its server each store does what it is set to do, in time, and works again afterwards", arguments: Fault.allCases,
        Store.allCases)
    func fault(_ fault: Fault, _ store: Store) async throws {
        let host = try LoopbackServer { request, _ in request.path == "/cookies" ? .ok(request.header("Cookie") ?? "none") : .ok("text") }
        var times: [Duration] = []
        for _ in 0..<3 {
            let place = try await Place()
            #expect(await place.client.becomesReady())
            let subject = try subject(store, place, host)
            #expect(await becomesTrue { await subject.works() })
            try await place.begin(fault)
            let start = ContinuousClock.now
            #expect(await subject.use() == store.expected)
            times.append(start.duration(to: .now))
            // No second timeout.
            for _ in 0..<3 { #expect(await subject.use() == store.expected) }
            #expect(await !subject.works())
            try await place.end(fault)
            #expect(await becomesTrue { await subject.works() })
        }
        let fastest = try #require(times.min())
        print("fault: \(fault), \(store): \(times.sorted().map { $0.formatted(.units(allowed: [.milliseconds])) })")
        #expect(fastest < Self.setting + Self.slack)
    }
}

/// Returns the text that the host responds with, or how the request was refused.
private func get(_ host: LoopbackServer, _ manager: SessionManager, _ path: String = "/") async -> String {
    do {
        return try await manager.request(host.url(path)).validate().serializingString().value
    } catch CurlewError.transferFailed(let failure) where failure.kind == .rateLimited {
        return "refused"
    } catch { return "\(error)" }
}
#endif
