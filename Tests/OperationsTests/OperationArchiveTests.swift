// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewOperations
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct OperationArchiveTests {
    /// The archive as another process would decode it.
    private func restore(_ archive: OperationArchive) throws -> URLConnectionOperation {
        let data = try JSONEncoder().encode(archive)
        let operation = try URLConnectionOperation.operation(from: JSONDecoder().decode(OperationArchive.self, from: data))
        operation.session = makeSession()
        return operation
    }

    @Test("archiving pauses the operation; restored, it is ready and resumes where it stopped", arguments: [false, true])
    func resumes(toFile: Bool) async throws {
        let server = try HalfServer()
        let directory = try TemporaryDirectory()
        let operation = try HTTPRequestOperation.make(server.url)
        if toFile { operation.outputFile = directory.file("body") }
        operation.start()
        await operation.received(HalfServer.half - 1)
        let archive = operation.archive()
        #expect(operation.isPaused && archive.state == .ready && archive.totalBytesRead == HalfServer.half)
        operation.cancel()
        let restored = try restore(archive)
        #expect(restored is HTTPRequestOperation && restored.isReady && restored.response?.statusCode == 200)
        #expect(restored.totalBytesRead == HalfServer.half)
        let body = try await restored.run()
        #expect(try (toFile ? Data(contentsOf: directory.file("body")) : body) == HalfServer.body)
        #expect(server.requests.last?.header("Range") == "bytes=\(HalfServer.half)-")
    }

    @Test("no text of an operation, its archive, serializer, manager or error contains a secret")
    func texts() async throws {
        let url = try #require(URL(string: "http://user:s3cret@127.0.0.1:1/?access_token=s3cret"))
        var request = URLRequest(url: url)
        request.setValue("Bearer s3cret", forHTTPHeaderField: "Authorization")
        request.httpMethod = "POST"
        request.httpBody = Data("access_token=s3cret".utf8)
        let operation = HTTPRequestOperation(request: request)
        operation.session = makeSession()
        operation.credential = URLCredential(user: "user", password: "s3cret", persistence: .forSession)
        operation.start()
        await operation.waitForEnd()
        let serializer = HTTPRequestSerializer()
        serializer.setAuthorizationHeader(username: "user", password: "s3cret")
        let manager = HTTPRequestOperationManager(baseURL: url)
        let error = try #require(operation.error)
        for value in [operation, operation.archive(), serializer, manager, manager.archive(), error, error as NSError] as [Any] {
            var text = "\(value) \(String(reflecting: value)) "
            dump(value, to: &text)
            let forms = ["s3cret", "dXNlcjpzM2NyZXQ=", Array("s3cret".utf8).map { "\($0)" }.joined(separator: ", ")]
            #expect(!forms.contains { text.contains($0) }, "\(type(of: value)): \(text)")
        }
        #expect((error as? URLError)?.userInfo[OperationErrorKey.request] as? URLRequest == request)
    }

    @Test("an invalid URL is redacted in the error")
    func invalidURL() {
        #expect("\(OperationError.invalidURL("http://u:s3cret@h h/?access_token=s3cret"))".hasSuffix(": http://h h/?access_token=<hidden>"))
    }

    @Test("a file truncated meanwhile is resumed from its end, and a removed one from zero", arguments: [nil, 1000])
    func changedFile(length: Int?) async throws {
        let server = try HalfServer()
        let directory = try TemporaryDirectory()
        let operation = try HTTPRequestOperation.make(server.url)
        let file = directory.file("body")
        operation.outputFile = file
        operation.start()
        await operation.received(HalfServer.half - 1)
        let archive = operation.archive()
        operation.cancel()
        await operation.waitForEnd()
        let part = try directory.file(#require(contents(of: directory).first))
        if let length { try HalfServer.body.prefix(length).write(to: part) } else { try FileManager.default.removeItem(at: part) }
        try await restore(archive).run()
        #expect(try Data(contentsOf: file) == HalfServer.body)
        #expect(try contents(of: directory) == ["body"])
        #expect(server.requests.last?.header("Range") == length.map { "bytes=\($0)-" })
    }

    @Test("the base class starts over, as does an operation with a stream")
    func startsOver() async throws {
        let server = try HalfServer()
        let operation = try URLConnectionOperation.make(server.url)
        operation.start()
        await operation.received(HalfServer.half - 1)
        let restored = try restore(operation.archive())
        operation.cancel()
        #expect(type(of: restored) == URLConnectionOperation.self && restored.totalBytesRead == 0)
        #expect(try await restored.run() == HalfServer.body)
        let streaming = try HTTPRequestOperation.make(server.url)
        streaming.outputStream = TestStream()
        #expect(try restore(streaming.archive()).outputStream == nil)
    }

    @Test("a finished operation is restored as finished, with its result")
    func finished() async throws {
        let server = try LoopbackServer.standard()
        let good = try HTTPRequestOperation.make(server.url("/json"))
        try await good.run()
        let restored = try #require(try restore(good.archive()) as? HTTPRequestOperation)
        #expect(restored.isFinished && !restored.isReady)
        #expect(restored.responseData == good.responseData && restored.response?.statusCode == 200)
        #expect(restored.responseString?.isEmpty == false)
        let bad = try HTTPRequestOperation.make(server.url("/reset"))
        await bad.runToEnd()
        let failed = try restore(bad.archive())
        #expect(failed.isFinished && failed.urlErrorCode == bad.urlErrorCode && failed.urlErrorCode != nil)
    }

    private static let compound = CompoundResponseSerializer([
        JSONResponseSerializer(readingOptions: .fragmentsAllowed), PropertyListResponseSerializer(readOptions: .mutableContainers),
        XMLDocumentResponseSerializer(options: .nodePreserveCDATA), XMLParserResponseSerializer(), ImageResponseSerializer(),
        HTTPResponseSerializer(),
    ])

    @Test("the serializers of this module are archived, with what they accept", arguments: [false, true])
    func serializers(isCompound: Bool) throws {
        let operation = try HTTPRequestOperation.make("http://127.0.0.1:1/")
        var json = JSONResponseSerializer(readingOptions: .fragmentsAllowed)
        json.removesKeysWithNullValues = true
        json.acceptance = ResponseAcceptance(contentTypes: ["text/plain"])
        json.acceptance.statusCodes = nil
        operation.responseSerializer = isCompound ? Self.compound : json
        let restored = try #require(try restore(operation.archive()) as? HTTPRequestOperation)
        if isCompound {
            let compound = try #require(restored.responseSerializer as? CompoundResponseSerializer)
            #expect(compound.serializers.map { "\(type(of: $0))" } == Self.compound.serializers.map { "\(type(of: $0))" })
            #expect((compound.serializers[0] as? JSONResponseSerializer)?.readingOptions == .fragmentsAllowed)
            #expect((compound.serializers[1] as? PropertyListResponseSerializer)?.readOptions == .mutableContainers)
            #expect((compound.serializers[2] as? XMLDocumentResponseSerializer)?.options == .nodePreserveCDATA)
        } else {
            let restored = try #require(restored.responseSerializer as? JSONResponseSerializer)
            #expect(restored.readingOptions == .fragmentsAllowed && restored.removesKeysWithNullValues)
            #expect(restored.acceptance == json.acceptance && restored.acceptance.statusCodes == nil)
        }
    }

    @Test("a finished operation keeps its object and its validation error", arguments: [200, 422])
    func validation(status: Int) async throws {
        let server = try LoopbackServer { _, _ in try .json(["why": "x"], status: status) }
        let operation = try HTTPRequestOperation.make(server.url("/"))
        operation.responseSerializer = JSONResponseSerializer()
        await operation.runToEnd()
        let restored = try #require(try restore(operation.archive()) as? HTTPRequestOperation)
        #expect(restored.responseObject as? [String: String] == ["why": "x"])
        #expect(restored.urlErrorCode == (status == 200 ? nil : .badServerResponse) && restored.urlErrorCode == operation.urlErrorCode)
    }

    @Test("the validation error of a custom serializer is kept, and setting the serializer validates again", arguments: [200, 404])
    func customSerializer(status: Int) async throws {
        /// Accepts 404 only.
        struct Absence: ResponseSerialization {
            var acceptance = ResponseAcceptance()

            init() { acceptance.statusCodes = [404] }

            func object(of data: Data, in response: HTTPURLResponse?) -> Any? { "absent" }
        }
        let server = try LoopbackServer { _, _ in ServerResponse(status: status, body: .data(Data("body".utf8))) }
        let operation = try HTTPRequestOperation.make(server.url("/"))
        operation.responseSerializer = Absence()
        await operation.runToEnd()
        let restored = try #require(try restore(operation.archive()) as? HTTPRequestOperation)
        #expect(restored.isFinished && restored.responseObject == nil)
        #expect(restored.urlErrorCode == (status == 404 ? nil : .badServerResponse) && restored.urlErrorCode == operation.urlErrorCode)
        restored.responseSerializer = Absence()
        #expect(restored.responseObject as? String == "absent" && restored.urlErrorCode == operation.urlErrorCode)
        restored.responseSerializer = HTTPResponseSerializer()
        #expect(restored.urlErrorCode == (status == 404 ? .badServerResponse : nil))
    }

    @Test("the request is restored, with its body and settings")
    func request() async throws {
        let server = try LoopbackServer.standard()
        let operation = try HTTPRequestOperation.make(server.url("/echo?a=b")) { request in
            request.httpMethod = "PUT"
            request.httpBody = Data("body".utf8)
            request.setValue("1", forHTTPHeaderField: "X-One")
            request.timeoutInterval = 7
            request.httpShouldHandleCookies = false
            request.cachePolicy = .reloadIgnoringLocalCacheData
        }
        operation.securityPolicy.validatesDomainName = false
        operation.shouldUseCredentialStorage = false
        let restored = try restore(operation.archive())
        #expect(restored.request == operation.request && restored.request.httpBody == operation.request.httpBody)
        #expect(restored.request.timeoutInterval == 7 && !restored.request.httpShouldHandleCookies)
        #expect(restored.request.cachePolicy == .reloadIgnoringLocalCacheData)
        #expect(restored.securityPolicy == operation.securityPolicy && !restored.shouldUseCredentialStorage)
        let reply = try await JSONDecoder().decode(EchoReply.self, from: restored.run())
        #expect(reply.method == "PUT" && reply.target == "/echo?a=b")
    }

    @Test("a form is archived with its request; another body stream has to be set again")
    func streamedBodies() async throws {
        let server = try LoopbackServer.standard()
        let url = try #require(URL(string: server.url("/body")))
        let form = try HTTPRequestSerializer().multipartFormRequest(url: url) { $0.append(Data("data".utf8), withName: "a") }
        let body = try await restore(HTTPRequestOperation(request: form).archive()).run()
        #expect("\(body.count)" == form.value(forHTTPHeaderField: "Content-Length"))
        #expect(String(decoding: body, as: UTF8.self).contains("name=\"a\"\r\n\r\ndata"))

        let streamed = try HTTPRequestOperation.make(server.url("/body")) { $0.httpMethod = "POST" }
        streamed.inputStream = InputStream(data: Data("streamed".utf8))
        let lost = try restore(streamed.archive())
        await lost.runToEnd()
        #expect(lost.urlErrorCode == .requestBodyStreamExhausted && server.requestCount == 1)
        let again = try restore(streamed.archive())
        again.inputStream = InputStream(data: Data("again".utf8))
        #expect(try await again.run() == Data("again".utf8))
    }

    @Test("an archive of a later version is rejected, as is one that was tampered with")
    func rejected() async throws {
        let server = try HalfServer()
        let operation = try HTTPRequestOperation.make(server.url)
        operation.start()
        await operation.received(HalfServer.half - 1)
        let text = String(decoding: try JSONEncoder().encode(operation.archive()), as: UTF8.self)
        operation.cancel()
        func decode(_ text: String) throws -> OperationArchive { try JSONDecoder().decode(OperationArchive.self, from: Data(text.utf8)) }
        _ = try decode(text)
        #expect(text.contains(#""validator":"\"600000-0\"""#))
        #expect(throws: (any Error).self) { try decode(text.replacingOccurrences(of: #"600000-0\""#, with: #"1\r\nX: y\""#)) }
        let later = try decode(
            text.replacingOccurrences(of: #""version":1"#, with: #""version":2"#).replacingOccurrences(
                of: #""resumption":{"#, with: #""resumed":{"#))
        for name in ["body", ".body/../../x.part", "../.x.part", ".part"] {
            let moved = text.replacingOccurrences(of: #""state":"#, with: #""part":"\#(name)","state":"#)
            #expect(throws: (any Error).self, "\(name)") { try decode(moved) }
        }
        _ = try decode(text.replacingOccurrences(of: #""state":"#, with: #""part":".x.part","state":"#))
        guard #expect(throws: OperationError.self, performing: { try URLConnectionOperation(archive: later) }) != nil else { return }
    }
}
