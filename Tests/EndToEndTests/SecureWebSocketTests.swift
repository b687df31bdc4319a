// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import Testing

/// WebSockets use the session's TLS settings, trust policies and proxies.
@Suite(.timeLimit(.minutes(1)), .enabled(if: TLSAuthority.isAvailable)) struct SecureWebSocketTests {
    private let authority: TLSAuthority
    private let server: WebSocketServer
    private let front: TLSServer

    init() async throws {
        authority = try await TLSAuthority.shared()
        let server = try WebSocketServer(
            accept: { WebSocketHandshake.accept(for: $0) }, fields: { _ in ["Strict-Transport-Security: max-age=1000"] }
        ) {
            try $0.echo()
        }
        self.server = server
        front = try await TLSServer(authority, "good") { $0.relayPort = server.port }
    }

    private var url: String { "wss://localhost:\(front.port)/" }

    private func manager(_ pinned: String, _ change: (inout SessionConfiguration) -> Void = { _ in }) throws -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = callbackQueue
        configuration.proxy = .none
        configuration.tls.certificateAuthorityFile = authority.path("root.pem")
        change(&configuration)
        let pin = try authority.certificate(pinned).publicKey
        let policy = ServerTrustPolicy.pinPublicKeys(publicKeys: [pin], validateCertificateChain: true, validateHost: true)
        return SessionManager(
            configuration: configuration, serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["localhost": policy]))
    }

    private func echo(_ text: String, over socket: WebSocket) async throws -> WebSocketMessage? {
        try await socket.send(text)
        for try await message in socket.messages { return message }
        return nil
    }

    @Test("messages are sent over TLS to a host with the pinned key") func secure() async throws {
        let text = String(repeating: "curlew ", count: 100_000)
        let manager = try manager("good")
        let socket = manager.webSocket(url)
        #expect(try await echo(text, over: socket) == .text(text))
        #expect(try await socket.close().code == .normalClosure)
    }

    @Test("what a host says in its handshake has the next one use TLS, although the URL does not") func strictTransportSecurity()
        async throws
    {
        let hosts = HSTSStore.memory
        let manager = try manager("good") { $0.hsts = hosts }
        let plain = "ws://localhost:\(front.port)/"
        await #expect(throws: (any Error).self) { try await manager.webSocket(plain).open() }
        #expect(try !hosts.isKnown("localhost"))
        let first = manager.webSocket(url)
        #expect(try await echo("first", over: first) == .text("first"))
        #expect(try hosts.isKnown("localhost"))
        let second = manager.webSocket(plain)
        #expect(try await echo("second", over: second) == .text("second"))
        for socket in [first, second] { #expect(try await socket.close().code == .normalClosure) }
    }

    @Test("a host without the pinned key gets no handshake") func rejected() async throws {
        let manager = try manager("second")
        do {
            try await manager.webSocket(url).open()
            Issue.record("The host was trusted")
        } catch {
            #expect(error.transferFailure?.kind == .serverCertificate)
        }
        #expect(server.requests.isEmpty)
    }

    @Test("WebSockets are tunnelled through the proxy, with and without TLS") func proxy() async throws {
        let proxy = try await TLSServer.proxy()
        let manager = try manager("good") { $0.proxy = .url("http://127.0.0.1:\(proxy.port)") }
        for url in [url, server.url()] {
            let socket = manager.webSocket(url)
            #expect(try await echo("x", over: socket) == .text("x"))
            try await socket.close()
            #expect(await proxy.nextConnection() != nil)
        }
    }
}
