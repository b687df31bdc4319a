// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewCaching

/// Several processes or stores that share a directory.
@Suite(.timeLimit(.minutes(1))) struct SharedDirectoryTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private var url: URL { directory.file("cache") }

    private func sizeOfFiles() throws -> Int64 {
        let names = try FileManager.default.contentsOfDirectory(atPath: url.path + "/v2").filter { !$0.hasPrefix(".") }
        return try names.reduce(0) { sum, name in
            sum + Int64(try FileManager.default.attributesOfItem(atPath: url.path + "/v2/" + name)[.size] as? Int ?? 0)
        }
    }

    @Test func processesSharingADirectoryReadCompleteEntriesOnly() async throws {
        let processes = try ["one", "two", "three"].map { try Probe.start("cache", url.path, $0) }
        for process in processes { #expect(await process.finish().status == 0) }
        let storage = DiskCacheStorage(directory: url, capacity: 40_000)
        #expect(try storage.size <= 40_000)
        #expect(try storage.size == sizeOfFiles())
    }

    @Test func aKilledProcessLeavesWholeEntriesAndNoOthers() async throws {
        let process = try Probe.start("fill", url.path, "killed")
        let storage = DiskCacheStorage(directory: url, capacity: 40_000)
        // Killed in the middle of a write: once started, the process writes all the time.
        try await offThePool { () -> Result<Void, any Error> in
            Result {
                while try storage.metadata(for: CacheKey("number", "5")) == nil, try storage.size < 30_000 { usleep(1000) }
            }
        }.get()
        process.send(SIGKILL)
        _ = await process.finish()
        try storage.store(CacheEntry(body: Data(repeating: 1, count: 39_000)), for: CacheKey("large"))
        #expect(try storage.size == sizeOfFiles())
        #expect(try sizeOfFiles() <= 40_000)
        #expect(try FileManager.default.contentsOfDirectory(atPath: url.path + "/v2/.new").isEmpty)
    }

    @Test func abandonedTemporaryFilesAreRemoved() throws {
        let storage = DiskCacheStorage(directory: url, capacity: 2000)
        try storage.store(CacheEntry(body: Data()), for: CacheKey("a"))
        try Data(repeating: 0, count: 50).write(to: directory.file("cache/v2/.new/dead"))
        let living = try #require(PrivateFile.open(url.path + "/v2/.new/living", O_WRONLY | O_CREAT | O_EXCL))
        #expect(living.lock())
        try storage.store(CacheEntry(body: Data(count: 1950)), for: CacheKey("b"))
        let names = try FileManager.default.contentsOfDirectory(atPath: url.path + "/v2/.new")
        #expect(names == ["living"])
        withExtendedLifetime(living) {}
    }

    @Test func `A store on a used directory does not read it as a whole, even if it is full`() throws {
        let first = DiskCacheStorage(directory: url, capacity: 10_000)
        for number in 0..<5 { try first.store(CacheEntry(body: Data(count: 1000)), for: CacheKey("\(number)")) }
        let second = DiskCacheStorage(directory: url, capacity: 10_000)
        #expect(try second.size == sizeOfFiles())
        #expect(try second.entry(for: CacheKey("1")) != nil)
        try second.store(CacheEntry(body: Data(count: 1000)), for: CacheKey("5"))
        try second.removeEntry(for: CacheKey("2"))
        #expect(second.files.scans.withLock { $0 } == 0)
        try second.store(CacheEntry(body: Data(count: 8000)), for: CacheKey("6"))
        #expect(second.files.scans.withLock { $0 } == 0)
        #expect(try second.size == sizeOfFiles() && second.size <= 10_000)
        #expect(try second.entry(for: CacheKey("5")) != nil && second.entry(for: CacheKey("4")) == nil)
    }

    @Test func aLockHeldForeverDoesNotBlock() throws {
        let storage = DiskCacheStorage(directory: url, capacity: 5000, lockTimeout: .milliseconds(1))
        try storage.store(CacheEntry(body: Data(count: 10)), for: CacheKey("a"))
        let holder = try #require(PrivateFile.open(url.path + "/v2/.lock", O_RDWR))
        #expect(holder.lock())
        for number in 0..<20 { try storage.store(CacheEntry(body: Data(count: 1000)), for: CacheKey("\(number)")) }
        #expect(try storage.entry(for: CacheKey("19")) != nil)
        #expect(try sizeOfFiles() <= 5000)
        withExtendedLifetime(holder) {}
    }
}
