// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewRequests

/// How a request's description is turned into what is sent.
@Suite(.timeLimit(.minutes(1)))
struct BuildingTests {
    /// Returns the request received by the server, regardless of its response.
    private func sent(_ change: (SampleRequest, Stage) throws -> Void) async throws -> ServerRequest {
        let stage = try Stage { request, _ in .ok(request.body, type: request.header("Content-Type") ?? "text/plain") }
        let request = SampleRequest(stage)
        request.responseSerializer = .http
        try change(request, stage)
        #expect(await run(request) == .succeeded, "\(request.error.debugDescription)")
        return try #require(stage.server.requests.first)
    }

    private func url(base: String, _ path: String, _ change: (SampleRequest, Stage) -> Void = { _, _ in }) throws -> String {
        let stage = try Stage.standard()
        stage.configuration.baseUrl = base
        let request = SampleRequest(stage, path)
        change(request, stage)
        return try stage.agent.buildRequestUrl(request).absoluteString
    }

    // MARK: URL

    @Test(arguments: [
        ("http://h/v1/", "foo", "http://h/v1/foo"),
        ("http://h/v1", "foo", "http://h/v1/foo"),
        ("http://h/v1/", "/foo", "http://h/foo"),
        ("http://h/v1/", "../foo?a=b", "http://h/foo?a=b"),
        ("http://h/v1/", "", "http://h/v1/"),
        ("http://h/v1/", "https://other/x", "https://other/x"),
        ("http://h/v1/", "a b?c=d é", "http://h/v1/a%20b?c=d%20%C3%A9"),
        ("http://h/v1/", "a%20b?f[n]=c%2Fd|", "http://h/v1/a%20b?f%5Bn%5D=c%2Fd%7C"),
        ("http://h/v1/", "https://[::1]/a%20b?f[n]=1", "https://[::1]/a%20b?f%5Bn%5D=1"),
        ("", "http://other/a%20b[", "http://other/a%20b%5B"),
        ("", "http://other/x", "http://other/x"),
    ])
    func `URLs are resolved against a base that ends in a slash`(_ base: String, _ path: String, _ expected: String) throws {
        #expect(try url(base: base, path) == expected)
    }

    @Test(arguments: [("", "foo"), ("", ""), ("no base", "foo"), ("http://", "foo")])
    func `a URL without a host is an error`(_ base: String, _ path: String) {
        #expect(throws: CurlewError.self) { try url(base: base, path) }
    }

    @Test func `the CDN replaces the base URL, and the request's URLs override the configuration's`() throws {
        func base(_ usesCDN: Bool, own: Bool) throws -> String {
            try url(base: "http://base/", "x") { request, stage in
                stage.configuration.cdnUrl = "http://cdn/"
                request.usesCDN = usesCDN
                if own { (request.base, request.cdn) = ("http://own-base/", "http://own-cdn/") }
            }
        }
        #expect(try base(false, own: false) == "http://base/x")
        #expect(try base(true, own: false) == "http://cdn/x")
        #expect(try base(false, own: true) == "http://own-base/x")
        #expect(try base(true, own: true) == "http://own-cdn/x")
    }

    @Test func `filters change relative URLs in order and leave absolute ones unchanged`() throws {
        let change: (SampleRequest, Stage) -> Void = { _, stage in
            stage.configuration.addUrlFilter(UrlArgumentsFilter(arguments: ["v": "1 0"]))
            stage.configuration.addUrlFilter(UrlArgumentsFilter(arguments: ["w": "2"]))
        }
        #expect(try url(base: "http://h/", "x?a=b#c", change) == "http://h/x?a=b&v=1%200&w=2#c")
        #expect(try url(base: "http://h/", "http://h/x", change) == "http://h/x")
    }

    @Test func `filters and base URL can be changed between two starts`() async throws {
        let stage = try Stage.standard()
        stage.configuration.addUrlFilter(UrlArgumentsFilter(arguments: ["v": "1"]))
        stage.configuration.clearUrlFilter()
        #expect(stage.configuration.urlFilters.isEmpty)
        let request = SampleRequest(stage)
        stage.configuration.baseUrl = ""
        #expect(await run(request) == .failed)
        stage.configuration.baseUrl = stage.server.url("")
        #expect(await run(request) == .succeeded)
    }

    // MARK: Argument

    @Test(arguments: [
        (HTTPMethod.get, RequestSerializerType.http, "a=1&b=x%20y", "", ""),
        (.get, .json, "a=1&b=x%20y", "", ""),
        (.delete, .json, "a=1&b=x%20y", "", ""),
        (.post, .http, "", "a=1&b=x%20y", "application/x-www-form-urlencoded; charset=utf-8"),
        (.patch, .http, "", "a=1&b=x%20y", "application/x-www-form-urlencoded; charset=utf-8"),
        (.post, .json, "", #"{"a":1}"#, "application/json"),
        (.put, .json, "", #"{"a":1}"#, "application/json"),
    ])
    func `the argument is encoded in the query or the body`(
        _ method: HTTPMethod, _ serializer: RequestSerializerType, _ query: String, _ body: String, _ type: String
    ) async throws {
        let request = try await sent { request, _ in
            request.method = method
            request.serializer = serializer
            request.argument = body.hasPrefix("{") ? ["a": 1] : ["a": 1, "b": "x y"] as [String: Any]
        }
        #expect(request.method == method.rawValue)
        #expect(request.target == "/json" + (query.isEmpty ? "" : "?" + query))
        #expect(String(decoding: request.body, as: UTF8.self) == body)
        #expect(request.header("Content-Type") ?? "" == type)
    }

    private struct Model: Encodable {
        var name = "x"
    }

    @Test func `JSON accepts arrays and Encodable values`() async throws {
        func body(_ argument: Any) async throws -> String {
            let request = try await sent { request, _ in
                (request.method, request.serializer, request.argument) = (.post, .json, argument)
            }
            #expect(request.header("Content-Type") == "application/json")
            return String(decoding: request.body, as: UTF8.self)
        }
        #expect(try await body([1, 2]) == "[1,2]")
        #expect(try await body(Model()) == #"{"name":"x"}"#)
    }

    @Test func `an argument that cannot be encoded fails the request`() async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage)
        request.argument = 1
        #expect(await run(request) == .failed)
        guard case .parameterEncodingFailed? = request.error as? CurlewError else {
            Issue.record("\(request.error.debugDescription)")
            return
        }
        #expect(stage.server.requests.isEmpty)
    }

    // MARK: The rest

    @Test func `header fields and credentials are sent`() async throws {
        let request = try await sent { request, _ in
            request.headers = ["X-A": "1"]
            request.credentials = ["user", "ignored", "pass"]
            request.requestPriority = .high
        }
        #expect(request.header("X-A") == "1")
        #expect(request.header("Authorization") == "Basic dXNlcjpwYXNz")
        #expect(request.header("Priority") == "u=1")
    }

    @Test(arguments: [["us:er", "pass"], ["us:\u{301}er", "pass"], [":", "pass"], ["user", "pa\r\nss"]])
    func `credentials that Basic cannot send fail the request`(_ credentials: [String]) async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage)
        request.credentials = credentials
        #expect(await run(request) == .failed)
        #expect("\(try #require(request.error).localizedDescription)".contains("RFC 7617"))
        #expect(RequestErrors.isRequestError(try #require(request.error)) && stage.server.requests.isEmpty)
    }

    @Test(arguments: ["abc\n", "a\r\nb", "a\u{0}"])
    func `a header field that Foundation drops fails the request, and the error names it`(_ value: String) async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage)
        request.headers = ["x-token": value, "X-A": "1"]
        #expect(await run(request) == .failed)
        #expect("\(try #require(request.error))".lowercased().contains("x-token"))
        #expect(stage.server.requests.isEmpty)
    }

    @Test func `a custom request is sent unchanged, without filters`() async throws {
        let request = try await sent { request, stage in
            stage.configuration.addUrlFilter(UrlArgumentsFilter(arguments: ["v": "1"]))
            var custom = URLRequest(url: URL(fileURLWithPath: "/"))
            custom.url = URL(string: stage.server.url("/custom"))
            custom.httpMethod = "PUT"
            custom.httpBody = Data("body".utf8)
            request.custom = custom
            request.headers = ["X-A": "1"]
            request.argument = ["a": "b"]
            request.onSend = { _ in throw UserError() }
        }
        #expect(request.method == "PUT" && request.target == "/custom")
        #expect(request.header("X-A") == nil)
        #expect(String(decoding: request.body, as: UTF8.self) == "body")
    }

    @Test func `filterUrlRequest changes the request last and may fail it`() async throws {
        let request = try await sent { request, _ in
            request.onSend = { $0.setValue("signed", forHTTPHeaderField: "X-Signature") }
        }
        #expect(request.header("X-Signature") == "signed")
        let stage = try Stage.standard()
        let failing = SampleRequest(stage)
        failing.onSend = { _ in throw UserError(number: 3) }
        #expect(await run(failing) == .failed)
        #expect(failing.error as? UserError == UserError(number: 3))
        #expect(failing.requestTotalCount == 0)
    }

    @Test func `timeout, cache policy and cellular access are taken from the request`() async throws {
        final class Details: BaseRequest, @unchecked Sendable {  // stateless
            override func requestUrl() -> String { "json" }
            override func requestTimeoutInterval() -> TimeInterval { 7 }
            override func requestCachePolicy() -> URLRequest.CachePolicy? { .returnCacheDataDontLoad }
            override func allowsCellularAccess() -> Bool { false }
        }
        let stage = try Stage.standard()
        let request = Details()
        request.agent = stage.agent
        let built = try stage.agent.build(try #require(stage.agent.makeRun(for: request))).urlRequest
        #expect(built.timeoutInterval == 7)
        #expect(built.cachePolicy == .returnCacheDataDontLoad)
        #expect(!built.allowsCellularAccess)
        stage.agent.cancelRequest(request)
    }

    // MARK: Forms

    @Test(arguments: [HTTPMethod.post, .put, .patch, .delete])
    func `a form has the argument's pairs before the block's parts`(_ method: HTTPMethod) async throws {
        let request = try await sent { request, _ in
            request.method = method
            request.argument = ["b": 2, "a": "x y"] as [String: Any]
            request.constructingBodyBlock = { $0.append(Data("bytes".utf8), withName: "file", fileName: "f.txt", mimeType: "text/plain") }
        }
        let form = try MultipartBody(request)
        #expect(form.parts.map { String(decoding: $0.body, as: UTF8.self) } == ["x y", "2", "bytes"])
    }

    @Test func `a form above the memory threshold is sent from a file, which is removed`() async throws {
        let directory = try TemporaryDirectory()
        let source = directory.file("source")
        let size = Int(SessionManager.multipartFormDataEncodingMemoryThreshold)
        try GeneratedBody().data(count: size).write(to: source)
        let work = directory.url.appendingPathComponent("work", isDirectory: true)
        let stage = try Stage { request, _ in Stage.json("\(request.bodyLength)") }
        var session = SessionConfiguration()
        session.temporaryDirectory = work
        stage.configuration.sessionConfiguration = session
        let request = SampleRequest(stage)
        request.method = .post
        request.constructingBodyBlock = { $0.append(source, withName: "file", fileName: "f", mimeType: "a/b") }
        #expect(await run(request) == .succeeded)
        #expect(try #require(request.responseJSONObject as? Int) > size)
        #expect(try FileManager.default.contentsOfDirectory(atPath: work.path).isEmpty)

        // A body set by a filter replaces the form, which the filter cannot see.
        let filtered = SampleRequest(stage)
        filtered.method = .post
        filtered.constructingBodyBlock = request.constructingBodyBlock
        filtered.onSend = { $0.httpBody = Data("sealed".utf8) }
        #expect(await run(filtered) == .succeeded)
        #expect(filtered.responseJSONObject as? Int == 6)
        #expect(try FileManager.default.contentsOfDirectory(atPath: work.path).isEmpty)
    }

    @Test(arguments: [100, Int(SessionManager.multipartFormDataEncodingMemoryThreshold)], [HTTPMethod.get, .put])
    func `a form whose method a filter changes follows that method's rules`(_ size: Int, _ method: HTTPMethod) async throws {
        let request = try await sent { request, stage in
            request.method = .post
            request.constructingBodyBlock = { $0.append(Data(count: size), withName: "file") }
            request.onSend = { $0.httpMethod = method.rawValue }
            stage.configuration.sessionConfiguration = SessionConfiguration()
        }
        #expect(request.method == method.rawValue)
        let isForm = request.header("Content-Type")?.hasPrefix("multipart/form-data") ?? false
        #expect(isForm == (method == .put) && (request.bodyLength > size) == isForm)
        if !isForm { #expect(request.bodyLength == 0) }
    }

    @Test func `a filter's method decides whether there is a download`() async throws {
        let directory = try TemporaryDirectory()
        let stage = try Stage.standard()
        for (method, filtered) in [(HTTPMethod.get, "POST"), (.post, "GET")] {
            let request = SampleRequest(stage)
            request.method = method
            request.resumableDownloadPath = directory.file(filtered).path
            request.constructingBodyBlock = { $0.append(Data("bytes".utf8), withName: "file") }
            request.onSend = { $0.httpMethod = filtered }
            #expect(await run(request) == .succeeded)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["GET"])
        #expect(stage.server.requests.allSatisfy { $0.bodyLength == 0 })
    }

    @Test func `upload progress is reported on the callback queue`() async throws {
        let queues = Log()
        _ = try await sent { request, _ in
            request.method = .post
            request.serializer = .json
            request.argument = ["a": String(repeating: "x", count: 300_000)]
            request.uploadProgressBlock = { progress in if progress.isFinished { queues.note("done") } }
        }
        #expect(queues.all.allSatisfy { $0 == "done @callback" })
    }
}
