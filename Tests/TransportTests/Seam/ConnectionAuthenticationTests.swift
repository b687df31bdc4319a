// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct ConnectionAuthenticationTests {
    private static func server(accepts: Bool = true) throws -> LoopbackServer {
        try LoopbackServer(route: NTLMScript.route(user: accepts ? "alice" : "nobody"))
    }

    private static func request(_ server: LoopbackServer, method: HTTPMethod = .get, body: String? = nil) -> TransferRequest {
        var request = TransferRequest(url: server.url("/"), method: method, body: body.map { DataBody(Data($0.utf8)) })
        request.options.proxy = .none
        request.authentication = .ntlm(user: "alice", password: "secret")
        return request
    }

    @Test(
        "NTLM's exchanges use one connection, and the observer receives the last", .enabled(if: CurlInfo.current.supportsNTLM),
        arguments: [(HTTPMethod.get, String?.none), (.post, "order"), (.put, "order"), (.head, nil)])
    func ntlm(_ method: HTTPMethod, _ body: String?) async throws {
        let server = try Self.server()
        let heads = Lock<[Int]>([])
        let observer = RecordingObserver(onHead: { head in
            heads.withLock { $0.append(head.statusCode) }
            return .proceed
        })
        let transport = CurlTransport()
        let end = await transport.run(Self.request(server, method: method, body: body), observer: observer)
        #expect(end.error == nil)
        #expect(heads.withLock { $0 } == [200])
        #expect(end.body == Data((method == .head ? "" : "welcome \(body ?? "")").utf8))
        #expect(server.connectionCount == 1)
        #expect(server.requests.compactMap { NTLMScript.message($0)?.number } == [1, 3])
        // Only the last exchange has the body.
        #expect(server.requests.map(\.body) == [Data(), Data((body ?? "").utf8)])
    }

    @Test("a body of unknown length is sent in the last exchange", .enabled(if: CurlInfo.current.supportsNTLM)) func ntlmChunked()
        async throws
    {
        let server = try Self.server()
        var request = Self.request(server, method: .post)
        request.body = FedBody([.bytes(Data("or".utf8)), .bytes(Data("der".utf8)), .end])
        let end = await CurlTransport().run(request)
        #expect(end.error == nil)
        #expect(end.body == Data("welcome order".utf8))
    }

    @Test("a refusal is the response, with its own body", .enabled(if: CurlInfo.current.supportsNTLM), arguments: [HTTPMethod.get, .post])
    func refused(_ method: HTTPMethod) async throws {
        let server = try Self.server(accepts: false)
        let end = await CurlTransport().run(Self.request(server, method: method, body: method == .post ? "order" : nil))
        #expect(end.error == nil && end.completions == 1)
        #expect(end.head?.statusCode == 401)
        #expect(end.body == Data("refused".utf8))
    }

    @Test("an observer may pause a refusal at its head", .enabled(if: CurlInfo.current.supportsNTLM)) func pausedAtHead() async throws {
        let server = try Self.server(accepts: false)
        let transport = CurlTransport()
        let observer = RecordingObserver(onHead: { _ in .pause })
        let transfer = transport.start(Self.request(server), observer: observer)
        let record = await observer.record { $0.head != nil }
        #expect(record.body.isEmpty && record.completion == nil)
        transfer.resumeReceiving()
        #expect(await observer.end().body == Data("refused".utf8))
    }

    @Test("an authenticated connection is reused for the same user only", .enabled(if: CurlInfo.current.supportsNTLM)) func reuse()
        async throws
    {
        let server = try Self.server()
        let transport = CurlTransport()
        #expect(await transport.run(Self.request(server)).error == nil)
        var plain = Self.request(server)
        plain.authentication = nil
        let stranger = await transport.run(plain)
        #expect(stranger.head?.statusCode == 401)
        #expect(stranger.body == Data("who are you".utf8))
        #expect(server.connectionCount == 2)
        var other = Self.request(server)
        other.authentication = .ntlm(user: "bob", password: "secret")
        #expect(await transport.run(other).head?.statusCode == 401)
        #expect(server.requests.filter { $0.connection == 1 }.count == 2)
    }

    @Test("a connection lost between the exchanges fails the request", .enabled(if: CurlInfo.current.supportsNTLM)) func brokenOff()
        async throws
    {
        let server = try LoopbackServer { request, connection in
            guard let (number, _) = NTLMScript.message(request), number == 1 else {
                connection.close()
                return nil
            }
            return .status(401, headers: [ServerField("WWW-Authenticate", "NTLM \(NTLMScript.challenge)")])
        }
        let end = await CurlTransport().run(Self.request(server, method: .post, body: "order"))
        #expect(end.failure?.kind == .connectionLost)
        #expect(end.head == nil)
    }

    @Test(
        "an invalid challenge ends the exchanges", .enabled(if: CurlInfo.current.supportsNTLM),
        arguments: ["NTLM AAAA", "NTLM %%%", "NTLM", "Basic"])
    func nonsense(_ field: String) async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 401, headers: [ServerField("WWW-Authenticate", field)], body: .data(Data("no".utf8)))
        }
        let end = await CurlTransport().run(Self.request(server))
        #expect(end.completions == 1)
        #expect(end.error != nil || end.head?.statusCode == 401)
        #expect(server.requestCount <= 3)
    }

    @Test(
        "a server that always asks again gets ten requests", .enabled(if: CurlInfo.current.supportsNTLM),
        arguments: [HTTPMethod.get, .head, .post])
    func endless(_ method: HTTPMethod) async throws {
        let server = try LoopbackServer { _, _ in
            let field = ServerField("WWW-Authenticate", "NTLM \(NTLMScript.challenge)")
            return ServerResponse(status: 401, headers: [field], body: .data(Data("no".utf8)))
        }
        let end = await CurlTransport().run(Self.request(server, method: method, body: method == .post ? "order" : nil))
        #expect(server.requestCount == 10)
        #expect(end.failure?.kind == .protocolViolation)
        #expect(end.failure?.message.contains("10 times") == true)
        #expect(end.failure?.message.contains("authentication") == true)
    }

    @Test("a proxy that always asks for NTLM gets the request once, as no credentials are sent to it")
    func proxy() async throws {
        let proxy = try LoopbackServer { _, _ in
            .status(407, headers: [ServerField("Proxy-Authenticate", "NTLM \(NTLMScript.challenge)")])
        }
        for url in ["http://host.test/", "https://host.test/"] {
            var request = TransferRequest(url: url)
            request.options.proxy = .url("http://user:password@127.0.0.1:\(proxy.port)")
            let before = proxy.requestCount
            let end = await CurlTransport().run(request)
            #expect(end.head?.statusCode == 407 || end.failure?.kind == .proxy)
            #expect(proxy.requestCount - before <= 2)
        }
    }

    @Test("without tickets, Negotiate delivers the 401", .enabled(if: CurlInfo.current.supportsNegotiate)) func negotiate() async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 401, headers: [ServerField("WWW-Authenticate", "Negotiate")], body: .data(Data("no".utf8)))
        }
        var request = Self.request(server)
        request.authentication = .negotiate
        let end = await CurlTransport().run(request)
        #expect(end.error == nil && end.head?.statusCode == 401)
        #expect(end.body == Data("no".utf8))
    }

    @Test("a name with a NUL is rejected rather than truncated") func zeroByte() async throws {
        var request = TransferRequest(url: "http://127.0.0.1:1/")
        request.authentication = .ntlm(user: "alice\0bob", password: "")
        let end = await CurlTransport().run(request)
        guard case .urlRequestValidationFailed? = end.error as? CurlewError else {
            Issue.record("\(String(describing: end.error))")
            return
        }
    }
}
