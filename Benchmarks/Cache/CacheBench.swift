// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewCaching
import CurlewTesting
import Foundation

/// Measures what a hit of the cache costs, beside what it replaces: the same bytes delivered by a stub, and the file that is read.
///
/// The processor time of the whole process, of each way the median of several rounds, in which the ways take turns: ratios of one run, as
/// the times of two runs can't be compared on a machine that others use as well. Not the least: in a virtual machine now and then much less
/// is counted than was used.
@main
enum CacheBench {
    /// The most that a hit may cost, as a multiple of what it replaces.
    private enum Limit {
        static let memory = 1.3
        static let disk = 2.0
    }

    private static let rounds = 21
    private static let url = "http://cache.bench/file"

    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.allSatisfy({ $0 == "--check" }) else {
            FileHandle.standardError.write(Data("usage: CacheBench [--check]\n".utf8))
            exit(2)
        }
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("curlew-cache-bench-\(getpid())")
        defer { try? FileManager.default.removeItem(at: directory) }
        print("| Body | stub | from memory | of the stub | file | from disk | of the file | hit on disk | of stub and file |")
        print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        var isWithinLimits = true
        for (size, count) in [(1 << 10, 600), (32 << 10, 400), (1 << 20, 40), (16 << 20, 4)] {
            let row = try await measure(size, count, directory.appendingPathComponent("\(size)"))
            print(row.line)
            isWithinLimits = isWithinLimits && row.memoryRatio <= Limit.memory && row.diskRatio <= Limit.disk && row.hitRatio <= Limit.disk
        }
        if arguments.contains("--check"), !isWithinLimits {
            print("more than \(Limit.memory) times the stub from memory, or \(Limit.disk) times the file from disk")
            try? FileManager.default.removeItem(at: directory)
            exit(1)
        }
    }

    /// The microseconds of one operation.
    private struct Row {
        let size: Int
        let times: [Way: Double]

        var memoryRatio: Double { time(.memory) / time(.stub) }
        var diskRatio: Double { time(.entry) / time(.file) }
        var hitRatio: Double { time(.disk) / (time(.stub) + time(.file)) }

        private func time(_ way: Way) -> Double { times[way] ?? .nan }

        var line: String {
            let name = size < 1 << 20 ? "\(size >> 10) KiB" : "\(size >> 20) MiB"
            let values = [
                time(.stub), time(.memory), memoryRatio, time(.file), time(.entry), diskRatio, time(.disk), hitRatio,
            ]
            let cells = values.enumerated().map { index, value in
                String(format: [2, 5, 7].contains(index) ? "%.2f" : "%.1f µs", value)
            }
            return "| \(name) | " + cells.joined(separator: " | ") + " |"
        }
    }

    private static func measure(_ size: Int, _ count: Int, _ directory: URL) async throws -> Row {
        let body = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
        var stub = manager(body, nil)
        let memory = manager(body, .memory(capacity: 1 << 30))
        let disk = manager(body, .disk(directory: directory.appendingPathComponent("http"), capacity: 1 << 30))
        let storage = DiskCacheStorage(directory: directory.appendingPathComponent("entries"), capacity: 1 << 30)
        let key = CacheKey("key")
        try storage.store(CacheEntry(metadata: Data(count: 300), body: body), for: key)
        let file = directory.appendingPathComponent("entries/v2/" + key.digest).path
        /// One operation.
        func run(_ way: Way) async throws {
            switch way {
            case .stub: try await get(stub, size)
            case .memory: try await get(memory, size)
            case .file: try check(readFile(file) > size)
            // As a hit reads it: whole if it is small, else in pieces.
            case .entry where size <= 64 << 10: try check(storage.entry(for: key)?.body.count == size)
            case .entry: try readPieces(storage, key, size)
            case .disk: try await get(disk, size)
            }
        }
        for way in Way.allCases { for _ in 0..<3 { try await run(way) } }
        var times: [Way: [Double]] = [:]
        for round in 0..<rounds {
            // A new one, as it keeps the requests that it has answered.
            stub = manager(body, nil)
            try await run(.stub)
            for way in round % 2 == 0 ? Way.allCases : Way.allCases.reversed() {
                let start = cpuTime()
                for _ in 0..<count { try await run(way) }
                times[way, default: []].append((cpuTime() - start) / Double(count) * 1e6)
            }
        }
        for manager in [memory, disk] { try check(await source(manager) == .hit) }
        return Row(size: size, times: times.mapValues { $0.sorted()[$0.count / 2] })
    }

    private enum Way: CaseIterable { case stub, memory, file, entry, disk }

    /// A session whose server is a stub, with a response that is fresh for an hour.
    private static func manager(_ body: Data, _ cache: ResponseCache?) -> SessionManager {
        let response = MockResponse.data(body).header("Cache-Control", "max-age=3600").header("ETag", "\"1\"")
        return SessionManager(mock: response) { $0.cache = cache }
    }

    private static func get(_ manager: SessionManager, _ size: Int) async throws {
        try check(try await manager.request(url).serializingData().value.count == size)
    }

    private static func source(_ manager: SessionManager) async -> TransferMetrics.CacheOutcome? {
        await manager.request(url).serializingData().response.metrics.last?.cacheOutcome
    }

    /// Reads a file into memory of its own, as little as that can be.
    private static func readFile(_ path: String) throws -> Int {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        try check(descriptor >= 0)
        defer { close(descriptor) }
        var status = stat()
        try check(fstat(descriptor, &status) == 0)
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(status.st_size), alignment: 16)
        defer { memory.deallocate() }
        return read(descriptor, memory.baseAddress, memory.count)
    }

    private static func readPieces(_ storage: DiskCacheStorage, _ key: CacheKey, _ size: Int) throws {
        guard let reader = try storage.openBody(for: key) else { throw Failure() }
        var count = 0
        while count < size { count += try reader.read(at: Int64(count), count: 64 << 10).count }
    }

    private static func cpuTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// What was measured is not what was to be measured.
    private struct Failure: Error {}

    private static func check(_ isTrue: Bool) throws {
        if !isTrue { throw Failure() }
    }
}
