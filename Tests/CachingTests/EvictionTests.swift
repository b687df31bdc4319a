// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewCaching

/// What is evicted, and what that costs.
@Suite(.timeLimit(.minutes(10))) struct EvictionTests {
    let directory: TemporaryDirectory
    let clock = TestTime()

    init() throws {
        directory = try TemporaryDirectory()
    }

    private var url: URL { directory.file("cache") }
    private var queuePath: String { url.path + "/v2/.queue" }

    private func make(_ capacity: Int64 = 1 << 30) -> DiskCacheStorage {
        DiskCacheStorage(directory: url, capacity: capacity, now: clock.next)
    }

    /// Keys of one length, so that entries with bodies of one length have files of one.
    private static func key(_ number: Int) -> CacheKey { CacheKey("\(1_000_000 + number)") }

    private func fill(_ storage: DiskCacheStorage, _ numbers: Range<Int>, size: Int = 100) throws {
        for number in numbers { try storage.store(CacheEntry(body: Data(count: size)), for: Self.key(number)) }
    }

    private func left(_ storage: DiskCacheStorage, _ numbers: Range<Int>) throws -> [Int] {
        try numbers.filter { try storage.metadata(for: Self.key($0)) != nil }
    }

    private func sizeOfFiles() throws -> Int64 {
        let names = try FileManager.default.contentsOfDirectory(atPath: url.path + "/v2").filter { !$0.hasPrefix(".") }
        return try names.reduce(0) { sum, name in
            sum + Int64(try FileManager.default.attributesOfItem(atPath: url.path + "/v2/" + name)[.size] as? Int ?? 0)
        }
    }

    private func openQueue() throws -> EvictionQueue {
        try #require(PrivateFile.open(queuePath, O_RDWR).flatMap { EvictionQueue($0) })
    }

    /// Writes the state to the lock file.
    private func setState(_ total: Int64, _ count: Int64, _ change: CacheState.Change) throws {
        let file = try #require(PrivateFile.open(url.path + "/v2/.lock", O_RDWR))
        var state = CacheState(total: total, count: count)
        state.change = change
        CacheState.write(state, file)
    }

    private static func madeUp(_ number: Int) -> EvictionQueue.Record {
        .init(name: EntryName(words: [UInt64(number), 1, 2, 3]), used: Int64(number))
    }

    // MARK: The order

    @Test func `What was used has a second chance, and of many that were the least recently used is evicted`() throws {
        let first = make()
        try fill(first, 0..<600)
        for number in (0..<600).reversed() { _ = try first.entry(for: Self.key(number)) }
        let storage = make(try first.size)
        try fill(storage, 600..<601)
        // The first 256 were considered, of which 255 was used first.
        #expect(try left(storage, 0..<601) == Array(0..<255) + Array(256..<601))
        try fill(storage, 601..<602)
        #expect(try left(storage, 0..<602).count == 600)
        #expect(storage.files.scans.withLock { $0 } == 0)
    }

    @Test func `An entry that is replaced makes no room for itself`() throws {
        let storage = make(1_000)
        try fill(storage, 0..<3, size: 200)
        try fill(storage, 0..<1, size: 600)
        #expect(try storage.entry(for: Self.key(0))?.body.count == 600)
        #expect(try storage.size == sizeOfFiles() && storage.size <= 1_000)
    }

    // MARK: Damage

    @Test func `A damaged record is skipped`() throws {
        let first = make()
        try fill(first, 0..<4)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: queuePath))
        bytes[48 + 3] ^= 1
        try bytes.write(to: URL(fileURLWithPath: queuePath))
        let storage = make(try first.size)
        try fill(storage, 4..<5)
        #expect(try left(storage, 0..<5) == [0, 2, 3, 4])
        #expect(storage.files.scans.withLock { $0 } == 0)
        // Found by reading the directory, once all others are gone.
        try storage.store(CacheEntry(body: Data(count: Int(storage.capacity) - 100)), for: CacheKey("large"))
        #expect(try left(storage, 0..<5) == [] && storage.size == sizeOfFiles())
    }

    enum Loss: CaseIterable { case gone, empty, torn, garbage, directory, link }

    @Test(arguments: Loss.allCases) func `A queue that was lost is made of the directory once something is evicted`(_ loss: Loss) throws {
        let first = make()
        try fill(first, 0..<4)
        _ = try first.entry(for: Self.key(0))
        let file = URL(fileURLWithPath: queuePath)
        switch loss {
        case .gone: try FileManager.default.removeItem(at: file)
        case .empty: try Data().write(to: file)
        case .torn: try Data(contentsOf: file).prefix(40).write(to: file)
        case .garbage: try Data(repeating: 0xFF, count: 480).write(to: file)
        case .directory:
            try FileManager.default.removeItem(at: file)
            try FileManager.default.createDirectory(at: file.appendingPathComponent("deep"), withIntermediateDirectories: true)
        case .link:
            try FileManager.default.removeItem(at: file)
            try FileManager.default.createSymbolicLink(atPath: queuePath, withDestinationPath: "/dev/null")
        }
        let storage = make(try first.size)
        #expect(try storage.entry(for: Self.key(3)) != nil)
        try storage.removeEntry(for: Self.key(2))
        try fill(storage, 4..<5)
        #expect(storage.files.scans.withLock { $0 } == 0)
        try fill(storage, 5..<8)
        #expect(storage.files.scans.withLock { $0 } == 1)
        // 1 was used least recently, 2 removed; 3 was used after 0.
        #expect(try left(storage, 0..<8) == [4, 5, 6, 7])
        #expect(try storage.size == sizeOfFiles())
    }

    @Test func `The next process completes what a killed one has begun`() throws {
        let storage = make()
        try fill(storage, 0..<3)
        let size = try sizeOfFiles()
        let name = try #require(EntryName(Self.key(1).digest))
        let inode = try #require(storage.files.status(of: storage.files.path(of: name))?.st_ino)
        // Killed before the rename: in a place of its own, and in that of another file.
        try setState(size + 1_000, 4, .placing(EntryName(words: [1, 2, 3, 4]), inode: 77, growth: 1_000, isNew: true))
        #expect(try make().size == size)
        try setState(size - 50, 3, .placing(name, inode: 77, growth: -50, isNew: false))
        #expect(try make().size == size)
        // After it.
        try setState(size, 3, .placing(name, inode: UInt64(inode), growth: 5, isNew: true))
        #expect(try make().size == size)
        // Before and after the removal.
        try setState(size - size / 3, 2, .removing(name, inode: UInt64(inode)))
        for _ in 0..<2 {
            #expect(try make().size == sizeOfFiles())
            #expect(try left(storage, 0..<3) == [0, 2])
        }
    }

    @Test func `A file of another size than it was counted with makes the files be counted again`() throws {
        let storage = make()
        try fill(storage, 0..<3)
        let file = URL(fileURLWithPath: storage.files.path(of: Self.key(1)))
        try Data(contentsOf: file).prefix(60).write(to: file)
        #expect(try storage.entry(for: Self.key(1)) == nil)
        #expect(try storage.size == sizeOfFiles())
        #expect(storage.files.scans.withLock { $0 } == 2)
    }

    @Test func `What was stored without the lock is counted once the lock is there again`() throws {
        let storage = DiskCacheStorage(directory: url, capacity: 1 << 20, lockTimeout: .milliseconds(1), now: clock.next)
        try fill(storage, 0..<2)
        var holder = PrivateFile.open(url.path + "/v2/.lock", O_RDWR)
        #expect(holder?.lock() == true)
        try fill(storage, 2..<4)
        holder = nil
        #expect(try storage.size == sizeOfFiles())
        #expect(try left(storage, 0..<4) == [0, 1, 2, 3])
        #expect(try openQueue().count == 4)
    }

    // MARK: What it costs

    @Test func `Records of entries that are gone are dropped`() throws {
        let storage = make()
        try fill(storage, 0..<2)
        let queue = try openQueue()
        try queue.append((0..<CacheIndex.spareRecords + 100).map(Self.madeUp))
        try storage.removeEntry(for: Self.key(0))
        try fill(storage, 0..<1)
        try fill(storage, 2..<10)
        #expect(try openQueue().count == 10)
        #expect(try FileManager.default.attributesOfItem(atPath: queuePath)[.size] as? Int == 48 * 11)
        #expect(storage.files.scans.withLock { $0 } == 1)
    }

    @Test func `The file of the queue does not keep what was taken from it`() throws {
        let first = make()
        try fill(first, 0..<1)
        try openQueue().append((0..<5_000).map(Self.madeUp))
        try fill(first, 1..<5)
        let storage = make(try first.size)
        try fill(storage, 5..<7)
        #expect(try left(storage, 0..<7) == [2, 3, 4, 5, 6])
        #expect(try FileManager.default.attributesOfItem(atPath: queuePath)[.size] as? Int == 48 * 6)
        #expect(storage.files.scans.withLock { $0 } == 0)
    }

    @Test func `A million entries make a look-up or an eviction no slower than ten thousand`() throws {
        let (few, many) = (try costs(ofEntries: 10_000), try costs(ofEntries: 1_000_000))
        // The same system calls are made, so that the least of several rounds differs by what else the machine does.
        #expect(many.lookUp < 3 * few.lookUp, "\(many) beside \(few)")
        #expect(many.eviction < 3 * few.eviction, "\(many) beside \(few)")
    }

    private struct Costs {
        var lookUp = Double.infinity
        var eviction = Double.infinity
    }

    /// The processor time of this thread for look-ups, and for stores that evict, in a full store that has most of its entries in the index
    /// only.
    private func costs(ofEntries count: Int) throws -> Costs {
        let url = directory.file("\(count)")
        let first = DiskCacheStorage(directory: url, capacity: 1 << 40, now: clock.next)
        try fill(first, 0..<400)
        try addMadeUp(count, to: first)
        let size = try first.size
        let storage = DiskCacheStorage(directory: url, capacity: size, now: clock.next)
        let costs = try measure(storage, rounds: 3, stored: 100, from: 400)
        #expect(try left(storage, 0..<700) == Array(300..<700))
        #expect(try storage.size == size)
        #expect(storage.files.scans.withLock { $0 } == 0)
        return costs
    }

    private func measure(_ storage: DiskCacheStorage, rounds: Int, stored count: Int, from first: Int) throws -> Costs {
        var costs = Costs()
        for round in 0..<rounds {
            let start = Self.threadTime()
            for number in 0..<count where try storage.entry(for: Self.key(first - 1 - number % 50)) == nil { Issue.record("gone") }
            let middle = Self.threadTime()
            try fill(storage, (first + round * count)..<(first + (round + 1) * count))
            costs.lookUp = min(costs.lookUp, middle - start)
            costs.eviction = min(costs.eviction, Self.threadTime() - middle)
        }
        return costs
    }

    /// Adds entries to the index of a store that have no files.
    private func addMadeUp(_ count: Int, to storage: DiskCacheStorage) throws {
        let (block, path) = (1_000, storage.files.queuePath)
        let queue = try #require(PrivateFile.open(path, O_RDWR).flatMap { EvictionQueue($0) })
        try queue.append((0..<block).map(Self.madeUp))
        let file = try #require(PrivateFile.open(path, O_RDWR))
        let end = Int64(try #require(file.status).st_size)
        let bytes = try file.read(48 * block, at: end - Int64(48 * block))
        for number in 0..<(count / block - 1) { try file.write(bytes, at: end + Int64(number * bytes.count)) }
        let lock = try #require(PrivateFile.open(storage.directory.path + "/v2/.lock", O_RDWR))
        var state = try #require(CacheState.read(lock))
        state.add(size: Int64(count) * 1_000, count: Int64(count))
        CacheState.write(state, lock)
    }

    @Test(.enabled(if: TestLength.isLong))
    func `A hundred thousand files make a look-up or an eviction no slower than a thousand`() throws {
        var costs: [Costs] = []
        for count in [1_000, 100_000] {
            let url = directory.file("\(count)")
            let first = DiskCacheStorage(directory: url)
            try fill(first, 0..<count)
            let storage = DiskCacheStorage(directory: url, capacity: try first.size)
            costs.append(try measure(storage, rounds: 5, stored: 100, from: count))
            #expect(try storage.size <= storage.capacity)
            #expect(storage.files.scans.withLock { $0 } == 0)
            #expect(try left(storage, 0..<1_000).count < 1_000)
        }
        #expect(costs[1].lookUp < 3 * costs[0].lookUp, "\(costs)")
        #expect(costs[1].eviction < 3 * costs[0].eviction, "\(costs)")
    }

    private static func threadTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
