// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import Testing

/// Uploads in a process of their own, which is killed.
@Suite(.timeLimit(.minutes(2))) struct KilledUploadTests {
    private static let size = 32 << 20

    // A2.2
    @Test("a process that is killed six times uploads every byte once") func killed() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(GeneratedBody().data(count: Self.size), to: "file")
        let victim = Lock<ChildProcess?>(nil)
        let marks = (1...6).map { Int64($0) * 5_000_000 }
        var settings = TusServer.Settings()
        // What the kernel still has of a killed process could be more than the bytes up to the next mark.
        settings.cuts = marks
        settings.onBytes = { if marks.contains($0) { victim.withLock { $0 }?.send(SIGKILL) } }
        let server = try TusServer(settings)
        for _ in 1...6 {
            // Held until it can be killed.
            let child = try victim.withLock { victim in
                let child = try Probe.start("tus", server.url(), file.path)
                victim = child
                return child
            }
            let (status, output) = await child.finish()
            #expect(status != 0)
            #expect(output.isEmpty)
            #expect(await eventually { server.openConnections == 0 })
            #expect(try contents(of: directory).count == 2)
        }
        let stored = Int(server.received)
        let report = try await Probe.run("tus", server.url(), file.path)
        #expect(report.status == 0)
        #expect(report["resumed"] == stored)
        #expect(report["sent"] == Self.size - stored)
        #expect(server.received == Int64(Self.size))
        #expect(server.methods().filter { $0 == "POST" }.count == 1)
        let bytes = try #require(server.uploads["/files/1"]?.bytes)
        #expect(bytes.count == Self.size)
        #expect(GeneratedBody().matches(bytes))
        #expect(try contents(of: directory) == ["file"])
    }
}
