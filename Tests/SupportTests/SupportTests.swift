// SPDX-License-Identifier: Apache-2.0

import CurlewTestSupport
import Testing

@Suite struct ChecksumTests {
    @Test("the checksum is that of zlib") func zlib() {
        #expect(CRC32.checksum(of: Data()) == 0)
        #expect(CRC32.checksum(of: Data("123456789".utf8)) == 0xCBF4_3926)
    }

    @Test("incremental updates give the same checksum") func increments() {
        let data = GeneratedBody(seed: 1).data(count: 10_000)
        var checksum = CRC32()
        for start in stride(from: 0, to: data.count, by: 77) { checksum.update(data[start..<min(start + 77, data.count)]) }
        #expect(checksum.value == CRC32.checksum(of: data))
    }
}

@Suite struct GeneratedBodyTests {
    @Test("any range is the same as in the whole", arguments: [(0, 1), (3, 9), (4090, 20), (4096, 5), (262_140, 5000), (1_000_003, 4097)])
    func ranges(_ offset: Int, _ count: Int) {
        let whole = GeneratedBody(seed: 9).data(count: 1_100_000)
        let part = GeneratedBody(seed: 9).data(offset: Int64(offset), count: count)
        #expect(part == whole[offset..<offset + count])
        #expect(GeneratedBody(seed: 9).matches(part, offset: Int64(offset)))
        #expect(!GeneratedBody(seed: 9).matches(part, offset: Int64(offset) + 4096 * 61))
        #expect(!GeneratedBody(seed: 10).matches(part, offset: Int64(offset)))
    }
}

@Suite struct TCPEchoServerTests {
    @Test("all bytes are echoed before the end of the stream") func echo() async throws {
        let server = try TCPEchoServer()
        let client = try RawClient(port: server.port)
        let data = GeneratedBody().data(count: 3_000_000)
        async let echoed = try client.readToEnd()
        try client.send(data)
        client.shutDownWriting()
        #expect(try await echoed == data)
        #expect(await server.waitForConnectionsToClose())
        server.stop()
        #expect(throws: SocketError.self) { try RawClient(port: server.port) }
    }
}

@Suite struct TemporaryDirectoryTests {
    @Test("a directory is removed with its last reference") func removal() throws {
        var directory: TemporaryDirectory? = try TemporaryDirectory()
        let file = try #require(directory).write(Data("text".utf8), to: "file")
        #expect(FileManager.default.fileExists(atPath: file.path))
        directory = nil
        #expect(!FileManager.default.fileExists(atPath: file.deletingLastPathComponent().path))
    }
}

#if os(Linux)
@Suite struct ProcessProbeTests {
    @Test("every resource is in use") func values() throws {
        #expect(try #require(ProcessProbe.threadCount) > 0)
        #expect(try #require(ProcessProbe.openDescriptorCount) > 2)
        let resident = try #require(ProcessProbe.residentBytes)
        #expect(try #require(ProcessProbe.peakResidentBytes) >= resident / 2)
        #expect(resident > 1 << 20)
    }
}
#endif
