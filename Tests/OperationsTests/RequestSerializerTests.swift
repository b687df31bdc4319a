// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewOperations

@Suite(.timeLimit(.minutes(1))) struct RequestSerializerTests {
    private let url: URL

    init() throws {
        url = try #require(URL(string: "http://example.org/path?old=1"))
    }

    private func body(_ request: URLRequest) -> String { String(decoding: request.httpBody ?? Data(), as: UTF8.self) }

    // MARK: Queries

    static let queries: [(parameters: @Sendable () -> [String: Any], query: String)] = [
        ({ ["key": "value"] }, "key=value"),
        ({ ["key1": ["nested": "value1"], "key2": ["key": ["1"]]] }, "key1%5Bnested%5D=value1&key2%5Bkey%5D%5B%5D=1"),
        ({ ["b": [2, 1], "a": true] }, "a=1&b%5B%5D=2&b%5B%5D=1"),
        ({ ["set": Set(["b", "a"])] }, "set=a&set=b"),
        ({ ["null": NSNull(), "z": 1] }, "null&z=1"),
        ({ ["a b": "c&d=é?/~"] }, "a%20b=c%26d%3D%C3%A9?/~"),
        ({ ["🇺🇳": String(repeating: "👨‍👩‍👧‍👦", count: 3)] }, ""),
        ({ [:] }, ""),
    ]

    @Test("parameters become a query, with sorted names and nested ones in brackets", arguments: queries.indices)
    func query(_ index: Int) throws {
        let (parameters, query) = Self.queries[index]
        let request = try HTTPRequestSerializer().request(method: "GET", url: url, parameters: parameters())
        let text = try #require(request.url?.absoluteString)
        if index == 6 {
            #expect(text.removingPercentEncoding?.contains("👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦") == true)
        } else {
            #expect(text == "http://example.org/path?old=1\(query.isEmpty ? "" : "&" + query)")
        }
        #expect(request.httpBody == nil)
    }

    @Test(
        "a header field that Foundation drops stays, so that the request is refused, and the error names it",
        arguments: ["abc\n", "abc\r\nX-Other: 1", "\"\r\n\u{301}X-Other: 1", "\\\u{0}", "\u{1B}", "\u{7F}"]
    ) func fieldWithLineBreak(_ token: String) async throws {
        let serializer = HTTPRequestSerializer()
        serializer.setAuthorizationHeader(token: token)
        let request = try serializer.request(method: "GET", url: url)
        #expect(request.value(forHTTPHeaderField: "Authorization") == "Token token=\(token.quotedString)")
        let operation = HTTPRequestOperation(request: request)
        await withTrackedContinuation { ended in
            operation.completionBlock = { ended.resume() }
            operation.start()
        }
        #expect("\(try #require(operation.error))".contains("Authorization"))
    }

    @Test(
        "a token adds no parameter to its field",
        arguments: [
            ("a\", admin=\"1", #""a\", admin=\"1""#), (#"a\"#, #""a\\""#), (#"\", b="\"#, #""\\\", b=\"\\""#),
            ("\"\u{301}\\\u{200D}", "\"\\\"\u{301}\\\\\u{200D}\""), ("a\tb", "\"a\tb\""), ("", "\"\""),
        ]) func quotedToken(_ token: String, _ quoted: String) throws
    {
        let serializer = HTTPRequestSerializer()
        serializer.setAuthorizationHeader(token: token)
        let value = try #require(serializer.request(method: "GET", url: url).value(forHTTPHeaderField: "Authorization"))
        #expect(Array(value.utf8) == Array("Token token=\(quoted)".utf8))
    }

    @Test("other methods have a form body, even an empty one", arguments: ["POST", "PUT", "PATCH"])
    func formBody(method: String) throws {
        let serializer = HTTPRequestSerializer()
        let request = try serializer.request(method: method, url: url, parameters: ["a": [1]])
        #expect(body(request) == "a%5B%5D=1" && request.url == url)
        let empty = try serializer.request(method: method, url: url)
        #expect(empty.httpBody == Data())
        #expect(empty.value(forHTTPHeaderField: "Content-Type") == "application/x-www-form-urlencoded; charset=utf-8")
        serializer.httpMethodsEncodingParametersInURI = [method]
        #expect(try serializer.request(method: method, url: url, parameters: ["a": 1]).url?.query == "old=1&a=1")
    }

    @Test("a closure can encode the query, and can fail")
    func queryBlock() throws {
        let serializer = HTTPRequestSerializer()
        serializer.setQueryStringSerialization { _, parameters in "\(parameters as? Int ?? 0)" }
        #expect(try serializer.request(method: "GET", url: url, parameters: 7).url?.query == "old=1&7")
        serializer.stringEncoding = .utf16
        #expect(try serializer.request(method: "POST", url: url, parameters: 7).httpBody == "7".data(using: .utf16))
        serializer.setQueryStringSerialization { _, _ in "é=日" }
        serializer.stringEncoding = .isoLatin1
        // Sent without its body, the request would succeed with nothing.
        let error = #expect(throws: OperationError.self) { try serializer.request(method: "POST", url: url, parameters: 7) }
        guard case .bodyNotEncodable(.isoLatin1)? = error else {
            Issue.record("not bodyNotEncodable: \(String(describing: error))")
            return
        }
        serializer.setQueryStringSerialization { _, _ in "é=1" }
        #expect(try serializer.request(method: "POST", url: url, parameters: 7).httpBody == "é=1".data(using: .isoLatin1))
        serializer.setQueryStringSerialization { _, _ in throw TestError("no") }
        #expect(throws: TestError("no")) { try serializer.request(method: "GET", url: url, parameters: 7) }
        #expect(throws: OperationError.self) { try HTTPRequestSerializer().request(method: "GET", url: url, parameters: 7) }
        #expect(throws: CurlewError.self) { try HTTPRequestSerializer().request(method: "NO METHOD", url: url) }
    }

    // MARK: Header fields and settings

    @Test("the request's own header fields take precedence over the serializer's")
    func headers() throws {
        let serializer = HTTPRequestSerializer()
        #expect(serializer.value(forHTTPHeaderField: "Accept-Language")?.isEmpty == false)
        #expect(serializer.value(forHTTPHeaderField: "User-Agent")?.utf8.allSatisfy { $0 < 0x7F } == true)
        serializer.setValue("theirs", forHTTPHeaderField: "X-One")
        var request = URLRequest(url: url)
        request.setValue("mine", forHTTPHeaderField: "x-one")
        #expect(try serializer.request(bySerializing: nil, into: request).value(forHTTPHeaderField: "X-One") == "mine")
        serializer.setAuthorizationHeader(username: "curlew", password: "secret")
        #expect(serializer.value(forHTTPHeaderField: "Authorization") == "Basic Y3VybGV3OnNlY3JldA==")
        serializer.setAuthorizationHeader(token: "t")
        let sent = try serializer.request(method: "GET", url: url)
        #expect(sent.value(forHTTPHeaderField: "Authorization") == #"Token token="t""#)
        serializer.clearAuthorizationHeader()
        serializer.setValue(nil, forHTTPHeaderField: "X-One")
        #expect(serializer.headers["Authorization"] == nil && serializer.headers["X-One"] == nil)
    }

    @Test("settings apply to requests and are copied")
    func settings() throws {
        let serializer = JSONRequestSerializer(writingOptions: .sortedKeys)
        #expect(try serializer.request(method: "GET", url: url).timeoutInterval == 60)
        serializer.timeoutInterval = 5
        serializer.cachePolicy = .reloadIgnoringLocalCacheData
        serializer.httpShouldHandleCookies = false
        serializer.allowsCellularAccess = false
        let copy = serializer.copy()
        serializer.timeoutInterval = 6
        let request = try copy.request(method: "POST", url: url, parameters: ["b": 1, "a": 2])
        #expect(request.timeoutInterval == 5 && request.cachePolicy == .reloadIgnoringLocalCacheData)
        #expect(!request.httpShouldHandleCookies && !request.allowsCellularAccess)
        #expect(body(request) == #"{"a":2,"b":1}"#)
    }

    // MARK: JSON and property lists

    @Test("JSON and property lists are bodies, or queries for methods without a body")
    func bodies() throws {
        let json = JSONRequestSerializer()
        let request = try json.request(method: "POST", url: url, parameters: [1, 2])
        #expect(body(request) == "[1,2]" && request.value(forHTTPHeaderField: "Content-Type") == "application/json")
        #expect(try json.request(method: "GET", url: url, parameters: ["a": 1]).url?.query == "old=1&a=1")
        #expect(throws: CurlewError.self) { try json.request(method: "POST", url: url, parameters: ["a": Date()]) }
        #expect(try json.request(method: "POST", url: url).httpBody == nil)
        let list = PropertyListRequestSerializer(format: .binary)
        let sent = try list.request(method: "PUT", url: url, parameters: ["a": 1])
        let value = try PropertyListSerialization.propertyList(from: sent.httpBody ?? Data(), options: [], format: nil)
        #expect(value as? [String: Int] == ["a": 1])
        #expect(sent.value(forHTTPHeaderField: "Content-Type") == "application/x-plist")
        #expect(throws: OperationError.self) { try list.request(method: "PUT", url: url, parameters: [1]) }
        #expect(try list.request(method: "DELETE", url: url, parameters: ["a": 1]).url?.query == "old=1&a=1")
        #expect(try list.copy().request(method: "PUT", url: url, parameters: ["a": 1]).httpBody == sent.httpBody)
    }

    // MARK: Multipart

    @Test("a form is sent with its exact length, and again after a redirect")
    func multipart() async throws {
        let server = try LoopbackServer { request, _ in
            request.path == "/old" ? .redirect(to: "/new", status: 307) : .ok(request.body, type: request.header("Content-Type") ?? "")
        }
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("file".utf8), to: "one.txt")
        let serializer = HTTPRequestSerializer()
        let target = try #require(URL(string: server.url("/old")))
        let request = try serializer.multipartFormRequest(url: target, parameters: ["a": ["b": 1], "n": NSNull()]) { form in
            form.append(file, withName: "file")
            form.append(Data("data".utf8), withName: "data", fileName: "d.bin", mimeType: "application/x-d")
            form.append(InputStream(data: Data("stream".utf8)), withLength: 6, name: "stream", fileName: "s", mimeType: "text/s")
            form.appendPart(headers: ["X-Part": "yes"], body: Data("own".utf8))
        }
        let operation = HTTPRequestOperation(request: request)
        operation.session = makeSession()
        let text = String(decoding: try await operation.run(), as: UTF8.self)
        let requests = server.requests
        #expect(requests.count == 2 && requests[0].body == requests[1].body)
        #expect(requests[1].header("Content-Length") == "\(text.utf8.count)" && requests[1].header("Transfer-Encoding") == nil)
        for part in [
            "name=\"a[b]\"\r\n\r\n1\r\n", "name=\"n\"\r\n\r\n\r\n", "filename=\"one.txt\"\r\nContent-Type: text/plain\r\n\r\nfile\r\n",
            "filename=\"d.bin\"", "text/s\r\n\r\nstream", "X-Part: yes\r\n\r\nown",
        ] {
            #expect(text.contains(part), "\(part)")
        }
        #expect(try await String(decoding: operation.duplicate().run(), as: UTF8.self) == text)
    }

    @Test("a large form is kept in a file until it has been sent")
    func largeForm() throws {
        let directory = try TemporaryDirectory()
        var stream: MultipartBodyStream?
        do {
            let form = StreamingMultipartFormData()
            form.append(Data(count: 5000), withName: "a")
            stream = try form.bodyStream(limit: 1000, directory: directory.url)
            for name in try contents(of: directory) {
                #expect(try FileManager.default.attributesOfItem(atPath: directory.file(name).path)[.posixPermissions] as? Int == 0o600)
            }
        }
        #expect(try contents(of: directory).count == 1)
        stream = stream?.makeCopy()
        let length = try #require(stream?.length)
        #expect(try #require(stream).readAll().count == Int(length) && length > 5000)
        stream = nil
        #expect(try contents(of: directory).isEmpty)
    }

    @Test("an empty form leaves the request without a body, and a missing file is an error")
    func emptyAndMissing() throws {
        let serializer = HTTPRequestSerializer()
        let empty = try serializer.multipartFormRequest(url: url) { _ in }
        #expect(empty.httpBodyStream == nil && empty.value(forHTTPHeaderField: "Content-Type") == nil)
        #expect(throws: CurlewError.self) {
            try serializer.multipartFormRequest(url: url) { $0.append(URL(fileURLWithPath: "/nowhere/file.txt"), withName: "file") }
        }
        #expect(throws: CurlewError.self) { try serializer.multipartFormRequest(method: "GET", url: url) { _ in } }
    }

    @Test("a file without an extension is a part of type application/octet-stream")
    func withoutExtension() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("all:".utf8), to: "Makefile")
        let request = try HTTPRequestSerializer().multipartFormRequest(url: url) { form in
            form.append(file, withName: "a")
            (form as MultipartFormData).append(try directory.write(Data("text".utf8), to: "b.txt"), withName: "b")
        }
        let body = String(decoding: try #require(request.httpBodyStream).readAll(), as: UTF8.self)
        #expect(body.contains("name=\"a\"; filename=\"Makefile\"\r\nContent-Type: application/octet-stream\r\n\r\nall:"))
        #expect(body.contains("filename=\"b.txt\"\r\nContent-Type: text/plain\r\n"))
        #expect(throws: CurlewError.self) {
            try HTTPRequestSerializer().multipartFormRequest(url: url) { $0.append(directory.file("nothing"), withName: "a") }
        }
    }

    @Test("a throttled body is read in packets, with a delay between them")
    func throttle() throws {
        let form = StreamingMultipartFormData()
        form.append(Data(count: 3000), withName: "a")
        form.throttleBandwidth(packetSize: 1000, delay: .milliseconds(20))
        let stream = try #require(try form.bodyStream(directory: FileManager.default.temporaryDirectory))
        let start = ContinuousClock.now
        stream.open()
        var sizes: [Int] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while case let count = stream.read(&buffer, maxLength: buffer.count), count > 0 { sizes.append(count) }
        stream.close()
        #expect(sizes.allSatisfy { $0 <= 1000 } && sizes.reduce(0, +) == Int(stream.length) && sizes.count >= 4)
        #expect(ContinuousClock.now - start >= .milliseconds(20 * (sizes.count - 1)))
        #expect(StreamingMultipartFormData.suggestedThrottle3G.packetSize == 16384)
        #expect(StreamingMultipartFormData.suggestedThrottle3G.delay == .milliseconds(200))
    }

    @Test("a form's body can be written to a file")
    func toFile() async throws {
        let directory = try TemporaryDirectory()
        let serializer = HTTPRequestSerializer()
        let request = try serializer.multipartFormRequest(url: url) { $0.append(Data("data".utf8), withName: "a") }
        let file = directory.file("body")
        let (result, error) = await withTrackedContinuation { continuation in
            let result = Lock<URLRequest?>(nil)
            let gate = Gate()
            let changed = serializer.request(
                withMultipartFormRequest: request, writingStreamContentsToFile: file, queue: callbackQueue
            ) { error in
                gate.wait()
                continuation.resume(returning: (result.withLock { $0 }, error))
            }
            result.withLock { $0 = changed }
            gate.open()
        }
        #expect(error == nil && result?.httpBodyStream == nil)
        #expect(result?.value(forHTTPHeaderField: "Content-Type") == request.value(forHTTPHeaderField: "Content-Type"))
        #expect(try "\(Data(contentsOf: file).count)" == request.value(forHTTPHeaderField: "Content-Length"))
        let failure: (any Error)? = await withTrackedContinuation { continuation in
            _ = serializer.request(
                withMultipartFormRequest: request, writingStreamContentsToFile: directory.file("no/body"), queue: callbackQueue
            ) { continuation.resume(returning: $0) }
        }
        #expect(failure != nil)
    }

    @Test("a body that can't be read keeps the existing file and leaves no other")
    func toFileFails() async throws {
        /// Gives some bytes, then an error.
        final class BrokenStream: InputStream {
            var isFirst = true

            override func open() {}
            override func close() {}

            override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
                defer { isFirst = false }
                guard isFirst else { return -1 }
                buffer.update(repeating: 1, count: 10)
                return 10
            }
        }
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("before".utf8), to: "body")
        var request = URLRequest(url: url)
        request.httpBodyStream = BrokenStream(data: Data())
        let failure: (any Error)? = await withTrackedContinuation { [request] continuation in
            _ = HTTPRequestSerializer().request(
                withMultipartFormRequest: request, writingStreamContentsToFile: file, queue: callbackQueue
            ) { continuation.resume(returning: $0) }
        }
        #expect(failure != nil)
        #expect(try contents(of: directory) == ["body"] && Data(contentsOf: file) == Data("before".utf8))
    }
}

extension InputStream {
    fileprivate func readAll() -> Data {
        open()
        defer { close() }
        var result = Data()
        var buffer = [UInt8](repeating: 0, count: 700)
        while case let count = read(&buffer, maxLength: buffer.count), count > 0 { result.append(contentsOf: buffer[..<count]) }
        return result
    }
}
