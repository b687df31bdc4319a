// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Testing

/// A store that counts reads, and reports changes when a test says so.
private final class ObservedStorage: ObservableCacheStorage {
    let memory = MemoryCacheStorage()
    let reads = Lock(0)
    let observers = Lock([@Sendable (CacheKey?) -> Void]())
    let ends = Lock(0)
    /// Whether the changes of any object are reported to all.
    let tellsChanges = Lock(false)
    /// Called while an entry is read, before it is returned.
    let whileReading = Lock<(@Sendable () -> Void)?>(nil)

    var capacity: Int64 { memory.capacity }
    var size: Int64 { memory.size }
    func entry(for key: CacheKey) -> CacheEntry? {
        reads.withLock { $0 += 1 }
        let entry = memory.entry(for: key)
        whileReading.withLock { $0 }?()
        return entry
    }
    func metadata(for key: CacheKey) -> Data? { memory.metadata(for: key) }
    func store(_ entry: CacheEntry, for key: CacheKey) throws { try memory.store(entry, for: key) }
    func removeEntry(for key: CacheKey) {
        memory.removeEntry(for: key)
        if tellsChanges.withLock({ $0 }) { report(key) }
    }
    func announceChanges() { report(nil) }
    func removeAll() { memory.removeAll() }
    func forEachEntry(_ visit: (CacheKey, Data, Int64) -> Bool) { memory.forEachEntry(visit) }
    func observeChanges(_ report: @escaping @Sendable (CacheKey?) -> Void) -> CacheObservation {
        observers.withLock { $0.append(report) }
        return CacheObservation { [ends] in ends.withLock { $0 += 1 } }
    }
    func report(_ key: CacheKey?) { for observer in observers.withLock({ $0 }) { observer(key) } }
}

@Suite struct TieredCacheStorageTests {
    private let key = CacheKey("k")
    private let old = CacheEntry(body: Data("old".utf8))
    private let new = CacheEntry(metadata: Data("m".utf8), body: Data("new".utf8))

    @Test func `An entry is read from the back once, then from the front`() throws {
        let back = ObservedStorage()
        let tiered = TieredCacheStorage(front: MemoryCacheStorage(), back: back)
        try back.store(old, for: key)
        #expect(try tiered.entry(for: key) == old)
        #expect(try tiered.entry(for: key) == old)
        #expect(back.reads.withLock { $0 } == 1)
        try tiered.store(new, for: key)
        #expect(try tiered.entry(for: key) == new)
        #expect(try tiered.metadata(for: key) == new.metadata)
        #expect(back.memory.entry(for: key) == new)
        #expect(back.reads.withLock { $0 } == 1)
        try tiered.removeEntry(for: key)
        #expect(try tiered.entry(for: key) == nil)
        #expect(back.memory.entry(for: key) == nil)
    }

    @Test func `What others change in the back leaves the front`() throws {
        let back = ObservedStorage()
        let tiered = TieredCacheStorage(front: MemoryCacheStorage(), back: back)
        try tiered.store(old, for: key)
        try back.store(new, for: key)
        #expect(try tiered.entry(for: key) == old)
        back.report(key)
        #expect(try tiered.entry(for: key) == new)
        try back.store(old, for: key)
        back.report(nil)
        #expect(try tiered.entry(for: key) == old)
    }

    @Test func `An entry that is changed while it is read is not copied to the front`() throws {
        let back = ObservedStorage()
        let tiered = TieredCacheStorage(front: MemoryCacheStorage(), back: back)
        try back.store(old, for: key)
        back.whileReading.withLock {
            $0 = { [key, new] in
                do { try back.store(new, for: key) } catch { Issue.record(error) }
                back.report(key)
            }
        }
        #expect(try tiered.entry(for: key) == old)
        back.whileReading.withLock { $0 = nil }
        #expect(try tiered.entry(for: key) == new)
    }

    @Test func `An entry that is too large for the front is in the back`() throws {
        let back = ObservedStorage()
        let tiered = TieredCacheStorage(front: MemoryCacheStorage(capacity: 10), back: back)
        try tiered.store(new, for: key)
        #expect(tiered.front.entry(for: key) == nil)
        #expect(try tiered.entry(for: key) == new)
    }

    @Test(arguments: ["url", "closure", "all"]) func `Copies of what the back has evicted are removed`(way: String) throws {
        let back = ObservedStorage()
        func cache() -> ResponseCache { ResponseCache(storage: TieredCacheStorage(front: MemoryCacheStorage(), back: back)) }
        let (owner, reader, other) = (cache(), cache(), cache())
        let url = "https://host.test/"
        for partition in ["", "p"] {
            let request = CacheRequest(method: .get, headers: [:], mode: .protocolRules, partition: partition)
            let head = try #require(StorageRules.head(of: received(["Cache-Control": "max-age=60"]), url: url, request: request))
            try owner.store.store(head, Data("x".utf8))
            for cache in [owner, reader] { #expect(try cache.store.find(url, in: partition) != nil) }
        }
        back.memory.removeAll()
        #expect(try owner.store.find(url, in: "p") != nil && reader.store.find(url) != nil)
        back.tellsChanges.withLock { $0 = true }
        switch way {
        case "url": try other.remove(url)
        case "closure": #expect(try owner.remove { $0.url == url } == 1)
        default: try other.removeAll()
        }
        for cache in [owner, reader, other] {
            for partition in ["", "p"] { #expect(try cache.store.find(url, in: partition) == nil) }
        }
    }

    @Test func `The observation ends with the store`() throws {
        let back = ObservedStorage()
        do {
            let tiered = TieredCacheStorage(front: MemoryCacheStorage(), back: back)
            try tiered.store(old, for: key)
            #expect(back.ends.withLock { $0 } == 0)
        }
        #expect(back.ends.withLock { $0 } == 1)
    }
}
