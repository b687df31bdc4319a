// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewCaching

/// A body is compared with its checksum once, and again if its file was changed.
@Suite(.timeLimit(.minutes(1))) struct VerifiedFilesTests {
    let directory: TemporaryDirectory
    let storage: DiskCacheStorage
    let key = CacheKey("key")
    let body = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })

    init() throws {
        directory = try TemporaryDirectory()
        storage = DiskCacheStorage(directory: directory.file("cache"), capacity: 1_000_000, now: TestTime().next)
    }

    enum Way: CaseIterable { case whole, pieces }

    private func read(_ way: Way, of storage: DiskCacheStorage) throws -> Data? {
        switch way {
        case .whole: try storage.entry(for: key)?.body
        case .pieces: try storage.openBody(for: key)?.read(at: 0, count: body.count)
        }
    }

    private var comparisons: Int { storage.verified.comparisons.withLock { $0 } }

    @Test(arguments: Way.allCases) func `An unchanged body is compared once, however often it is used`(_ way: Way) throws {
        try storage.store(CacheEntry(body: body), for: key)
        for _ in 0..<5 { #expect(try read(way, of: storage) == body) }
        #expect(comparisons == 1)
        try storage.store(CacheEntry(body: body), for: key)
        for _ in 0..<5 { #expect(try read(way, of: storage) == body) }
        #expect(comparisons == 2)
    }

    @Test(arguments: Way.allCases) func `The use by another store makes it be compared again`(_ way: Way) throws {
        try storage.store(CacheEntry(body: body), for: key)
        #expect(try read(way, of: storage) == body)
        #expect(try read(way, of: DiskCacheStorage(directory: storage.directory)) == body)
        #expect(try read(way, of: storage) == body)
        #expect(comparisons == 2)
    }

    @Test(arguments: Way.allCases, [false, true])
    func `A body that is damaged after it was verified is a miss`(_ way: Way, _ keepsTime: Bool) throws {
        try storage.store(CacheEntry(body: body), for: key)
        for _ in 0..<2 { #expect(try read(way, of: storage) == body) }
        let path = storage.files.path(of: key)
        let file = try #require(PrivateFile.open(path, O_RDWR))
        let status = try #require(file.status)
        try file.write(Data([body[50_000] ^ 1]), at: Int64(status.st_size) - 50_000)
        // Another program may set the time of modification back, but not that of change.
        if keepsTime { file.setModified(at: status.modificationTime) }
        #expect(try read(way, of: storage) == nil)
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(try storage.size == 0)
    }

    @Test func `A file is told from another one that has its inode`() throws {
        let files = VerifiedFiles()
        try storage.store(CacheEntry(body: body), for: key)
        let status = try #require(storage.files.status(of: storage.files.path(of: key)))
        files.insert(status, hash: 1)
        #expect(files.contains(status, hash: 1) && !files.contains(status, hash: 2))
        var other = status
        other.st_size += 1
        #expect(!files.contains(other, hash: 1) && !VerifiedFiles.isSame(status, other))
        other = status
        other.st_ino += 1
        #expect(!files.contains(other, hash: 1) && !VerifiedFiles.isSame(status, other))
    }
}
