// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewCaching

/// Costs in stores of very different sizes, for `.ci/full` (`CURLEW_TEST_LONG=1`).
@Suite(.serialized, .timeLimit(.minutes(10)), .enabled(if: ProcessInfo.processInfo.environment["CURLEW_TEST_LONG"] == "1"))
struct CacheScaleTests {
    /// The seconds that a look-up of a random entry takes, and the removal of one to make room.
    private func costs(of storage: any CacheStorage, count: Int) throws -> (lookUp: Double, eviction: Double) {
        let entry = CacheEntry(body: Data(count: 10))
        for number in 0..<count { try storage.store(entry, for: CacheKey("\(number)")) }
        let lookUps = 5_000
        var lookUp = Double.infinity
        for _ in 0..<5 {
            let start = ContinuousClock.now
            for number in 0..<lookUps { #expect(try storage.entry(for: CacheKey("\(number &* 7919 % count)")) != nil) }
            lookUp = min(lookUp, start.duration(to: .now) / .seconds(1) / Double(lookUps))
        }
        // As many stores as turn over a fifth of the store: removals that come in groups are spread over them.
        let stores = count / 5
        let size = try storage.size
        let start = ContinuousClock.now
        for number in count..<(count + stores) { try storage.store(entry, for: CacheKey("\(number)")) }
        let eviction = start.duration(to: .now) / .seconds(1) / Double(stores)
        #expect(try storage.size <= size + size / 100)
        return (lookUp, eviction)
    }

    /// The size that entries of ``costs(of:count:)`` take, so that the store is full with them.
    private func capacity(_ count: Int, each overhead: Int) -> Int64 {
        (0..<count).reduce(Int64(0)) { $0 + Int64(overhead + CacheKey("\($1)").bytes.count + 10) }
    }

    @Test func `In memory a million entries cost no more each than ten thousand`() throws {
        let small = try costs(of: MemoryCacheStorage(capacity: capacity(10_000, each: 128)), count: 10_000)
        let large = try costs(of: MemoryCacheStorage(capacity: capacity(1_000_000, each: 128)), count: 1_000_000)
        // What is beyond the processor's caches is allowed for.
        #expect(large.lookUp < 4 * small.lookUp, "\(large) and \(small)")
        #expect(large.eviction < 4 * small.eviction, "\(large) and \(small)")
    }

    @Test func `On disk a hundred thousand files cost no more each than ten thousand`() throws {
        let directory = try TemporaryDirectory()
        func storage(_ count: Int) -> DiskCacheStorage {
            DiskCacheStorage(directory: directory.file("\(count)"), capacity: capacity(count, each: EntryHead.size))
        }
        let small = try costs(of: storage(10_000), count: 10_000)
        let large = try costs(of: storage(100_000), count: 100_000)
        #expect(large.lookUp < 3 * small.lookUp, "\(large) and \(small)")
        #expect(large.eviction < 3 * small.eviction, "\(large) and \(small)")
    }
}
