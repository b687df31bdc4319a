// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// `OPTIONS *` (RFC 9110, section 9.3.7; RFC 9112, section 3.2.4).
@Suite(.timeLimit(.minutes(1))) struct ServerWideOptionsTests {
    private static let options = RequestOptions(isServerWide: true)

    private func target(_ server: LoopbackServer, _ url: String, through proxy: ProxyPolicy = .none) async throws -> String? {
        let manager = makeManager { $0.proxy = proxy }
        let response = await manager.request(url, method: .options, options: Self.options).validate().serializingData().response
        #expect(response.error == nil)
        return server.requests.last?.target
    }

    @Test(arguments: ["", "/", "/#fragment"]) func `a server gets an asterisk`(path: String) async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        #expect(try await target(server, server.url("") + path) == "*")
        #expect(server.requests.map(\.method) == ["OPTIONS"])
        #expect(server.requests[0].header("Host") == "127.0.0.1:\(server.port)")
    }

    @Test func `so it does over TLS`() async throws {
        let authority = try CertificateAuthority()
        let server = try LoopbackServer(tls: ServerTLS(try authority.issue())) { _, _ in .ok() }
        let manager = makeManager { $0.tls.certificateAuthorities = authority.certificate }
        let response = await manager.request(server.url("/"), method: .options, options: Self.options).serializingData().response
        #expect(response.error == nil && server.requests.map(\.target) == ["*"])
    }

    @Test(
        arguments: [
            ("http://example.test:8001/", "http://example.test:8001"), ("http://example.test", "http://example.test"),
            ("http://user:secret@example.test/#fragment", "http://example.test"), ("http://[::1]:81/", "http://[::1]:81"),
        ])
    func `a proxy gets the URL without a path, of which the last one makes an asterisk`(url: String, target: String) async throws {
        let proxy = try LoopbackServer { _, _ in .ok() }
        #expect(try await self.target(proxy, url, through: .url(proxy.url("/"))) == target)
    }

    @Test func `a proxy that passes bytes on sees none of it`() async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        let proxy = try SOCKS4Server()
        #expect(try await target(server, server.url("/"), through: .url("socks4://127.0.0.1:\(proxy.port)")) == "*")
    }

    @Test(.enabled(if: ChildProcess.path(of: "curl") != nil, "needs the program curl")) func `curl sends the same`() async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        let request = makeManager().request(server.url("/"), method: .options, options: Self.options)
        #expect(await request.serializingData().response.error == nil)
        let shell = try ChildProcess("/bin/sh", "-c", request.cURLDescription(redacting: false) + " -s -S --max-time 20")
        #expect(await shell.finish().status == 0)
        #expect(server.requests.map(\.target) == ["*", "*"] && server.requests.map(\.method) == ["OPTIONS", "OPTIONS"])
    }

    @Test(.enabled("needs Python's requests and httpx") { try await PythonClient.areInstalled() })
    func `httpx sends the same`() async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        let request = makeManager().request(server.url("/"), method: .options, options: Self.options)
        #expect(await request.serializingData().response.error == nil)
        let script = "session.request('OPTIONS', sys.argv[1], extensions={'target': b'*'})"
        _ = try await PythonClient.httpx.run(script, [server.url("/")])
        let lines = server.requests.map { "\($0.method) \($0.target) \($0.header("Host") ?? "") \($0.bodyLength)" }
        #expect(lines == Array(repeating: "OPTIONS * 127.0.0.1:\(server.port) 0", count: 2))
    }

    @Test(arguments: [(HTTPMethod.get, "/"), (.options, "/path"), (.options, "/?query"), (.options, "?"), (.post, "/"), (.connect, "/")])
    func `other methods and targets are refused`(method: HTTPMethod, path: String) async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        let response = await makeManager().request(server.url("") + path, method: method, options: Self.options).serializingData().response
        #expect(response.error?.transferFailure?.kind == .configuration)
        #expect(server.connectionCount == 0)
    }

    @Test func `a redirect is followed to its own target, and a retry repeats the asterisk`() async throws {
        let server = try LoopbackServer { request, _ in
            if request.target == "/next" { return .ok() }
            return request.sequence == 1 ? .status(503) : .redirect(to: "/next", status: 307)
        }
        let policy = RetryPolicy(exponentialBackoffScale: 0)
        let request = makeManager().request(server.url("/"), method: .options, interceptor: policy, options: Self.options).validate()
        #expect(await request.serializingData().response.error == nil)
        #expect(server.requests.map(\.target) == ["*", "*", "/next"])
    }

    @Test func `Digest signs the asterisk`() async throws {
        let server = try DigestServer()
        let request = makeManager().request(server.url("/"), method: .options, options: Self.options)
        let response = await request.authenticate(user: "user", password: "password").serializingString().response
        #expect(response.value == "welcome")
        #expect(server.server.requests.map(\.target) == ["*", "*"])
    }
}
