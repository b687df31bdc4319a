// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewURLLoading
import Testing

/// `sessionDidReceiveChallenge` for the client's certificate.
@Suite(.timeLimit(.minutes(1))) struct ClientCertificateChallengeTests {
    private typealias Answer = @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)

    private let authority: CertificateAuthority
    private let clients: CertificateAuthority
    /// The methods of the challenges.
    private let asked = Log<String>()

    init() throws {
        authority = try CertificateAuthority()
        clients = try CertificateAuthority(name: "Clients")
    }

    private static let method = "NSURLAuthenticationMethodClientCertificate"
    private static let versions: [ServerTLS.Version] = [.v1_2, .v1_3]

    private func identity(_ name: String, of authority: CertificateAuthority? = nil) throws -> ClientCertificate {
        let identity = try (authority ?? clients).issue(name, usage: .client)
        return .pem(Data(identity.chain.utf8), key: Data(identity.key.utf8))
    }

    /// A server that requests or requires a certificate, and responds with its name and the number of the connection; `/to` redirects.
    private func makeServer(
        _ version: ServerTLS.Version? = nil, requires: Bool = true, to location: String = ""
    ) throws -> LoopbackServer {
        var tls = ServerTLS(try authority.issue(), clientAuthority: clients)
        tls.requiresClientCertificate = requires
        (tls.minimumVersion, tls.maximumVersion) = (version, version)
        return try LoopbackServer(tls: tls) { request, connection in
            request.path == "/to" ? .redirect(to: location) : .ok(connection.tls?.clientName ?? "none")
        }
    }

    /// A manager whose closure accepts servers, and answers other challenges as `answer` says.
    private func manager(
        _ change: (inout SessionConfiguration) -> Void = { _ in }, answer: @escaping Answer
    ) -> SessionManager {
        let manager = makeManager {
            $0.tls.certificateAuthorities = authority.certificate
            change(&$0)
        }
        manager.delegate.sessionDidReceiveChallenge = { [asked] _, challenge, completion in
            asked.append(challenge.protectionSpace.authenticationMethod)
            if let trust = challenge.serverTrust { return completion(.useCredential, URLCredential(trust: trust)) }
            let (disposition, credential) = answer(challenge)
            completion(disposition, credential)
        }
        return manager
    }

    private func manager(with identity: ClientCertificate) -> SessionManager {
        manager { _ in (.useCredential, URLCredential(identity: identity)) }
    }

    private func get(_ url: String, _ manager: SessionManager) async -> DataResponse<String> {
        await manager.request(url).validate().serializingString().response
    }

    /// How often a certificate was asked for.
    private var count: Int { asked.elements.count { $0 == Self.method } }

    // U2.8
    @Test(arguments: versions) func `the closure is asked once, after the server was accepted, with the issuers`(
        version: ServerTLS.Version
    ) async throws {
        let server = try makeServer(version)
        defer { server.stop() }
        let issuers = Log<[Data]?>()
        let spaces = Log<URLProtectionSpace>()
        let ada = try identity("Ada")
        let manager = manager { challenge in
            issuers.append(challenge.certificateIssuers)
            spaces.append(challenge.protectionSpace)
            #expect(challenge.previousFailureCount == 0 && challenge.proposedCredential == nil && challenge.serverTrust == nil)
            return (.useCredential, URLCredential(identity: ada))
        }
        #expect(await get(server.url("/"), manager).value == "Ada")
        _ = await manager.closeIdleConnections()
        #expect(await get(server.url("/"), manager).value == "Ada")
        #expect(asked.elements == [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate])
        // A sequence of a set of the common name, as a UTF-8 string.
        let name = Data([0x30, 0x12, 0x31, 0x10, 0x30, 0x0E, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0C, 0x07]) + Data("Clients".utf8)
        #expect(issuers.elements == [[name]])
        #expect(spaces.elements.first?.host == "localhost" && spaces.elements.first?.port == server.port)
        #expect(server.requests.count == 2)
    }

    // U2.8
    @Test(.enabled(if: TLSAuthority.isAvailable), arguments: [nil, "1.2"])
    func `PEM and PKCS 12 are presented, from memory and files, with and without a password`(version: String?) async throws {
        let authority = try await TLSAuthority.shared()
        let (certificate, key) = (authority.path("client.pem"), authority.path("client.key"))
        let forms: [ClientCertificate] = [
            .pem(file: certificate, keyFile: key),
            .pem(try authority.data("client.pem"), key: try authority.data("client.encrypted"), password: "secret"),
            .pkcs12(file: authority.path("client.p12"), password: "secret"),
            .pkcs12(try authority.data("client.p12"), password: "secret"),
        ]
        let server = try await TLSServer(authority, "good") {
            $0.clientAuthority = authority.path("other-root.pem")
            $0.maximumVersion = version
        }
        for form in forms {
            #expect(await get(server.url, manager(with: form)).value != nil, "\(form)")
            #expect(!"\(form) \(String(reflecting: form)) \(Mirror(reflecting: form).children.count)".contains("secret"))
        }
        #expect(count == forms.count)
    }

    // U2.8
    @Test(arguments: versions) func `without an identity the handshake continues, and the server accepts or refuses it`(
        version: ServerTLS.Version
    ) async throws {
        let servers = (requesting: try makeServer(version, requires: false), requiring: try makeServer(version))
        let answers: [(URLSession.AuthChallengeDisposition, hasPassword: Bool)] = [
            (.performDefaultHandling, false), (.rejectProtectionSpace, false), (.useCredential, false), (.useCredential, true),
        ]
        for answer in answers {
            let before = count
            let (disposition, hasPassword) = answer
            let manager = manager { _ in
                (disposition, hasPassword ? URLCredential(user: "user", password: "passwd", persistence: .none) : nil)
            }
            for _ in 0..<2 { #expect(await get(servers.requesting.url("/"), manager).value == "none") }
            #expect(count == before + 1)
            let error = await get(servers.requiring.url("/"), manager).error
            let kind = error?.transferFailure?.kind
            #expect(kind == .clientCertificate || version == .v1_2 && kind == .secureConnection, "\(String(describing: error))")
            #expect(count == before + 2)
            // What did not work is not remembered.
            #expect(await get(servers.requiring.url("/"), manager).error != nil)
            #expect(count == before + 3)
        }
        #expect(servers.requiring.requests.isEmpty)
    }

    // U2.8
    @Test(arguments: versions) func `after a certificate that the server refuses, the next request asks again`(
        version: ServerTLS.Version
    ) async throws {
        let server = try makeServer(version)
        let failures = Log<Int>()
        let (ada, stranger) = (try identity("Ada"), try identity("Ada", of: CertificateAuthority(name: "Strangers")))
        let unusable = ClientCertificate.pem(Data("no PEM".utf8), key: Data())
        let manager = manager { challenge in
            failures.append(challenge.previousFailureCount)
            return (.useCredential, URLCredential(identity: [unusable, stranger, ada][min(challenge.previousFailureCount, 2)]))
        }
        let first = await get(server.url("/"), manager).error
        #expect(first?.transferFailure?.kind == .clientCertificate, "\(String(describing: first))")
        let second = await get(server.url("/"), manager).error
        #expect([.clientCertificate, .connectionLost].contains(second?.transferFailure?.kind), "\(String(describing: second))")
        for _ in 0..<2 { #expect(await get(server.url("/"), manager).value == "Ada") }
        #expect(failures.elements == [0, 1, 2])
        #expect(server.requests.count == 2)
    }

    // U2.8
    @Test func `a cancelled challenge cancels the request, and is not remembered`() async throws {
        let server = try makeServer(requires: false)
        let manager = manager { _ in (.cancelAuthenticationChallenge, nil) }
        for number in 1...2 {
            #expect(await get(server.url("/"), manager).error?.isCancelled == true)
            #expect(count == number)
        }
        #expect(server.requests.isEmpty)
    }

    // U2.8
    @Test(arguments: [true, false]) func `a request that is cancelled before the answer ends at once, and the next one asks`(
        completes: Bool
    ) async throws {
        let server = try makeServer()
        let late = Log<@Sendable () -> Void>()
        let ada = try identity("Ada")
        let manager = manager { _ in (.performDefaultHandling, nil) }
        manager.delegate.sessionDidReceiveChallenge = { _, challenge, completion in
            if let trust = challenge.serverTrust { return completion(.useCredential, URLCredential(trust: trust)) }
            let isFirst = late.count == 0
            late.append { completion(.cancelAuthenticationChallenge, nil) }
            if !isFirst { completion(.useCredential, URLCredential(identity: ada)) }
        }
        let first = manager.request(server.url("/"))
        let response = Task { await first.serializingString().response }
        await late.wait(for: 1)
        first.cancel()
        #expect(await response.value.error?.isCancelled == true)
        if completes { late.elements.first?() }
        #expect(await get(server.url("/"), manager).value == "Ada")
        #expect(late.count == 2)
    }

    // U2.8
    @Test func `an answer that never comes takes at most the connect timeout`() async throws {
        let server = try makeServer()
        let manager = makeManager {
            $0.tls.certificateAuthorities = authority.certificate
            $0.connectTimeout = .seconds(2)
        }
        manager.delegate.sessionDidReceiveChallenge = { _, challenge, completion in
            if let trust = challenge.serverTrust { completion(.useCredential, URLCredential(trust: trust)) }
        }
        let failure = await get(server.url("/"), manager).error?.transferFailure
        #expect(failure?.kind == .connectTimeout && failure?.message.contains("decision") == true, "\(String(describing: failure))")
        #expect(server.requests.isEmpty)
    }

    // U2.8
    @Test func `requests that begin together ask once`() async throws {
        let server = try makeServer()
        let ada = try identity("Ada")
        let manager = manager(with: ada)
        let values = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<8 { group.addTask { await get(server.url("/"), manager).value } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(values == Array(repeating: "Ada", count: 8))
        #expect(count == 1)
    }

    // U2.8
    @Test func `a certificate of the options is presented without a challenge, and elsewhere the closure is asked`() async throws {
        let other = try makeServer()
        let server = try makeServer(to: other.url("/"))
        let configured = try clients.issue("Configured", usage: .client)
        let ada = try identity("Ada")
        let manager = manager {
            $0.tls.clientCertificate = .pem(Data(configured.chain.utf8), key: Data(configured.key.utf8))
        } answer: { _ in
            (.useCredential, URLCredential(identity: ada))
        }
        #expect(await get(server.url("/"), manager).value == "Configured")
        #expect(count == 0)
        #expect(await get(server.url("/to"), manager).value == "Ada")
        #expect(count == 1)
        // The program names that origin itself.
        #expect(await get(other.url("/"), manager).value == "Configured")
        #expect(count == 1)
    }

    // U2.8
    @Test func `a redirect to another origin asks there`() async throws {
        let other = try makeServer()
        let server = try makeServer(to: other.url("/"))
        let ports = Log<Int>()
        let (ada, bob) = (try identity("Ada"), try identity("Bob"))
        let manager = manager { challenge in
            ports.append(challenge.protectionSpace.port)
            return (.useCredential, URLCredential(identity: challenge.protectionSpace.port == server.port ? ada : bob))
        }
        #expect(await get(server.url("/to"), manager).value == "Bob")
        #expect(await get(server.url("/"), manager).value == "Ada")
        #expect(ports.elements == [server.port, other.port])
    }

    // U2.8
    @Test func `sessions with different identities, and one without, don't share`() async throws {
        let server = try makeServer(requires: false)
        let managers = [
            manager(with: try identity("Ada")), manager(with: try identity("Bob")), manager { _ in (.performDefaultHandling, nil) },
        ]
        for _ in 0..<2 {
            let values = await withTaskGroup(of: (Int, String?).self) { group in
                for index in 0..<6 { group.addTask { (index, await get(server.url("/"), managers[index % 3]).value) } }
                return await group.reduce(into: [Int: String?]()) { $0[$1.0] = $1.1 }
            }
            for index in 0..<6 { #expect(values[index] == ["Ada", "Bob", "none"][index % 3]) }
        }
        #expect(count == 3)
    }

    // U2.8: no callback is set without a closure, as the first connection would end.
    @Test(arguments: versions) func `without a closure the first connection serves the request`(version: ServerTLS.Version) async throws {
        let numbers = Log<Int>()
        var tls = ServerTLS(try authority.issue(), clientAuthority: clients)
        tls.requiresClientCertificate = false
        (tls.minimumVersion, tls.maximumVersion) = (version, version)
        let server = try LoopbackServer(tls: tls) { _, connection in
            numbers.append(connection.number)
            return .ok(connection.tls?.clientName ?? "none")
        }
        let plain = makeManager { $0.tls.certificateAuthorities = authority.certificate }
        #expect(await get(server.url("/"), plain).value == "none")
        // Who evaluates servers only is asked about nothing else.
        let evaluating = makeManager { $0.tls.certificateAuthorities = authority.certificate }
        evaluating.delegate.onServerTrust { _ in .accept }
        #expect(await get(server.url("/"), evaluating).value == "none")
        let asking = manager(with: try identity("Ada"))
        #expect(await get(server.url("/"), asking).value == "Ada")
        // The second manager's first connection ended for its closure, and so did the third's first two, for a challenge each.
        #expect(numbers.elements == [1, 3, 6])
    }

    // U2.8
    @Test func `an upload is sent once, with its body, after the choice`() async throws {
        let server = try makeServer()
        let manager = manager(with: try identity("Ada"))
        let response = await manager.upload(Data(repeating: 7, count: 100_000), to: server.url("/")).serializingString().response
        #expect(response.value == "Ada")
        #expect(server.requests.map(\.bodyLength) == [100_000])
    }

    // U2.8
    @Test(arguments: versions) func `a raw stream asks as well`(version: ServerTLS.Version) async throws {
        let server = try makeServer(version)
        let (ada, stranger) = (try identity("Ada"), try identity("Ada", of: CertificateAuthority(name: "Strangers")))
        let manager = manager { challenge in (.useCredential, URLCredential(identity: challenge.previousFailureCount == 0 ? stranger : ada))
        }
        func exchange() async throws -> String {
            let stream = manager.stream(withSecureHostName: "localhost", port: server.port)
            try await stream.write(Data("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8))
            var received = Data()
            for try await bytes in stream.bytes() {
                received += bytes
                if received.suffix(3) == Data("Ada".utf8) { break }
            }
            return String(decoding: received, as: UTF8.self)
        }
        await #expect(throws: (any Error).self) { try await exchange() }
        #expect(try await exchange().hasSuffix("Ada"))
        #expect(try await exchange().hasSuffix("Ada"))
        #expect(count == 2)
    }

    // U2.8
    @Test(.enabled(if: TLSAuthority.isAvailable)) func `the choice is made through a proxy's tunnel, too`() async throws {
        let server = try makeServer()
        let proxy = try await TLSServer.proxy()
        let ada = try identity("Ada")
        let manager = manager {
            $0.proxy = .url("http://localhost:\(proxy.port)")
        } answer: { _ in
            (.useCredential, URLCredential(identity: ada))
        }
        #expect(await get(server.url("/"), manager).value == "Ada")
        #expect(count == 1)
    }

    // U2.8: the proxy requests a certificate as well, and gets none.
    @Test(.enabled(if: TLSAuthority.isAvailable), arguments: [nil, "1.2"])
    func `through an HTTPS proxy the host is asked about, and not the proxy`(version: String?) async throws {
        let authority = try await TLSAuthority.shared()
        let server = try await TLSServer(authority, "good") {
            $0.clientAuthority = authority.path("other-root.pem")
            $0.maximumVersion = version
        }
        let tunnel = try await TLSServer.proxy()
        let proxy = try await TLSServer(authority, "second") {
            $0.relayPort = tunnel.port
            $0.clientAuthority = authority.path("other-root.pem")
            $0.acceptsAnyClient = true
            $0.maximumVersion = version
        }
        let client = ClientCertificate.pem(file: authority.path("client.pem"), keyFile: authority.path("client.key"))
        let manager = manager {
            $0.proxy = .url("https://localhost:\(proxy.port)")
            $0.tls.certificateAuthorities = nil
            $0.tls.certificateAuthorityFile = authority.path("root.pem")
        } answer: { _ in
            (.useCredential, URLCredential(identity: client))
        }
        let response = await get(server.url, manager)
        #expect(response.value != nil, "\(String(describing: response.error))")
        #expect(asked.elements == [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate])
    }

    // U2.8
    @Test func `an identity answers no challenge for a password`() async throws {
        let server = try LoopbackServer { request, _ in
            request.header("Authorization") == nil ? .status(401).header("WWW-Authenticate", "Basic realm=\"r\"") : .ok("sent")
        }
        let ada = try identity("Ada")
        let credential = URLCredential(identity: ada)
        let other = URLCredential(identity: try identity("Bob"))
        #expect(credential == URLCredential(identity: ada) && credential != other)
        #expect((credential.copy() as? URLCredential) == credential && credential.password == "")
        let manager = makeManager()
        manager.delegate.taskDidReceiveChallenge = { _, _, _, completion in completion(.useCredential, URLCredential(identity: ada)) }
        _ = await manager.request(server.url("/")).serializingString().response
        // What is sent has nothing of the key.
        let fields = server.requests.compactMap { $0.header("Authorization") }
        #expect(fields.allSatisfy { $0.utf8.count < 150 })
    }
}
