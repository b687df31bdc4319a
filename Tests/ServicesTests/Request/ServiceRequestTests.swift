// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewServices
import CurlewTestSupport
import Testing

/// What requests send, and how responses are decoded.
@Suite(.timeLimit(.minutes(1)))
struct ServiceRequestTests {
    private struct TextRequest: ServiceRequest {
        typealias Result = String
    }

    private struct VoidRequest: ServiceRequest {
        typealias Result = Void
    }

    private struct DataRequest: ServiceRequest {
        typealias Result = Data
    }

    private struct User: Codable, Sendable, Equatable {
        var firstName: String
    }

    private struct UserRequest: JSONServiceRequest {
        typealias Result = User
        var decodesSnakeCase = true
    }

    /// Sends a request and returns it as the server received it.
    private func received(_ request: TestRequest, _ change: (inout TestService) -> Void = { _ in }) async throws -> ServerRequest {
        let server = try LoopbackServer { _, _ in .ok("") }
        defer { server.stop() }
        var service = TestService(server)
        change(&service)
        _ = try await request.schedule(with: service).value
        return try #require(server.requests.first)
    }

    @Test(arguments: [HTTPMethod.get, .post, .put, .delete, .patch, .head])
    func methodIsSent(_ method: HTTPMethod) async throws {
        #expect(try await received(TestRequest(method: method)).method == method.rawValue)
    }

    @Test(arguments: [HTTPMethod.post, .put, .patch])
    func emptyBodyIsAllowed(_ method: HTTPMethod) async throws {
        let request = try await received(TestRequest(method: method))
        #expect(request.header("Content-Length") == "0" && request.bodyLength == 0)
    }

    @Test(arguments: [HTTPMethod.get, .delete, .head])
    func bodyIsRejectedForMethodsWithoutOne(_ method: HTTPMethod) async throws {
        let server = try LoopbackServer { _, _ in .ok("") }
        defer { server.stop() }
        for body in [HTTPData.JSON(1), HTTPData.Multipart([.text("a", "b")])] as [any HTTPBody] {
            let error = await serviceError { try await TestRequest(method: method, body: body).schedule(with: TestService(server)).value }
            #expect(error?.name == "invalidRequest")
        }
        #expect(server.requestCount == 0)
    }

    @Test func requestAndServicePartsAreCombined() async throws {
        let request = try await received(TestRequest(routes: ["users", 1], query: ["q": "ü"])) { service in
            service.apiURL = "\((try? service.apiURL.asURL().absoluteString) ?? "")/v1?key=k"
        }
        #expect(request.target == "/v1/users/1?key=k&q=%C3%BC")
    }

    @Test func requestURLReplacesTheServices() async throws {
        let server = try LoopbackServer { _, _ in .ok("there") }
        defer { server.stop() }
        var service = TestService(server)
        service.apiURL = "http://127.0.0.1:1/"
        #expect(try await TestRequest(url: server.url("/x")).schedule(with: service).value == "there")
    }

    @Test func headersOverrideByPrecedence() async throws {
        let request = try await received(TestRequest(header: ["x-c": "request", "Authorization": "Bearer a b%"])) { service in
            service.header = ["X-A": "service", "X-B": "service", "X-C": "service"]
            service.makeAsyncHeader = { ["X-B": "async", "X-C": "async"] }
        }
        #expect(request.header("X-A") == "service")
        #expect(request.headers(named: "X-B") == ["async"])
        #expect(request.headers(named: "X-C") == ["request"])
        #expect(request.header("Authorization") == "Bearer a b%")
    }

    @Test func bodyIsSentWithTypeAndLength() async throws {
        let request = try await received(TestRequest(method: .put, body: HTTPData.Image(.png, Data([1, 2, 3]))))
        #expect(request.body == Data([1, 2, 3]))
        #expect(request.header("Content-Type") == "image/png" && request.header("Content-Length") == "3")
    }

    @Test func fileIsStreamedFromDisk() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("{}".utf8), to: "a.json")
        let request = try await received(TestRequest(method: .post, body: HTTPData.File(.json, file)))
        #expect(request.body == Data("{}".utf8) && request.header("Content-Type") == "application/json")
    }

    @Test func largeFormIsSentFromAFile() async throws {
        let large = Data(repeating: 0x41, count: 11_000_000)
        let request = try await received(TestRequest(method: .post, body: HTTPData.Multipart([.data("large", large)])))
        #expect(request.bodyLength > 11_000_000)
        #expect(request.header("Content-Type")?.hasPrefix("multipart/form-data; boundary=") == true)
    }

    @Test func prepareCanReplaceOrRemoveTheBody() async throws {
        let directory = try TemporaryDirectory()
        let file = HTTPData.File(.json, try directory.write(Data("{}".utf8), to: "a.json"))
        let large = HTTPData.Multipart([.data("large", Data(count: 11_000_000))])
        let small = HTTPData.Multipart([.text("small", "1")])
        for body in [file, large, small] as [any HTTPBody] {
            for isStream in [false, true] {
                let request = TestRequest(
                    method: .post, body: body,
                    change: { request in
                        var request = request
                        if isStream { request.httpBodyStream = InputStream(data: Data("sealed".utf8)) }
                        if !isStream { request.httpBody = Data("sealed".utf8) }
                        return request
                    })
                #expect(try await received(request).body == Data("sealed".utf8), "\(body), stream \(isStream)")
            }
        }
        let removing = TestRequest(
            method: .post, body: small,
            change: { request in
                var request = request
                request.httpBody = nil
                return request
            })
        #expect(try await received(removing).body.isEmpty)
    }

    @Test func prepareIsTheLastStep() async throws {
        let request = TestRequest(
            method: .post, header: ["X-A": "1"], body: HTTPData.JSON(1),
            change: { request in
                var request = request
                request.setValue("\(request.value(forHTTPHeaderField: "X-A") ?? "")2", forHTTPHeaderField: "X-A")
                request.setValue("\(request.httpBody?.count ?? 0)", forHTTPHeaderField: "X-Length")
                return request
            })
        let came = try await received(request)
        #expect(came.header("X-A") == "12" && came.header("X-Length") == "1")
    }

    // MARK: Responses

    @Test func onlyAcceptedStatusesSucceed() async throws {
        let server = try LoopbackServer { _, _ in ServerResponse(status: 404, body: .data(Data("gone".utf8))) }
        defer { server.stop() }
        let service = TestService(server)
        let error = await serviceError { try await TestRequest().schedule(with: service).value }
        guard case .requestFailed(404, let body, let failed?) = error else { Issue.record("\(String(describing: error))"); return }
        #expect(body == Data("gone".utf8) && failed.bodyData == body && failed.body == "gone" && !failed.isBodyTruncated)
        #expect(failed.method == .get && failed.statusCode == 404 && failed.id > 0)
        let reason = "status 404 is not accepted by the request; the response body has 4 bytes"
        #expect(error.map { "\($0)" } == "GET \(failed.url) (attempt 1): \(reason)")
        #expect(try await TestRequest(acceptedStatusCodes: 200...404).schedule(with: service).value == "gone")
    }

    @Test func voidDataAndStringHaveDefaultDecoding() async throws {
        let server = try LoopbackServer { _, _ in .ok("ü") }
        defer { server.stop() }
        let service = TestService(server)
        try await VoidRequest().schedule(with: service).value
        #expect(try await DataRequest().schedule(with: service).value == Data("ü".utf8))
        #expect(try await TextRequest().schedule(with: service).value == "ü")
    }

    @Test func textThatIsNotUTF8FailsDecoding() async throws {
        let server = try LoopbackServer { _, _ in .ok(Data([0xFF])) }
        defer { server.stop() }
        #expect(await serviceError { try await TextRequest().schedule(with: TestService(server)).value }?.name == "decodingFailed")
    }

    @Test(arguments: [(true, #"{"first_name": "Ada"}"#), (false, #"{"firstName": "Ada"}"#)])
    func jsonIsDecodedFromSnakeCaseByDefault(_ fromSnakeCase: Bool, _ body: String) async throws {
        let server = try LoopbackServer { _, _ in .ok(body, type: "application/json") }
        defer { server.stop() }
        let request = UserRequest(decodesSnakeCase: fromSnakeCase)
        #expect(try await request.schedule(with: TestService(server)).value == User(firstName: "Ada"))
    }

    @Test func userErrorIsTheCauseOfUnknown() async throws {
        let server = try LoopbackServer { _, _ in .ok("no JSON") }
        defer { server.stop() }
        var service = TestService(server)
        let json = await serviceError { try await UserRequest().schedule(with: service).value }
        guard case .unknown(let cause) = json, cause is Swift.DecodingError else { Issue.record("\(String(describing: json))"); return }
        for request in [TestRequest(change: { _ in throw UserError() }), TestRequest(make: { _ in throw UserError() })] {
            let error = await serviceError { try await request.schedule(with: service).value }
            guard case .unknown(let cause) = error, cause is UserError else { Issue.record("\(String(describing: error))"); return }
        }
        service.makeAsyncHeader = { throw ServiceError.decodingFailed }
        #expect(await serviceError { try await TestRequest().schedule(with: service).value }?.name == "decodingFailed")
    }

    @Test func encodingFailureFailsTheRequest() async throws {
        let server = try LoopbackServer { _, _ in .ok("") }
        defer { server.stop() }
        let request = TestRequest(method: .post, body: HTTPData.JSON(Double.infinity))
        #expect(await serviceError { try await request.schedule(with: TestService(server)).value }?.name == "encodingFailed")
    }

    @Test func timeoutEndsAnAttempt() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("")
        }
        defer {
            gate.open()
            server.stop()
        }
        let error = await serviceError {
            try await TestRequest(timeout: .milliseconds(50)).schedule(with: TestService(server)).value
        }
        #expect(error?.name == "timeout")
    }

    @Test func timeoutDoesNotEndAFasterRequest() async throws {
        let server = try LoopbackServer { _, _ in .ok("in time") }
        defer { server.stop() }
        #expect(try await TestRequest(timeout: .seconds(30)).schedule(with: TestService(server)).value == "in time")
    }

    // MARK: Type-erased requests

    @Test func anyRequestNeedsNoService() async throws {
        let server = try LoopbackServer { request, _ in .ok("\(request.method) \(request.target)") }
        defer { server.stop() }
        let request = AnyServiceRequest(.post, url: server.url("/a"), routes: ["b"], query: ["c": 1])
        #expect(try await String(decoding: request.schedule().value, as: UTF8.self) == "POST /a/b?c=1")
        #expect(await serviceError { try await AnyServiceRequest().schedule().value }?.name == "invalidURL")
    }

    @Test func anyServiceKeepsAllParts() async throws {
        let server = try LoopbackServer { request, _ in .ok("\(request.target) \(request.header("A") ?? "") \(request.header("B") ?? "")") }
        defer { server.stop() }
        let service = AnyHTTPService(
            at: server.url("/v1"), usesSecureProtocol: false, header: ["A": "a"], asyncHeader: { ["B": "b"] },
            sessionConfiguration: sharedManager.session.configuration)
        let request = AnyServiceRequest(routes: ["users"])
        #expect(try await String(decoding: request.schedule(with: service).value, as: UTF8.self) == "/v1/users a b")
    }
}
