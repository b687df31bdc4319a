// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewCaching

/// The behaviour common to both stores.
@Suite(.timeLimit(.minutes(1))) struct CacheStorageTests {
    enum Kind: CaseIterable {
        case memory
        case disk
    }

    let directory: TemporaryDirectory
    /// Advances with every use, so that times differ at any resolution of the system's clock.
    let clock = TestTime()

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func make(_ kind: Kind, capacity: Int64 = 10_000) -> any CacheStorage {
        switch kind {
        case .memory: MemoryCacheStorage(capacity: capacity)
        case .disk: DiskCacheStorage(directory: directory.url, capacity: capacity, now: clock.next)
        }
    }

    private func entry(_ text: String, count: Int = 1000) -> CacheEntry {
        CacheEntry(metadata: Data(text.utf8), body: Data(repeating: 7, count: count))
    }

    @Test(arguments: Kind.allCases)
    func entriesAreFoundByTheirKeys(_ kind: Kind) throws {
        let storage = make(kind)
        #expect(try storage.entry(for: CacheKey("a")) == nil)
        #expect(try storage.size == 0)
        try storage.store(entry("one"), for: CacheKey("a"))
        try storage.store(entry("two", count: 0), for: CacheKey("b"))
        try storage.store(entry("three"), for: CacheKey("a"))
        #expect(try storage.entry(for: CacheKey("a")) == entry("three"))
        #expect(try storage.entry(for: CacheKey("b")) == entry("two", count: 0))
        #expect(try storage.metadata(for: CacheKey("b")) == Data("two".utf8))
        #expect(try storage.metadata(for: CacheKey("c")) == nil)
    }

    @Test("all entries are visited, until the closure has enough", arguments: Kind.allCases)
    func visiting(_ kind: Kind) throws {
        let storage = make(kind)
        for name in ["a", "b", "c"] { try storage.store(entry(name, count: 100), for: CacheKey("key", name)) }
        var found: [String: Int64] = [:]
        try storage.forEachEntry { key, metadata, length in
            #expect(key == CacheKey("key", String(decoding: metadata, as: UTF8.self)))
            found[String(decoding: metadata, as: UTF8.self)] = length
            return true
        }
        #expect(found == ["a": 100, "b": 100, "c": 100])
        var visits = 0
        try storage.forEachEntry { _, _, _ in
            visits += 1
            return false
        }
        #expect(visits == 1)
        #expect(storage.isInMemory == (kind == .memory))
    }

    @Test(arguments: Kind.allCases)
    func entriesCanBeRemoved(_ kind: Kind) throws {
        let storage = make(kind)
        for name in ["a", "b", "c"] { try storage.store(entry(name), for: CacheKey(name)) }
        try storage.removeEntry(for: CacheKey("b"))
        try storage.removeEntry(for: CacheKey("b"))
        #expect(try storage.entry(for: CacheKey("b")) == nil)
        #expect(try storage.entry(for: CacheKey("a")) != nil)
        try storage.removeAll()
        #expect(try storage.entry(for: CacheKey("a")) == nil)
        #expect(try storage.size == 0)
    }

    @Test(arguments: Kind.allCases)
    func leastRecentlyUsedIsEvictedFirst(_ kind: Kind) throws {
        let storage = make(kind, capacity: 5000)
        for name in ["a", "b", "c", "d"] { try storage.store(entry(name), for: CacheKey(name)) }
        _ = try storage.entry(for: CacheKey("a"))
        // Reading metadata is not a use.
        _ = try storage.metadata(for: CacheKey("b"))
        try storage.store(entry("e"), for: CacheKey("e"))
        let left = try ["a", "b", "c", "d", "e"].filter { try storage.metadata(for: CacheKey($0)) != nil }
        #expect(!left.contains("b"))
        #expect(left.contains("a") && left.contains("d") && left.contains("e"))
        #expect(try storage.size <= 5000)
    }

    @Test(arguments: Kind.allCases)
    func sizeFollowsTheEntries(_ kind: Kind) throws {
        let storage = make(kind, capacity: 1 << 20)
        try storage.store(entry("a"), for: CacheKey("a"))
        let one = try storage.size
        #expect((1000...1200).contains(one))
        try storage.store(entry("a"), for: CacheKey("a"))
        #expect(try storage.size == one)
        try storage.store(entry("b"), for: CacheKey("b"))
        #expect(try storage.size == 2 * one)
        try storage.removeEntry(for: CacheKey("a"))
        #expect(try storage.size == one)
    }

    @Test(arguments: Kind.allCases)
    func tooLargeAnEntryIsRejectedAndTheOldOneRemoved(_ kind: Kind) throws {
        let storage = make(kind, capacity: 2000)
        try storage.store(entry("a"), for: CacheKey("a"))
        try storage.store(entry("b", count: 10), for: CacheKey("b"))
        let error = #expect(throws: CacheStorageError.self) { try storage.store(entry("a", count: 3000), for: CacheKey("a")) }
        guard case .entryTooLarge(let size, capacity: 2000)? = error else { return #expect(Bool(false), "\(String(describing: error))") }
        #expect(size > 3000 && error?.errorDescription?.contains("\(size) bytes") == true)
        #expect(try storage.entry(for: CacheKey("a")) == nil)
        #expect(try storage.entry(for: CacheKey("b")) != nil)
        #expect(throws: CacheStorageError.self) { try make(kind, capacity: 0).store(entry("a", count: 0), for: CacheKey("a")) }
    }

    @Test(arguments: Kind.allCases)
    func storesAreThreadSafe(_ kind: Kind) async throws {
        let storage = make(kind, capacity: 20_000)
        let wrong = await withTaskGroup(of: Int.self) { group in
            for thread in 0..<8 {
                group.addTask { await offThePool { Self.churn(storage, thread) } }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
        #expect(try storage.size <= 20_000)
    }

    /// Returns the number of entries that differed from what was stored, and of errors.
    private static func churn(_ storage: any CacheStorage, _ thread: Int) -> Int {
        var wrong = 0
        for round in 0..<120 {
            let number = (round * 5 + thread) % 30
            let key = CacheKey("\(number)")
            let body = Data(repeating: UInt8(number), count: 100 * number)
            do {
                switch round % 5 {
                case 0, 1: try storage.store(CacheEntry(metadata: Data("\(number)".utf8), body: body), for: key)
                case 2, 3: if let entry = try storage.entry(for: key), entry.body != body { wrong += 1 }
                default: try storage.removeEntry(for: key)
                }
            } catch {
                wrong += 1
            }
        }
        return wrong
    }
}
