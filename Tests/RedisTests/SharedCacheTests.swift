// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewCache
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewRedis

@Suite(.enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(2))) struct SharedCacheTests {
    private func cacheable(_ text: String, tag: String? = nil) -> ServerResponse {
        var response = ServerResponse.ok(text)
        response.headers.append(ServerField("Cache-Control", "max-age=3600"))
        if let tag { response.headers.append(ServerField("Cache-Tag", tag)) }
        return response
    }

    @Test("entries come back as they were stored, and are removed") func entries() async throws {
        let server = try await RedisServer()
        let (store, other) = (RedisCacheStorage(try server.client()), RedisCacheStorage(try server.client()))
        let (key, second) = (CacheKey("http", "https://example.org/*?[a]"), CacheKey("b"))
        let entry = CacheEntry(metadata: Data([0, 1, 2]), body: Data((0..<70_000).map { UInt8(truncatingIfNeeded: $0) }))
        #expect(try store.entry(for: key) == nil)
        try store.store(entry, for: key)
        try store.store(CacheEntry(body: Data()), for: second)
        #expect(try other.entry(for: key) == entry)
        #expect(try other.metadata(for: key) == entry.metadata)
        #expect(try other.entry(for: second) == CacheEntry(body: Data()))
        var found: [CacheKey: Int64] = [:]
        try other.forEachEntry { key, _, length in
            found[key] = length
            return true
        }
        #expect(found == [key: 70_000, second: 0])
        #expect(try other.size > 70_000)
        try other.removeEntry(for: key)
        #expect(try store.entry(for: key) == nil)
        let apart = RedisCacheStorage(try server.client(), name: "apart")
        try apart.store(entry, for: key)
        try store.removeAll()
        #expect(try store.entry(for: second) == nil)
        #expect(try apart.entry(for: key) == entry)
        #expect(throws: CacheStorageError.self) {
            try RedisCacheStorage(server.client(), capacity: 1_000).store(entry, for: key)
        }
    }

    @Test("a lease that another process has given an end in the far future is waited for no longer than asked")
    func farLease() async throws {
        let server = try await RedisServer()
        let store = RedisCacheStorage(try server.client())
        let key = CacheKey("leased")
        _ = try #require(try store.acquireLease(for: key, duration: .seconds(60)))
        let place = store.place(of: key) + ":lease"
        _ = try await store.client.run(["HSET", .text(place), "until", "9000000000000000000"])
        #expect(try store.waitForLeaseEnd(of: key, timeout: .milliseconds(20)) == false)
    }

    @Test("removing all entries is one command for some hundreds of them") func removedTogether() async throws {
        let server = try await RedisServer()
        var configuration = server.configuration()
        configuration.maximumPending = 1
        let client = try RedisClient(configuration)
        #expect(await client.becomesReady())
        let store = RedisCacheStorage(client)
        for index in 0..<50 { try store.store(CacheEntry(body: Data()), for: CacheKey("\(index)")) }
        try store.removeAll()
        #expect(try store.entry(for: CacheKey("1")) == nil)
        #expect(try await server.client().run(["DBSIZE"]) == .integer(0))
    }

    @Test("a lease is granted once, and what its holder stores after the next one was granted is refused") func leases() async throws {
        let server = try await RedisServer()
        let (store, other) = (RedisCacheStorage(try server.client()), RedisCacheStorage(try server.client()))
        let key = CacheKey("leased")
        let entry = CacheEntry(body: Data("body".utf8))
        let first = try #require(try store.acquireLease(for: key, duration: .seconds(60)))
        #expect(try other.acquireLease(for: key, duration: .seconds(60)) == nil)
        #expect(try other.waitForLeaseEnd(of: key, timeout: .milliseconds(1)) == false)
        try store.store(entry, under: first)
        try store.releaseLease(first)
        #expect(try other.waitForLeaseEnd(of: key, timeout: .seconds(60)))
        let short = try #require(try other.acquireLease(for: key, duration: .milliseconds(20)))
        #expect(short.number > first.number)
        // Ends by itself.
        #expect(try store.waitForLeaseEnd(of: key, timeout: .seconds(60)))
        let third = try #require(try store.acquireLease(for: key, duration: .seconds(60)))
        #expect(third.number > short.number)
        #expect(throws: CacheStorageError.leaseEnded) { try other.store(entry, under: short) }
        try other.releaseLease(short)
        #expect(try other.acquireLease(for: key, duration: .seconds(60)) == nil)
        // A server that has forgotten everything still grants greater numbers.
        try await server.restart()
        #expect(await other.client.becomesReady())
        let fourth = try #require(try other.acquireLease(for: key, duration: .seconds(60)))
        #expect(fourth.number > third.number)
    }

    @Test("a thread that waits for a lease is woken when that ends") func woken() async throws {
        let server = try await RedisServer()
        let (store, other) = (RedisCacheStorage(try server.client()), RedisCacheStorage(try server.client()))
        let key = CacheKey("leased")
        #expect(await eventually { other.channel.isSubscribed })
        let lease = try #require(try store.acquireLease(for: key, duration: .seconds(60)))
        let ended = Log<Bool>()
        Thread.detachNewThread {
            ended.append((try? other.waitForLeaseEnd(of: key, timeout: .seconds(60))) ?? false)
        }
        #expect(await eventually { other.channel.waiterCount == 1 })
        try store.releaseLease(lease)
        await ended.wait(for: 1)
        #expect(ended.elements == [true])
        #expect(other.channel.waiterCount == 0)
    }

    @Test("a thousand requests of ten processes that miss together are one request") func together() async throws {
        let server = try await RedisServer()
        let host = try LoopbackServer { [cacheable] _, _ in
            var response = cacheable("Loaded once", nil)
            response.delay = .milliseconds(200)
            return response
        }
        let fleet = try await Fleet(10, "cache", on: server, host.url("/entry"), "100", "15000")
        fleet.begin()
        let right = await fleet.reports().map { $0["right"] ?? -1 }
        #expect(right == Array(repeating: 100, count: 10))
        #expect(host.requestCount == 1)
    }

    @Test("a process that is killed while it loads what others wait for is replaced when its lease ends") func killed() async throws {
        let server = try await RedisServer()
        let numbers = Monitor(0)
        let host = try LoopbackServer { [cacheable] _, connection in
            let number = numbers.update { number in
                number += 1
                return number
            }
            guard number == 1 else { return cacheable("Loaded once", nil) }
            connection.waitUntilClosed()
            return nil
        }
        let fleet = try await Fleet(5, "cache", on: server, host.url("/entry"), "100", "1500")
        fleet.processes[0].writeLine()
        #expect(await eventually { numbers.read { $0 } == 1 })
        for process in fleet.processes.dropFirst() { process.writeLine() }
        fleet.processes[0].send(SIGKILL)
        let right = await fleet.reports().dropFirst().map { $0["right"] ?? -1 }
        #expect(right == Array(repeating: 100, count: 4))
        // The one that was killed, and at most one of each process: they do not wait for a second lease.
        let reached = numbers.read { $0 }
        print("killed: \(reached) requests of 5 processes")
        #expect((2...5).contains(reached))
    }

    @Test(arguments: [false, true])
    func `A fleet's internal responses are not served to its sessions with a guard`(coalesces: Bool) async throws {
        let server = try await RedisServer()
        let host = try LoopbackServer { [cacheable] _, _ in cacheable("internal", nil) }
        func cache() throws -> ResponseCache {
            ResponseCache(storage: RedisCacheStorage(try server.client()), coalescesMisses: coalesces)
        }
        let (first, second, third) = (try cache(), try cache(), try cache())
        let url = host.url("/secret")
        #expect(try await makeManager { $0.cache = first }.request(url).serializingString().value == "internal")
        let guarded = makeManager {
            $0.cache = second
            $0.options.addresses = .publicOnly
        }
        let refused = await guarded.request(url).serializingString().response
        guard case .transferFailed(let failure)? = refused.error as? CurlewError else {
            Issue.record("served: \(refused)")
            return
        }
        #expect(failure.kind == .addressNotAllowed)
        // Another process of the same kind shares.
        #expect(try await makeManager { $0.cache = third }.request(url).serializingString().value == "internal")
        #expect(host.requestCount == 1)
        try third.remove(url)
        #expect(try first.entries().isEmpty)
    }

    @Test("invalidations reach ten processes within 50 milliseconds") func invalidations() async throws {
        let server = try await RedisServer()
        let rounds = 20
        let fleet = try await Fleet(10, "changes", on: server, "\(rounds)")
        let store = RedisCacheStorage(try server.client())
        var sent: [Int] = []
        for round in 0..<rounds {
            sent.append(Int(MonotonicTime.now()))
            try store.removeEntry(for: CacheKey("\(round)"))
        }
        let reports = await fleet.reports()
        var delays: [Int] = []
        for report in reports {
            for round in 0..<rounds { delays.append(try #require(report["time\(round)"]) - sent[round]) }
        }
        delays.sort()
        let (median, last) = (delays[delays.count / 2], delays[delays.count - 1])
        print("invalidation: median \(median / 1_000) µs, slowest \(last / 1_000) µs of \(delays.count)")
        #expect(median < 50_000_000)
        // But for what the machine takes of the processes' time.
        if TestLength.isLong { #expect(delays[delays.count * 19 / 20] < 50_000_000) }
    }

    @Test(
        "a response in the memory of one process leaves it by key, tag and unsafe method of another", arguments: ["key", "tag", "unsafe"])
    func invalidated(_ way: String) async throws {
        let server = try await RedisServer()
        let host = try LoopbackServer { [cacheable] request, _ in request.method == "GET" ? cacheable("text", "red") : .status(204) }
        let url = host.url("/entry")
        let (store, otherStore) = (RedisCacheStorage(try server.client()), RedisCacheStorage(try server.client()))
        let cache = ResponseCache.redis(store, tagHeader: "Cache-Tag")
        let other = ResponseCache.redis(otherStore, tagHeader: "Cache-Tag")
        #expect(await eventually { store.channel.isSubscribed && otherStore.channel.isSubscribed })
        let (manager, second) = (makeManager { $0.cache = cache }, makeManager { $0.cache = other })
        let front = try #require(cache.storage as? TieredCacheStorage).front
        let key = CacheKey("http", url)
        var delays: [Duration] = []
        for round in 0..<20 {
            for manager in [manager, second, manager] {
                #expect(try await manager.request(url).validate().serializingString().value == "text")
            }
            #expect(host.requests.count { $0.method == "GET" } == round + 1)
            // What the other process told before, as the tag after the key, may have come late.
            try await receiveAll(of: otherStore, by: [front])
            #expect(try await manager.request(url).validate().serializingString().value == "text")
            #expect(front.entry(for: key) != nil)
            let start = ContinuousClock.now
            switch way {
            case "key": try other.remove(url)
            case "tag": #expect(try other.remove(tag: "red") == 1)
            default: _ = try await second.request(url, method: .post).validate().serializingData().value
            }
            #expect(await eventually { front.entry(for: key) == nil })
            delays.append(start.duration(to: .now))
        }
        delays.sort()
        let (median, last) = (delays[10], delays[19])
        print("invalidation by \(way): median \(median), slowest \(last) of 20")
        // A message takes a millisecond or two; what is only noticed later, seconds.
        #expect(median < .milliseconds(500))
        if TestLength.isLong { #expect(delays[18] < .milliseconds(50)) }
    }

    /// Waits until all that a store has told others has reached the memory of these: messages come in their order.
    private func receiveAll(of store: RedisCacheStorage, by fronts: [MemoryCacheStorage]) async throws {
        // The first mark may leave with all else when a subscription begins.
        for mark in ["mark 0", "mark 1"].map({ CacheKey($0) }) {
            for front in fronts { try front.store(CacheEntry(metadata: Data(), body: Data()), for: mark) }
            try store.removeEntry(for: mark)
            #expect(await eventually { fronts.allSatisfy { $0.entry(for: mark) == nil } })
        }
    }

    @Test("removing by tag reaches copies in memory of responses that the server has evicted", arguments: [false, true])
    func evictedCopies(_ isSealed: Bool) async throws {
        let server = try await RedisServer()
        let host = try LoopbackServer { [cacheable] request, _ in cacheable("text", request.path == "/red" ? "red, first" : "blue") }
        let keys = isSealed ? try SealingKeys(SealingKeys.Key(id: "first", bytes: repeatElement(1, count: 32))) : nil
        func store() throws -> RedisCacheStorage { RedisCacheStorage(try server.client(), sealedWith: keys) }
        let (first, second, remover) = (try store(), try store(), try store())
        let caches = [first, second].map { ResponseCache.redis($0, tagHeader: "Cache-Tag") }
        #expect(await eventually { first.channel.isSubscribed && second.channel.isSubscribed })
        let fronts = try caches.map { try #require($0.storage as? TieredCacheStorage).front }
        let managers = caches.map { cache in makeManager { $0.cache = cache } }
        func load() async throws {
            for manager in managers {
                for path in ["/red", "/blue"] {
                    #expect(try await manager.request(host.url(path)).validate().serializingString().value == "text")
                }
            }
        }
        try await load()
        // That the first has stored them reaches the second, whose copies are dropped if they were read before that.
        try await receiveAll(of: first, by: [fronts[1]])
        try await receiveAll(of: second, by: [fronts[0]])
        try await load()
        let (red, blue) = (CacheKey("http", host.url("/red")), CacheKey("http", host.url("/blue")))
        #expect(fronts.allSatisfy { $0.entry(for: red) != nil && $0.entry(for: blue) != nil })
        // As if evicted: no process is told.
        for key in [red, blue] { _ = try await first.client.run(["UNLINK", .text(first.place(of: key))]) }
        #expect(fronts.allSatisfy { $0.entry(for: red) != nil })
        // One that has no copies, and then one that has some itself.
        #expect(try ResponseCache.redis(remover, tagHeader: "Cache-Tag").remove(tag: "first") == 0)
        #expect(await eventually { fronts.allSatisfy { $0.entry(for: red) == nil } })
        #expect(fronts.allSatisfy { $0.entry(for: blue) != nil })
        #expect(try caches[0].remove(tag: "blue") == 0)
        #expect(fronts[0].entry(for: blue) == nil)
        #expect(await eventually { fronts[1].entry(for: blue) == nil })
    }

    @Test("removing by tag reads the entries with the tag, and no others") func tagged() async throws {
        let server = try await RedisServer()
        let host = try LoopbackServer { [cacheable] request, _ in
            cacheable("text", request.path.hasPrefix("/red") ? "red, first" : request.path.hasPrefix("/blue") ? "blue" : nil)
        }
        let (client, second) = (try server.client(), try server.client())
        let cache = ResponseCache(storage: RedisCacheStorage(client), tagHeader: "Cache-Tag")
        let other = ResponseCache(storage: RedisCacheStorage(second), tagHeader: "Cache-Tag")
        let manager = makeManager { $0.cache = cache }
        for path in (0..<100).map({ "/plain\($0)" }) + (0..<10).map({ "/blue\($0)" }) + ["/red1", "/red2", "/red3"] {
            #expect(try await manager.request(host.url(path)).validate().serializingString().value == "text")
        }
        #expect(try cache.entries().count == 113)
        _ = try await client.run(["CONFIG", "RESETSTAT"])
        #expect(try other.remove(tag: "red") == 3)
        let statistics = try #require(try await client.run(["INFO", "commandstats"]).text)
        let counts = statistics.split(whereSeparator: \.isNewline).compactMap { line -> Int? in
            guard line.hasPrefix("cmdstat_"), !line.hasPrefix("cmdstat_info"), !line.hasPrefix("cmdstat_config") else { return nil }
            return line.split { !$0.isNumber }.first.flatMap { Int($0) }
        }
        // SSCAN, and for each of the three HMGET, HSTRLEN, HGET, and a script with UNLINK and PUBLISH, which counts as three, once sent again.
        #expect((10...24).contains(counts.reduce(0, +)), "\(statistics)")
        #expect(!statistics.contains("cmdstat_scan:"))
        #expect(try cache.entries().count == 110)
        #expect(try other.remove(tag: "red") == 0 && other.remove(tag: "first") == 0 && other.remove(tag: "none") == 0)
        #expect(try other.remove(tag: "blue") == 10)
        #expect(try cache.entries().count == 100)
    }

    @Test("an entry whose tag's set was evicted does not exist, so that removing by tag misses none") func evictedSet() async throws {
        let server = try await RedisServer()
        let key = try SealingKeys.Key(id: "first", bytes: repeatElement(1, count: 32))
        for keys in [nil, try SealingKeys(key)] {
            let store = RedisCacheStorage(try server.client(), name: keys == nil ? "plain" : "sealed", sealedWith: keys)
            let entry = CacheEntry(body: Data("body".utf8), tags: ["one", "two, \"three\""])
            try store.store(entry, for: CacheKey("tagged"))
            #expect(try store.entry(for: CacheKey("tagged")) == entry)
            let place = store.place(ofTag: "one")
            let left = try #require(try await store.client.run(["PTTL", .text(place)]).integer)
            #expect(left > 6 * 86_400_000)
            var found: [CacheKey] = []
            try store.forEachEntry(tagged: "one") { key, _, _ in
                found.append(key)
                return true
            }
            #expect(found == [CacheKey("tagged")])
            _ = try await store.client.run(["UNLINK", .text(place)])
            #expect(try store.entry(for: CacheKey("tagged")) == nil)
            // Stored again without tags.
            try store.store(CacheEntry(body: entry.body), for: CacheKey("tagged"))
            #expect(try store.entry(for: CacheKey("tagged")) == CacheEntry(body: entry.body))
            // An entry that is gone leaves the set.
            try store.removeEntry(for: CacheKey("tagged"))
            try store.forEachEntry(tagged: "two, \"three\"") { _, _, _ in false }
            #expect(try await store.client.run(["EXISTS", .text(store.place(ofTag: "two, \"three\""))]) == .integer(0))
        }
    }

    @Test("without the server requests go to their hosts, and the cache works again when it is back") func faults() async throws {
        let server = try await RedisServer()
        let host = try LoopbackServer { [cacheable] _, _ in cacheable("text", nil) }
        let store = RedisCacheStorage(try server.client())
        let manager = makeManager { $0.cache = .redis(store) }
        func loads() async -> Bool {
            (try? await manager.request(host.url("/entry")).validate().serializingString().value) == "text"
        }
        #expect(await eventually { store.channel.isSubscribed })
        #expect(await loads())
        #expect(await loads())
        #expect(host.requestCount == 1)
        await server.kill()
        #expect(await eventually { store.client.refusal != nil && !store.channel.isSubscribed })
        #expect(await loads())
        #expect(await loads())
        #expect(host.requestCount == 3)
        try await server.restart()
        #expect(await eventually { store.client.refusal == nil && store.channel.isSubscribed })
        #expect(await loads())
        #expect(await loads())
        #expect(host.requestCount == 4)
    }

    @Test("a full server stores nothing more, and requests go to their hosts") func full() async throws {
        let server = try await RedisServer()
        let host = try LoopbackServer { [cacheable] _, _ in cacheable("text", nil) }
        let client = try server.client()
        _ = try await client.run(["CONFIG", "SET", "maxmemory", "1"])
        let store = RedisCacheStorage(client)
        let cache = ResponseCache(storage: store)
        let manager = makeManager { $0.cache = cache }
        for _ in 0..<2 { #expect(try await manager.request(host.url("/entry")).validate().serializingString().value == "text") }
        #expect(host.requestCount == 2)
        #expect(throws: RedisError.self) { try store.store(CacheEntry(body: Data()), for: CacheKey("full")) }
        _ = try await client.run(["CONFIG", "SET", "maxmemory", "0"])
        for _ in 0..<2 { #expect(try await manager.request(host.url("/entry")).validate().serializingString().value == "text") }
        #expect(host.requestCount == 3)
    }

    @Test("a server that evicts by use stays below its memory limit") func evicted() async throws {
        let server = try await RedisServer("--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru")
        let store = RedisCacheStorage(try server.client())
        let body = Data(repeating: 7, count: 100_000)
        for number in 0..<200 { try store.store(CacheEntry(body: body), for: CacheKey("\(number)")) }
        #expect(try store.entry(for: CacheKey("199"))?.body == body)
        #expect(try store.size < 8 << 20)
    }

    @Test("sealed entries are read with the key only, where they were stored only") func sealed() async throws {
        let server = try await RedisServer()
        let client = try server.client()
        let first = try SealingKeys.Key(id: "first", bytes: repeatElement(1, count: 32))
        let second = try SealingKeys.Key(id: "second", bytes: repeatElement(2, count: 32))
        let old = RedisCacheStorage(client, sealedWith: try SealingKeys(first))
        let new = RedisCacheStorage(client, sealedWith: try SealingKeys(second, alsoOpening: first))
        let (key, other) = (CacheKey("secret"), CacheKey("other"))
        let entry = CacheEntry(metadata: Data("metadata".utf8), body: Data("confidential".utf8))
        try old.store(entry, for: key)
        #expect(try new.entry(for: key) == entry)
        #expect(try RedisCacheStorage(client).entry(for: key) == nil)
        #expect(try RedisCacheStorage(client, sealedWith: SealingKeys(second)).entry(for: key) == nil)
        let raw = try await client.run(["HGETALL", .text(old.place(of: key))])
        for part in raw.elements ?? [] {
            let bytes = try #require(part.data)
            #expect(bytes.firstRange(of: Data("confidential".utf8)) == nil && bytes.firstRange(of: Data("secret".utf8)) == nil)
        }
        // Moved to another place by someone with access to the server.
        _ = try await client.run(["COPY", .text(old.place(of: key)), .text(old.place(of: other))])
        #expect(try old.entry(for: other) == nil)
        let plain = RedisCacheStorage(client)
        try plain.store(entry, for: other)
        #expect(try old.entry(for: other) == nil)
        #expect(throws: RedisError.self) { try SealingKeys.Key(id: "", bytes: repeatElement(1, count: 32)) }
        #expect(throws: RedisError.self) { try SealingKeys.Key(id: "a", bytes: [1, 2]) }
    }

    @Test("any bytes in a sealed place are an error or a value", arguments: 0..<200)
    func untrusted(_ seed: Int) throws {
        var random = SplitMix(state: UInt64(seed))
        let bytes = Data((0..<Int.random(in: 0...80, using: &random)).map { _ in UInt8.random(in: 0...3, using: &random) })
        let key = try SealingKeys.Key(id: "a", bytes: repeatElement(1, count: 32))
        #expect(throws: RedisError.self) { try ValueFormat(keys: SealingKeys(key)).decode(bytes, of: "key") }
    }
}
#endif
