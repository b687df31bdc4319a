// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewURLSession
import Testing

@Suite(.timeLimit(.minutes(1))) struct UploadTaskTests {
    private let server: LoopbackServer
    private let delegate = RecordingDelegate()

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func session(_ delegate: (any URLSessionDelegate)? = nil) -> URLSession {
        URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    }

    private func request(_ path: String, _ method: String = "POST") throws -> URLRequest {
        var request = URLRequest(url: try server.address(path))
        request.httpMethod = method
        return request
    }

    // U2.2, U3.6
    @Test func `bytes and files are sent with their length`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("from a file".utf8), to: "body")
        let session = session()
        let (first, _) = try await session.upload(for: request("/body"), from: Data("bytes".utf8))
        let (second, _) = try await session.upload(for: request("/body", "PUT"), fromFile: file)
        #expect(String(decoding: first, as: UTF8.self) == "bytes" && String(decoding: second, as: UTF8.self) == "from a file")
        #expect(server.requests.map { $0.header("Content-Length") } == ["5", "11"])
        #expect(server.requests.map { $0.header("Content-Type") } == ["application/x-www-form-urlencoded", nil])
        withExtendedLifetime(directory) {}
    }

    // U2.1
    @Test func `a streamed upload asks for its stream, again for a redirect that repeats it, and reports what was sent`() async throws {
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        delegate.stream = { InputStream(data: Data("streamed".utf8)) }
        let task = session.uploadTask(withStreamedRequest: try request("/redirect-to?url=/body&status=307"))
        task.resume()
        #expect(await delegate.completion() == nil)
        #expect(String(decoding: delegate.body, as: UTF8.self) == "streamed")
        #expect(delegate.calls.elements.filter { $0 == "stream" }.count == 2)
        #expect(delegate.calls.elements.contains("sent"))
        #expect(delegate.order.suffix(4) == ["response", "data", "metrics", "complete"])
    }

    @Test func `a streamed upload without a stream fails`() async throws {
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        session.uploadTask(withStreamedRequest: try request("/body")).resume()
        #expect((await delegate.completion() as? URLError)?.code == .requestBodyStreamExhausted)
        #expect(server.requestCount == 0)
    }

    @Test func `the stream of a request is sent by a data task`() async throws {
        var request = try request("/body")
        request.httpBodyStream = InputStream(data: Data("own".utf8))
        let (data, _) = try await session().data(for: request)
        #expect(String(decoding: data, as: UTF8.self) == "own")
    }

    @Test func `a missing file fails the task`() async throws {
        let missing = URL(fileURLWithPath: "/nonexistent/file")
        let request = try request("/body")
        await #expect(throws: (any Error).self) { try await session().upload(for: request, fromFile: missing) }
        #expect(server.requestCount == 0)
    }

    // U3.4
    @Test(arguments: [301, 302, 303, 307, 308]) func `a redirect of a POST keeps its method and body as its status says`(
        status: Int
    ) async throws {
        let (data, _) = try await session().upload(for: request("/redirect-to?url=/echo&status=\(status)"), from: Data("body".utf8))
        let echo = try JSONDecoder().decode(EchoReply.self, from: data)
        #expect(echo.method == (status < 307 ? "GET" : "POST"))
        #expect(echo.bodyLength == (status < 307 ? 0 : 4))
    }
}
