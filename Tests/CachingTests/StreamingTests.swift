// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewCaching

/// Bodies that are written and read in pieces.
@Suite(.timeLimit(.minutes(1))) struct StreamingTests {
    let directory: TemporaryDirectory
    let storage: DiskCacheStorage
    let key = CacheKey("key")
    let body = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })

    init() throws {
        directory = try TemporaryDirectory()
        storage = DiskCacheStorage(directory: directory.file("cache"), capacity: 1_000_000)
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.file("cache/v2").path).filter { !$0.hasPrefix(".") } + temporary()
    }

    private func temporary() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.file("cache/v2/.new").path)
    }

    private func write(_ data: Data, commits: Bool = true) throws {
        let writer = try storage.makeWriter(for: key, metadata: Data("m".utf8))
        for start in stride(from: 0, to: data.count, by: 7_001) {
            try data[start..<min(start + 7_001, data.count)].withUnsafeBytes { try writer.append($0) }
        }
        if commits { try writer.commit() }
    }

    @Test func `An entry that is written in pieces is the one that is stored whole`() throws {
        try write(body)
        #expect(try storage.entry(for: key) == CacheEntry(metadata: Data("m".utf8), body: body))
        let path = storage.files.path(of: key)
        let written = try Data(contentsOf: URL(fileURLWithPath: path))
        let size = try storage.size
        try storage.store(CacheEntry(metadata: Data("m".utf8), body: body), for: key)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == written)
        #expect(try storage.size == size && names() == [key.digest])
    }

    @Test func `A body whose first piece is large begins with a block of its file, so that a copy can share it`() throws {
        let writer = try storage.makeWriter(for: key, metadata: Data("m".utf8))
        try body.prefix(70_000).withUnsafeBytes { try writer.append($0) }
        try body.dropFirst(70_000).withUnsafeBytes { try writer.append($0) }
        try writer.commit()
        let reader = try #require(try storage.openBody(for: key) as? DiskBodyReader)
        #expect(reader.withFile { $1 } == 4096 && reader.length == 300_000)
        #expect(try storage.entry(for: key) == CacheEntry(metadata: Data("m".utf8), body: body))
        #expect(try storage.size == 4096 + 300_000)
        // Another length is not taken for one that is aligned.
        let url = URL(fileURLWithPath: storage.files.path(of: key))
        let good = try Data(contentsOf: url)
        for bad in [good.dropLast(), good + [0], good.prefix(44) + good.dropFirst(4096), good.dropFirst(4096)] {
            try bad.write(to: url)
            #expect(try storage.entry(for: key) == nil)
        }
    }

    @Test func `Without a commit nothing is stored, and no file is left`() throws {
        try write(body.prefix(10))
        try write(body, commits: false)
        #expect(try storage.entry(for: key)?.body == body.prefix(10))
        #expect(try names() == [key.digest])
    }

    @Test func `A body that is larger than the store is refused while it is written`() throws {
        let small = DiskCacheStorage(directory: directory.file("small"), capacity: 10_000)
        let writer = try small.makeWriter(for: key, metadata: Data())
        try body.prefix(9_000).withUnsafeBytes { try writer.append($0) }
        #expect(throws: CacheStorageError.self) { try body.prefix(2_000).withUnsafeBytes { try writer.append($0) } }
        #expect(throws: CacheStorageError.self) { try writer.commit() }
        #expect(try small.entry(for: key) == nil && small.size == 0)
    }

    @Test func `A body is read in pieces, also after its entry is replaced and removed`() throws {
        try storage.store(CacheEntry(metadata: Data("m".utf8), body: body), for: key)
        let reader = try #require(try storage.openBody(for: key))
        #expect(reader.length == 300_000)
        try storage.store(CacheEntry(body: Data(count: 400_000)), for: key)
        try storage.removeEntry(for: key)
        #expect(try reader.read(at: 0, count: 100_000) == body.prefix(100_000))
        #expect(try reader.read(at: 250_000, count: 100_000) == body.suffix(50_000))
        #expect(try reader.read(at: 300_000, count: 1).isEmpty)
        #expect(try storage.openBody(for: key) == nil)
    }

    @Test(arguments: [0, 150_000, 299_999]) func `A damaged body is not opened, and removed`(_ index: Int) throws {
        try storage.store(CacheEntry(body: body), for: key)
        let url = URL(fileURLWithPath: storage.files.path(of: key))
        var bytes = try Data(contentsOf: url)
        bytes[bytes.count - body.count + index] ^= 1
        try bytes.write(to: url)
        #expect(try storage.openBody(for: key) == nil)
        #expect(try names().isEmpty)
    }

    @Test func `The file of a dead writer is removed, that of a living one is not`() throws {
        let small = DiskCacheStorage(directory: directory.file("cache"), capacity: 2_000)
        let living = try small.makeWriter(for: CacheKey("living"), metadata: Data())
        try body.prefix(100).withUnsafeBytes { try living.append($0) }
        try Data(count: 50).write(to: directory.file("cache/v2/.new/dead"))
        for number in 0..<3 { try small.store(CacheEntry(body: Data(count: 900)), for: CacheKey("\(number)")) }
        #expect(try temporary().count == 1)
        try living.commit()
        #expect(try small.entry(for: CacheKey("living"))?.body == body.prefix(100))
    }
}
