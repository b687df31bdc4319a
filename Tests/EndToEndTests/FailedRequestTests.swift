// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// What a delivered error tells about its request: the rows S5.1 and S5.4 of «Curlew on the server».
@Suite(.timeLimit(.minutes(1))) struct FailedRequestTests {
    private struct Refused: Error {}

    /// Records the ids and errors that a monitor is told.
    private final class Recorder: EventMonitor {
        let ids = Log<UInt64>()
        let errors = Log<String>()

        func request(_ request: Request, didCreate task: SessionTask) { ids.append(request.id) }
        func request(_ request: Request, didComplete task: SessionTask, with error: (any Error)?) {
            ids.append(request.id)
            errors.append(error.map { "\($0)" } ?? "")
        }
        func request(_ request: Request, willRetryAfter delay: TimeInterval, because error: any Error) { errors.append("\(error)") }
        func requestDidFinish(_ request: Request) { ids.append(request.id) }
    }

    private static let long = String(repeating: "ä", count: 40_000)
    private let server: LoopbackServer
    private let directory: TemporaryDirectory
    private let manager = makeManager()

    init() throws {
        let standard = ServerRoutes.standard
        directory = try TemporaryDirectory()
        server = try LoopbackServer { request, connection in
            func refused(_ text: Data, _ type: String) -> ServerResponse {
                ServerResponse(status: 404, headers: [ServerField("Content-Type", type)], body: .data(text))
            }
            return switch request.path {
            case "/text": refused(Data("no such user".utf8), "text/plain")
            case "/binary": refused(Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x00]), "image/png")
            case "/long": refused(Data("x\(Self.long)".utf8), "text/plain; charset=utf-8")
            case "/problem": refused(Data(#"{"title": "No such user", "user": 7}"#.utf8), "Application/Problem+JSON; charset=utf-8")
            case "/empty": refused(Data(), "text/plain")
            case "/ftp": .redirect(to: "ftp://127.0.0.1/")
            default: try standard(request, connection)
            }
        }
    }

    private func failure<Value>(_ value: () async throws -> Value) async throws -> (CurlewError, FailedRequest) {
        do {
            _ = try await value()
        } catch {
            let error = try #require(error.asCurlewError, "\(error)")
            return (error, try #require(error.request))
        }
        throw TestError("no error")
    }

    @Test func `a refused status has attempt, status and body`() async throws {
        manager.retrier = Retrier.attempts(1)
        let request = manager.request(server.url("/text?access_token=s3cret")).validate()
        let (error, failed) = try await failure { try await request.serializingString().value }
        #expect(
            failed
                == FailedRequest(
                    id: request.id, method: .get, url: server.url("/text?access_token=s3cret"), attempt: 2, statusCode: 404,
                    headers: request.responseHead?.headers ?? [:], contentType: "text/plain", body: "no such user",
                    bodyData: Data("no such user".utf8)))
        #expect(error.statusCode == 404)
        #expect(error.responseBody == "no such user")
        #expect("\(error)" == "GET \(server.url("/text?access_token=<hidden>")) (attempt 2): status 404 is not acceptable")
        #expect(request.delegate.error?.asCurlewError?.request == failed)
    }

    enum Kind: CaseIterable, Sendable {
        case data, handler, known, asked, temporary
    }

    @Test(arguments: Kind.allCases)
    func `the body is that of data and files, as bytes and text, and cut after 64 KiB`(_ kind: Kind) async throws {
        let manager = makeManager { $0.temporaryDirectory = directory.url }
        for (path, body, count) in [
            ("/text", "no such user", 12), ("/binary", nil, 7), ("/long", "x" + String(Self.long.prefix(32_767)), 65_536),
            ("/empty", nil, 0),
        ] as [(String, String?, Int)] {
            let url = server.url(path)
            let error: (any Error)?
            switch kind {
            case .data: error = await manager.request(url).validate().serializingData().response.error
            case .handler:
                let errors = Log<(any Error)?>()
                manager.request(url).validate().response { errors.append($0.error) }
                await errors.wait(for: 1)
                error = errors.elements.first.flatMap { $0 }
            case .known: error = await manager.download(url, to: directory.file("known")).validate().serializingURL().response.error
            case .asked:
                let file = directory.file("asked")
                error = await manager.download(url, to: { _, _ in (file, [.removePreviousFile]) }).validate().serializingURL().response
                    .error
            case .temporary: error = await manager.download(url).validate().serializingURL().response.error
            }
            let failed = try #require(error?.asCurlewError?.request)
            #expect(failed.body == body, "\(path)")
            #expect(failed.bodyData?.count == count && failed.isBodyTruncated == (path == "/long"), "\(path)")
            #expect(failed.attempt == 1)
            #expect(failed.statusCode == 404)
        }
        if kind == .known { #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == []) }
    }

    @Test func `problem details of a refused body are the error's`() async throws {
        // A1.3
        let (error, _) = try await failure { try await manager.request(server.url("/problem")).validate().serializingData().value }
        let (streamed, _) = try await failure {
            for try await _ in manager.streamRequest(server.url("/problem")).validate().bodyStream() {}
        }
        #expect(error.problemDetails?.title == "No such user" && error.problemDetails?.members == ["user": .integer(7)])
        #expect(streamed.problemDetails == error.problemDetails)
    }

    @Test(arguments: ["/text", "/binary", "/long", "/empty"])
    func `the beginning of a streamed body that is refused at its head is kept, and no piece of it read`(_ path: String) async throws {
        let (_, streamed) = try await failure {
            for try await _ in manager.streamRequest(server.url(path)).validate().bodyStream() { Issue.record("a piece") }
        }
        let (_, buffered) = try await failure { try await manager.request(server.url(path)).validate().serializingData().value }
        #expect(streamed.bodyData != nil && streamed.bodyData == buffered.bodyData)
        #expect(streamed.body == buffered.body && streamed.isBodyTruncated == buffered.isBodyTruncated)
        #expect(streamed.statusCode == 404 && streamed.method == .get)
    }

    @Test(arguments: [true, false])
    func `a refused streamed body that does not end, or is cut off, is what was received`(_ isEndless: Bool) async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 503 Busy\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nnever")
            if isEndless { connection.waitUntilClosed() } else { connection.close() }
            return nil
        }
        defer { server.stop() }
        let start = ContinuousClock.now
        let (error, failed) = try await failure {
            for try await _ in manager.streamRequest(server.url("/")).validate().bodyStream() { Issue.record("a piece") }
        }
        #expect(ContinuousClock.now - start < .seconds(20))
        #expect(error.statusCode == 503 && failed.body == "never" && failed.isBodyTruncated)
        #expect(await server.waitForConnectionsToClose())
    }

    @Test func `a body that can't be decoded is not shown`() async throws {
        let (error, failed) = try await failure {
            try await manager.request(server.url("/bytes/5"), method: .put).validate().serializingDecodable([String].self).value
        }
        #expect(failed.method == .put)
        #expect(failed.statusCode == 200)
        #expect(failed.body == nil)
        #expect("\(error)".hasPrefix("PUT \(server.url("/bytes/5")) (attempt 1, status 200): the response could not be decoded: "))
        let response = await manager.download(server.url("/bytes/5")).serializingDecodable([String].self).response
        #expect(response.error?.asCurlewError?.request?.statusCode == 200)
    }

    @Test func `a failed redirect names the request that was redirected`() async throws {
        let (error, failed) = try await failure { try await manager.request(server.url("/redirect-to?url=/ftp")).serializingData().value }
        #expect(failed.url == server.url("/ftp"))
        #expect(failed.statusCode == 302)
        #expect("\(error)".hasPrefix("GET \(server.url("/ftp")) (attempt 1, status 302): the redirect's Location is not"))
    }

    @Test func `a failed transfer names its request`() async throws {
        manager.retrier = Retrier.attempts(2)
        let (error, failed) = try await failure { try await manager.request(server.url("/reset")).serializingData().value }
        #expect(failed.attempt == 3)
        #expect(failed.statusCode == nil)
        #expect(error.isTimeout == false)
        #expect("\(error)".hasPrefix("GET \(server.url("/reset")) (attempt 3): "))
        guard case .transferFailed(let failure) = error else { return #expect(Bool(false), "\(error)") }
        #expect(failure.request == failed)
        let url = error.urlError?.userInfo[NSURLErrorFailingURLErrorKey] as? URL
        #expect(url?.absoluteString == server.url("/reset"))
    }

    @Test func `a cancelled request is named, also between two attempts`() async throws {
        let running = manager.request(server.url("/silent"))
        running.cancel()
        let first = try #require(await running.serializingData().response.error?.asCurlewError)
        guard case .cancelled = first else { return #expect(Bool(false), "\(first)") }
        #expect(first.request?.id == running.id)
        #expect("\(first)" == "GET \(server.url("/silent")) (attempt 1): the request was cancelled")
        manager.retrier = Retrier { request, _, completion in
            completion(true, 1000)
            request.cancel()
        }
        let waiting = try #require(await manager.request(server.url("/text")).validate().serializingData().response.error?.asCurlewError)
        #expect("\(waiting)" == "GET \(server.url("/text")) (attempt 1, status 404): the request was cancelled")
    }

    @Test func `a request that could not be made is named by its parts`() async throws {
        let (url, failed) = try await failure { try await manager.request("http://127.0.0.1/%b", method: .post).serializingData().value }
        #expect("\(url)" == "POST http://127.0.0.1/%b: URL is not valid")
        #expect(failed.id > 0)
        #expect(failed.attempt == 0)
        let parameters = try await failure {
            try await manager.request(
                server.url("/"), method: .post, parameters: ["x": Double.nan], encoder: JSONParameterEncoder.default
            ).serializingData().value
        }.0
        #expect("\(parameters)".hasPrefix("POST \(server.url("/")): parameters could not be encoded as JSON"))
        let header = try await failure { try await manager.request(server.url("/"), headers: ["a b": ""]).serializingData().value }.0
        #expect("\(header)" == #"GET \#(server.url("/")) (attempt 1): the header "a b" has an invalid name or value"#)
    }

    @Test func `an error of users' code is passed on unchanged`() async throws {
        manager.adapter = Adapter { _ in throw Refused() }
        await #expect(throws: Refused.self) { try await manager.request(server.url("/text")).serializingData().value }
        manager.adapter = nil
        await #expect(throws: Refused.self) {
            try await manager.request(server.url("/json")).validate { _, _, _ in .failure(Refused()) }.serializingData().value
        }
        // The error of another request keeps that one.
        let other = FailedRequest(id: .max, method: .post, url: "http://token.test/", attempt: 1, statusCode: 401)
        manager.adapter = Adapter { _ in throw CurlewError.cancelled(in: other) }
        let (_, failed) = try await failure { try await manager.request(server.url("/text")).serializingData().value }
        #expect(failed == other)
    }

    @Test func `a raw stream is named by host and port`() async throws {
        let stream = manager.stream(withHostName: "127.0.0.1", port: server.port)
        stream.cancel()
        let (error, failed) = try await failure { try await stream.waitUntilCompleted() }
        #expect(failed.id == stream.id)
        #expect("\(error)" == "http://127.0.0.1:\(server.port) (attempt 1): the request was cancelled")
    }

    @Test func `an id is unique over sessions, and stable over retries`() async throws {
        let recorder = Recorder()
        let managers = (0..<4).map { _ in
            let manager = makeManager { $0.eventMonitors = [recorder] }
            manager.retrier = Retrier.attempts(1)
            return manager
        }
        let requests = managers.flatMap { manager in (0..<8).map { _ in manager.request(server.url("/text")).validate() } }
        for request in requests {
            let failed = try await failure { try await request.serializingData().value }.1
            #expect(failed.id == request.id)
        }
        let ids = requests.map(\.id)
        #expect(Set(ids).count == requests.count)
        #expect(!ids.contains(0))
        // Two tasks, two completions and the finish of each.
        await recorder.ids.wait(for: 5 * requests.count)
        #expect(recorder.ids.elements.sorted() == ids.flatMap { Array(repeating: $0, count: 5) }.sorted())
        let expected = (1...2).map { "GET \(server.url("/text")) (attempt \($0)): status 404 is not acceptable" }
        #expect(Set(recorder.errors.elements) == Set(expected))
    }
}
