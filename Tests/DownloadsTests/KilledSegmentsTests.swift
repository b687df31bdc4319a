// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import Testing

/// Segmented downloads in a process of their own, which is killed, or runs out of space.
@Suite(.timeLimit(.minutes(2))) struct KilledSegmentsTests {
    private static let size: Int64 = 4 << 20
    private static let minimum: Int64 = 256 << 10

    @Test("a killed download is resumed with every byte that was recorded, also after a try on a full disk", arguments: [false, true])
    func killed(isFull: Bool) async throws {
        let directory = try TemporaryDirectory()
        let (file, record) = (directory.file("file"), directory.file(".file.segments.state"))
        let isOpen = Gate()
        // Half of each segment, and the rest never as long as the gate is shut.
        let server = try LoopbackServer { request, connection in
            let response = ServerResponse.generated(length: Self.size, for: request)
            guard !isOpen.isOpen, case .generated(let length, _, let offset) = response.body else { return response }
            let lines = response.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
            try connection.send(raw: "HTTP/1.1 206 \r\n\(lines)Content-Length: \(length)\r\n\r\n")
            let count = offset == 0 ? length : length / 2
            try connection.send(raw: GeneratedBody().data(offset: offset, count: Int(count)))
            guard offset > 0 else { return nil }
            connection.waitUntilClosed()
            return nil
        }
        let child = try Probe.start("segments", server.url("/file"), file.path, "\(Self.minimum)")
        #expect(await eventually { Self.recorded(record) > Self.minimum })
        child.send(SIGKILL)
        #expect(await child.finish().status != 0)
        #expect(try contents(of: directory) == [".file.segments", ".file.segments.state"])
        let left = Self.recorded(record)
        isOpen.open()
        if isFull {
            #expect(try await Probe.run("segments", server.url("/file"), file.path, "\(Self.minimum)", "0").status == 1)
            #expect(try contents(of: directory) == [".file.segments", ".file.segments.state"])
        }
        let report = try await Probe.run("segments", server.url("/file"), file.path, "\(Self.minimum)")
        #expect(report.status == 0)
        #expect(report["resumed"] == Int(left))
        #expect(report["received"] == Int(Self.size - left))
        #expect(try contents(of: directory) == ["file"])
        #expect(GeneratedBody().matches(try Data(contentsOf: file)))
    }

    /// The number of bytes in a record.
    private static func recorded(_ record: URL) -> Int64 {
        guard let text = try? String(contentsOf: record, encoding: .utf8) else { return 0 }
        var bytes = Set<Range<Int64>>()
        for line in text.split(separator: "\n") where line.hasPrefix("+ ") {
            let words = line.split(separator: " ").compactMap { Int64($0) }
            if words.count == 2 { bytes.insert(words[0]..<words[1]) }
        }
        return bytes.reduce(0) { $0 + Int64($1.count) }
    }

    @Test("a full disk is an error, and what was written is resumed") func fullDisk() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("file")
        let server = try LoopbackServer { request, _ in
            var response = ServerResponse.generated(length: Self.size, for: request)
            // Without a length of the whole in advance nothing would be written at all: sparse files have theirs from the start.
            response.headers.removeAll { $0.isNamed("Accept-Ranges") }
            return response
        }
        let full = try await Probe.run("segments", server.url("/file"), file.path, "\(Self.minimum)", "1000000")
        #expect(full.status == 1)
        #expect(!FileManager.default.fileExists(atPath: file.path))
        let report = try await Probe.run("segments", server.url("/file"), file.path, "\(Self.minimum)")
        #expect(report.status == 0)
        #expect(GeneratedBody().matches(try Data(contentsOf: file)))
        #expect(try contents(of: directory) == ["file"])
    }
}
