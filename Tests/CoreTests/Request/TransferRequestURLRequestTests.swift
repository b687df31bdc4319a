// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct TransferRequestURLRequestTests {
    private static func transfer(
        _ change: (inout URLRequest) -> Void = { _ in }, configure: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> TransferRequest {
        var request = try URLRequest(url: "http://mock/", method: .get)
        change(&request)
        var configuration = SessionConfiguration()
        configure(&configuration)
        return try TransferRequest(request, given: nil, body: nil, in: Session(configuration: configuration, delegate: SessionDelegate()))
    }

    private static func refusal(
        _ change: (inout URLRequest) -> Void = { _ in }, configure: (inout SessionConfiguration) -> Void = { _ in }
    ) -> CurlewError.URLRequestValidationFailureReason? {
        do {
            _ = try transfer(change, configure: configure)
            return nil
        } catch CurlewError.urlRequestValidationFailed(let reason, _) {
            return reason
        } catch {
            return nil
        }
    }

    @Test("a URL is required, with scheme http or https and a host")
    func urls() throws {
        #expect(Self.refusal { $0.url = nil } == .missingURL)
        for text in ["ftp://mock/", "file:///x", "mock/path", "data:,x"] {
            let url = try text.asURL()
            #expect(Self.refusal { $0.url = url } == .unsupportedScheme(url: url))
        }
        for text in ["http:///path", "http:path"] {
            let url = try text.asURL()
            #expect(Self.refusal { $0.url = url } == .missingHost(url: url))
        }
        #expect(try Self.transfer { $0.url = URL(string: "HTTPS://mock:8443/a?b#c") }.url == "HTTPS://mock:8443/a?b#c")
    }

    @Test("a method is a token", arguments: ["G T", "GET\r\nX: y", "(", "é"])
    func methods(_ method: String) {
        #expect(Self.refusal { $0.httpMethod = method } == .invalidMethod(method))
    }

    @Test(
        "invalid header fields are rejected", arguments: [("X", "a\r\nY: b"), ("X Y", "a"), ("", "a"), ("X", "a\0"), ("X:", "a")])
    func injection(_ name: String, _ value: String) {
        #expect(Self.refusal(configure: { $0.headers = [name: value] }) == .invalidHeader(name: name))
    }

    @Test("HEAD and TRACE have no body", arguments: [HTTPMethod.head, .trace])
    func bodies(_ method: HTTPMethod) {
        #expect(
            Self.refusal {
                $0.httpMethod = method.rawValue
                $0.httpBody = Data([1])
            } == .bodyNotAllowed(method))
    }

    @Test("an invalid request is not sent, and its handlers run")
    func refused() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        #expect(await manager.request("ftp://mock/").serializingData().response.error is CurlewError)
        #expect(mock.started.all.isEmpty)
    }

    @Test("the session's fields are added, the request's own have precedence")
    func sessionHeaders() throws {
        let transfer = try Self.transfer {
            $0.setValue("mine", forHTTPHeaderField: "x-one")
        } configure: {
            $0.headers = ["X-One": "session", "X-Two": "session", "X-Two": "again"]
        }
        #expect(transfer.headers.values(for: "X-One") == ["mine"])
        #expect(transfer.headers.values(for: "X-Two").first == "session")
    }

    @Test("order and repetition of fields are preserved, even by an adapter that adds one")
    func order() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        let headers: HTTPHeaders = ["Z": "1", "A": "2", "z": "3", "M": "4"]
        manager.request("http://mock/", headers: headers)
        #expect(await mock.started[0].request.headers == headers)
        manager.adapter = Adapting { request in
            var request = request
            request.setValue("new", forHTTPHeaderField: "M")
            request.setValue("5", forHTTPHeaderField: "B")
            return request
        }
        manager.request("http://mock/", headers: headers)
        let adapted = await mock.started[1].request.headers
        #expect(adapted.map { "\($0.name)=\($0.value)" } == ["Z=1", "A=2", "z=3", "B=5", "M=new"])
    }

    @Test(
        "a request's timeout is the idle timeout, except 60, Foundation's default",
        arguments: [(60.0, 7.0), (5, 5), (0, 7), (-1, 7), (Double.nan, 7), (Double.infinity, 1e9)] as [(Double, Double)])
    func timeouts(_ timeout: Double, _ seconds: Double) throws {
        let transfer = try Self.transfer {
            $0.timeoutInterval = timeout
        } configure: {
            $0.idleTimeout = .seconds(7)
        }
        #expect(transfer.options.idleTimeout == .seconds(seconds))
    }
}
