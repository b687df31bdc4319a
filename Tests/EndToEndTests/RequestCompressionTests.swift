// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct RequestCompressionTests {
    private let server: LoopbackServer
    private let manager = makeManager()
    private let text = ServerRoutes.text(count: 100_000)

    init() throws {
        // Returns the body with its coding, which the session decodes: the response is what was compressed.
        server = try LoopbackServer { request, _ in
            let coding = request.header("Content-Encoding").map { [ServerField("Content-Encoding", $0)] } ?? []
            return ServerResponse(status: 200, headers: coding, body: .data(request.body))
        }
    }

    private func body(_ request: DataRequest) async throws -> Data {
        try await request.validate().serializingData().value
    }

    private var last: ServerRequest? { server.requests.last }

    @Test("bodies of requests and uploads are compressed", arguments: RequestCompression.Coding.allCases)
    func compresses(_ coding: RequestCompression.Coding) async throws {
        manager.adapter = RequestCompression(coding)
        let long = String(decoding: text, as: UTF8.self)
        let parameters = try await body(manager.request(server.url("/"), method: .post, parameters: ["a": long], encoding: JSONEncoding()))
        #expect(try JSONDecoder().decode([String: String].self, from: parameters) == ["a": long])
        #expect(try await body(manager.upload(text, to: server.url("/"))) == text)
        for request in server.requests {
            #expect(request.header("Content-Encoding") == coding.rawValue)
            #expect(request.bodyLength < 5_000)
            #expect(request.header("Content-Length") == "\(request.bodyLength)")
        }
        #expect(server.requestCount == 2)
    }

    @Test("a form in memory is compressed; a form on disk, a file and a stream are sent unchanged") func kinds() async throws {
        manager.adapter = RequestCompression.gzip
        let (url, text) = (server.url("/"), text)
        for (threshold, isCompressed) in [(UInt64(1_000_000), true), (0, false)] {
            let request = try await withTrackedContinuation { continuation in
                manager.upload(multipartFormData: { $0.append(text, withName: "a") }, usingThreshold: threshold, to: url) {
                    continuation.resume(returning: $0)
                }
            }.get()
            #expect(try await body(request).firstRange(of: text) != nil)
            #expect((last?.header("Content-Encoding") == "gzip") == isCompressed)
        }
        let directory = try TemporaryDirectory()
        #expect(try await body(manager.upload(directory.write(text, to: "text"), to: url)) == text)
        #expect(last?.header("Content-Encoding") == nil)
        #expect(try await body(manager.upload(InputStream(data: text), to: url)) == text)
        #expect(last?.header("Content-Encoding") == nil)
    }

    @Test("empty and small bodies and those that a closure excludes are sent unchanged") func uncompressed() async throws {
        let url = server.url("/")
        manager.adapter = RequestCompression(.gzip, minimumSize: 100) { $0.first != UInt8(ascii: "x") }
        for (body, isCompressed) in [
            (Data(count: 99), false), (Data(count: 100), true), (Data("x".utf8) + Data(count: 100), false), (Data(), false),
        ] {
            #expect(try await self.body(manager.upload(body, to: url)) == body)
            #expect((last?.header("Content-Encoding") == "gzip") == isCompressed, "\(body.count)")
        }
        #expect(await manager.request(url).serializingData().response.error == nil)
        #expect(last?.header("Content-Encoding") == nil)
        #expect(last?.header("Content-Length") == nil)
    }

    @Test("an already encoded body fails, is encoded again or is sent unchanged") func duplicates() async throws {
        let url = server.url("/")
        func upload(_ behavior: RequestCompression.DuplicateHeaderBehavior) -> UploadRequest {
            manager.adapter = RequestCompression(.gzip, duplicateHeaderBehavior: behavior)
            return manager.upload(text, to: url, headers: ["content-encoding": "identity"])
        }
        let failed = await upload(.error).serializingData().response
        guard case CurlewError.urlRequestValidationFailed(.bodyAlreadyEncoded("identity"), _)? = failed.error else {
            Issue.record("\(String(describing: failed.error))")
            return
        }
        #expect(server.connectionCount == 0)
        #expect(try await body(upload(.replace)) == text)
        #expect(last?.headers(named: "Content-Encoding") == ["gzip"])
        #expect(await upload(.skip).serializingData().response.error == nil)
        #expect(last?.headers(named: "Content-Encoding") == ["identity"])
        #expect(last?.bodyLength == 100_000)
    }

    @Test("a body that is not in memory is sent unchanged, or fails where that is wanted", arguments: [false, true])
    func streamedBodies(isAsync: Bool) async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(text, to: "file")
        let url = server.url("/")
        let form = MultipartFormData()
        form.append(text, withName: "text")
        var streamed = URLRequest(url: try url.asURL())
        streamed.httpMethod = "POST"
        func requests(_ behavior: RequestCompression.StreamedBodyBehavior) -> [DataRequest] {
            let compression = RequestCompression(.gzip, streamedBodyBehavior: behavior)
            let wait = CurlewCore.Adapter { request async throws in request }
            let interceptor = Interceptor(adapters: isAsync ? [wait, compression] : [compression])
            streamed.httpBodyStream = InputStream(data: text)
            return [
                manager.upload(file, to: url, interceptor: interceptor),
                manager.upload(InputStream(data: text), to: url, interceptor: interceptor),
                manager.upload({ AsyncStream<Data> { $0.finish() } }, to: url, interceptor: interceptor),
                manager.upload(form, to: url, interceptor: interceptor), manager.request(streamed, interceptor: interceptor),
            ]
        }
        for request in requests(.error) {
            let error = await request.serializingData().response.error
            #expect(error is RequestCompression.StreamedBodyError, "\(String(describing: error))")
        }
        #expect(server.connectionCount == 0)
        for request in requests(.skip) {
            #expect(await request.serializingData().response.error == nil)
            #expect(last?.header("Content-Encoding") == nil)
        }
        manager.adapter = RequestCompression(.gzip, streamedBodyBehavior: .error)
        #expect(try await body(manager.upload(text, to: url)) == text)
        #expect(last?.header("Content-Encoding") == "gzip")
    }

    @Test("a retry does not compress again") func retry() async throws {
        let flaky = try LoopbackServer.standard()
        manager.adapter = RequestCompression.deflate
        manager.retrier = Retrier.attempts(2)
        let text = try await manager.upload(text, to: flaky.url("/flaky?fail=2")).validate().serializingString().value
        #expect(text == "Attempt 3")
        #expect(Set(flaky.requests.map(\.bodyChecksum)).count == 1)
        #expect(flaky.requests.map { $0.headers(named: "Content-Encoding") } == Array(repeating: ["deflate"], count: 3))
    }

    @Test("an adapter sees an upload's bytes and may remove them") func adapterSeesBody() async throws {
        let seen = Log<Data?>()
        manager.adapter = Adapter { request in
            seen.append(request.httpBody)
            request.httpBody = nil
        }
        #expect(try await body(manager.upload(Data("body".utf8), to: server.url("/"))) == Data())
        #expect(seen.elements == [Data("body".utf8)])
    }
}

extension SessionManager.MultipartFormDataEncodingResult {
    fileprivate func get() throws -> UploadRequest {
        switch self {
        case .success(let request, _, _): request
        case .failure(let error): throw error
        }
    }
}
