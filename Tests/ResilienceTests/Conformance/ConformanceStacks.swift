// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTesting
import CurlewTransport

@testable import CurlewCore
@testable import CurlewResilience

/// The transports, and those in front of one another as a session has them.
enum ConformanceStacks {
    /// Those to the network, and those from memory.
    private static let transports: [ConformanceStack] = [
        overServer("curl") { _ in },
        overServer("curl, three loops") { configuration in
            configuration.connections.loops = 3
            configuration.connections.maximumConnectionsPerHost = 2
        },
        sharing("curl, shared") { _ in },
        overMock("mock") { _ in },
        ConformanceStack("script, in place") {
            let transport = ScriptedTransport(isSynchronous: true, keepsExchanges: false) { request in
                let path = URL(string: request.url)?.path ?? ""
                return ExchangeKind.parse(path).map { $0.kind.steps(seed: $0.seed) } ?? [.complete()]
            }
            return BuiltStack(transport) { "http://script" + $0.path(seed: $1) }
        },
        ConformanceStack("recording") {
            try session({ _ in }, on: ExchangeKind.makeServer()) { _ in RecordingTransport(Cassette([])) }
        }.with { $0.opensStreams = true },
        ConformanceStack("replay") {
            let transport = try ReplayTransport(Cassette(storedExchanges), matching: .lenient)
            return BuiltStack(transport) { "http://replay" + $0.path(seed: $1) }
        }.with { stack in
            stack.kinds = ExchangeKind.ending
            stack.seeds = replayedSeeds
        },
        ConformanceStack("replay that records") {
            try session({ _ in }, on: ExchangeKind.makeServer()) { _ in
                try ReplayTransport(Cassette([]), mode: .new, matching: .lenient, base: CurlTransport())
            }
        }.with { stack in
            stack.seeds = replayedSeeds
            stack.opensStreams = true
        },
    ]

    /// Each decorator by itself.
    private static let decorators: [ConformanceStack] =
        caches + [
            overServer("coalescing") { configuration in
                var coalescing = Coalescing()
                coalescing.bufferSize = 16 << 10
                configuration.use(Resilience(coalescing: coalescing))
            }.with(meets),
            overServer("breaker, rate, limiters") { $0.use(strict) }.with { $0.mayRefuse = true },
            overServer("hedging") { $0.use(Resilience(hedging: hedging)) }.with { $0.maySendTwice = true },
            overServer("hedging, three loops") { configuration in
                configuration.connections.loops = 3
                configuration.use(Resilience(hedging: hedging))
            }.with { $0.maySendTwice = true },
            overServer("hedging, limiter") {
                $0.use(Resilience(concurrency: ConcurrencyLimiter(.fixed(3), group: .session), hedging: hedging))
            }.with { $0.maySendTwice = true },
            overServer("instruments") { $0.instruments = [CountingInstrument()] },
            overServer("protocol classes") { $0.protocolClasses = [UnwillingProtocol.self, ConformanceProtocol.self] },
        ]

    /// The stacks in which a response may be served that was stored.
    static let caches: [ConformanceStack] = [
        overServer("cache in memory") { $0.cache = ResponseCache(storage: MemoryCacheStorage()) }.with(meets),
        overServer("cache that coalesces misses") {
            $0.cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        }.with(meets),
        overServer("cache with a queue") {
            $0.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil)
        }.with(meets),
    ]

    /// Several decorators.
    private static let mixed: [ConformanceStack] = [
        overServer("all", everything).with(isMixed),
        overMock("all over mock", everything).with(isMixed),
        ConformanceStack("all over recording") {
            try session(everything, on: ExchangeKind.makeServer()) {
                RecordingTransport(Cassette([]), base: CurlTransport(configuration: $0.connections))
            }
        }.with(isMixed).with { $0.opensStreams = true },
    ]

    static let all = transports + decorators + mixed
    static let withStreams = all.filter(\.opensStreams)

    // MARK: Settings

    private static let hedging = Hedging(after: .fixed(.milliseconds(2)), extra: 1)

    /// Policies for which most transfers wait, and which refuse some.
    private static let strict = Resilience(
        breaker: CircuitBreaker(
            failureRate: 0.9, minimumCalls: 4, window: .count(4), openDuration: .milliseconds(2), trialCalls: 1),
        rateLimiter: RateLimiter(RateLimit(1_000, burst: 2)),
        bulkhead: Bulkhead(concurrent: 3, queueLimit: 1_000) { _ in limiterGroup },
        concurrency: ConcurrencyLimiter(.fixed(2), group: .session))

    private static let limiterGroup = "all"
    private static let replayedSeeds = 3

    @Sendable private static func everything(_ configuration: inout SessionConfiguration) {
        configuration.cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        configuration.protocolClasses = [UnwillingProtocol.self, ConformanceProtocol.self]
        configuration.instruments = [CountingInstrument()]
        var policies = strict
        policies.coalescing = Coalescing()
        policies.staleIfError = .seconds(60)
        policies.hedging = hedging
        configuration.use(policies)
        configuration.use(Resilience(concurrency: ConcurrencyLimiter(.fixed(4), group: .session)))
    }

    /// Equal requests meet.
    @Sendable private static func meets(_ stack: inout ConformanceStack) { stack.seeds = 3 }

    @Sendable private static func isMixed(_ stack: inout ConformanceStack) {
        stack.seeds = 3
        stack.mayRefuse = true
        stack.maySendTwice = true
    }

    /// Not of `Data`, whose pointers the leak sanitizer does not recognize in what lives as long as the process.
    private static let storedBodies = ExchangeKind.ending.filter { $0.outcome == .response }.flatMap { kind in
        (1...UInt64(replayedSeeds)).map { (kind, seed: $0, bytes: [UInt8](GeneratedBody(seed: $0).data(count: kind.receivedLength))) }
    }

    private static var storedExchanges: [StoredExchange] {
        storedBodies.map { kind, seed, bytes in
            StoredExchange(
                method: kind.request(url: "", seed: seed).method.rawValue, url: "http://replay" + kind.path(seed: seed),
                outcome: .response(status: 200, headers: [:], body: Data(bytes), trailers: [:]))
        }
    }

    // MARK: Sessions

    /// A session on libcurl.
    private static func overServer(
        _ name: String, _ change: @escaping @Sendable (inout SessionConfiguration) -> Void
    ) -> ConformanceStack {
        ConformanceStack(name) {
            let server = try ExchangeKind.makeServer()
            return try session(change, on: server) { CurlTransport(configuration: $0.connections) }
        }.with { $0.opensStreams = true }
    }

    /// A session that shares libcurl's loops with another one, which has requests at the same time.
    private static func sharing(
        _ name: String, _ change: @escaping @Sendable (inout SessionConfiguration) -> Void
    ) -> ConformanceStack {
        ConformanceStack(name) {
            let other = try NeighbouringSession()
            let server = try ExchangeKind.makeServer()
            var built = try session(change, on: server) { configuration in
                let base = CurlTransport(configuration: configuration.connections)
                other.begin(on: SharedTransport(base, configuration: configuration.connections))
                return SharedTransport(base, configuration: configuration.connections)
            }
            let problems = built.problems
            built.problems = { await problems() + other.end() }
            return built
        }.with { $0.opensStreams = true }
    }

    private static func overMock(
        _ name: String, _ change: @escaping @Sendable (inout SessionConfiguration) -> Void
    ) -> ConformanceStack {
        ConformanceStack(name) { try session(change, on: nil) { _ in ExchangeKind.makeMock() } }
    }

    /// The transport of a session, with everything that its configuration puts in front of another one.
    private static func session(
        _ change: (inout SessionConfiguration) -> Void, on server: LoopbackServer?,
        over makeBase: (SessionConfiguration) throws -> any Transport
    ) throws -> BuiltStack {
        var configuration = SessionConfiguration()
        configuration.options.proxy = .none
        configuration.callbackQueue = callbackQueue
        change(&configuration)
        let base = try makeBase(configuration)
        let manager = SessionManager(configuration: configuration, transport: base)
        let transport = manager.session.transport
        let isStubbed = !configuration.protocolClasses.isEmpty
        var built = BuiltStack(transport) { kind, seed in
            let path = kind.path(seed: seed)
            if isStubbed, seed % 2 == 0, kind != .upload { return "http://stub" + path }
            guard let server else { return "http://mock" + path }
            return kind == .refused ? "http://127.0.0.1:1" + path : server.url(path)
        }
        built.parts = [("the base transport", base), ("the session", manager.session)]
        let instruments = configuration.instruments.compactMap { $0 as? CountingInstrument }
        let request = instruments.isEmpty ? nil : unstartedRequest(of: manager)
        if let request {
            built.prepare = { $0.source = ExchangeSource(request.driver, .first) }
        }
        built.problems = {
            request?.cancel()
            _ = await request?.serializingData().response
            var problems = policyProblems(of: transport)
            for instrument in instruments where instrument.begun != instrument.ended {
                problems.append("\(instrument.begun) exchanges have begun for the instrument, \(instrument.ended) have ended")
            }
            if let server, !(await server.waitForConnectionsToClose()) { problems.append("\(server.openConnections) open connections") }
            server?.stop()
            // The session ends with its manager.
            return withExtendedLifetime(manager) { problems }
        }
        return built
    }

    /// What instruments are given as the source of exchanges.
    private static func unstartedRequest(of manager: SessionManager) -> DataRequest {
        manager.startRequestsImmediately = false
        return manager.request("http://127.0.0.1:1/")
    }

    /// What the policies of a transport still hold.
    private static func policyProblems(of transport: any Transport) -> [String] {
        var problems: [String] = []
        if let policies = transport as? PolicyTransport {
            let waiting = policies.waiting.all
            if !waiting.isEmpty { problems.append("\(waiting.count) transfers wait for policies") }
            for table in [policies.runtime.places, policies.runtime.compartments] {
                let held = table?.slot(reported: limiterGroup).withLock { places in
                    places.limiter.inFlight + places.limiter.queued + places.waiting.count
                }
                if let held, held > 0 { problems.append("\(held) places of a limiter are held") }
            }
        }
        if let forwarding = transport as? any ForwardingTransport { problems += policyProblems(of: forwarding.base) }
        return problems
    }
}
