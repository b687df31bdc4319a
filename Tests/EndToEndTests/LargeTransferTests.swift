// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

/// A file far larger than the permitted memory, downloaded and uploaded in a separate process.
@Suite(.serialized, .timeLimit(.minutes(10)), .needsNginx) struct LargeTransferTests {
    private static let memoryLimit = 48 << 20

    private let nginx: Servers.Nginx
    private let directory: TemporaryDirectory

    init() throws {
        nginx = try Servers.nginx()
        directory = try TemporaryDirectory()
    }

    private func download(from url: String, to file: URL) async throws {
        let start = ContinuousClock.now
        let range = Scale.largeFile < 1 << 30 ? "bytes=0-\(Scale.largeFile - 1)" : ""
        let report = try await Probe.run("download", url, file.path, environment: ["CURLEW_PROBE_RANGE": range])
        #expect(report.status == 0)
        try checkMemory("downloaded from \(url)", report, start)
    }

    private func checkMemory(_ what: String, _ report: Probe.Report, _ start: ContinuousClock.Instant) throws {
        let peak = try #require(report["peak"])
        print("\(Scale.largeFile >> 20) MiB \(what): \(start.duration(to: .now)), peak \(peak >> 10) KiB")
        if Scale.limitsMemory { #expect(peak < Self.memoryLimit) }
    }

    /// Returns the digest as printed by sha256sum.
    private func digest(_ command: String, _ argument: String) async throws -> String {
        let output = try await ChildProcess("sh", "-c", command, "sh", argument).finish().output
        return try String(#require(output.first).prefix(64))
    }

    private func checksum(of file: URL) throws -> UInt32 {
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }
        var checksum = CRC32()
        while let piece = try handle.read(upToCount: 1 << 20), !piece.isEmpty { checksum.update(piece) }
        return checksum.value
    }

    @Test("to a file over TLS and HTTP/2") func http2() async throws {
        let file = directory.file("big.bin")
        try await download(from: nginx.tls + "/big.bin", to: file)
        #expect(try file.resourceValues(forKeys: [.fileSizeKey]).fileSize.map { Int64($0) } == Scale.largeFile)
    }

    @Test("to a file and from the file") func roundTrip() async throws {
        let file = directory.file("big.bin")
        try await download(from: nginx.http + "/big.bin", to: file)
        #expect(try file.resourceValues(forKeys: [.fileSizeKey]).fileSize.map { Int64($0) } == Scale.largeFile)
        #expect(try contents(of: directory) == ["big.bin"])
        let original = "curl -s --noproxy '*' -r 0-\(Scale.largeFile - 1) \"$1\"/big.bin | sha256sum"
        #expect(try await digest("sha256sum \"$1\"", file.path) == digest(original, nginx.http))

        let server = try LoopbackServer.standard(recording: false)
        var start = ContinuousClock.now
        let report = try await Probe.run("upload", server.url("/upload"), file.path)
        #expect(report.status == 0)
        #expect(report["length"].map { Int64($0) } == Scale.largeFile)
        #expect(try report["checksum"] == Int(checksum(of: file)))
        try checkMemory("uploaded to the loopback server", report, start)

        start = ContinuousClock.now
        let second = try await Probe.run("upload", nginx.http + "/upload", file.path)
        #expect(second.status == 0)
        #expect(second["answer"].map { Int64($0) } == Scale.largeFile)
        try checkMemory("uploaded to nginx", second, start)
    }
}
