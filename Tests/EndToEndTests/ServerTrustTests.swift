// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)), .enabled(if: TLSAuthority.isAvailable)) struct ServerTrustTests {
    private let authority: TLSAuthority

    init() async throws {
        authority = try await TLSAuthority.shared()
    }

    /// A manager that trusts the tests' root, with a policy for localhost.
    private func manager(_ policy: ServerTrustPolicy?, _ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        manager(ServerTrustPolicyManager(policies: policy.map { ["localhost": $0] } ?? [:]), change)
    }

    private func manager(
        _ policies: ServerTrustPolicyManager, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = callbackQueue
        configuration.proxy = .none
        configuration.tls.certificateAuthorityFile = authority.path("root.pem")
        change(&configuration)
        return SessionManager(configuration: configuration, serverTrustPolicyManager: policies)
    }

    private func pins(_ name: String, validateChain: Bool = true, keys: Bool) throws -> ServerTrustPolicy {
        let certificate = try authority.certificate(name)
        return keys
            ? .pinPublicKeys(publicKeys: [certificate.publicKey], validateCertificateChain: validateChain, validateHost: true)
            : .pinCertificates(certificates: [certificate], validateCertificateChain: validateChain, validateHost: true)
    }

    private func get(_ url: String, _ manager: SessionManager) async -> DataResponse<String> {
        await manager.request(url).validate().serializingString().response
    }

    // MARK: Pins

    @Test(
        "a host with the pinned certificate or key in its chain is accepted",
        arguments: ["good", "intermediate", "root"], [true, false])
    func pinned(_ name: String, keys: Bool) async throws {
        let server = try await TLSServer(authority, "good")
        let manager = manager(try pins(name, keys: keys))
        for _ in 0..<2 { #expect(await get(server.url, manager).value == "1 new") }
        // The pins are the anchors: the session's own anchors are not used.
        let untrusting = self.manager(try pins(name, keys: keys)) { $0.tls.certificateAuthorityFile = authority.path("other-root.pem") }
        #expect((await get(server.url, untrusting).value != nil) == !keys)
    }

    @Test("without chain validation a pin of any sent certificate is enough", arguments: ["expired", "self", "other"], [true, false])
    func pinnedWithoutChain(_ name: String, keys: Bool) async throws {
        let server = try await TLSServer(authority, name)
        #expect(await get(server.url, manager(try pins(name, validateChain: false, keys: keys))).value == "1 new")
        let refused = await get(server.url, manager(try pins("good", validateChain: false, keys: keys)))
        #expect(refused.error?.transferFailure?.kind == .serverCertificate)
    }

    @Test(
        "a host without a pin receives no byte of the request",
        arguments: ["second", "other-root"], [(true, true), (true, false), (false, true), (false, false)])
    func notPinned(_ name: String, _ policy: (keys: Bool, validateChain: Bool)) async throws {
        let server = try await TLSServer(authority, "good")
        let manager = manager(try pins(name, validateChain: policy.validateChain, keys: policy.keys))
        let response = await manager.upload(Data(count: 1000), to: server.url, headers: ["Authorization": "Bearer secret"])
            .serializingData().response
        let failure = try #require(response.error?.transferFailure)
        #expect(failure.kind == .serverCertificate)
        #expect(failure.phase == .securing)
        #expect(!failure.requestWasSent)
        #expect(failure.message.contains("\(policy.keys ? "pinPublicKeys" : "pinCertificates") refused localhost"))
        if policy.keys || !policy.validateChain { #expect(failure.message.contains("CN=good")) }
        #expect((response.error as? CurlewError)?.urlError?.code == .serverCertificateUntrusted)
        #expect(await server.nextConnection() == TLSServer.Connection(bytes: 0, requests: 0))
    }

    @Test("another host's certificate appended to the chain does not satisfy a pin", arguments: [true, false], [true, false])
    func appended(keys: Bool, validateChain: Bool) async throws {
        let server = try await TLSServer(authority, "appended")
        for name in ["other", "other-root"] {
            let refused = await get(server.url, manager(try pins(name, validateChain: validateChain, keys: keys)))
            #expect(refused.error?.transferFailure?.kind == .serverCertificate)
        }
        #expect(await get(server.url, manager(try pins("intermediate", validateChain: validateChain, keys: keys))).value != nil)
    }

    @Test("an empty list of pins rejects every host", arguments: [true, false]) func noPins(_ validateChain: Bool) async throws {
        let server = try await TLSServer(authority, "good")
        for policy in [
            ServerTrustPolicy.pinCertificates(certificates: [], validateCertificateChain: validateChain, validateHost: true),
            .pinPublicKeys(publicKeys: [], validateCertificateChain: validateChain, validateHost: true),
        ] {
            let failure = await get(server.url, manager(policy)).error?.transferFailure
            #expect(failure?.kind == .serverCertificate)
            #expect(failure?.requestWasSent == false)
        }
    }

    @Test("the host name is checked if the policy validates it") func hostName() async throws {
        let server = try await TLSServer(authority, "elsewhere")
        let root = try authority.certificate("root")
        func policies(_ validateHost: Bool) -> [ServerTrustPolicy] {
            [
                .performDefaultEvaluation(validateHost: validateHost),
                .pinCertificates(certificates: [root], validateCertificateChain: true, validateHost: validateHost),
                .pinPublicKeys(publicKeys: [root.publicKey], validateCertificateChain: true, validateHost: validateHost),
            ]
        }
        for policy in policies(true) { #expect(await get(server.url, manager(policy)).error?.transferFailure?.kind == .serverCertificate) }
        for policy in policies(false) { #expect(await get(server.url, manager(policy)).value != nil) }
    }

    @Test("invalid hosts are rejected by default and accepted if evaluation is disabled")
    func disabled() async throws {
        for name in ["expired", "self", "other", "elsewhere"] {
            let server = try await TLSServer(authority, name)
            let failure = await get(server.url, manager(.performDefaultEvaluation(validateHost: true))).error?.transferFailure
            #expect(failure?.kind == .serverCertificate)
            #expect(failure?.message.hasPrefix("performDefaultEvaluation refused localhost: ") == true)
            #expect(await get(server.url, manager(nil)).error?.transferFailure?.kind == .serverCertificate)
            #expect(await get(server.url, manager(.disableEvaluation)).value == "3 new")
        }
    }

    // MARK: Custom evaluation

    @Test("a closure decides before a byte is sent, and an accepted chain is not evaluated again") func custom() async throws {
        let server = try await TLSServer(authority, "good")
        let asked = Log<ServerTrust>()
        let manager = manager(
            .customEvaluation { trust, host in
                asked.append(trust)
                return ServerTrustPolicy.performDefaultEvaluation(validateHost: true).evaluate(trust, forHost: host)
            })
        for _ in 0..<3 { #expect(await get(server.url, manager).value != nil) }
        let trust = try #require(asked.elements.first)
        #expect(asked.count == 1)
        #expect(trust.host == "localhost")
        #expect(trust.port == server.port)
        #expect(trust.certificates.map(\.subject) == ["CN=good", "CN=intermediate", "CN=root"])
        #expect(trust.certificates.first == (try authority.certificate("good")))
        #expect(trust.description.contains("subject CN=good, issuer CN=intermediate"))
        #expect(await server.nextConnection() == TLSServer.Connection(bytes: 0, requests: 0))
    }

    @Test("a chain rejected by a closure receives no bytes and is evaluated again") func customRejection() async throws {
        let server = try await TLSServer(authority, "good")
        let asked = Log<String>()
        let manager = manager(
            .customEvaluation { _, host in
                asked.append(host)
                return asked.count > 2
            })
        for _ in 0..<2 {
            let response = await manager.upload(Data(count: 1000), to: server.url).serializingData().response
            let failure = try #require(response.error?.transferFailure)
            #expect(failure.kind == .serverCertificate)
            #expect(failure.phase == .securing)
            #expect(!failure.requestWasSent)
            #expect(failure.message.contains("customEvaluation refused localhost"))
            #expect(failure.message.contains("CN=good"))
            #expect(await server.nextConnection() == TLSServer.Connection(bytes: 0, requests: 0))
        }
        #expect(await get(server.url, manager).value != nil)
        #expect(asked.elements == ["localhost", "localhost", "localhost"])
    }

    @Test("a hundred concurrent requests are evaluated once", arguments: [true, false]) func customOnce(_ accepts: Bool) async throws {
        let server = try await TLSServer(authority, "good")
        let gate = Gate()
        let asked = Log<Void>()
        let manager = manager(
            .customEvaluation { _, _ in
                asked.append(())
                gate.wait()
                return accepts
            }
        ) { $0.maximumConnectionsPerHost = 8 }
        let requests = (0..<100).map { _ in manager.request(server.url) }
        await asked.wait(for: 1)
        gate.open()
        var successes = 0
        for request in requests where await request.serializingString().response.value != nil { successes += 1 }
        #expect(successes == (accepts ? 100 : 0))
        if accepts { #expect(asked.count == 1) }
        #expect(await get(server.url, manager).value == nil || accepts)
    }

    @Test("a download, an upload and a retry continue after the closure's decision") func customKinds() async throws {
        let server = try await TLSServer(authority, "good")
        let directory = try TemporaryDirectory()
        for kind in 0..<3 {
            let manager = manager(.customEvaluation { _, _ in true })
            switch kind {
            case 0:
                let url = try await manager.download(server.url, to: directory.file("body")).validate().serializingURL().value
                #expect(try String(contentsOf: url, encoding: .utf8).hasSuffix("new"))
            case 1:
                let text = manager.upload(InputStream(data: Data("abc".utf8)), to: server.url).validate().serializingString()
                #expect(await text.response.value?.hasSuffix("new") == true)
            default:
                manager.retrier = Retrier.attempts(1)
                let request = manager.request(server.url).validate(statusCode: 500..<501)
                _ = await request.serializingString().response
                #expect(request.retryCount == 1)
                #expect(request.response?.statusCode == 200)
            }
        }
    }

    @Test("a request that is cancelled, or whose session ends, during evaluation ends at once", arguments: [true, false])
    func customCancelled(_ endsSession: Bool) async throws {
        let server = try await TLSServer(authority, "good")
        let (asked, gate) = (Log<Void>(), Gate())
        let manager = manager(
            .customEvaluation { _, _ in
                asked.append(())
                gate.wait()
                return true
            })
        let request = manager.request(server.url)
        await asked.wait(for: 1)
        if endsSession { manager.invalidateAndCancel() } else { request.cancel() }
        let error = await request.serializingData().response.error
        #expect(endsSession ? error?.isSessionInvalidated == true : error?.isCancelled == true)
        gate.open()
        if !endsSession { #expect(await get(server.url, manager).value != nil) }
    }

    @Test("the total timeout runs during evaluation") func customTimeout() async throws {
        let server = try await TLSServer(authority, "good")
        let gate = Gate()
        let manager = manager(
            .customEvaluation { _, _ in
                gate.wait()
                return true
            }
        ) { $0.totalTimeout = .seconds(1) }
        let failure = await get(server.url, manager).error?.transferFailure
        gate.open()
        #expect(failure?.kind == .totalTimeout)
        #expect(failure?.phase == .securing)
    }

    // MARK: Connections

    /// Returns a sequence of policies for localhost, one per request.
    private final class Changing: ServerTrustPolicyManager, @unchecked Sendable {  // the state is behind a lock
        private let rest: Lock<[ServerTrustPolicy?]>

        init(_ policies: [ServerTrustPolicy?]) {
            rest = Lock(policies)
            super.init(policies: [:])
        }

        override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
            rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        }
    }

    @Test("an idle connection is evaluated again for another policy, or not used") func idleConnection() async throws {
        let server = try await TLSServer(authority, "good")
        let wrong = try pins("second", keys: true)
        let right = try pins("good", keys: true)
        let manager = manager(
            Changing([
                nil, wrong, right, right, .disableEvaluation, wrong, try pins("second", keys: false), nil,
                .customEvaluation { _, _ in false }, try pins("second", validateChain: false, keys: false), .disableEvaluation,
            ]))
        #expect(await get(server.url, manager).value == "1 new")
        for isAccepted in [false, true, true, true, false, false, true, false, false, true] {
            let response = await get(server.url, manager)
            #expect((response.value != nil) == isAccepted)
            if !isAccepted { #expect(response.error?.transferFailure?.kind == .serverCertificate) }
        }
    }

    @Test("each closure that an overridden manager returns is asked, on an idle connection too") func changedClosures() async throws {
        let server = try await TLSServer(authority, "good")
        let manager = manager(Changing([.customEvaluation { _, _ in true }, .customEvaluation { _, _ in false }]))
        let first = await get(server.url, manager)
        #expect(first.value != nil, "\(String(describing: first.error))")
        #expect(await get(server.url, manager).error?.transferFailure?.kind == .serverCertificate)
    }

    @Test("connections whose chain is evaluated resume no TLS session, which has no chain") func sessionResumption() async throws {
        let server = try await TLSServer(authority, "good") { $0.closes = true }
        let pinned = try pins("good", keys: true)
        let manager = manager(Changing([nil, nil, pinned, pinned, nil]))
        let values = [
            await get(server.url, manager).value, await get(server.url, manager).value, await get(server.url, manager).value,
            await get(server.url, manager).value, await get(server.url, manager).value,
        ]
        #expect(values.map { $0?.dropFirst(2) } == ["new", "resumed", "new", "new", "resumed"])
    }

    @Test("each host of a redirect is evaluated by its own policy, in any spelling", arguments: ["127.0.0.1", "LOCALHOST", "localhost."])
    func redirects(_ host: String) async throws {
        let server = try await TLSServer(authority, "good")
        let target = try await TLSServer(authority, "good")
        let wrong = try pins("second", keys: true)
        let isName = host != "127.0.0.1"
        let first = ServerTrustPolicy.pinPublicKeys(
            publicKeys: [try authority.certificate("good").publicKey], validateCertificateChain: true, validateHost: false)
        // The first server is reached by a name with another policy than that of the second one.
        let policies = isName ? ["127.0.0.1": first, "localhost": wrong] : ["localhost": first, "127.0.0.1": wrong]
        let from = isName ? "https://127.0.0.1:\(server.port)" : server.url
        let url = "\(from)/to/https%3A%2F%2F\(host)%3A\(target.port)%2F"
        let response = await get(url, manager(ServerTrustPolicyManager(policies: policies)))
        let failure = try #require(response.error?.transferFailure)
        #expect(failure.url.contains(":\(target.port)"))
        #expect(response.metrics.redirectCount == 1)
        // Only a libcurl that treats a name with a trailing dot as a name in its own right resolves it.
        guard failure.kind != .nameResolution else { return }
        #expect(failure.kind == .serverCertificate)
        #expect(await target.nextConnection() == TLSServer.Connection(bytes: 0, requests: 0))
        let accepted = manager(ServerTrustPolicyManager(policies: ["127.0.0.1": first, "localhost": first]))
        #expect(await get(url, accepted).value == "2 new")
    }

    @Test("policies apply to connections through a proxy") func proxy() async throws {
        let (server, proxy) = (try await TLSServer(authority, "good"), try await TLSServer.proxy())
        func response(_ policy: ServerTrustPolicy) async -> DataResponse<String> {
            await get(server.url, manager(policy) { $0.proxy = .url("http://127.0.0.1:\(proxy.port)") })
        }
        #expect(await response(try pins("good", keys: true)).value == "1 new")
        #expect(await response(.customEvaluation { trust, _ in trust.certificates.count == 3 }).value == "3 new")
        let refused = await response(try pins("second", keys: true))
        #expect(refused.error?.transferFailure?.kind == .serverCertificate)
        #expect(refused.error?.transferFailure?.requestWasSent == false)
    }

    @Test("over HTTP/2 a hundred requests share one evaluation", .needsNginx) func http2() async throws {
        let nginx = try Servers.nginx()
        let asked = Log<Int>()
        let manager = manager(
            .customEvaluation { trust, _ in
                asked.append(trust.certificates.count)
                return true
            })
        let requests = (0..<100).map { _ in manager.request(nginx.tls + "/1k.bin").validate() }
        for request in requests { #expect(await request.serializingData().response.value?.count == 1024) }
        #expect(asked.count == 1)
        let pinned = self.manager(
            .pinPublicKeys(publicKeys: [try authority.certificate("good").publicKey], validateCertificateChain: false, validateHost: true))
        #expect(await get(nginx.tls + "/1k.bin", pinned).error?.transferFailure?.kind == .serverCertificate)
    }

    // MARK: Revocation

    @Test("a stapled response must be present and good") func stapled() async throws {
        let policy = ServerTrustPolicy.performRevokedEvaluation(validateHost: true, revocationFlags: .stapledResponse)
        let servers = [
            try await StaplingServer(authority, "good", response: "good.ocsp"),
            try await StaplingServer(authority, "revoked", response: "revoked.ocsp"),
            try await StaplingServer(authority, "good", response: nil),
            try await StaplingServer(authority, "second", response: "good.ocsp"),
        ]
        #expect(await get(servers[0].url, manager(policy)).value != nil)
        for server in servers.dropFirst() {
            let failure = await get(server.url, manager(policy)).error?.transferFailure
            #expect(failure?.kind == .serverCertificate)
            #expect(failure?.requestWasSent == false)
        }
        // Without a revocation check the revoked certificate is accepted.
        #expect(await get(servers[1].url, manager(.performDefaultEvaluation(validateHost: true))).value != nil)
        #expect(await get(servers[1].url, manager(nil) { $0.tls.requiresStapledResponse = true }).value == nil)
    }

    @Test("a revoked certificate is rejected by the revocation lists") func revocationLists() async throws {
        let policy = ServerTrustPolicy.performRevokedEvaluation(validateHost: true, revocationFlags: .revocationLists)
        let (good, revoked) = (try await TLSServer(authority, "good"), try await TLSServer(authority, "revoked"))
        let withLists = manager(policy) { $0.tls.revocationListFile = authority.path("all.crl") }
        #expect(await get(good.url, withLists).value != nil)
        let failure = try #require(await get(revoked.url, withLists).error?.transferFailure)
        #expect(failure.kind == .serverCertificate)
        #expect(failure.message.contains("performRevokedEvaluation refused localhost"))
        let without = try #require(await get(good.url, manager(policy)).error?.transferFailure)
        #expect(without.kind == .serverCertificate)
        #expect(without.message.contains("lists"))
        // A list that does not cover the whole chain, or cannot be read.
        for list in ["root.crl", "intermediate.crl", "good.pem", "nothing"] {
            let manager = manager(policy) { $0.tls.revocationListFile = authority.path(list) }
            #expect(await get(good.url, manager).error?.transferFailure?.requestWasSent == false)
        }
        // The same through `evaluate`.
        let answers = Log<Bool>()
        for server in [good, revoked] {
            let manager = manager(
                .customEvaluation { trust, host in
                    answers.append(policy.evaluate(trust, forHost: host))
                    return false
                }
            ) { $0.tls.revocationListFile = authority.path("all.crl") }
            _ = await get(server.url, manager)
        }
        #expect(answers.elements == [true, false])
    }

    // MARK: Raw streams

    @Test("raw streams are evaluated by their host's policy") func streams() async throws {
        let server = try await TLSServer(authority, "good")
        func answer(_ policy: ServerTrustPolicy) async throws -> String {
            let manager = manager(policy)
            defer { manager.invalidateAndCancel() }
            let stream = manager.stream(withSecureHostName: "localhost", port: server.port)
            try await stream.write(Data("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            for try await piece in stream.bytes() { return String(decoding: piece, as: UTF8.self) }
            return ""
        }
        for policy in [
            try pins("good", keys: true), try pins("root", keys: false), .performDefaultEvaluation(validateHost: true), .disableEvaluation,
            .customEvaluation { trust, _ in trust.certificates.count == 3 },
        ] {
            #expect(try await answer(policy).hasPrefix("HTTP/1.1 200"))
        }
        let other = try await TLSServer(authority, "good")
        for policy in [try pins("second", keys: true), try pins("second", keys: false), .customEvaluation { _, _ in false }] {
            let manager = manager(policy)
            defer { manager.invalidateAndCancel() }
            let stream = manager.stream(withSecureHostName: "localhost", port: other.port)
            let error = await #expect(throws: CurlewError.self) { try await stream.write(Data("secret".utf8)) }
            #expect(error?.transferFailure?.kind == .serverCertificate)
            #expect(error?.transferFailure?.phase == .securing)
            #expect(await other.nextConnection() == TLSServer.Connection(bytes: 0, requests: 0))
        }
    }
}
