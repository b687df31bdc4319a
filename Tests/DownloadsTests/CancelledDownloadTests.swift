// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewDownloads
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct CancelledDownloadTests {
    private let manager = makeManager()
    private let directory: TemporaryDirectory
    private var file: URL { directory.file("file") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    // A request may tell of the cancellation before or after the task itself: which is first differs from round to round.
    @Test("the error of a cancelled task is CancellationError, whether the task or a request reports it first") func error() async throws {
        let server = try LoopbackServer { request, connection in
            guard request.header("Range") == "bytes=0-" else {
                connection.waitUntilClosed()
                return nil
            }
            return .generated(length: 1 << 20, for: request)
        }
        var options = SegmentedDownload.Options()
        options.minimumSegmentSize = 64 << 10
        let download = manager.segmentedDownload(server.url("/file"), to: file, options: options)
        for _ in 0..<30 {
            let count = server.requestCount
            let task = Task { try await download.run() }
            #expect(await eventually { server.requestCount > count })
            task.cancel()
            await #expect(throws: CancellationError.self) { _ = try await task.value }
        }
    }

    @Test("cancelling ends the reading of a file for its checksum") func checksum() async throws {
        // A file without blocks, which takes minutes to read in a debug build.
        try directory.write(Data(), to: "file")
        #expect(truncate(file.path, 16 << 30) == 0)
        var options = SegmentedDownload.Options()
        options.sha256 = Data(repeating: 0, count: 32)
        let server = try LoopbackServer { _, _ in .status(500) }
        let download = manager.segmentedDownload(server.url("/file"), to: file, options: options)
        let task = Task { try await download.run() }
        #expect(await eventually { openPaths().contains { $0 == file.path } })
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        #expect(server.requestCount == 0)
    }

    /// The paths of the files that the process has open.
    private func openPaths() -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0) }
    }
}
