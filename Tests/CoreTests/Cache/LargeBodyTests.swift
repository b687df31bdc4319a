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

/// A store that takes and gives bodies in pieces, and counts them.
private final class PiecewiseStorage: StreamingCacheStorage {
    final class Writer: CacheEntryWriter {
        private let storage: PiecewiseStorage
        private let key: CacheKey
        private let metadata: Data
        private let body = Lock(Data())

        fileprivate init(_ storage: PiecewiseStorage, _ key: CacheKey, _ metadata: Data) {
            self.storage = storage
            self.key = key
            self.metadata = metadata
            storage.writers.withLock { $0 += 1 }
        }

        deinit { storage.writers.withLock { $0 -= 1 } }

        func append(_ bytes: UnsafeRawBufferPointer) throws {
            if storage.isFull.withLock({ $0 }) { throw UserError() }
            body.withLock { $0.append(contentsOf: bytes) }
        }
        func commit() throws { try storage.store(CacheEntry(metadata: metadata, body: body.withLock { $0 }), for: key) }
    }

    final class Reader: CacheBodyReader {
        private let storage: PiecewiseStorage
        private let body: Data
        var length: Int64 { Int64(body.count) }

        fileprivate init(_ storage: PiecewiseStorage, _ body: Data) {
            self.storage = storage
            self.body = body
        }

        func read(at offset: Int64, count: Int) throws -> Data {
            if storage.isBroken.withLock({ $0 }) { throw UserError(number: 7) }
            storage.largestRead.withLock { $0 = max($0, count) }
            return body.dropFirst(Int(offset)).prefix(count)
        }
    }

    let memory = MemoryCacheStorage(capacity: 100 << 20)
    let writers = Lock(0)
    let isFull = Lock(false)
    let isBroken = Lock(false)
    let largestRead = Lock(0)
    /// Reads of whole bodies that are stored by themselves.
    let wholeReads = Lock(0)

    var capacity: Int64 { memory.capacity }
    var size: Int64 { memory.size }
    func entry(for key: CacheKey) -> CacheEntry? {
        let entry = memory.entry(for: key)
        if entry != nil, key.parts?.count == 3 { wholeReads.withLock { $0 += 1 } }
        return entry
    }
    func metadata(for key: CacheKey) -> Data? { memory.metadata(for: key) }
    func store(_ entry: CacheEntry, for key: CacheKey) throws { try memory.store(entry, for: key) }
    func removeEntry(for key: CacheKey) { memory.removeEntry(for: key) }
    func removeAll() { memory.removeAll() }
    func forEachEntry(_ visit: (CacheKey, Data, Int64) -> Bool) { memory.forEachEntry(visit) }
    func makeWriter(for key: CacheKey, metadata: Data) -> any CacheEntryWriter { Writer(self, key, metadata) }
    func openBody(for key: CacheKey) -> (any CacheBodyReader)? { memory.entry(for: key).map { Reader(self, $0.body) } }
}

@Suite(.timeLimit(.minutes(1))) struct LargeBodyTests {
    private static let size = 300_000
    private let body = String(repeating: "0123456789", count: size / 10)
    private let storage = PiecewiseStorage()

    private func response(isWhole: Bool = true) -> [MockTransport.Step] {
        let pieces = stride(from: 0, to: Self.size, by: 20_000).map { _ in MockTransport.Step.bytes(Data(body.utf8.prefix(20_000))) }
        let head = MockTransport.Step.head(200, ["Cache-Control": "max-age=60", "Content-Length": "\(Self.size)"])
        return isWhole ? [head] + pieces + [.complete()] : [head] + pieces.prefix(5) + [.stall]
    }

    private func manager(_ steps: [MockTransport.Step], cache: ResponseCache) -> (SessionManager, MockTransport) {
        let mock = MockTransport { _ in steps }
        return (SessionManager(mock: mock) { $0.cache = cache }, mock)
    }

    @Test func `A large body is stored and served in pieces, never as a whole`() async throws {
        let cache = ResponseCache(storage: storage)
        let (manager, mock) = manager(response(), cache: cache)
        for _ in 0..<2 {
            #expect(await manager.request("http://mock/a").serializingString().response.value == body)
        }
        let range = await manager.request("http://mock/a", headers: ["Range": "bytes=100000-199999"]).serializingString().response
        #expect(range.value == String(body.dropFirst(100_000).prefix(100_000)) && range.response?.statusCode == 206)
        #expect(mock.started.count == 1 && cache.statistics.hits == 2)
        #expect(storage.largestRead.withLock { $0 } <= 64 << 10 && storage.wholeReads.withLock { $0 } == 0)
        #expect(await eventually { storage.writers.withLock { $0 } == 0 })
    }

    @Test func `A download and a streamed request fill the cache while they pass`() async throws {
        let (manager, mock) = manager(response(), cache: ResponseCache(storage: storage))
        #expect(await manager.download("http://mock/a").serializingData().response.value == Data(body.utf8))
        #expect(await manager.download("http://mock/a").serializingData().response.value == Data(body.utf8))
        #expect(mock.started.count == 1)
        for _ in 0..<2 {
            var streamed = Data()
            for try await piece in manager.streamRequest("http://mock/b").bodyStream() { streamed += piece }
            #expect(streamed == Data(body.utf8))
        }
        #expect(mock.started.count == 2)
    }

    @Test func `A download fills a cache in memory, unless it is too large`() async throws {
        for (capacity, starts) in [(Int64(10 << 20), 1), (Int64(1 << 20), 2)] {
            let (manager, mock) = manager(response(), cache: .memory(capacity: capacity))
            for _ in 0..<2 { #expect(await manager.download("http://mock/a").serializingData().response.value == Data(body.utf8)) }
            #expect(mock.started.count == starts)
        }
    }

    @Test func `A reader that stops early leaves no entry`() async throws {
        let cache = ResponseCache(storage: storage)
        let (manager, mock) = manager(response(isWhole: false), cache: cache)
        for try await _ in manager.streamRequest("http://mock/a").bodyStream() { break }
        #expect(await eventually { mock.started.all.first?.isOver == true && storage.writers.withLock { $0 } == 0 })
        #expect(try cache.entries().isEmpty && storage.size == 0)
    }

    @Test func `A transfer that breaks off leaves no entry`() async throws {
        let cache = ResponseCache(storage: storage)
        let steps = response().dropLast() + [.complete(CurlewError.failure(.connectionLost))]
        let (manager, _) = manager(Array(steps), cache: cache)
        #expect(kindOf(await manager.request("http://mock/a").serializingString().response.error) == .connectionLost)
        #expect(try cache.entries().isEmpty && storage.size == 0 && storage.writers.withLock { $0 } == 0)
    }

    @Test func `A store that is full is no failure of the request`() async throws {
        let cache = ResponseCache(storage: storage)
        storage.isFull.withLock { $0 = true }
        let (manager, mock) = manager(response(), cache: cache)
        for _ in 0..<2 { #expect(await manager.request("http://mock/a").serializingString().response.value == body) }
        #expect(mock.started.count == 2 && cache.statistics.failures == 2 && cache.statistics.stores == 0)
        #expect(try cache.entries().isEmpty)
        #expect(await eventually { storage.writers.withLock { $0 } == 0 })
    }

    @Test func `A body that can't be read on is an error, not a shorter body`() async throws {
        let (manager, _) = manager(response(), cache: ResponseCache(storage: storage))
        #expect(await manager.request("http://mock/a").serializingString().response.value == body)
        storage.isBroken.withLock { $0 = true }
        let response = await manager.request("http://mock/a").serializingString().response
        #expect(response.value == nil && response.error != nil)
    }
}
