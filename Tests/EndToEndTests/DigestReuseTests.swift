// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Nonces that later requests use again, over connections, against a server that checks each count.
@Suite(.timeLimit(.minutes(1))) struct DigestReuseTests {
    private static let paths = ["/a", "/b?c=d", "/", "/a"]

    /// What was sent: target, count of the nonce, and length of the body.
    private func sent(_ server: DigestServer) -> [String] {
        server.server.requests.map { request in
            let count = request.header("Authorization").flatMap { $0.firstMatch(of: /nc=([0-9a-f]{8})/)?.1 } ?? "-"
            return "\(request.method) \(request.target) \(count) \(request.bodyLength)"
        }
    }

    /// The requests of a session of Python, which uses its last nonce again. curl's program forgets it with each URL.
    private static let python = """
        session.auth = Digest('user', 'password')
        for url in sys.argv[2:]: assert send(sys.argv[1], url, None if sys.argv[1] == 'GET' else b'body').text == 'welcome'
        """

    @Test(
        .enabled("needs Python's requests and httpx") { try await PythonClient.areInstalled() },
        arguments: [
            DigestServer.Behavior(realm: "loop"), .init(algorithm: "SHA-256", realm: "loop"), .init(algorithm: nil, realm: "loop"),
            .init(uses: 2, realm: "loop"),
        ], [HTTPMethod.get, .put, .post])
    func `the requests are those of other clients`(behavior: DigestServer.Behavior, method: HTTPMethod) async throws {
        let server = try DigestServer(behavior)
        let manager = makeManager()
        for path in Self.paths {
            let body = Data((method == .get ? "" : "body").utf8)
            let request =
                method == .get ? manager.request(server.url(path)) : manager.upload(body, to: server.url(path), method: method)
            let response = await request.authenticate(user: "user", password: "password").serializingString().response
            #expect(response.value == "welcome")
        }
        // httpx names MD5 also where the challenge names no algorithm, which this server refuses.
        for client in PythonClient.allCases where client != .httpx || behavior.algorithm != nil {
            let other = try DigestServer(behavior)
            _ = try await client.run(Self.python, [method.rawValue] + Self.paths.map { other.url($0) })
            #expect(sent(server) == sent(other), "\(client)")
        }
        #expect(sent(server).count == Self.paths.count + (behavior.uses < Self.paths.count ? 2 : 1))
    }

    @Test(arguments: [DigestServer.Behavior(), .init(algorithm: nil, qop: nil), .init(algorithm: "SHA-256", hashesUser: true)])
    func `a body goes once`(behavior: DigestServer.Behavior) async throws {
        let server = try DigestServer(behavior) { .ok("\($0.bodyLength)") }
        let manager = makeManager()
        let body = GeneratedBody().data(count: 300_000)
        for _ in 1...5 {
            let request = manager.upload(body, to: server.url("/")).authenticate(user: "user", password: "password")
            #expect(await request.validate().serializingString().response.value == "300000")
        }
        #expect(server.server.requestCount == 6)
    }

    @Test func `a nonce with few uses is renewed`() async throws {
        let server = try DigestServer(.init(uses: 3))
        let manager = makeManager()
        for number in 1...9 {
            let request = manager.request(server.url("/\(number)")).authenticate(user: "user", password: "password")
            #expect(await request.serializingString().response.value == "welcome")
        }
        #expect(server.server.requestCount == 9 + 1 + 2)
    }

    @Test func `requests at the same time are all accepted, each count in order`() async throws {
        let server = try DigestServer(.init(uses: 10_000))
        let manager = makeManager()
        await withTaskGroup { group in
            for _ in 0..<16 {
                group.addTask {
                    for _ in 0..<20 {
                        let request = manager.request(server.url("/")).authenticate(user: "user", password: "password")
                        #expect(await request.serializingString().response.value == "welcome")
                    }
                }
            }
        }
        #expect((320 + 1...320 + 160).contains(server.server.requestCount))
    }

    @Test func `cancelled and failed requests leave the others alone`() async throws {
        let gate = Gate()
        let server = try DigestServer { request in
            if request.path == "/slow" { _ = gate.wait(timeout: .seconds(20)) }
            return .ok("welcome")
        }
        let manager = makeManager()
        func load(_ path: String) -> DataRequest {
            manager.request(server.url(path)).authenticate(user: "user", password: "password")
        }
        #expect(await load("/").serializingString().response.value == "welcome")
        let slow = load("/slow")
        async let response = slow.serializingString().response
        #expect(await gate.arrivals(1))
        slow.cancel()
        #expect(await response.error?.isCancelled == true)
        gate.open()
        for _ in 1...3 { #expect(await load("/").serializingString().response.value == "welcome") }
        #expect(sent(server).map { $0.split(separator: " ")[2] } == ["-", "00000001", "00000002", "-", "00000001", "00000002", "00000003"])
    }

    @Test func `a proxy changes nothing`() async throws {
        let proxy = try DigestServer()
        let manager = makeManager { $0.proxy = .url(proxy.url("/")) }
        for _ in 1...3 {
            let request = manager.request("http://example.test/a?b=c").authenticate(user: "user", password: "password")
            #expect(await request.serializingString().response.value == "welcome")
        }
        #expect(sent(proxy).map { $0.split(separator: " ")[2] } == ["-", "00000001", "00000002", "00000003"])
        #expect(Set(proxy.server.requests.map(\.target)) == ["http://example.test/a?b=c"])
    }
}
