// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

/// A store with leases: what processes share, in one process. Time does not pass: leases end when they are released, or expire by a call.
private final class LeasingStorage: LeasingCacheStorage {
    private struct State {
        var held: [CacheKey: CacheLease] = [:]
        var last: UInt64 = 0
        var newest: [CacheKey: UInt64] = [:]
    }

    private let memory = MemoryCacheStorage()
    private let state = Lock(State())
    private let ended = DispatchSemaphore(value: 0)
    let waits = Lock(0)
    var lease: CacheLease? { state.withLock { $0.held.values.first } }

    var capacity: Int64 { memory.capacity }
    var size: Int64 { memory.size }
    func entry(for key: CacheKey) -> CacheEntry? { memory.entry(for: key) }
    func metadata(for key: CacheKey) -> Data? { memory.metadata(for: key) }
    func store(_ entry: CacheEntry, for key: CacheKey) throws { try memory.store(entry, for: key) }
    func removeEntry(for key: CacheKey) { memory.removeEntry(for: key) }
    func removeAll() { memory.removeAll() }
    func forEachEntry(_ visit: (CacheKey, Data, Int64) -> Bool) { memory.forEachEntry(visit) }

    func acquireLease(for key: CacheKey, duration: Duration) -> CacheLease? {
        state.withLock { state in
            guard state.held[key] == nil else { return nil }
            state.last += 1
            let lease = CacheLease(key: key, number: state.last)
            state.held[key] = lease
            state.newest[key] = lease.number
            return lease
        }
    }
    func releaseLease(_ lease: CacheLease) {
        state.withLock { state in
            if state.held[lease.key] == lease { state.held[lease.key] = nil }
        }
        ended.signal()
    }
    func waitForLeaseEnd(of key: CacheKey, timeout: Duration) -> Bool {
        waits.withLock { $0 += 1 }
        while state.withLock({ $0.held[key] != nil }) {
            guard ended.wait(timeout: .now() + timeout.seconds) == .success else { return false }
        }
        return true
    }
    func store(_ entry: CacheEntry, under lease: CacheLease) throws {
        guard state.withLock({ $0.newest[lease.key] == lease.number }) else { throw CacheStorageError.leaseEnded }
        try memory.store(entry, for: lease.key)
    }
    /// As after the duration of the lease.
    func expire() {
        state.withLock { $0.held = [:] }
        ended.signal()
    }
}

@Suite(.timeLimit(.minutes(1))) struct CoalescingTests {
    private let fresh: HTTPHeaders = ["Cache-Control": "max-age=60"]

    private func manager(_ cache: ResponseCache, _ mock: MockTransport) -> SessionManager {
        SessionManager(mock: mock) { $0.cache = cache }
    }

    private func load(_ manager: SessionManager, headers: HTTPHeaders = [:]) async -> DataResponse<String> {
        await manager.request("http://mock/a", headers: headers).serializingString().response
    }

    private func outcome(_ response: DataResponse<String>) -> (TransferMetrics.CacheOutcome?, CacheReason?) {
        (response.metrics.last?.cacheOutcome, response.metrics.last?.cacheReason)
    }

    /// A request that leads, and some that wait for it.
    private func leadAndWait(_ manager: SessionManager, _ mock: MockTransport, _ cache: ResponseCache, _ count: Int) async -> (
        leader: Task<DataResponse<String>, Never>, waiting: [Task<DataResponse<String>, Never>]
    ) {
        let leader = Task { await load(manager) }
        _ = await mock.started.first(1)
        let waiting = (0..<count).map { _ in Task { await load(manager) } }
        #expect(await eventually { cache.coalescer?.waitingCount == count })
        return (leader, waiting)
    }

    @Test func `Equal concurrent misses are one request, by default each is its own`() async throws {
        let mock = MockTransport()
        let cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        let manager = manager(cache, mock)
        let (leader, waiting) = await leadAndWait(manager, mock, cache, 5)
        await mock.started.first(1)[0].respond(200, fresh, "one")
        #expect(outcome(await leader.value) == (.miss, .notStored))
        for task in waiting {
            let response = await task.value
            #expect(response.value == "one" && outcome(response) == (.hit, .collapsed))
            #expect(response.metrics.last?.cacheStatus?.description == "Curlew; fwd=miss; collapsed; detail=\"collapsed\"")
        }
        #expect(mock.started.count == 1 && cache.statistics.collapsed == 5 && cache.statistics.hits == 5)

        let other = MockTransport()
        let plain = self.manager(ResponseCache(storage: MemoryCacheStorage()), other)
        let both = (0..<2).map { _ in Task { await load(plain) } }
        for exchange in await other.started.first(2) { exchange.respond(200, fresh, "x") }
        for task in both { #expect(await task.value.value == "x") }
    }

    @Test func `Sessions that share a cache share the request`() async throws {
        let mock = MockTransport()
        let cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        let (first, second) = (manager(cache, mock), manager(cache, MockTransport.answering(500)))
        let leader = Task { await load(first) }
        let exchange = await mock.started.first(1)[0]
        let other = Task { await load(second) }
        #expect(await eventually { cache.coalescer?.waitingCount == 1 })
        exchange.respond(200, fresh, "one")
        #expect(await leader.value.value == "one")
        #expect(await other.value.value == "one")
    }

    @Test func `A response that is not stored lets the others go before its body has arrived`() async throws {
        let mock = MockTransport()
        let cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        let (leader, waiting) = await leadAndWait(manager(cache, mock), mock, cache, 2)
        let first = await mock.started.first(1)[0]
        first.perform(.head(200, ["Cache-Control": "no-store"]), .bytes(Data("1".utf8)))
        let all = await mock.started.first(3)
        for exchange in all.dropFirst() { exchange.respond(200, ["Cache-Control": "no-store"], "other") }
        for task in waiting { #expect(outcome(await task.value) == (.miss, .notStored)) }
        first.perform(.complete())
        #expect(await leader.value.value == "1")
        #expect(mock.started.count == 3)
    }

    @Test func `A failure is the leader's own, each of the others is sent`() async throws {
        let mock = MockTransport()
        let cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        let (leader, waiting) = await leadAndWait(manager(cache, mock), mock, cache, 2)
        await mock.started.first(1)[0].perform(.complete(CurlewError.failure(.connectionLost)))
        for exchange in await mock.started.first(3).dropFirst() { exchange.respond(200, fresh, "own") }
        for task in waiting { #expect(await task.value.value == "own") }
        #expect(kindOf(await leader.value.error) == .connectionLost)
    }

    @Test func `A cancelled leader hands over to another one`() async throws {
        let mock = MockTransport()
        let cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        let manager = manager(cache, mock)
        let request = manager.request("http://mock/a")
        let leader = Task { await request.serializingString().response }
        _ = await mock.started.first(1)
        let waiting = (0..<3).map { _ in Task { await load(manager) } }
        #expect(await eventually { cache.coalescer?.waitingCount == 3 })
        request.cancel()
        #expect(await leader.value.error != nil)
        let second = await mock.started.first(2)[1]
        #expect(await eventually { cache.coalescer?.waitingCount == 2 })
        second.respond(200, fresh, "two")
        for task in waiting { #expect(await task.value.value == "two") }
        #expect(mock.started.count == 2)
    }

    @Test func `A suspended leader hands over, and completes later`() async throws {
        let mock = MockTransport()
        let cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        let manager = manager(cache, mock)
        let request = manager.request("http://mock/a")
        let leader = Task { await request.serializingString().response }
        let first = await mock.started.first(1)[0]
        let waiting = Task { await load(manager) }
        #expect(await eventually { cache.coalescer?.waitingCount == 1 })
        request.suspend()
        await mock.started.first(2)[1].respond(200, fresh, "two")
        #expect(await waiting.value.value == "two")
        request.resume()
        first.respond(200, fresh, "one")
        #expect(await leader.value.value == "one")
    }

    @Test func `A waiting request is cancelled by itself`() async throws {
        let mock = MockTransport()
        let cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        let manager = manager(cache, mock)
        let leader = Task { await load(manager) }
        let exchange = await mock.started.first(1)[0]
        let request = manager.request("http://mock/a")
        let waiting = Task { await request.serializingString().response }
        #expect(await eventually { cache.coalescer?.waitingCount == 1 })
        request.cancel()
        #expect(await waiting.value.error != nil)
        exchange.respond(200, fresh, "one")
        #expect(await leader.value.value == "one")
        #expect(mock.started.count == 1)
    }

    @Test func `A response that Vary makes another one's is not served`() async throws {
        let mock = MockTransport()
        let cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        let manager = manager(cache, mock)
        let first = Task { await load(manager, headers: ["X": "1"]) }
        _ = await mock.started.first(1)
        let second = Task { await load(manager, headers: ["X": "2"]) }
        let both = await mock.started.first(2)
        for exchange in both { exchange.respond(200, ["Cache-Control": "max-age=60", "Vary": "X"], exchange.request.headers["X"] ?? "") }
        #expect(await first.value.value == "1")
        #expect(await second.value.value == "2")
    }

    // MARK: Processes

    @Test func `Processes that share a store load once`() async throws {
        let storage = LeasingStorage()
        let mocks = [MockTransport(), MockTransport()]
        let managers = mocks.map { manager(ResponseCache(storage: storage, coalescesMisses: true), $0) }
        let leader = Task { await load(managers[0]) }
        let exchange = await mocks[0].started.first(1)[0]
        let other = Task { await load(managers[1]) }
        #expect(await eventually { storage.waits.withLock { $0 } > 0 })
        exchange.respond(200, fresh, "one")
        #expect(await leader.value.value == "one")
        let response = await other.value
        #expect(response.value == "one" && outcome(response) == (.hit, .collapsed))
        #expect(mocks[1].started.count == 0)
        #expect(await eventually { storage.lease == nil })
    }

    @Test func `A process whose lease has ended does not replace what the next one has stored`() async throws {
        let storage = LeasingStorage()
        let mocks = [MockTransport(), MockTransport()]
        let managers = mocks.map { manager(ResponseCache(storage: storage, coalescesMisses: true), $0) }
        let slow = Task { await load(managers[0]) }
        let first = await mocks[0].started.first(1)[0]
        let next = Task { await load(managers[1]) }
        #expect(await eventually { storage.waits.withLock { $0 } > 0 })
        storage.expire()
        await mocks[1].started.first(1)[0].respond(200, fresh, "new")
        #expect(await next.value.value == "new")
        first.respond(200, fresh, "old")
        #expect(await slow.value.value == "old")
        #expect(await load(managers[0]).value == "new")
    }

    @Test func `A response that is not stored releases its lease, and the other process loads its own`() async throws {
        let storage = LeasingStorage()
        let mocks = [MockTransport(), MockTransport()]
        let managers = mocks.map { manager(ResponseCache(storage: storage, coalescesMisses: true), $0) }
        let leader = Task { await load(managers[0]) }
        let exchange = await mocks[0].started.first(1)[0]
        let other = Task { await load(managers[1]) }
        #expect(await eventually { storage.waits.withLock { $0 } > 0 })
        exchange.respond(200, ["Cache-Control": "no-store"], "one")
        await mocks[1].started.first(1)[0].respond(200, ["Cache-Control": "no-store"], "two")
        #expect(await leader.value.value == "one")
        #expect(await other.value.value == "two")
        #expect(await eventually { storage.lease == nil })
    }
}
