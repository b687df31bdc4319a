// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct SecureServerTests {
    private let authority: CertificateAuthority

    init() throws {
        authority = try CertificateAuthority()
    }

    private func makeManager(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        configuration.tls.certificateAuthorities = authority.certificate
        configuration.callbackQueue = callbackQueue
        change(&configuration)
        return SessionManager(configuration: configuration)
    }

    private func kind(_ error: (any Error)?) -> TransferFailure.Kind? {
        if case CurlewError.transferFailed(let failure)? = error { failure.kind } else { nil }
    }

    @Test("requests over TLS, with the connection kept") func requests() async throws {
        let server = try LoopbackServer(
            tls: ServerTLS(authority.issue()),
            routes: [
                .get("/users/{id}") { request, connection in
                    .ok("\(request.parameters["id"] ?? "") \(connection.tls?.version ?? "") \(connection.tls?.serverName ?? "")")
                },
                .post("/users") { request, _ in .ok(request.body) },
            ])
        defer { server.stop() }
        let manager = makeManager()
        #expect(try await manager.request(server.url("/users/a%20b")).serializingString().value == "a b TLSv1.3 localhost")
        let body = GeneratedBody().data(count: 3_000_000)
        #expect(try await manager.upload(body, to: server.url("/users")).serializingData().value == body)
        #expect(await manager.request(server.url("/users")).serializingData().response.response?.statusCode == 405)
        #expect(await manager.request(server.url("/x")).serializingData().response.response?.statusCode == 404)
        #expect(server.connectionCount == 1)
        #expect(server.requests.map(\.method) == ["GET", "POST", "GET", "GET"])
    }

    @Test("certificates: untrusted, for another host, expired, with an intermediate") func certificates() async throws {
        let cases: [(ServerIdentity, TransferFailure.Kind?)] = [
            (try CertificateAuthority().issue(), .serverCertificate),
            (try authority.issue("elsewhere.example"), .serverCertificate),
            (try authority.issue(validity: .seconds(-7200) ..< .seconds(-3600)), .serverCertificate),
            (try authority.issueIntermediate().issue(), nil),
            (try authority.issue(), nil),
        ]
        for (identity, expected) in cases {
            let server = try LoopbackServer(tls: ServerTLS(identity)) { _, _ in .ok("in") }
            defer { server.stop() }
            let response = await makeManager().request(server.url("/")).serializingString().response
            #expect(kind(response.error) == expected, "\(identity)")
            #expect(response.value == (expected == nil ? "in" : nil))
        }
    }

    @Test("versions are limited") func versions() async throws {
        var tls = ServerTLS(try authority.issue())
        tls.maximumVersion = .v1_2
        let server = try LoopbackServer(tls: tls) { _, connection in .ok(connection.tls?.version ?? "") }
        defer { server.stop() }
        #expect(try await makeManager().request(server.url("/")).serializingString().value == "TLSv1.2")
        let refused = await makeManager { $0.tls.minimumVersion = .v1_3 }.request(server.url("/")).serializingString().response
        #expect(kind(refused.error) == .secureConnection)
        #expect(await eventually { !server.handshakeFailures.isEmpty })
        #expect(server.handshakeFailures.count == 1)
    }

    @Test("client certificates are required") func clients() async throws {
        let clients = try CertificateAuthority(name: "Clients")
        let server = try LoopbackServer(tls: ServerTLS(authority.issue(), clientAuthority: clients)) { _, connection in
            .ok(connection.tls?.clientName ?? "none")
        }
        defer { server.stop() }
        let identity = try clients.issue("Numenius", usage: .client)
        let certificate = ClientCertificate.pem(Data(identity.chain.utf8), key: Data(identity.key.utf8))
        let manager = makeManager { $0.tls.clientCertificate = certificate }
        #expect(try await manager.request(server.url("/")).serializingString().value == "Numenius")
        #expect(await makeManager().request(server.url("/")).serializingString().response.error != nil)
    }

    @Test("a body that ends with close_notify is whole, one that is cut is not") func truncation() async throws {
        let server = try LoopbackServer(tls: ServerTLS(authority.issue())) { request, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbody")
            if request.path == "/cut" { connection.cut() } else { connection.close() }
            return nil
        }
        defer { server.stop() }
        #expect(try await makeManager().request(server.url("/closed")).serializingString().value == "body")
        #expect(kind(await makeManager().request(server.url("/cut")).serializingString().response.error) == .connectionLost)
    }

    @Test("misbehaviour, with and without TLS", arguments: [true, false]) func misbehaviour(isSecure: Bool) async throws {
        let tls = isSecure ? ServerTLS(try authority.issue()) : nil
        let body = GeneratedBody().data(count: 10_000)
        let server = try LoopbackServer(
            tls: tls,
            routes: [
                .get("/cut") { _, _ in .ok(body).misbehaving(.cut(after: 4000)) },
                .get("/reset") { _, _ in .ok(body).misbehaving(.reset(after: 4000)) },
                .get("/stall") { _, _ in .ok(body).misbehaving(.stall(after: 4000)) },
                .get("/slow") { _, _ in .ok(body).misbehaving(.slow(piece: 4000, pause: .milliseconds(1))) },
                .get("/late") { _, _ in .ok(body).delayed(by: .milliseconds(1)).header("X-Late", "yes") },
            ])
        defer { server.stop() }
        let (manager, impatient) = (makeManager(), makeManager { $0.idleTimeout = .milliseconds(500) })
        func get(_ path: String) async -> DataResponse<Data> {
            let chosen = path == "/stall" ? impatient : manager
            return await chosen.request(server.url(path)).serializingData().response
        }
        #expect(kind(await get("/cut").error) == .connectionLost)
        #expect(kind(await get("/reset").error) == .connectionLost)
        #expect(kind(await get("/stall").error) == .idleTimeout)
        #expect(await get("/slow").value == body)
        let late = await get("/late")
        #expect(late.value == body && late.response?.value(forHTTPHeaderField: "X-Late") == "yes")
    }

    @Test("identities do not show their keys, names with commas are refused") func identities() throws {
        let identity = try authority.issue()
        #expect(identity.key.contains("PRIVATE KEY"))
        for text in ["\(identity)", String(reflecting: identity), "\(Mirror(reflecting: authority).children.map { "\($0)" })"] {
            #expect(!text.contains("PRIVATE KEY"))
        }
        var dumped = ""
        dump(ServerTLS(identity), to: &dumped)
        #expect(!dumped.contains("PRIVATE KEY"))
        let error = #expect(throws: TLSError.self) { try authority.issue("a,DNS:b") }
        #expect(error?.errorDescription == error?.description)
        #expect(throws: TLSError.self) { try LoopbackServer(tls: ServerTLS(ServerIdentity(chain: "", key: ""))) { _, _ in nil } }
    }
}
