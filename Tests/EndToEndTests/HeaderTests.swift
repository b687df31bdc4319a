// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct HeaderTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func ownFields(of reply: EchoReply) -> [ServerField] {
        reply.headers.filter { $0.name.hasPrefix("X-") }
    }

    @Test("order and repetition are preserved") func order() async throws {
        let manager = makeManager()
        let headers: HTTPHeaders = ["X-B": "1", "X-A": "2", "X-B": "3", "X-Empty": "", "X-Text": "ü, \"quoted\""]
        let reply = try await manager.echo(server.url("/echo"), headers: headers)
        #expect(ownFields(of: reply) == headers.map { ServerField($0.name, $0.value) })
    }

    @Test("the session's fields are added where the request has none") func sessionFields() async throws {
        let manager = makeManager { $0.headers = ["X-Session": "session", "X-Both": "session", "User-Agent": "Tests/1"] }
        let reply = try await manager.echo(server.url("/echo"), headers: ["x-both": "request", "X-Request": "request"])
        #expect(reply.header("X-Session") == "session")
        #expect(reply.headers.filter { $0.name.lowercased() == "x-both" }.map(\.value) == ["request"])
        #expect(reply.header("X-Request") == "request")
        #expect(reply.header("User-Agent") == "Tests/1")
    }

    @Test("a manager of one's own sends no `User-Agent`, the default one names the program") func userAgent() async throws {
        let names = Set(try await makeManager().echo(server.url("/echo")).headers.map { $0.name.lowercased() })
        #expect(names == ["host", "accept", "accept-encoding"])
        #expect(SessionManager.default.session.configuration.headers["User-Agent"]?.contains(" Curlew/") == true)
    }

    @Test("no unrequested field is sent") func noUnrequestedFields() async throws {
        let manager = makeManager()
        let reply = try await manager.upload(Data(count: 2 << 20), to: server.url("/upload"))
            .serializingDecodable(EchoReply.self).value
        #expect(reply.header("Expect") == nil)
        #expect(reply.header("Host") == "127.0.0.1:\(server.port)")
        #expect(reply.header("Content-Length") == "\(2 << 20)")
    }

    @Test("a field with an invalid name is rejected", arguments: ["X-Bad\r\nX-Injected: 1", "Bad Name", ""])
    func invalidName(_ name: String) async throws {
        let manager = makeManager()
        let response = await manager.request(server.url("/echo"), headers: [name: "1"]).serializingData().response
        #expect(response.error?.invalidHeader == name)
        #expect(server.connectionCount == 0)
    }

    @Test("a line break in a value is rejected") func lineBreak() async throws {
        do {
            let manager = makeManager()
            let response = await manager.request(server.url("/echo"), headers: ["X-Value": "a\r\nX-Injected: 1"]).serializingData().response
            #expect(response.error?.invalidHeader == "X-Value")
        }
        let manager = makeManager { $0.headers = ["X-Session": "a\nb"] }
        let response = await manager.request(server.url("/echo")).serializingData().response
        #expect(response.error?.invalidHeader == "X-Session")
        #expect(server.connectionCount == 0)
    }

    @Test("the response's fields are received") func responseFields() async throws {
        let manager = makeManager()
        let response = await manager.request(server.url("/headers?X-One=1&Set-Cookie=a%3D1")).serializingData().response
        #expect(response.response?.value(forHTTPHeaderField: "x-one") == "1")
        #expect(response.response?.value(forHTTPHeaderField: "Set-Cookie") == "a=1")
    }

    @Test("fields added by an adapter are validated as well") func adaptedFields() async throws {
        let manager = makeManager()
        manager.adapter = Adapter { $0.setValue("a\r\nX-Injected: 1", forHTTPHeaderField: "X-Adapted") }
        let response = await manager.request(server.url("/echo")).serializingDecodable(EchoReply.self).response
        // Foundation on Linux drops such a field; elsewhere the request is rejected.
        #expect(response.error?.invalidHeader == "X-Adapted" || response.value?.header("X-Injected") == nil)
    }

    // MARK: Adapters

    @Test("an adapter adds its token and keeps the order of the other fields") func adapter()
        async throws
    {
        let manager = makeManager()
        manager.adapter = Adapter { $0.setValue("Bearer secret", forHTTPHeaderField: "Authorization") }
        let response = await manager.request(server.url("/auth-token?token=secret"), headers: ["X-B": "1", "X-A": "2", "X-B": "3"])
            .validate().serializingString().response
        #expect(response.value == "Welcome")
        let fields = try #require(server.requests.first).headers.filter { $0.name.hasPrefix("X-") }
        #expect(fields == [ServerField("X-B", "1"), ServerField("X-A", "2"), ServerField("X-B", "3")])
        #expect(response.request?.value(forHTTPHeaderField: "Authorization") == "Bearer secret")
    }

    @Test("an adapter may change the URL") func adaptedURL() async throws {
        let manager = makeManager()
        let target = try server.url("/echo?adapted=1").asURL()
        manager.adapter = Adapter { $0.url = target }
        let reply = try await manager.echo(server.url("/status/500"))
        #expect(reply.target == "/echo?adapted=1")
    }

    @Test("an error thrown by an adapter fails the request before it is sent") func throwingAdapter() async throws {
        let manager = makeManager()
        manager.adapter = Adapter { _ in throw TestError("no token") }
        let response = await manager.request(server.url("/echo")).validate().serializingData().response
        #expect(response.error as? TestError == TestError("no token"))
        #expect(server.connectionCount == 0)
    }

    @Test("an adapter and a retrier together refresh a token") func tokenRefresh() async throws {
        let manager = makeManager()
        let token = Lock("stale")
        manager.adapter = Adapter { $0.setValue("Bearer \(token.withLock { $0 })", forHTTPHeaderField: "Authorization") }
        manager.retrier = Retrier { request, error, completion in
            token.withLock { $0 = "fresh" }
            completion(error.unacceptableStatus == 401 && request.retryCount == 0, 0)
        }
        let text = try await manager.request(server.url("/auth-token?token=fresh")).validate().serializingString().value
        #expect(text == "Welcome")
        #expect(server.requests.map { $0.header("Authorization") } == ["Bearer stale", "Bearer fresh"])
    }
}
