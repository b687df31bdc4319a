// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewURLLoading
import CurlewWebSocket
import Testing

/// `sessionDidReceiveChallenge` for server trust.
@Suite(.timeLimit(.minutes(2)), .enabled(if: TLSAuthority.isAvailable)) struct ServerTrustChallengeTests {
    private let authority: TLSAuthority

    init() async throws {
        authority = try await TLSAuthority.shared()
    }

    /// A manager that trusts the tests' root.
    private func manager(
        _ policy: ServerTrustPolicy? = nil, _ change: (inout SessionConfiguration) -> Void = { _ in },
        answer: @escaping @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)
    ) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = callbackQueue
        configuration.proxy = .none
        configuration.tls.certificateAuthorityFile = authority.path("root.pem")
        change(&configuration)
        let manager = SessionManager(
            configuration: configuration, serverTrustPolicyManager: policy.map { ServerTrustPolicyManager(policies: ["localhost": $0]) })
        manager.delegate.sessionDidReceiveChallenge = { _, challenge, completion in
            let (disposition, credential) = answer(challenge)
            completion(disposition, credential)
        }
        return manager
    }

    /// The same, with a closure that performs the default handling.
    private func undecided(_ policy: ServerTrustPolicy? = nil, _ change: (inout SessionConfiguration) -> Void) -> SessionManager {
        manager(policy, change) { _ in (.performDefaultHandling, nil) }
    }

    private func get(_ url: String, _ manager: SessionManager) async -> DataResponse<String> {
        await manager.request(url).validate().serializingString().response
    }

    private static func accept(_ challenge: URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        (.useCredential, challenge.serverTrust.map { URLCredential(trust: $0) })
    }

    @Test("an otherwise untrusted server is accepted by the closure, which is called once, before a byte is sent")
    func accepts() async throws {
        let server = try await TLSServer(authority, "self")
        let asked = Log<ServerTrust?>()
        let methods = Log<String>()
        let pinned = ServerTrustPolicy.pinCertificates(
            certificates: [try authority.certificate("other")], validateCertificateChain: false, validateHost: true)
        for policy in [nil, pinned] {
            let manager = manager(policy) { challenge in
                asked.append(challenge.serverTrust)
                methods.append(challenge.protectionSpace.authenticationMethod)
                return Self.accept(challenge)
            }
            for _ in 0..<2 { #expect(await get(server.url, manager).value != nil) }
            // While the other connection is open: the ends of two may be told in any order.
            if policy == nil { #expect(await server.nextConnection() == TLSServer.Connection(bytes: 0, requests: 0)) }
            withExtendedLifetime(manager) {}
        }
        #expect(asked.count == 2 && methods.elements.allSatisfy { $0 == "NSURLAuthenticationMethodServerTrust" })
        let trust = try #require(asked.elements.first ?? nil)
        #expect(trust.host == "localhost" && trust.port == server.port)
        #expect(trust.sentCertificates == [try authority.certificate("self")])
    }

    @Test("closures get the known root that the server does not send") func knownRoot() async throws {
        let server = try await TLSServer(authority, "good")
        let asked = Log<[Certificate]>()
        let challenged = manager { challenge in
            asked.append(challenge.serverTrust?.certificates ?? [])
            return Self.accept(challenge)
        }
        let configuration = challenged.session.configuration
        let evaluate = ServerTrustPolicy.customEvaluation { trust, _ in
            asked.append(trust.certificates)
            return true
        }
        let evaluated = SessionManager(
            configuration: configuration, serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["localhost": evaluate]))
        for manager in [challenged, evaluated] { #expect(await get(server.url, manager).value != nil) }
        let path = try ["good", "intermediate", "root"].map { try authority.certificate($0) }
        #expect(asked.elements == [path, path])
    }

    @Test("a server rejected by the closure receives no bytes", arguments: [true, false]) func rejects(cancels: Bool) async throws {
        let server = try await TLSServer(authority, "good")
        let manager = manager(.disableEvaluation) { _ in (cancels ? .cancelAuthenticationChallenge : .rejectProtectionSpace, nil) }
        let response = await manager.upload(Data(count: 1000), to: server.url, headers: ["Authorization": "Bearer secret"])
            .serializingData().response
        let failure = try #require(response.error?.transferFailure)
        #expect(failure.kind == .serverCertificate && failure.isRefusedByPolicy && !failure.requestWasSent)
        #expect(failure.message.contains("sessionDidReceiveChallenge refused localhost"))
        #expect(await server.nextConnection() == TLSServer.Connection(bytes: 0, requests: 0))
    }

    @Test("an asynchronous decision accepts, rejects, or leaves it to the TLS options; what it throws rejects")
    func asynchronousDecision() async throws {
        let (good, own) = (try await TLSServer(authority, "good"), try await TLSServer(authority, "self"))
        func kind(_ server: TLSServer, _ decide: @escaping @Sendable (ServerTrust) async throws -> ServerTrustDecision) async
            -> TransferFailure.Kind?
        {
            let manager = manager { _ in (.performDefaultHandling, nil) }
            manager.delegate.onServerTrust { trust in
                await Task.yield()
                return try await decide(trust)
            }
            return await get(server.url, manager).error?.transferFailure?.kind
        }
        #expect(await kind(own) { _ in .accept } == nil)
        #expect(await kind(own) { _ in .performDefaultHandling } == .serverCertificate)
        #expect(await kind(good) { $0.host == "localhost" ? .performDefaultHandling : .reject } == nil)
        #expect(await kind(good) { _ in .reject } == .serverCertificate)
        #expect(await kind(good) { _ in throw TestError("no decision") } == .serverCertificate)
    }

    @Test("any other disposition leaves the decision to policy and TLS options", arguments: ["default", "password", "nothing"])
    func defaultHandling(_ answer: String) async throws {
        let (good, own, elsewhere) = (
            try await TLSServer(authority, "good"), try await TLSServer(authority, "self"), try await TLSServer(authority, "elsewhere")
        )
        let servers = [good, own, elsewhere]
        func accepted(_ policy: ServerTrustPolicy?, _ change: (inout SessionConfiguration) -> Void = { _ in }) async -> [Bool] {
            var accepted: [Bool] = []
            let manager = manager(policy, change) { _ in
                switch answer {
                case "default": (.performDefaultHandling, nil)
                case "password": (.useCredential, URLCredential(user: "user", password: "passwd", persistence: .forSession))
                default: (.useCredential, nil)
                }
            }
            for server in servers { accepted.append(await get(server.url, manager).value != nil) }
            return accepted
        }
        #expect(await accepted(nil) == [true, false, false])
        #expect(await accepted(nil) { $0.tls.verifiesServer = false } == [true, true, true])
        #expect(await accepted(nil) { $0.tls.verifiesHostName = false } == [true, false, true])
        #expect(await accepted(nil) { $0.tls.verifiesCertificateChain = false } == [true, true, false])
        #expect(await accepted(.performDefaultEvaluation(validateHost: false)) == [true, false, true])
        #expect(await accepted(.disableEvaluation) == [true, true, true])
        let pin = ServerTrustPolicy.pinCertificates(
            certificates: [try authority.certificate("self")], validateCertificateChain: false, validateHost: true)
        #expect(await accepted(pin) == [false, true, false])
        let staple = ServerTrustPolicy.performRevokedEvaluation(validateHost: true, revocationFlags: .stapledResponse)
        #expect(await accepted(staple) == [false, false, false])
        let revoked = try await TLSServer(authority, "revoked")
        let lists = undecided { $0.tls.revocationListFile = authority.path("all.crl") }
        #expect(await get(good.url, lists).value != nil)
        #expect(await get(revoked.url, lists).value == nil)
    }

    @Test("the closure may complete later and once; until it does, the request's timeout runs") func later() async throws {
        let server = try await TLSServer(authority, "self")
        let manager = manager { _ in (.cancelAuthenticationChallenge, nil) }
        let count = Lock(0)
        manager.delegate.sessionDidReceiveChallenge = { _, challenge, completion in
            let number = count.withLock { count in
                count += 1
                return count
            }
            DispatchQueue.global().async {
                let (disposition, credential) = Self.accept(challenge)
                // Only the first call counts.
                if number == 1 { completion(.cancelAuthenticationChallenge, nil) }
                completion(disposition, credential)
                completion(.cancelAuthenticationChallenge, nil)
            }
        }
        #expect(await get(server.url, manager).error?.transferFailure?.kind == .serverCertificate)
        // Called again, because the server was rejected before.
        #expect(await get(server.url, manager).value != nil)
        #expect(count.withLock { $0 } == 2)

        let silent = undecided { $0.totalTimeout = .milliseconds(300) }
        silent.delegate.sessionDidReceiveChallenge = { _, _, _ in }
        #expect(await get(server.url, silent).error?.transferFailure?.kind == .totalTimeout)
    }

    @Test(
        "a decision that never comes delays only the request that asked: the next one asks the closure of its time",
        arguments: [true, false])
    func neverDecided(isReplaced: Bool) async throws {
        let server = try await TLSServer(authority, "self")
        let manager = undecided { _ in }
        let late = Log<@Sendable (_ accepts: Bool) -> Void>()
        let count = Lock(0)
        manager.delegate.sessionDidReceiveChallenge = { _, challenge, completion in
            let (disposition, credential) = Self.accept(challenge)
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            guard isFirst else { return completion(disposition, credential) }
            late.append { completion($0 ? disposition : .cancelAuthenticationChallenge, $0 ? credential : nil) }
        }
        let first = manager.request(server.url)
        let response = Task { await first.serializingString().response }
        await late.wait(for: 1)
        first.cancel()
        #expect(await response.value.error?.isCancelled == true)
        if isReplaced {
            manager.delegate.sessionDidReceiveChallenge = { _, _, completion in completion(.cancelAuthenticationChallenge, nil) }
            late.elements.first?(true)
        }
        #expect((await get(server.url, manager).value != nil) == !isReplaced)
        // The answer to the dropped question comes to nothing.
        late.elements.first?(false)
        #expect((await get(server.url, manager).value != nil) == !isReplaced)
    }

    @Test("a decision that never comes takes at most the connect timeout, for requests that wait together and for streams")
    func neverDecidedInTime() async throws {
        let server = try await TLSServer(authority, "self")
        let asked = Log<Int>()
        func silent(_ timeout: Duration?) -> SessionManager {
            let manager = undecided { $0.connectTimeout = timeout }
            manager.delegate.sessionDidReceiveChallenge = { _, challenge, _ in asked.append(challenge.protectionSpace.port) }
            return manager
        }
        let manager = silent(.seconds(2))
        async let responses: [DataResponse<String>] = withTaskGroup(of: DataResponse<String>.self) { group in
            for _ in 0..<3 { group.addTask { await get(server.url, manager) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        // Alone, so that it asks for itself.
        let streaming = silent(.seconds(2))
        let stream = streaming.stream(withSecureHostName: "localhost", port: server.port)
        await #expect {
            try await stream.write(Data("x".utf8))
        } throws: {
            $0.transferFailure?.kind == .connectTimeout && $0.transferFailure?.message.contains("decision") == true
        }
        for response in await responses {
            let failure = response.error?.transferFailure
            #expect(failure?.kind == .connectTimeout && failure?.message.contains("decision") == true, "\(String(describing: failure))")
        }
        // Without a limit, it ends with the session.
        let count = asked.count
        let unlimited = silent(nil)
        async let last = get(server.url, unlimited)
        await asked.wait(for: count + 1)
        unlimited.session.invalidateAndCancel()
        #expect(await last.error != nil)
    }

    @Test("a host that sends other certificates each time does not keep a request for ever") func endlessCertificates() async throws {
        let directory = try TemporaryDirectory()
        let issuer = try CertificateAuthority()
        let files = try (0..<12).map { index in
            let identity = try issuer.issue()
            return try directory.write(Data((identity.chain + identity.key).utf8), to: "\(index).pem").path
        }
        let server = try await TLSServer(authority, "good") { $0.chains = files }
        let asked = Log<Int>()
        let manager = manager { challenge in
            asked.append(challenge.protectionSpace.port)
            return Self.accept(challenge)
        }
        let failure = await get(server.url, manager).error?.transferFailure
        #expect(failure?.kind == .serverCertificate && failure?.message.contains("other certificates") == true)
        #expect(asked.count == 10)
    }

    @Test("the default handling enforces pins for all kinds, and no decision goes past hashes of keys", arguments: [0, 1, 2, 3, 4])
    func pinsOfAllKinds(_ number: Int) async throws {
        let server = try await TLSServer(authority, "good")
        let pins = [try authority.certificate("other")]
        let keys = pins.map(\.publicKey)
        let isValidated = number < 2
        let policy: ServerTrustPolicy? =
            switch number {
            case 0, 2: .pinCertificates(certificates: pins, validateCertificateChain: isValidated, validateHost: true)
            case 1, 3: .pinPublicKeys(publicKeys: keys, validateCertificateChain: isValidated, validateHost: true)
            default: nil
            }
        let manager =
            policy == nil
            ? self.manager(nil, { $0.tls.publicKeyHashes = [Data(count: 32)] }, answer: { Self.accept($0) }) : undecided(policy) { _ in }
        var kinds: [TransferFailure.Kind?] = []
        kinds.append(await get(server.url, manager).error?.transferFailure?.kind)
        let upload = await manager.upload(Data("x".utf8), to: server.url).serializingString().response
        kinds.append(upload.error?.transferFailure?.kind)
        let directory = try TemporaryDirectory()
        let download = await manager.download(server.url, to: directory.file("file")).serializingURL().response
        kinds.append(download.error?.transferFailure?.kind)
        let socket = manager.webSocket("wss://localhost:\(server.port)/")
        let stream = manager.stream(withSecureHostName: "localhost", port: server.port)
        do {
            try await socket.open()
            kinds.append(nil)
        } catch {
            kinds.append(error.transferFailure?.kind)
        }
        do {
            try await stream.write(Data("x".utf8))
            kinds.append(nil)
        } catch {
            kinds.append(error.transferFailure?.kind)
        }
        #expect(kinds.allSatisfy { $0 == .serverCertificate }, "\(kinds)")
    }

    @Test("raw streams and redirect targets are evaluated as well") func otherWays() async throws {
        let (server, next) = (try await TLSServer(authority, "self"), try await TLSServer(authority, "self"))
        let ports = Log<Int>()
        let manager = manager { challenge in
            ports.append(challenge.protectionSpace.port)
            return Self.accept(challenge)
        }
        let stream = manager.stream(withSecureHostName: "localhost", port: server.port)
        try await stream.write(Data("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
        for try await piece in stream.bytes() {
            #expect(String(decoding: piece, as: UTF8.self).hasPrefix("HTTP/1.1 200"))
            break
        }
        #expect(await get("\(server.url)/to/\(next.url)", manager).value != nil)
        #expect(ports.elements == [server.port, next.port])
    }

    @Test("any method means the revocation lists, otherwise the stapled response") func anyMethod() async throws {
        let policy = ServerTrustPolicy.performRevokedEvaluation(validateHost: true, revocationFlags: .anyAvailableMethod)
        let (good, revoked) = (try await TLSServer(authority, "good"), try await TLSServer(authority, "revoked"))
        let stapling = try await StaplingServer(authority, "good", response: "good.ocsp")
        let bad = try await StaplingServer(authority, "revoked", response: "revoked.ocsp")
        for asksClosure in [false, true] {
            func accepts(_ url: String, lists: Bool) async -> Bool {
                let manager = undecided(policy) { if lists { $0.tls.revocationListFile = authority.path("all.crl") } }
                if !asksClosure { manager.delegate.sessionDidReceiveChallenge = nil }
                return await get(url, manager).value != nil
            }
            #expect(await accepts(good.url, lists: true))
            #expect(await !accepts(revoked.url, lists: true))
            #expect(await !accepts(good.url, lists: false))
            #expect(await accepts(stapling.url, lists: false))
            #expect(await !accepts(bad.url, lists: false))
        }
    }
}
