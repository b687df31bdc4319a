// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewCore
import CurlewTestSupport
import Testing

/// The global functions, which use `SessionManager.default`: handlers are given a queue here, because the default one is the main queue.
@Suite(.timeLimit(.minutes(2))) struct GlobalFunctionTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    @Test("request, with a URL and with a URLRequest") func request() async throws {
        let reply = try await Curlew.request(server.url("/echo"), method: .post, parameters: ["a": 1], headers: ["X-One": "1"]).validate()
            .serializingDecodable(EchoReply.self).value
        #expect(reply.method == "POST")
        #expect(reply.body == Data("a=1".utf8))
        #expect(reply.header("X-One") == "1")
        #expect(reply.header("User-Agent")?.contains("Curlew/") == true)
        #expect(reply.header("Accept-Language") != nil)
        #expect(reply.header("Accept-Encoding")?.contains("gzip") == true)
        let other = Curlew.request(URLRequest(url: try server.url("/json").asURL()))
        #expect(other.session === SessionManager.default.session)
        #expect(await other.serializingData().response.error == nil)
    }

    @Test("each takes an interceptor and options") func interceptors() async throws {
        let url = server.url("/echo")
        let adapter = CurlewCore.Adapter { request in
            var request = request
            request.setValue("1", forHTTPHeaderField: "X-Adapted")
            return request
        }
        let options = RequestOptions(name: "echo")
        let plain = URLRequest(url: try url.asURL())
        let requests = [
            Curlew.request(url, interceptor: adapter, options: options), Curlew.request(plain, interceptor: adapter, options: options),
            Curlew.upload(Data(), to: url, interceptor: adapter, options: options),
            Curlew.upload(Data(), with: plain, interceptor: adapter, options: options),
            Curlew.upload(MultipartFormData(), to: url, interceptor: adapter, options: options),
        ]
        for request in requests {
            #expect(request.name == "echo")
            #expect(try await request.validate().serializingDecodable(EchoReply.self).value.header("X-Adapted") == "1")
        }
        let download = Curlew.download(url, interceptor: adapter, requestOptions: options)
        #expect(try await download.validate().serializingDecodable(EchoReply.self).value.header("X-Adapted") == "1")
        #expect(download.name == "echo")
    }

    @Test("a request's handler") func handler() async throws {
        let statuses = Log<Int?>()
        Curlew.request(server.url("/json")).validate().responseData(queue: callbackQueue) { statuses.append($0.response?.statusCode) }
        await statuses.wait(for: 1)
        #expect(statuses.elements == [200])
    }

    @Test("download, with a closure, with a URLRequest") func download() async throws {
        let directory = try TemporaryDirectory()
        let url = server.url("/bytes/1000")
        let (first, second) = (directory.file("first"), directory.file("second"))
        _ = try await Curlew.download(URLRequest(url: url.asURL()), to: { _, _ in (first, []) }).validate().serializingURL().value
        _ = try await Curlew.download(url, to: { _, _ in (second, []) }).validate().serializingURL().value
        #expect(try contents(of: directory) == ["first", "second"])
    }

    @Test("download, from resume data") func resumeData() async throws {
        let directory = try TemporaryDirectory()
        let ranges = try RangeServer(.cut(after: RangeServer.half), .cut(after: 1))
        let first = await SessionManager.default.download(ranges.url, to: directory.file("first")).serializingURL().response
        let second = await Curlew.download(resumingWith: try #require(first.resumeData)).serializingURL().response
        let data = try #require(second.resumeData)
        _ = try await Curlew.download(resumingWith: data, to: { [third = directory.file("third")] _, _ in (third, []) }).validate()
            .serializingURL().value
        #expect(ranges.ranges == [nil, "bytes=400000-", "bytes=400001-"])
        #expect(try contents(of: directory) == ["third"])
    }

    @Test("upload, of data, a file and a stream") func upload() async throws {
        let directory = try TemporaryDirectory()
        let body = Data("body".utf8)
        let url = server.url("/body")
        for request in [
            Curlew.upload(body, to: url), Curlew.upload(try directory.write(body, to: "body"), to: url),
            Curlew.upload(InputStream(data: body), to: url),
        ] {
            #expect(try await request.validate().serializingData().value == body)
        }
    }

    @Test("every function takes an interceptor and options") func settings() async throws {
        let directory = try TemporaryDirectory()
        let url = server.url("/echo")
        let options = RequestOptions(deadline: .seconds(60), name: "name")
        let adapter = CurlewCore.Adapter { request in
            var request = request
            request.setValue("1", forHTTPHeaderField: "X-Adapted")
            return request
        }
        let body = Data("body".utf8)
        let file = try directory.write(body, to: "body")
        let urlRequest = try URLRequest(url: url, method: .post)
        let interceptor = Interceptor(adapters: [adapter])
        let form = MultipartFormData()
        form.append(body, withName: "part")
        let requests: [DataRequest] = [
            Curlew.request(url, interceptor: interceptor, options: options),
            Curlew.request(urlRequest, interceptor: interceptor, options: options),
            Curlew.upload(body, to: url, interceptor: interceptor, options: options),
            Curlew.upload(body, with: urlRequest, interceptor: interceptor, options: options),
            Curlew.upload(file, to: url, interceptor: interceptor, options: options),
            Curlew.upload(file, with: urlRequest, interceptor: interceptor, options: options),
            Curlew.upload(InputStream(data: body), to: url, interceptor: interceptor, options: options),
            Curlew.upload(InputStream(data: body), with: urlRequest, interceptor: interceptor, options: options),
            Curlew.upload(form, to: url, interceptor: interceptor, options: options),
            Curlew.upload(form, with: urlRequest, interceptor: interceptor, options: options),
        ]
        for (index, request) in requests.enumerated() {
            let reply = try await request.validate().serializingDecodable(EchoReply.self).value
            #expect(reply.header("X-Adapted") == "1" && request.name == "name", "\(index)")
        }
        let downloads = [
            Curlew.download(url, interceptor: interceptor, requestOptions: options),
            Curlew.download(urlRequest, interceptor: interceptor, requestOptions: options),
        ]
        for (index, request) in downloads.enumerated() {
            let response = await request.validate().serializingDecodable(EchoReply.self).response
            #expect(try response.result.get().header("X-Adapted") == "1" && request.name == "name", "\(index)")
            if let file = response.temporaryURL, response.destinationURL == nil { try FileManager.default.removeItem(at: file) }
        }
        #expect(Curlew.download(resumingWith: Data(), requestOptions: options).name == "name")
        #expect(Curlew.stream(withHostName: "127.0.0.1", port: 0, options: options).name == "name")
    }

    @Test("a form that is encoded for its upload has its caller's deadline") func formDeadline() async throws {
        let results = Log<TransferFailure.Kind?>()
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return nil
        }
        defer { gate.open() }
        await withDeadline(.milliseconds(300)) {
            Curlew.upload(
                multipartFormData: { $0.append(Data("a".utf8), withName: "a") }, to: server.url("/"), queue: callbackQueue
            ) { result in
                guard case .success(let request, _, _) = result else { return results.append(nil) }
                request.response(queue: callbackQueue) { response in
                    if case CurlewError.transferFailed(let failure)? = response.error { return results.append(failure.kind) }
                    results.append(nil)
                }
            }
        }
        #expect(await results.first() == .some(.deadline))
    }

    @Test("stream") func stream() async throws {
        let echo = try TCPEchoServer()
        let stream = Curlew.stream(withHostName: "127.0.0.1", port: echo.port)
        try await stream.write(Data("hello".utf8))
        stream.closeWrite()
        var received = Data()
        for try await piece in stream.bytes() { received += piece }
        #expect(received == Data("hello".utf8))
        try await stream.waitUntilCompleted()
    }
}
