// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewDownloads
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// What a download does between its attempts, with a name that the server gives, and with a file that is there.
@Suite(.timeLimit(.minutes(1))) struct DownloadWaitTests {
    private static var body: Data { GeneratedBody().data(count: 1000) }
    private let manager = makeManager()
    private let directory: TemporaryDirectory
    private var file: URL { directory.file("file") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func download(
        _ server: LoopbackServer, by manager: SessionManager? = nil, _ change: (inout SegmentedDownload.Options) -> Void
    ) async throws -> SegmentedDownload.Result {
        var options = SegmentedDownload.Options()
        change(&options)
        return try await (manager ?? self.manager).segmentedDownload(server.url("/file"), to: file, options: options).run()
    }

    @Test("a file without ranges whose connection is lost is asked for again after a delay, up to the limit") func whole() async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            try connection.send(raw: Self.body.prefix(500))
            connection.close()
            return nil
        }
        let waits = Log<RetryWait>()
        await #expect(throws: CurlewError.self) {
            _ = try await download(server) {
                $0.retryLimit = 1
                $0.onWait = { waits.append($0) }
            }
        }
        #expect(server.requestCount == 2)
        #expect(waits.elements.map(\.delay) == [.milliseconds(500)])
        #expect(waits.elements.allSatisfy { $0.isWaited && $0.failures == 1 })
    }

    @Test(
        "a delay of more than an hour, or beyond the deadline, is not waited for",
        arguments: [("4000", 4000), ("30", 30), ("Thu, 01 Jan 1970 01:06:40 GMT", 4000)])
    func tooLong(_ text: String, _ seconds: Int) async throws {
        let server = try LoopbackServer { _, _ in
            // A date counts from the server's own, so that the clocks need not agree.
            .status(503, headers: [ServerField("Retry-After", text), ServerField("Date", "Thu, 01 Jan 1970 00:00:00 GMT")])
        }
        let waits = Log<RetryWait>()
        await #expect(throws: CurlewError.self) {
            try await withDeadline(.seconds(20)) {
                _ = try await download(server) { $0.onWait = { waits.append($0) } }
            }
        }
        #expect(server.requestCount == 1)
        #expect(waits.elements.map(\.delay) == [.seconds(seconds)])
        #expect(waits.elements.first?.isWaited == false)
    }

    @Test("the first response names the file, also if it is finished already") func suggestedName() async throws {
        let server = try LoopbackServer { request, _ in
            var response = ServerResponse.generated(length: 1 << 20, for: request)
            response.headers.append(ServerField("Content-Disposition", "attachment; filename=named"))
            return response
        }
        let result = try await download(server) { $0.takesSuggestedName = true }
        #expect(result.file.lastPathComponent == "named" && result.length == 1 << 20)
        #expect(try contents(of: directory) == ["named"])
        let again = try await download(server) { $0.takesSuggestedName = true }
        #expect(again.isUnchanged && again.file == result.file && again.received == 0)
        #expect(try contents(of: directory) == ["named"])
    }

    @Test("a file without a validator is recognized by its length, unless it may be replaced") func unversioned() async throws {
        let server = try LoopbackServer { _, _ in .ok(Self.body) }
        #expect(try await !download(server) { _ in }.isUnchanged)
        #expect(try await download(server) { _ in }.isUnchanged)
        #expect(try await !download(server) { $0.replacesFile = true }.isUnchanged)
    }

    @Test("a coded body is the file where the session decodes nothing") func coded() async throws {
        let server = try LoopbackServer { _, _ in
            var response = ServerResponse.ok(Self.body)
            response.headers.append(ServerField("Content-Encoding", "gzip"))
            return response
        }
        let result = try await download(server, by: makeManager { $0.decodesContent = false }) { _ in }
        #expect(result.length == 1000)
        #expect(try Data(readingFrom: file) == Self.body)
    }
}
