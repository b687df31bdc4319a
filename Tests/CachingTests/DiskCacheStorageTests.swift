// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewCaching

@Suite(.timeLimit(.minutes(1))) struct DiskCacheStorageTests {
    let directory: TemporaryDirectory
    let storage: DiskCacheStorage
    let key = CacheKey("key")
    let entry = CacheEntry(metadata: Data("metadata".utf8), body: Data("the body of the entry".utf8))

    init() throws {
        directory = try TemporaryDirectory()
        storage = DiskCacheStorage(directory: directory.file("cache"), capacity: 100_000)
    }

    private var path: String { storage.files.path(of: key) }
    private var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: directory.file("cache/v2").path))?.sorted() ?? [] }

    // MARK: Contents

    @Test func theDirectoryIsPrivateAndMarkedAsACache() throws {
        try storage.store(entry, for: key)
        let tag = try Data(contentsOf: directory.file("cache/CACHEDIR.TAG"))
        #expect(tag.starts(with: Data("Signature: 8a477f597d28d172789f06886806bc55".utf8)))
        #expect(names == [".lock", ".new", ".queue", key.digest])
        for name in ["cache", "cache/v2", "cache/v2/.new"] {
            let rights = try FileManager.default.attributesOfItem(atPath: directory.file(name).path)[.posixPermissions] as? Int
            #expect(rights == 0o700)
        }
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
    }

    @Test func anotherStoreFindsTheEntriesAndTheirSize() throws {
        try storage.store(entry, for: key)
        let other = DiskCacheStorage(directory: storage.directory)
        #expect(try other.entry(for: key) == entry)
        #expect(try other.size == storage.size)
        #expect(try other.size == Int64(44 + key.bytes.count + entry.metadata.count + entry.body.count))
    }

    @Test func aRemovedDirectoryIsRecreated() throws {
        try storage.store(entry, for: key)
        try FileManager.default.removeItem(at: storage.directory)
        #expect(try storage.entry(for: key) == nil)
        try storage.store(entry, for: key)
        #expect(try storage.entry(for: key) == entry)
    }

    // MARK: Damage

    @Test func aChangedByteAnywhereIsAMiss() throws {
        try storage.store(entry, for: key)
        let good = try Data(contentsOf: URL(fileURLWithPath: path))
        for index in good.indices {
            for change in [UInt8(1), 0x80, 0xFF] {
                var bad = good
                bad[index] ^= change
                try bad.write(to: URL(fileURLWithPath: path))
                #expect(try storage.entry(for: key) == nil, "byte \(index)")
                #expect(!FileManager.default.fileExists(atPath: path), "byte \(index)")
            }
        }
        #expect(try storage.size == 0)
    }

    @Test func aFileOfAnotherLengthIsAMiss() throws {
        try storage.store(entry, for: key)
        let good = try Data(contentsOf: URL(fileURLWithPath: path))
        for bad in good.indices.map({ good.prefix($0) }) + [good + [0], good + good] {
            try bad.write(to: URL(fileURLWithPath: path))
            #expect(try storage.entry(for: key) == nil, "\(bad.count) bytes")
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test func impossibleLengthsAreAMiss() throws {
        try storage.store(entry, for: key)
        let good = try Data(contentsOf: URL(fileURLWithPath: path))
        for range in [12..<16, 16..<20, 20..<28, 12..<28] {
            var bad = good
            bad.replaceSubrange(range, with: Data(repeating: 0xFF, count: range.count))
            try bad.write(to: URL(fileURLWithPath: path))
            #expect(try storage.entry(for: key) == nil)
        }
    }

    @Test func metadataIsCheckedToo() throws {
        try storage.store(entry, for: key)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        bytes[44 + key.bytes.count] ^= 1
        try bytes.write(to: URL(fileURLWithPath: path))
        #expect(try storage.metadata(for: key) == nil)
    }

    @Test func anEntryOfAnotherKeyIsAMiss() throws {
        let other = CacheKey("other")
        try storage.store(entry, for: other)
        try FileManager.default.moveItem(atPath: storage.files.path(of: other), toPath: path)
        #expect(try storage.entry(for: key) == nil)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    enum Foreign: CaseIterable {
        case directory, link, pipe, socketless
    }

    @Test(arguments: Foreign.allCases)
    func aNonRegularFileIsAMissAndReplaced(_ foreign: Foreign) throws {
        try storage.store(entry, for: key)
        try storage.removeEntry(for: key)
        let precious = try directory.write(Data("precious".utf8), to: "precious")
        switch foreign {
        case .directory:
            try FileManager.default.createDirectory(atPath: path + "/deep", withIntermediateDirectories: true)
        case .link: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: precious.path)
        case .pipe: #expect(mkfifo(path, 0o600) == 0)
        case .socketless: try Data().write(to: URL(fileURLWithPath: path))
        }
        #expect(try storage.metadata(for: key) == nil)
        try storage.store(entry, for: key)
        #expect(try storage.entry(for: key) == entry)
        #expect(try Data(contentsOf: precious) == Data("precious".utf8))
    }

    @Test func storingReplacesADirectory() throws {
        try FileManager.default.createDirectory(atPath: path + "/deep", withIntermediateDirectories: true)
        try storage.store(entry, for: key)
        #expect(try storage.entry(for: key) == entry)
    }

    @Test func aDamagedSizeIsRecounted() throws {
        try storage.store(entry, for: key)
        let size = try storage.size
        for bytes in [Data(), Data("nonsense".utf8), Data(repeating: 0xFF, count: 24)] {
            try bytes.write(to: directory.file("cache/v2/.lock"), options: [])
            #expect(try storage.size == size)
            try storage.store(entry, for: key)
            #expect(try storage.size == size)
        }
    }

    // MARK: Errors

    @Test func failureToCreateTheDirectoryIsAnError() throws {
        try directory.write(Data(), to: "file")
        let storage = DiskCacheStorage(directory: directory.file("file/cache"))
        #expect(throws: CocoaError.self) { try storage.store(entry, for: key) }
        #expect(try storage.entry(for: key) == nil)
        #expect(try storage.size == 0)
    }

    @Test func removingAllKeepsForeignFiles() throws {
        try storage.store(entry, for: key)
        try directory.write(Data(), to: "cache/mine")
        try directory.write(Data(), to: "cache/v2/notes")
        try storage.removeAll()
        #expect(names == [".lock", ".new", "notes"])
        #expect(FileManager.default.fileExists(atPath: directory.file("cache/mine").path))
    }

    @Test func aFullDiskIsAnErrorAndKeepsTheOldEntry() async throws {
        try storage.store(entry, for: CacheKey("number", "0"))
        let before = names
        #expect(try await Probe.run("fill", storage.directory.path, "full", "0").status == 1)
        #expect(names == before)
        #expect(try storage.entry(for: CacheKey("number", "0")) == entry)
    }

    // MARK: Location

    @Test(arguments: [
        (["XDG_CACHE_HOME": "/var/c", "HOME": "/home/u"], "/var/c"), (["XDG_CACHE_HOME": "c", "HOME": "/home/u"], "/home/u/.cache"),
        (["XDG_CACHE_HOME": "", "HOME": "/home/u"], "/home/u/.cache"), (["HOME": "/home/u"], "/home/u/.cache"),
    ])
    func cacheDirectoryFollowsXDG(_ environment: [String: String], _ path: String) {
        #expect(XDG.cacheDirectory(in: environment)?.path == path)
    }

    @Test func withoutHOMETheUserDatabaseIsRead() throws {
        let url = try #require(XDG.cacheDirectory(in: [:]))
        #expect(url.path.hasPrefix("/") && url.lastPathComponent == ".cache")
    }

    @Test func defaultDirectoryNamesProgramAndCache() {
        let url = DiskCacheStorage.defaultDirectory(named: "Responses", program: "prog")
        #expect(url.path.hasSuffix("/prog/Responses"))
        #expect(!DiskCacheStorage.defaultDirectory(named: "x").deletingLastPathComponent().lastPathComponent.isEmpty)
    }
}
