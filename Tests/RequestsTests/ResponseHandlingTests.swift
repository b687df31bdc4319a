// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewRequests

/// Serialization, content types, validation, filters and mocks.
@Suite(.timeLimit(.minutes(1)))
struct ResponseHandlingTests {
    private func received(
        _ body: String, type: String? = "application/json", status: Int = 200, _ change: (SampleRequest, Stage) -> Void = { _, _ in }
    ) async throws -> SampleRequest {
        let stage = try Stage { _, _ in
            ServerResponse(
                status: status, headers: type.map { [ServerField("Content-Type", $0)] } ?? [], body: .data(Data(body.utf8)))
        }
        let request = SampleRequest(stage)
        change(request, stage)
        _ = await run(request)
        return request
    }

    @Test func `JSON is available as data, text and object`() async throws {
        let request = try await received(#"{"a": "é"}"#)
        #expect(request.error == nil && request.isFinished && !request.isFailed)
        #expect(request.responseData == Data(#"{"a": "é"}"#.utf8))
        #expect(request.responseString == #"{"a": "é"}"#)
        #expect((request.responseJSONObject as? [String: String]) == ["a": "é"])
        #expect((request.responseObject as? [String: String]) == ["a": "é"])
        #expect(request.responseStatusCode == 200)
        for name in ["Content-Type", "content-type", "CONTENT-TYPE"] { #expect(request.responseHeaders?[name] == "application/json") }
    }

    @Test func `the HTTP serializer returns the bytes`() async throws {
        let request = try await received("text", type: "text/plain") { request, _ in request.responseSerializer = .http }
        #expect(request.error == nil)
        #expect(request.responseObject as? Data == Data("text".utf8))
        #expect(request.responseJSONObject == nil)
    }

    @Test func `XML is returned as a parser that has not started`() async throws {
        final class Counter: NSObject, XMLParserDelegate {
            var names: [String] = []
            func parser(
                _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName: String?,
                attributes: [String: String]
            ) { names.append(elementName) }
        }
        let request = try await received("<a><b/></a>", type: "text/xml") { request, _ in request.responseSerializer = .xmlParser }
        let parser = try #require(request.responseObject as? XMLParser)
        let counter = Counter()
        parser.delegate = counter
        #expect(parser.parse())
        #expect(counter.names == ["a", "b"])
    }

    @Test(
        arguments: [
            ("text/plain; charset=ISO-8859-1", [0xE9], "é"), ("text/plain; charset=Big5", [0xA7, 0x41], "你"),
            ("text/plain", [0xC3, 0xA9], "é"),
            ("text/plain", [0xE9], nil), ("text/plain; charset=none", [0xC3, 0xA9], "é"), ("text/plain; charset=none", [0xE9], nil),
            ("text/plain; charset=gbk", [0xFF, 0xFE, 0xE9, 0], "é"),
        ] as [(String, [UInt8], String?)])
    func `text is decoded with the charset of its content type`(_ type: String, _ bytes: [UInt8], _ text: String?) async throws {
        let stage = try Stage { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Content-Type", type)], body: .data(Data(bytes)))
        }
        let request = SampleRequest(stage)
        request.responseSerializer = .http
        #expect(await run(request) == .succeeded)
        #expect(request.responseString == text)
    }

    @Test(arguments: ["", " "]) func `an empty JSON body is not an error`(_ body: String) async throws {
        let request = try await received(body)
        #expect(request.error == nil && request.responseJSONObject == nil)
    }

    @Test func `a lone surrogate in JSON becomes the replacement character`() async throws {
        let request = try await received(#"{"a": "x\uD800y"}"#)
        #expect((request.responseJSONObject as? [String: String]) == ["a": "x\u{FFFD}y"])
    }

    @Test func `invalid JSON fails`() async throws {
        let request = try await received("{")
        #expect(request.isFailed)
        guard case .responseSerializationFailed(.jsonSerializationFailed, _)? = request.error as? CurlewError else {
            Issue.record("\(request.error.debugDescription)")
            return
        }
        #expect(request.responseData == Data("{".utf8))
    }

    // MARK: Content types

    enum Accepted: Sendable {
        case byDefault
        case any
        case only([String])
    }

    @Test(arguments: [
        ("text/html" as String?, Accepted.byDefault, false),
        (nil, .byDefault, false),
        ("text/json; charset=utf-8", .byDefault, true),
        ("Application/JSON", .byDefault, true),
        ("text/html", .any, true),
        (nil, .any, true),
        ("text/html", .only(["text/*"]), true),
        ("text/html", .only(["text/html"]), true),
        ("image/png", .only(["text/*"]), false),
    ])
    func `the request's content types override the configuration's`(_ type: String?, _ accepted: Accepted, _ passes: Bool) async throws {
        let request = try await received("{}", type: type) { request, _ in
            switch accepted {
            case .byDefault: break
            case .any: request.contentTypes = .some(nil)
            case .only(let types): request.contentTypes = types
            }
        }
        #expect((request.error == nil) == passes)
        if !passes {
            guard case .responseValidationFailed? = request.error as? CurlewError else {
                Issue.record("\(request.error.debugDescription)")
                return
            }
        }
    }

    @Test func `the configuration's content types apply to all its requests`() async throws {
        let request = try await received("{}", type: "text/html") { _, stage in stage.configuration.acceptableContentTypes.json = nil }
        #expect(request.error == nil)
    }

    // MARK: Validation

    @Test func `an error status fails with code and domain`() async throws {
        let request = try await received(#"{"code": 7}"#, status: 404)
        #expect(request.error as? RequestValidationError == .invalidStatusCode(404))
        let error = try #require(request.error) as NSError
        #expect(error.domain == RequestValidationError.errorDomain && error.code == -8)
        #expect("\(error.localizedDescription)".contains("404"))
        #expect((request.responseJSONObject as? [String: Int]) == ["code": 7])
    }

    @Test func `JSON of another shape fails with code and domain`() async throws {
        let request = try await received(#"{"id": "1"}"#) { request, _ in request.shape = ["id": NSNumber.self] }
        #expect(request.error as? RequestValidationError == .invalidJSONFormat)
        #expect((try #require(request.error) as NSError).code == -9)
    }

    @Test(arguments: [false, true]) func `a null member passes unless nulls are removed`(_ removes: Bool) async throws {
        let request = try await received(#"{"id": null, "list": [null]}"#) { request, stage in
            request.shape = ["id": NSNumber.self]
            stage.configuration.removeNullValues = removes
        }
        #expect((request.error == nil) == !removes)
        #expect((request.responseJSONObject as? [String: Any])?.count == (removes ? 1 : 2))
    }

    @Test func `a serialization error precedes the status, and a transfer error precedes both`() async throws {
        let status = try await received("{", status: 500)
        guard case .responseSerializationFailed? = status.error as? CurlewError else {
            Issue.record("\(status.error.debugDescription)")
            return
        }
        let stage = try Stage { _, connection in
            try connection.send(raw: "HTTP/1.1 500 \r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
            connection.close()
            return nil
        }
        let request = SampleRequest(stage)
        #expect(await run(request) == .failed)
        guard case .transferFailed? = request.error as? CurlewError else {
            Issue.record("\(request.error.debugDescription)")
            return
        }
        let error = try #require(request.error)
        #expect(RequestErrors.isConnectionError(error))
        #expect(RequestErrors.isRequestError(error))
        // What was received of the body is kept.
        #expect(request.responseData == Data("{".utf8) && request.responseString == "{" && request.responseJSONObject == nil)
    }

    // MARK: Filters and mocks

    @Test func `the request validates a success, then the configuration's filters, until one fails`() async throws {
        struct Refusing: UrlFilter {
            let number: Int
            func filterResponse(with request: BaseRequest) throws { throw UserError(number: number) }
        }
        let filtered = try await received("{}") { _, stage in
            stage.configuration.addUrlFilter(Refusing(number: 2))
            stage.configuration.addUrlFilter(Refusing(number: 3))
        }
        #expect(filtered.error as? UserError == UserError(number: 2))
        let own = try await received(#"{"code": 9}"#) { request, stage in
            stage.configuration.addUrlFilter(Refusing(number: 2))
            request.onResponse = { request in
                let code = (request.responseJSONObject as? [String: Int])?["code"] ?? 0
                if code != 0 { throw UserError(number: code) }
            }
        }
        #expect(own.error as? UserError == UserError(number: 9) && own.isFailed)
        #expect(!RequestErrors.isRequestError(UserError()))
    }

    @Test(.enabled(if: RequestsConfiguration.canMock), arguments: [(404, true), (500, false)])
    func `a missing response is mocked if allowed`(_ status: Int, _ isMocked: Bool) async throws {
        let request = try await received("{}", status: status) { request, stage in
            stage.configuration.debugMockEnabled = true
            request.onMock = { request in
                request.responseJSONObject = ["id": 5]
                return true
            }
        }
        #expect(request.isFinished == isMocked)
        #expect((request.responseJSONObject as? [String: Int] == ["id": 5]) == isMocked)
        let forbidden = try await received("{}", status: status) { request, _ in request.onMock = { _ in true } }
        #expect(forbidden.isFailed)
    }

    private struct Model: Decodable, Equatable {
        let id: Int
        var name: String?
    }

    @Test(.enabled(if: RequestsConfiguration.canMock))
    func `a mocked response is decoded from what was set last`() async throws {
        func model(_ mock: @escaping @Sendable (BaseRequest) -> Void) async throws -> Model {
            let stage = try Stage { _, _ in Stage.json(#"{"error": "missing"}"#, status: 404) }
            stage.configuration.debugMockEnabled = true
            let request = SampleRequest(stage)
            request.onMock = { request in
                mock(request)
                return true
            }
            return try await request.responseModel()
        }
        #expect(try await model { $0.responseJSONObject = ["id": 5, "name": NSNull()] as [String: Any] } == Model(id: 5))
        #expect(try await model { $0.responseObject = ["id": 6, "name": "x"] as [String: Any] } == Model(id: 6, name: "x"))
        #expect(try await model { $0.responseData = Data(#"{"id": 7}"#.utf8) } == Model(id: 7))
        #expect(
            try await model {
                $0.responseJSONObject = ["id": 8]
                $0.responseData = Data(#"{"id": 9}"#.utf8)
            } == Model(id: 9))
        await #expect(throws: CurlewError.self) { try await model { $0.responseJSONObject = ["id": Date()] } }
        await #expect(throws: CurlewError.self) { try await model { _ in } }
    }

    @Test func `the server's time is read from the Date header`() async throws {
        let stage = try Stage { _, _ in
            ServerResponse(
                status: 204, headers: [ServerField("Date", "Sun, 06 Nov 1994 08:49:37 GMT")])
        }
        let request = SampleRequest(stage)
        #expect(await run(request) == .succeeded)
        #expect(request.responseServerTime == Date(timeIntervalSince1970: 784_111_777))
    }
}
