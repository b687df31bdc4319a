// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewCore

// A1.2: over a server.
@Suite(.timeLimit(.minutes(1))) struct DecodedRefusalServerTests {
    private typealias Problem = DecodedRefusalTests.Problem

    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func manager(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        configuration.temporaryDirectory = directory.url
        change(&configuration)
        return SessionManager(configuration: configuration)
    }

    private func message(_ error: (any Error)?) -> String? { error?.asCurlewError?.decodedBody(as: Problem.self)?.message }

    @Test func `compressed bodies, redirects and chunks`() async throws {
        let problem = Data(#"{"message": "no"}"#.utf8)
        let server = try LoopbackServer { request, _ in
            switch request.path {
            case "/gzip":
                ServerResponse(status: 400, headers: [ServerField("Content-Encoding", "gzip")], body: .data(StoredDeflate.gzip(problem)))
            case "/broken": ServerResponse(status: 400, headers: [ServerField("Content-Encoding", "gzip")], body: .data(problem))
            case "/from": .redirect(to: "/gzip", status: 307)
            default: ServerResponse(status: 400, body: .chunked([problem.prefix(5), problem.dropFirst(5)]))
            }
        }
        let manager = manager()
        for path in ["/gzip", "/from", "/chunked"] {
            let url = server.url(path)
            #expect(message(await manager.request(url).validate(decoding: Problem.self).serializingData().response.error) == "no")
            #expect(message(await manager.download(url).validate(decoding: Problem.self).serializingURL().response.error) == "no")
            let stream = manager.streamRequest(url).validate(decoding: Problem.self)
            do { for try await _ in stream.bodyStream() { Issue.record("a piece came through") } } catch { #expect(message(error) == "no") }
            #expect(statusOf(stream.delegate.error) == 400)
        }
        let broken = await manager.request(server.url("/broken")).validate(decoding: Problem.self).serializingData().response.error
        #expect(kindOf(broken) == .decoding)
    }

    @Test func `a refusal from the cache is decoded as the first one was`() async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(
                status: 404, headers: [ServerField("Cache-Control", "max-age=60")], body: .data(Data(#"{"message": "no"}"#.utf8)))
        }
        let manager = manager { $0.cache = .memory() }
        for _ in 0..<2 {
            let request = manager.request(server.url("/")).validate(decoding: Problem.self)
            #expect(message(await request.serializingData().response.error) == "no")
        }
        #expect(message(await manager.download(server.url("/")).validate(decoding: Problem.self).serializingURL().response.error) == "no")
        #expect(server.requestCount == 1)
    }

    @Test func `a resumed download that is refused has the new response's error, and can be resumed afterwards`() async throws {
        let isRefused = Lock(false)
        let server = try LoopbackServer { request, _ in
            guard !isRefused.withLock({ $0 }) else { return try .json(Problem(message: "busy"), status: 503) }
            let response = ServerResponse.generated(length: 100_000, for: request)
            return request.header("Range") == nil ? response.misbehaving(.cut(after: 50_000)) : response
        }
        let manager = manager()
        let file = directory.file("file")
        func load() async -> DownloadResponse<URL> {
            await manager.download(server.url("/"), to: file, options: .resumePreviousDownload).validate(decoding: Problem.self)
                .serializingURL().response
        }
        #expect(kindOf(await load().error) == .connectionLost)
        isRefused.withLock { $0 = true }
        let refused = await load()
        #expect(message(refused.error) == "busy")
        #expect(statusOf(refused.error) == 503)
        isRefused.withLock { $0 = false }
        #expect(try await load().result.get() == file)
        #expect(GeneratedBody().matches(try Data(contentsOf: file)))
        #expect(server.requests.last?.header("Range") == "bytes=50000-")
    }

    @Test func `a streamed refusal without end is given up at the limit`() async throws {
        let server = try LoopbackServer { _, _ in ServerResponse(status: 500, body: .generated(length: 1 << 40)) }
        defer { server.stop() }
        let request = manager().streamRequest(server.url("/")).validate(decoding: Problem.self, maximumSize: 100_000)
        let error = await request.serializingData().response.error
        #expect(statusOf(error) == 500)
        #expect(error?.asCurlewError?.request?.isBodyTruncated == true && message(error) == nil)
        #expect(error?.asCurlewError?.request?.bodyData?.count == FailedRequest.bodyLimit)
        #expect(await server.waitForConnectionsToClose())
    }

    @Test func `a streamed refusal that comes slowly is decoded after more than two seconds`() async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 500, body: .data(Data(#"{"message": "slow"}"#.utf8)))
                .misbehaving(.slow(piece: 5, pause: .milliseconds(600)))
        }
        let request = manager().streamRequest(server.url("/")).validate(decoding: Problem.self)
        #expect(message(await request.serializingData().response.error) == "slow")
    }
}
