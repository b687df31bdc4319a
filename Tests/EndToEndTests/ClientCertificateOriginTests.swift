// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewURLLoading
import Testing

/// To whom a client certificate is presented.
@Suite(.timeLimit(.minutes(1))) struct ClientCertificateOriginTests {
    private let authority: CertificateAuthority
    private let clients: CertificateAuthority

    init() throws {
        authority = try CertificateAuthority()
        clients = try CertificateAuthority(name: "Clients")
    }

    private func certificate(for origins: [String]? = nil) throws -> ClientCertificate {
        let identity = try clients.issue("Numenius", usage: .client)
        var certificate = ClientCertificate.pem(Data(identity.chain.utf8), key: Data(identity.key.utf8))
        certificate.origins = origins
        return certificate
    }

    private func manager(_ certificate: ClientCertificate) -> SessionManager {
        makeManager {
            $0.tls.certificateAuthorities = authority.certificate
            $0.tls.clientCertificate = certificate
        }
    }

    /// A server that requires a client certificate, and responds with its name, or redirects `/to` to a URL.
    private func makeServer(to location: String = "") throws -> LoopbackServer {
        try LoopbackServer(tls: ServerTLS(authority.issue(), clientAuthority: clients)) { request, connection in
            request.path == "/to" ? .redirect(to: location) : .ok(connection.tls?.clientName ?? "none")
        }
    }

    private func get(_ url: String, _ manager: SessionManager) async -> DataResponse<String> {
        await manager.request(url).validate().serializingString().response
    }

    @Test("a redirect to another origin does not present it, one to the same origin does") func redirects() async throws {
        let other = try makeServer()
        let away = try makeServer(to: other.url("/"))
        let inside = try makeServer(to: "/")
        let manager = try manager(certificate())
        #expect(await get(inside.url("/to"), manager).value == "Numenius")
        #expect(await get(away.url("/to"), manager).error != nil)
        #expect(away.requests.count == 1)
        #expect(other.requests.isEmpty)
        // The program names that origin itself.
        #expect(await get(other.url("/"), manager).value == "Numenius")
    }

    @Test("a redirect back to the first origin presents it again") func back() async throws {
        let first = Lock("")
        let middle = try LoopbackServer(tls: ServerTLS(authority.issue())) { _, _ in .redirect(to: first.withLock { $0 }) }
        let server = try makeServer(to: middle.url("/"))
        first.withLock { $0 = server.url("/") }
        #expect(await get(server.url("/to"), try manager(certificate())).value == "Numenius")
    }

    @Test("named origins get it by requests and redirects, and no others do") func named() async throws {
        let other = try makeServer()
        let server = try makeServer(to: other.url("/"))
        let both = try manager(certificate(for: [server, other].map { "https://LOCALHOST:\($0.port)" }))
        #expect(await get(server.url("/to"), both).value == "Numenius")
        let first = try manager(certificate(for: ["https://localhost:\(server.port)"]))
        #expect(await get(server.url("/"), first).value == "Numenius")
        #expect(await get(server.url("/to"), first).error != nil)
        #expect(await get(other.url("/"), first).error != nil)
        #expect(other.requests.count == 1)
        #expect(await get(server.url("/"), try manager(certificate(for: []))).error != nil)
    }

    // U2.8
    @Test("a certificate that answers a challenge is presented to its origins only") func challenges() async throws {
        let servers = [try makeServer(), try makeServer()]
        let certificate = try certificate(for: ["https://localhost:\(servers[0].port)"])
        let manager = makeManager { $0.tls.certificateAuthorities = authority.certificate }
        manager.delegate.sessionDidReceiveChallenge = { _, challenge, completion in
            if let trust = challenge.serverTrust { return completion(.useCredential, URLCredential(trust: trust)) }
            completion(.useCredential, URLCredential(identity: certificate))
        }
        #expect(await get(servers[0].url("/"), manager).value == "Numenius")
        #expect(await get(servers[1].url("/"), manager).error != nil)
        #expect(servers[1].requests.isEmpty)
    }

    @Test("files that are replaced make another identity: neither connections nor cached responses of the first are used")
    func replacedFiles() async throws {
        let directory = try TemporaryDirectory()
        let identities = try ["Ada", "Bob"].map { try clients.issue($0, usage: .client) }
        let server = try LoopbackServer(tls: ServerTLS(authority.issue(), clientAuthority: clients)) { request, connection in
            let response = ServerResponse.ok(connection.tls?.clientName ?? "none")
            return response.header("Cache-Control", request.path == "/cached" ? "max-age=3600" : "no-store")
        }
        let (chain, key) = (directory.file("chain.pem"), directory.file("key.pem"))
        let manager = makeManager {
            $0.tls.certificateAuthorities = authority.certificate
            $0.tls.clientCertificate = .pem(file: chain.path, keyFile: key.path)
            $0.cache = .memory()
        }
        for (index, name) in [(0, "Ada"), (1, "Bob"), (0, "Ada")] {
            // Other files, as a program writes them that renews certificates.
            try Data(identities[index].chain.utf8).write(to: chain, options: .atomic)
            try Data(identities[index].key.utf8).write(to: key, options: .atomic)
            for _ in 0..<2 {
                #expect(await get(server.url("/live"), manager).value == name)
                #expect(await get(server.url("/cached"), manager).value == name)
            }
        }
        // The first identity's response is still its own.
        #expect(server.requests.count { $0.path == "/cached" } == 2)
    }

    @Test(
        "what is no origin fails at once",
        arguments: [
            "api.example.org", "http://api.example.org", "https://*.example.org", "https://api.example.org/", "https://a@api.example.org",
            "https://bücher.example", "https://", "",
        ])
    func invalid(origin: String) async throws {
        let server = try makeServer()
        let manager = try manager(certificate(for: ["https://localhost:\(server.port)", origin]))
        #expect(await get(server.url("/"), manager).error?.transferFailure?.kind == .configuration)
        let stream = manager.stream(withSecureHostName: "localhost", port: server.port)
        await #expect {
            try await stream.write(Data("x".utf8))
        } throws: {
            $0.transferFailure?.kind == .configuration
        }
        #expect(server.connectionCount == 0)
    }
}
