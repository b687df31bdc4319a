// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import Testing

/// What a mock transport does with the bodies of uploads and downloads.
@Suite(.timeLimit(.minutes(1))) struct MockBodyTests {
    private let mock = MockTransport()
    private let url = "https://files.example.org/file"
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makeManager(_ retrier: (any RequestInterceptor)? = nil) -> SessionManager {
        let url = directory.url
        return SessionManager(mock: mock, interceptor: retrier) { $0.temporaryDirectory = url }
    }

    @Test("bodies of all kinds are recorded as data") func uploads() async throws {
        mock.stub(respond: .status(204))
        let manager = makeManager()
        let bytes = GeneratedBody().data(count: 300_000)
        let file = try directory.write(bytes, to: "body")
        let pieces = AsyncStream { continuation in
            for start in stride(from: 0, to: bytes.count, by: 10_000) { continuation.yield(Data(bytes[start..<start + 10_000])) }
            continuation.finish()
        }
        _ = await manager.upload(bytes, to: url).serializingData().response
        _ = await manager.upload(file, to: url).serializingData().response
        _ = await manager.upload(InputStream(data: bytes), to: url).serializingData().response
        _ = await manager.upload(pieces, to: url).serializingData().response
        #expect(mock.requests.count == 4)
        for request in mock.requests { #expect(request.method == .post && request.body == bytes) }
    }

    @Test("forms can be read") func forms() async throws {
        mock.stub(respond: .status(204))
        let manager = makeManager()
        _ = await manager.request(url, method: .post, parameters: ["name": "a b", "n": 1]).serializingData().response
        #expect(Set(mock.requests[0].form.map { "\($0.name)=\($0.value)" }) == ["name=a b", "n=1"])
        let form = MultipartFormData()
        form.append(Data("part".utf8), withName: "file")
        _ = await manager.upload(form, to: url).serializingData().response
        #expect(mock.requests[1].text?.contains(#"name="file""#) == true && mock.requests[1].text?.contains("part") == true)
    }

    @Test("a retried upload is recorded twice, whole") func retriedUpload() async throws {
        mock.stub(respond: .failure(.connectionLost), .status(200))
        let manager = makeManager(Retrier { _, _, _ async in .retry })
        _ = try await manager.upload(Data("body".utf8), to: url, method: .put).validate().serializingData().value
        #expect(mock.requests.map(\.text) == ["body", "body"])
    }

    @Test("a cut download resumes from its bytes") func resumption() async throws {
        let bytes = GeneratedBody().data(count: 1_000_000)
        mock.stub(respond: .resource(bytes, etag: "\"v1\"").failing(after: 400_000), .resource(bytes, etag: "\"v1\""))
        let target = directory.file("target")
        let manager = makeManager(Retrier { _, _, _ async in .retry })
        _ = try await manager.download(url, to: target).validate().serializingURL().value
        #expect(try Data(contentsOf: target) == bytes)
        #expect(mock.requests.map { $0.headers["Range"] } == [nil, "bytes=400000-"])
        #expect(mock.requests[1].headers["If-Range"] == "\"v1\"")
    }

    @Test("ranges of a resource: satisfiable or not, of another version, unchanged") func ranges() async throws {
        mock.stub(respond: .resource(Data("0123456789".utf8), etag: "\"v1\""))
        let manager = makeManager()
        func get(_ headers: HTTPHeaders) async -> String {
            let response = await manager.request(url, headers: headers).serializingString().response
            return "\(response.response?.statusCode ?? 0) \(String(decoding: response.data ?? Data(), as: UTF8.self))"
        }
        #expect(await get(["Range": "bytes=2-4"]) == "206 234")
        #expect(await get(["Range": "bytes=-2"]) == "206 89")
        #expect(await get(["Range": "bytes=10-"]) == "416 ")
        #expect(await get(["Range": "bytes=2-", "If-Range": "\"v0\""]) == "200 0123456789")
        #expect(await get(["If-None-Match": "\"v1\""]) == "304 ")
    }

    @Test("cancelling ends a stalled exchange, suspending holds one up") func control() async throws {
        mock.stub("/stalled", respond: .stalled)
        mock.stub("/body", respond: .text("0123456789").stalling(after: 4))
        let (suspension, isSuspended) = AsyncStream.makeStream(of: Void.self)
        mock.stub("/text") { _ in
            for await _ in suspension {}
            return .text("text")
        }
        let manager = makeManager()
        let stalled = manager.request("https://files.example.org/stalled")
        async let response = stalled.serializingData().response
        try await mock.waitForRequests(1)
        stalled.cancel()
        guard case CurlewError.cancelled? = await response.error else {
            Issue.record("not cancelled")
            return
        }
        // A suspended request is at the transport, which doesn't perform it.
        let suspended = manager.request("https://files.example.org/text")
        try await mock.waitForRequests(2)
        suspended.suspend()
        isSuspended.finish()
        let isResumed = Log<Bool>()
        async let text = suspended.serializingString().response
        Task {
            isResumed.append(true)
            suspended.resume()
        }
        #expect(await text.value == "text")
        #expect(isResumed.count == 1)
        var received = Data()
        let partial = manager.streamRequest("https://files.example.org/body")
        for try await piece in partial.bodyStream() {
            received += piece
            if received.count == 4 { break }
        }
        #expect(received == Data("0123".utf8))
    }

    @Test("waiting for requests that do not come tells which have") func noRequest() async throws {
        mock.stub(respond: .status(200))
        _ = await makeManager().request("https://files.example.org/one").serializingData().response
        let error = await #expect(throws: MockWaitTimedOut.self) {
            try await mock.waitForRequests(2, timeout: .milliseconds(20))
        }
        #expect("\(try #require(error))" == "2 requests were expected, 1 have come:\n  GET https://files.example.org/one")
        #expect(error?.errorDescription == error?.description)
    }
}
