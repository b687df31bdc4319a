// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import Testing

/// A process that downloads a file is killed at random moments and restarted until the file is complete.
///
/// `CURLEW_TEST_LONG=1` makes it 500 MB and 20 kills, and a hundred rounds in place of five.
@Suite(.serialized, .timeLimit(.minutes(10))) struct KilledDownloadTests {
    private static let size: Int64 = TestLength.value(64 << 20, long: 500_000_000)
    private static let kills = TestLength.value(5, long: 20)
    private static let rounds = TestLength.value(5, long: 100)
    private static let roundSize: Int64 = 16 << 20
    private static let killsOfRound = 3
    private static let pieceSize: Int64 = 64 << 10
    /// The server's lead over the data on disk: a client that buffers more than that in memory stalls.
    private static let lead: Int64 = 512 << 10

    /// Counts the bytes a server has sent, and kills a process at a given count: immediately, regardless of the machine's load.
    private final class Counter: Sendable {
        private let sent = Lock<Int64>(0)
        private let mark = Lock<Int64>(.max)
        private let victim = Lock<ChildProcess?>(nil)

        var total: Int64 { sent.withLock { $0 } }

        /// Adds to the count; returns `false` if those were the last bytes to send.
        func add(_ count: Int64, _ connection: ServerConnection) -> Bool {
            let total = sent.withLock { sent in
                sent += count
                return sent
            }
            guard total >= mark.withLock({ $0 }) else { return true }
            mark.withLock { $0 = .max }
            while victim.withLock({ $0 == nil }), connection.pause(for: .milliseconds(1)) {}
            victim.withLock { $0 }?.send(SIGKILL)
            return false
        }

        /// Starts a process that is killed when `count` more bytes have been sent.
        func run(for count: Int64, _ start: () throws -> ChildProcess) async throws -> (status: Int32, output: [String]) {
            victim.withLock { $0 = nil }
            mark.withLock { $0 = total + count }
            let child = try start()
            victim.withLock { $0 = child }
            return await child.finish()
        }
    }

    /// Sends the file, or the requested range of it, no faster than it is written to disk: bytes held in the system's socket buffers would
    /// count as fetched.
    private func makeServer(_ counter: Counter, _ part: URL, size: Int64 = size) throws -> LoopbackServer {
        try LoopbackServer(recording: false) { request, connection in
            let response = ServerResponse.generated(length: size, for: request)
            guard case .generated(let length, let seed, let offset) = response.body else { return response }
            let lines = (response.headers + [ServerField("Content-Length", "\(length)")]).map { "\($0.name): \($0.value)\r\n" }.joined()
            try connection.send(raw: "HTTP/1.1 \(response.status) \r\n\(lines)\r\n")
            let body = GeneratedBody(seed: seed)
            var count: Int64 = 0
            while count < length {
                let piece = min(Self.pieceSize, length - count)
                try connection.send(raw: body.data(offset: offset + count, count: Int(piece)))
                count += piece
                guard counter.add(piece, connection) else { return nil }
                while offset + count < size, offset + count - Self.length(of: part) > Self.lead {
                    guard connection.pause(for: .milliseconds(1)) else { return nil }
                }
            }
            return nil
        }
    }

    private static func length(of file: URL) -> Int64 {
        (try? FileManager.default.attributesOfItem(atPath: file.path)[.size] as? NSNumber)?.int64Value ?? 0
    }

    @Test("a download killed at random moments completes, and little is fetched twice") func killedAtRandomMoments() async throws {
        let directory = try TemporaryDirectory()
        let (target, part) = (directory.file("file"), directory.file(".file.part"))
        let counter = Counter()
        let server = try makeServer(counter, part)
        var generator = SeededGenerator(state: 20)
        var onDisk: Int64 = 0
        var worst: Int64 = 0
        for _ in 0..<Self.kills {
            let before = counter.total
            let moment = Int64.random(in: 1..<(Self.size / Int64(Self.kills)), using: &generator)
            let (status, output) = try await counter.run(for: moment) { try Probe.start("resume", server.url("/file"), target.path) }
            #expect(status != 0)
            #expect(!FileManager.default.fileExists(atPath: target.path))
            // The run resumed from what had been written to disk, so that none of it was fetched again. A run that is killed early prints
            // nothing.
            #expect(output.isEmpty || output == ["offset=\(onDisk)"])
            #expect(server.waitForConnectionsToClose())
            let length = Self.length(of: part)
            worst = max(worst, counter.total - before - (length - onDisk))
            onDisk = length
        }
        let report = try await Probe.run("resume", server.url("/file"), target.path)
        #expect(report.status == 0)
        #expect(report["whole"] == 1)
        #expect(report["offset"] == Int(onDisk))
        let twice = counter.total - Self.size
        print("\(Self.size) bytes, \(Self.kills) kills: \(twice) bytes sent twice in all, \(worst) at most for one kill")
        #expect(worst <= 1 << 20)
        #expect(try contents(of: directory) == ["file"])
        #expect(try isComplete(target))
    }

    @Test("downloads killed three times in many rounds all complete, and little is fetched twice") func rounds() async throws {
        var generator = SeededGenerator(state: 3)
        var sent: Int64 = 0
        for round in 1...Self.rounds {
            let directory = try TemporaryDirectory()
            let (target, part) = (directory.file("file"), directory.file(".file.part"))
            let counter = Counter()
            let server = try makeServer(counter, part, size: Self.roundSize)
            for _ in 0..<Self.killsOfRound {
                let moment = Int64.random(in: 1..<(Self.roundSize / Int64(Self.killsOfRound)), using: &generator)
                let (status, _) = try await counter.run(for: moment) { try Probe.start("resume", server.url("/file"), target.path) }
                #expect(status != 0)
                #expect(!FileManager.default.fileExists(atPath: target.path))
            }
            let report = try await Probe.run("resume", server.url("/file"), target.path)
            #expect(report.status == 0, "round \(round)")
            #expect(try contents(of: directory) == ["file"])
            #expect(try isComplete(target, size: Self.roundSize), "round \(round)")
            sent += counter.total
        }
        let ratio = Double(sent) / Double(Int64(Self.rounds) * Self.roundSize)
        print("\(Self.rounds) rounds of \(Self.killsOfRound) kills: \(ratio) times the bytes")
        #expect(ratio <= 1.2)
    }

    @Test("a download that can't be resumed leaves no file when its process is killed") func withoutName() async throws {
        let directory = try TemporaryDirectory()
        let part = try PartFile(in: directory.url)
        part.discard()
        // Where the file system has no files without names, the partial file has a hidden one.
        guard !part.isNamed else { return }
        let sent = Gate()
        let server = try LoopbackServer(recording: false) { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(count: 500_000))
            sent.open()
            connection.waitUntilClosed()
            return nil
        }
        let child = try Probe.start("download", server.url("/"), directory.file("file").path)
        #expect(await sent.wait())
        child.send(SIGKILL)
        #expect(await child.finish().status != 0)
        #expect(try contents(of: directory) == [])
    }

    private func isComplete(_ file: URL, size: Int64 = size) throws -> Bool {
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }
        var offset: Int64 = 0
        while let piece = try handle.read(upToCount: 1 << 20), !piece.isEmpty {
            guard GeneratedBody().matches(piece, offset: offset) else { return false }
            offset += Int64(piece.count)
        }
        return offset == size
    }
}

/// Random numbers that are the same in each run.
private struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ (state &>> 31)
    }
}
