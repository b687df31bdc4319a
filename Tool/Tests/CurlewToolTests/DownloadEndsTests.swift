// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// Downloads that are finished already, that the server names, and that wait or fail.
@Suite(.timeLimit(.minutes(2))) struct DownloadEndsTests {
    private static let body = GeneratedBody().data(count: 1000)
    private let directory: TemporaryDirectory
    private var file: URL { directory.file("file") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    // MARK: Finished

    /// A server that supports neither ranges nor conditions. After the first body it sends heads only, so that who wants a body waits.
    private func makeServer(_ fields: @escaping @Sendable (Int) -> String) throws -> LoopbackServer {
        let count = Lock(0)
        return try LoopbackServer { _, connection in
            let number = count.withLock { count in
                count += 1
                return count
            }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\(fields(number))\r\n")
            if number == 1 { try connection.send(raw: Self.body) } else { connection.waitUntilClosed() }
            return nil
        }
    }

    private static let date = "Last-Modified: Wed, 01 Nov 2023 10:00:00 GMT\r\nDate: Wed, 01 Nov 2023 10:00:09 GMT\r\n"

    @Test(
        "a finished file costs no byte and is success, also if the server ignores conditions or has no validators",
        arguments: ["ETag: \"v1\"\r\n", "ETag: W/\"v1\"\r\n", date, ""], [true, false])
    func finished(_ fields: String, _ isSegmented: Bool) async throws {
        let server = try makeServer { _ in fields }
        let words =
            isSegmented ? ["dl", "-o", file.path, server.url("/file")] : [server.url("/file"), "--download", file.path, "--continue"]
        #expect(try await ToolRun(words).result().status == 0)
        let again = try await ToolRun(words).result()
        #expect(again.status == 0)
        #expect(again.error.hasSuffix(isSegmented ? ", already complete\n" : "nothing was downloaded\n"))
        #expect(server.requestCount == 2)
        #expect(try Data(contentsOf: file) == Self.body)
    }

    @Test("a finished file of another version is in the way", arguments: [true, false])
    func changed(_ isSegmented: Bool) async throws {
        let server = try makeServer { "ETag: \"v\($0)\"\r\n" }
        let words =
            isSegmented ? ["dl", "-o", file.path, server.url("/file")] : [server.url("/file"), "--download", file.path, "--continue"]
        #expect(try await ToolRun(words).result().status == 0)
        let again = try await ToolRun(words).result()
        #expect(again.status == 10)
        #expect(again.error.hasSuffix("file exists; use --force to replace it\n"))
        #expect(try Data(contentsOf: file) == Self.body)
    }

    @Test("a finished file is known behind a redirect to signed URLs, but not at another path", arguments: [true, false], [true, false])
    func signed(_ isSegmented: Bool, _ isSamePath: Bool) async throws {
        let count = Lock(0)
        let server = try LoopbackServer { request, _ in
            guard request.path == "/file" else { return .generated(length: 1000, for: request) }
            let number = count.withLock { count in
                count += 1
                return count
            }
            return .redirect(to: isSamePath ? "/stored?signature=\(number)" : "/stored/\(number)")
        }
        let words =
            isSegmented ? ["dl", "-o", file.path, server.url("/file")] : [server.url("/file"), "--download", file.path, "--continue"]
        #expect(try await ToolRun(words).result().status == 0)
        #expect(try await ToolRun(words).result().status == (isSamePath ? 0 : 10))
    }

    // MARK: Resumed

    @Test("--continue resumes an earlier download") func resumption() async throws {
        let ranges = Lock<[String?]>([])
        let server = try LoopbackServer { request, connection in
            let isFirst = ranges.withLock { ranges in
                ranges.append(request.header("Range"))
                return ranges.count == 1
            }
            guard isFirst else { return .generated(length: 1_000_000, seed: 5, for: request) }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nETag: \"1000000-5\"\r\n\r\n")
            try connection.send(raw: GeneratedBody(seed: 5).data(count: 600_000))
            connection.close()
            return nil
        }
        let cut = try await ToolRun.run(server.url("/"), "--download", file.path, "--continue")
        #expect(cut.status == ExitStatus.transfer.rawValue)
        #expect(!FileManager.default.fileExists(atPath: file.path))
        #expect(try await ToolRun.run(server.url("/"), "--download", file.path, "--continue").status == 0)
        #expect(ranges.withLock { $0 } == [nil, "bytes=600000-"])
        #expect(CRC32.checksum(of: try Data(contentsOf: file)) == GeneratedBody(seed: 5).checksum(count: 1_000_000))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["file"])
    }

    @Test("--continue of a finished download downloads nothing, and says so") func finished() async throws {
        let server = try LoopbackServer.standard()
        let words = [server.url("/bytes/1000?etag=v1"), "--download", file.path, "--continue"]
        #expect(try await ToolRun.run(words[0], words[1], words[2], words[3]).status == 0)
        let again = try await ToolRun.run(words[0], words[1], words[2], words[3])
        #expect(again.status == 0)
        #expect(again.error == "\(file.path): the server has no newer version; nothing was downloaded\n")
        #expect(server.requests.map { $0.header("If-None-Match") } == [nil, "\"v1\""])
        #expect(try Data(contentsOf: file).count == 1000)
    }

    // MARK: Names and codings

    @Test("-J takes the name from the response that brings the file, and knows the finished file", arguments: [true, false])
    func named(_ hasRanges: Bool) async throws {
        let server = try LoopbackServer { request, _ in
            // As a signed URL, which is valid for one method.
            guard request.method == "GET" else { return .status(403) }
            var response = hasRanges ? .generated(length: 3 << 20, for: request) : ServerResponse.ok(Self.body)
            response.headers.append(ServerField("Content-Disposition", "attachment; filename=named.bin"))
            return response
        }
        let words = ["dl", "-J", "-d", directory.url.path, server.url("/x")]
        let first = try await ToolRun(words).result()
        #expect(first.status == 0)
        #expect(first.error.hasPrefix("named.bin: "))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["named.bin"])
        let again = try await ToolRun(words).result()
        #expect(again.status == 0)
        #expect(again.error.hasSuffix(", already complete\n"))
        #expect(server.requests.allSatisfy { $0.method == "GET" })
        try directory.write(Data("mine".utf8), to: "named.bin")
        let other = try await ToolRun(words).result()
        #expect(other.status == 10)
        #expect(other.error.hasSuffix("/named.bin: file exists; use --force to replace it\n"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["named.bin"])
    }

    @Test("a coding that was not asked for is kept, and undone with --decode") func coded() async throws {
        let server = try LoopbackServer.standard()
        #expect(try await ToolRun.run("dl", "-o", file.path, server.url("/gzip?n=500")).status == 0)
        let coded = try Data(contentsOf: file)
        #expect(coded.starts(with: [0x1F, 0x8B]))
        #expect(server.requests.first?.header("Accept-Encoding") == "identity")
        #expect(try await ToolRun.run("dl", "--decode", "--force", "-o", file.path, server.url("/gzip?n=500")).status == 0)
        #expect(try Data(contentsOf: file).count == 500)
    }

    // MARK: Waits

    @Test("a server that closes early and has no ranges is asked again after a pause, as often as --retry says", arguments: [0, 1])
    func early(_ limit: Int) async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run("dl", "--retry", "\(limit)", "-o", file.path, server.url("/cut-body?announce=9000&send=50"))
        #expect(result.status == 9)
        #expect(server.requestCount == limit + 1)
        #expect(result.error.contains("; retry 1 of 1 in 0.5 s\n") == (limit == 1))
        #expect(result.error.split(separator: "\n").count == limit + 1)
    }

    @Test("a host that is not found is told before each wait") func unknownHost() async throws {
        let result = try await ToolRun.run("dl", "--retry", "1", "-o", file.path, "http://host.invalid/f")
        #expect(result.status == 6)
        #expect(result.error.contains("; retry 1 of 1 in 0.5 s\ncurlew: "))
    }

    @Test(
        "a Retry-After of more than an hour, or beyond the deadline, is told and not waited for",
        arguments: [("86400", []), ("9", ["--deadline", "8"])] as [(String, [String])])
    func longWait(_ seconds: String, _ words: [String]) async throws {
        let server = try LoopbackServer { _, _ in .status(503, headers: [ServerField("Retry-After", seconds)]) }
        let start = ContinuousClock.now
        let segmented = try await ToolRun(["dl", "-o", file.path, server.url("/f")] + words).result()
        #expect(segmented.status == 5)
        #expect(segmented.error.contains("; not retried: that would take \(seconds).0 s\ncurlew: the server responded with 503 "))
        let reason =
            words.isEmpty
            ? "not retried: the server asks to wait 86400.0 s (Retry-After), more than an hour" : "not retried: a wait of 9.0 s "
        let sent = try await ToolRun([server.url("/"), "--retry", "2"] + words).result()
        #expect(sent.status == 5)
        #expect(sent.error.contains(reason))
        let saved = try await ToolRun([server.url("/"), "--retry", "2", "--download", file.path] + words).result()
        #expect(saved.status == 5)
        #expect(saved.error.contains(reason))
        #expect(server.requestCount == 3)
        #expect(ContinuousClock.now - start < .seconds(8))
    }

    @Test("a deadline ends a download with one message, also before its own") func deadline() async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run("dl", "--deadline", "0.3", "-o", file.path, server.url("/silent"))
        #expect(result.status == 8)
        #expect(result.error == "curlew: timed out after 0.3 s (--deadline)\n")
    }

    @Test("the waits of --download are told") func printedWaits() async throws {
        let server = try LoopbackServer { request, _ in
            request.sequence > 1 ? .ok("yes") : .status(503, headers: [ServerField("Retry-After", "0")])
        }
        let result = try await ToolRun.run("--retry", "2", "--download", file.path, server.url("/"))
        #expect(result.status == 0)
        #expect(result.error == "curlew: the server responded with 503 Service Unavailable; retry 1 in 0.0 s\n")
    }
}
