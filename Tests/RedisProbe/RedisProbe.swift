// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport

#if Redis
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewRedis
import CurlewResilience
import CurlewTransport

/// A process of a fleet, run by the tests of what its processes share. Begins its work with a line of input, after it has printed `ready=1`, and
/// prints what it has found as lines of `name=number`.
///
///     curlew-redis-probe limit SOCKET RATE SECONDS LEASE   takes permits of one limit, two at a time; prints how many were "granted"
///     curlew-redis-probe outlast PLACE RATE SECONDS        takes permits as `limit` does, also after errors; prints how many were "granted",
///                                                          how many calls "failed", and the longest "gap" between two grants, in nanoseconds
///     curlew-redis-probe send SOCKET URL RATE SECONDS      sends requests under one limit, 10 at a time; prints how many were "right"
///     curlew-redis-probe token SOCKET URL COUNT            sends requests with the fleet's token; prints how many were "right"
///     curlew-redis-probe cache SOCKET URL COUNT LEASE      sends equal requests at once with the fleet's cache; prints how many were "right"
///     curlew-redis-probe break SOCKET URL                  sends requests until the breaker refuses one; prints that as "refused"
///     curlew-redis-probe late SOCKET URL                   waits to be told of an open breaker, and sends a request; prints "refused" if it was
///     curlew-redis-probe changes SOCKET COUNT              prints the time of each change of the cache that it is told, in nanoseconds
///
/// PLACE is a socket, `sentinels:NAME:PORT,PORT…` or `cluster:PORT,PORT…` on loopback.
///
/// `limit` and `send` print too when they "began", and `limit` when it "ended", in nanoseconds of the monotonic clock, which all processes of a
/// machine have in common: processes do not begin at the same moment.
@main
enum RedisProbe {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 4 else { exit(64) }
        var configuration = RedisConfiguration(address(arguments[2]))
        // Patient: what is measured is what is shared, on a machine that may be busy.
        configuration.commandTimeout = arguments[1] == "outlast" ? .milliseconds(500) : .seconds(5)
        configuration.silenceLimit = arguments[1] == "outlast" ? .milliseconds(500) : .seconds(10)
        if arguments[1] != "outlast" { configuration.connectTimeout = .seconds(10) }
        let client = try RedisClient(configuration)
        if arguments[1] == "outlast" { while (try? await client.ping()) == nil { await Task.yield() } }
        try await client.ping()
        switch (arguments[1], arguments.count) {
        case ("limit", 6): try await limit(client, Int(arguments[3]) ?? 1, .seconds(Int(arguments[4]) ?? 1), Int(arguments[5]) ?? 1)
        case ("outlast", 5): await outlast(client, Int(arguments[3]) ?? 1, .seconds(Int(arguments[4]) ?? 1))
        case ("send", 6): await send(client, arguments[3], Int(arguments[4]) ?? 1, .seconds(Int(arguments[5]) ?? 1))
        case ("token", 5): try await token(client, arguments[3], Int(arguments[4]) ?? 1)
        case ("cache", 6): try await cache(client, arguments[3], Int(arguments[4]) ?? 1, .milliseconds(Int(arguments[5]) ?? 1))
        case ("break", 4): await untilRefused(client, arguments[3])
        case ("late", 4): await late(client, arguments[3])
        case ("changes", 4): try await changes(client, Int(arguments[3]) ?? 1)
        default: exit(64)
        }
    }

    private static func report(_ name: String, _ number: Int) {
        print("\(name)=\(number)")
        fflush(nil)
    }

    private static func begin() {
        report("ready", 1)
        _ = readLine()
    }

    private static func limit(_ client: RedisClient, _ rate: Int, _ time: Duration, _ lease: Int) async throws {
        let store = RedisRateLimitStore(client)
        let limit = RateLimit(rate, burst: max(rate / 50, 1))
        begin()
        let start = MonotonicTime.now()
        let end = start + time.nanoseconds
        // Two at a time, so that the processes ask early enough on a busy machine.
        let granted = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    var granted = 0
                    while true {
                        let grant = try await store.acquire(lease, of: "fleet", limit: limit)
                        guard MonotonicTime.now() < end else { return granted }
                        switch grant {
                        case .granted(let count, _): granted += count
                        case .wait(let time): try await Task.sleep(for: time)
                        }
                    }
                }
            }
            return try await group.reduce(0, +)
        }
        report("began", Int(start))
        report("ended", Int(end))
        report("granted", granted)
    }

    private static func address(_ text: String) -> RedisConfiguration.Address {
        let parts = text.split(separator: ":").map { String($0) }
        func servers(_ ports: String) -> [RedisConfiguration.Address] {
            ports.split(separator: ",").map { .tcp(host: "127.0.0.1", port: Int($0) ?? 0) }
        }
        switch (parts.first, parts.count) {
        case ("sentinels"?, 3): return .sentinels(servers(parts[2]), master: parts[1])
        case ("cluster"?, 2): return .cluster(servers(parts[1]))
        default: return .unix(path: text)
        }
    }

    private static func outlast(_ client: RedisClient, _ rate: Int, _ time: Duration) async {
        let store = RedisRateLimitStore(client)
        let limit = RateLimit(rate, burst: max(rate / 50, 1))
        begin()
        let start = MonotonicTime.now()
        let end = start + time.nanoseconds
        var (granted, failed, last, gap) = (0, 0, start, Nanoseconds(0))
        while MonotonicTime.now() < end {
            switch try? await store.acquire(1, of: "fleet", limit: limit) {
            case .granted(let count, _)?:
                granted += count
                let now = MonotonicTime.now()
                (gap, last) = (max(gap, now - last), now)
            case .wait(let time)?: try? await Task.sleep(for: time)
            case nil:
                failed += 1
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
        report("began", Int(start))
        report("ended", Int(MonotonicTime.now()))
        report("granted", granted)
        report("failed", failed)
        report("gap", Int(gap))
    }

    private static func send(_ client: RedisClient, _ url: String, _ rate: Int, _ time: Duration) async {
        let limiter = RateLimiter(RateLimit(rate, burst: max(rate / 50, 1)), name: "sent", store: RedisRateLimitStore(client))
        let manager = makeManager { $0.use(Resilience(rateLimiter: limiter)) }
        begin()
        let start = MonotonicTime.now()
        let end = start + time.nanoseconds
        let right = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<10 {
                group.addTask {
                    var right = 0
                    while MonotonicTime.now() < end {
                        if (try? await manager.request(url).validate().serializingData().value) != nil { right += 1 }
                    }
                    return right
                }
            }
            return await group.reduce(0, +)
        }
        report("began", Int(start))
        report("right", right)
    }

    private static func makeManager(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        change(&configuration)
        return SessionManager(configuration: configuration)
    }

    private static func token(_ client: RedisClient, _ url: String, _ count: Int) async throws {
        let shared = FleetAuthenticator(
            ProbeAuthenticator(url: url + "/token", tokens: makeManager()), client: client, name: "service", lease: .seconds(2))
        let manager = makeManager()
        manager.interceptor = AuthenticationInterceptor(authenticator: shared)
        begin()
        while true {
            let right = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<count {
                    group.addTask { (try? await manager.request(url + "/resource").validate().serializingData().value) != nil }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            report("right", right)
            guard readLine() != nil else { return }
        }
    }

    private static func cache(_ client: RedisClient, _ url: String, _ count: Int, _ lease: Duration) async throws {
        let cache = ResponseCache.redis(RedisCacheStorage(client), leaseDuration: lease)
        let manager = makeManager { $0.cache = cache }
        begin()
        let right = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<count {
                group.addTask { (try? await manager.request(url).validate().serializingString().value) == "Loaded once" }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        report("right", right)
    }

    private static func breaker(_ client: RedisClient) -> CircuitBreaker {
        var breaker = CircuitBreaker(name: "fleet", minimumCalls: 5, window: .count(5))
        breaker.shared = RedisPolicyState(client)
        return breaker
    }

    private static func isRefused(_ url: String, _ manager: SessionManager) async -> Bool {
        do {
            _ = try await manager.request(url).validate().serializingData().value
        } catch CurlewError.transferFailed(let failure) where failure.kind == .circuitOpen {
            return true
        } catch {}
        return false
    }

    private static func untilRefused(_ client: RedisClient, _ url: String) async {
        let manager = makeManager { $0.use(Resilience(breaker: breaker(client))) }
        begin()
        while await !isRefused(url, manager) {}
        // What was published is in the server when a later command has been answered: the second one, as a script that the server did not
        // know is sent again behind the first.
        for _ in 0..<2 { try? await client.ping() }
        report("refused", 1)
    }

    private static func late(_ client: RedisClient, _ url: String) async {
        let received = Log<Bool>()
        let observer = ClosurePolicyObserver { event in
            if case .received = event.action { received.append(true) }
        }
        let manager = makeManager { $0.use(Resilience(breaker: breaker(client), observers: [observer])) }
        begin()
        await received.wait(for: 1)
        report("refused", await isRefused(url, manager) ? 1 : 0)
    }

    private static func changes(_ client: RedisClient, _ count: Int) async throws {
        let storage = RedisCacheStorage(client)
        let times = Log<Int>()
        let began = Log<Bool>()
        let observation = storage.observeChanges { key in
            if key == nil { began.append(true) } else { times.append(Int(MonotonicTime.now())) }
        }
        await began.wait(for: 1)
        report("ready", 1)
        await times.wait(for: count)
        for (index, time) in times.elements.enumerated() { report("time\(index)", time) }
        withExtendedLifetime(observation) {}
    }
}

/// A token of the tests' server.
struct ProbeToken: AuthenticationCredential, Codable, Sendable {
    let text: String
    var requiresRefresh: Bool { false }
}

/// Gets tokens from the tests' server.
final class ProbeAuthenticator: AsyncAuthenticator {
    private let url: String
    private let tokens: SessionManager

    init(url: String, tokens: SessionManager) {
        self.url = url
        self.tokens = tokens
    }

    func apply(_ credential: ProbeToken, to urlRequest: inout URLRequest) {
        urlRequest.setValue("Bearer \(credential.text)", forHTTPHeaderField: "Authorization")
    }

    func credential(replacing expired: ProbeToken?, for manager: SessionManager) async throws -> ProbeToken {
        ProbeToken(text: try await tokens.request(url, method: .post).validate().serializingString().value)
    }

    func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool {
        response.statusCode == 401
    }

    func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: ProbeToken) -> Bool {
        urlRequest.value(forHTTPHeaderField: "Authorization") == "Bearer \(credential.text)"
    }
}
#else
@main
enum RedisProbe {
    static func main() { exit(64) }
}
#endif
