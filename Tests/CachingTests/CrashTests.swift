// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewCaching

/// What is left by processes that are killed, run out of space or get in each other's way: every later read is a correct hit or a miss.
@Suite(.timeLimit(.minutes(10))) struct CrashTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private var url: URL { directory.file("cache") }

    /// Reads all that the probes may have written, and returns the number of hits.
    private func hits(in storage: DiskCacheStorage) throws -> Int {
        var hits = 0
        for number in 0..<200 {
            let key = CacheKey("number", "\(number)")
            guard let entry = try storage.entry(for: key) else { continue }
            hits += 1
            let expected = number % 40
            #expect(entry.metadata.starts(with: Data("\(expected) ".utf8)), "entry \(number)")
            #expect(entry.body == Data(repeating: UInt8(expected), count: 100 + 37 * expected % 3000), "entry \(number)")
        }
        return hits
    }

    private func sizeOfFiles() throws -> Int64 {
        let names = try FileManager.default.contentsOfDirectory(atPath: url.path + "/v2").filter { $0.utf8.count == 64 }
        return try names.reduce(0) { sum, name in
            sum + Int64(try FileManager.default.attributesOfItem(atPath: url.path + "/v2/" + name)[.size] as? Int ?? 0)
        }
    }

    @Test func `A process that is killed at any moment leaves correct entries only`() async throws {
        let storage = DiskCacheStorage(directory: url, capacity: 40_000)
        var random = SystemRandomNumberGenerator()
        for kill in 0..<TestLength.value(10, long: 100) {
            // So that its first write is seen.
            try storage.removeAll()
            let process = try Probe.start("fill", url.path, "killed\(kill)")
            try await offThePool { () -> Result<Void, any Error> in
                Result { while try storage.size == 0 { usleep(200) } }
            }.get()
            // A random moment of its writing, not a wait for something.
            let delay = UInt32.random(in: 0..<5_000, using: &random)
            await offThePool { _ = usleep(delay) }
            process.send(SIGKILL)
            _ = await process.finish()
            _ = try hits(in: storage)
        }
        // Room for no other entry.
        try storage.store(CacheEntry(body: Data(count: 39_850)), for: CacheKey("large"))
        #expect(try storage.size == sizeOfFiles())
        #expect(try FileManager.default.contentsOfDirectory(atPath: url.path + "/v2/.new").isEmpty)
    }

    /// A limit on the size of files makes the write that crosses it fail, as on a full disk: each of head, key, metadata, body, and the
    /// recorded total size.
    @Test(arguments: [0, 1, 23, 24, 43, 44, 50, 60, 66, 70, 99, 150, 400, 600, 1_500])
    func `A disk that is full at any write is an error, and leaves correct entries only`(_ limit: Int) async throws {
        let storage = DiskCacheStorage(directory: url, capacity: 40_000)
        let old = CacheEntry(metadata: Data("0 old".utf8), body: Data(repeating: 0, count: 100))
        try storage.store(old, for: CacheKey("number", "0"))
        #expect(try await Probe.run("fill", url.path, "full", "\(limit)").status == 1)
        let hits = try hits(in: storage)
        #expect(limit > 130 || hits == 1)
        #expect(try storage.size == sizeOfFiles())
        #expect(try FileManager.default.contentsOfDirectory(atPath: url.path + "/v2/.new").isEmpty)
        try storage.store(old, for: CacheKey("number", "0"))
        #expect(try storage.entry(for: CacheKey("number", "0")) == old)
    }

    @Test func `Eight processes on one directory read correct entries only`() async throws {
        let rounds = TestLength.value(150, long: 35_000)
        let processes = try (0..<8).map { try Probe.start("cache", url.path, "p\($0)", "\(rounds)") }
        for process in processes { #expect(await process.finish().status == 0) }
        let storage = DiskCacheStorage(directory: url, capacity: 40_000)
        #expect(try storage.size == sizeOfFiles() && storage.size <= 40_000)
    }
}
