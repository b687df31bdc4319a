// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import Foundation
import Testing

/// Strict transport security and secure cookies over TLS, on a socket.
@Suite(.timeLimit(.minutes(1))) struct SecureHostsTests {
    private let authority: CertificateAuthority
    private let hosts = HSTSStore.memory

    init() throws {
        authority = try CertificateAuthority()
    }

    private func makeServer(_ identity: ServerIdentity) throws -> LoopbackServer {
        try LoopbackServer(tls: ServerTLS(identity)) { request, _ in
            .ok(request.header("Cookie") ?? "none").header("Strict-Transport-Security", "max-age=1000").header("Set-Cookie", "a=1; Secure")
        }
    }

    private func makeManager(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        configuration.tls.certificateAuthorities = authority.certificate
        configuration.callbackQueue = callbackQueue
        configuration.hsts = hosts
        configuration.cookies = .memory
        change(&configuration)
        return SessionManager(configuration: configuration)
    }

    @Test("a request for http to a host that was heard of over TLS goes there over TLS") func upgrade() async throws {
        let server = try makeServer(authority.issue())
        defer { server.stop() }
        let manager = makeManager()
        let plain = "http://localhost:\(server.port)/"
        // Not known yet: the server does not understand it.
        #expect(await manager.request(plain).serializingString().response.error != nil)
        #expect(try await manager.request(server.url("/")).serializingString().value == "none")
        #expect(try hosts.isKnown("localhost"))
        let response = await manager.request(plain).serializingString().response
        #expect(response.value == "a=1")
        #expect(response.response?.url?.absoluteString == server.url("/"))
    }

    @Test("a known host whose certificate is not trusted is refused, whatever the options say") func noException() async throws {
        let server = try makeServer(CertificateAuthority().issue())
        defer { server.stop() }
        let manager = makeManager { $0.tls.verifiesServer = false }
        // Not noted, as trust was not evaluated.
        #expect(try await manager.request(server.url("/")).serializingString().value == "none")
        #expect(try !hosts.isKnown("localhost"))
        try hosts.set(HSTSHost(host: "localhost", expirationDate: .distantFuture))
        let strict = makeManager { $0.tls.verifiesServer = false }
        for scheme in ["http", "https"] {
            let response = await strict.request("\(scheme)://localhost:\(server.port)/").serializingString().response
            guard case CurlewError.transferFailed(let failure)? = response.error else {
                Issue.record("\(response)")
                continue
            }
            #expect(failure.kind == .serverCertificate)
        }
        #expect(server.requestCount == 1)
    }
}
