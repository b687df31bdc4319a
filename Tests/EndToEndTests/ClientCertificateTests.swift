// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)), .enabled(if: TLSAuthority.isAvailable)) struct ClientCertificateTests {
    private let authority: TLSAuthority

    init() async throws {
        authority = try await TLSAuthority.shared()
    }

    private func response(_ certificate: ClientCertificate?, version: String? = nil) async throws -> DataResponse<String> {
        let server = try await TLSServer(authority, "good") {
            $0.clientAuthority = authority.path("other-root.pem")
            $0.maximumVersion = version
        }
        let manager = makeManager {
            $0.tls.certificateAuthorityFile = authority.path("root.pem")
            $0.tls.clientCertificate = certificate
        }
        return await manager.request(server.url).validate().serializingString().response
    }

    @Test("a certificate is loaded from memory or files, as PEM or PKCS #12, with or without a password") func forms() async throws {
        let (certificate, key) = (authority.path("client.pem"), authority.path("client.key"))
        let forms: [ClientCertificate] = [
            .pem(file: certificate, keyFile: key),
            .pem(file: certificate, keyFile: authority.path("client.encrypted"), password: "secret"),
            .pem(try authority.data("client.pem"), key: try authority.data("client.key")),
            .pem(try authority.data("client.pem"), key: try authority.data("client.encrypted"), password: "secret"),
            .pkcs12(file: authority.path("client.p12"), password: "secret"),
            .pkcs12(try authority.data("client.p12"), password: "secret"),
        ]
        for form in forms { #expect(try await response(form).value == "1 new", "\(form)") }
        #expect(try await response(forms[2], version: "1.2").value == "1 new")
    }

    @Test("an unusable certificate fails before anything is sent") func unusable() async throws {
        let (certificate, key) = (authority.path("client.pem"), authority.path("client.key"))
        let forms: [ClientCertificate] = [
            .pem(file: certificate, keyFile: authority.path("good.key")),
            .pem(file: certificate, keyFile: "/nonexistent"), .pem(file: "/nonexistent", keyFile: key),
            .pem(Data("no PEM".utf8), key: try authority.data("client.key")), .pem(Data(), key: Data()),
            // An encrypted key without a password must not cause a prompt on the terminal.
            .pem(file: certificate, keyFile: authority.path("client.encrypted")),
            .pem(file: certificate, keyFile: authority.path("client.encrypted"), password: "hunter2"),
            .pkcs12(file: authority.path("client.p12"), password: "hunter2"), .pkcs12(file: authority.path("client.p12"), password: ""),
            .pkcs12(try authority.data("client.pem"), password: "secret"), .pkcs12(file: "/nonexistent", password: "secret"),
        ]
        for form in forms {
            let error = try await response(form).error
            #expect(error?.transferFailure?.kind == .clientCertificate, "\(form): \(String(describing: error))")
            #expect(error?.transferFailure?.requestWasSent == false)
            #expect(!"\(String(describing: error))".contains("hunter2"))
        }
    }

    @Test("a host that is refused does not get it: by its name, its key, a policy, or a closure", arguments: [nil, "1.2"])
    func refusedHosts(version: String?) async throws {
        let pins = [try authority.certificate("other")]
        let keys = pins.map(\.publicKey)
        func check(
            _ name: String, _ policy: ServerTrustPolicy? = nil, _ decision: ServerTrustDecision? = nil, isAccepted: Bool = false,
            _ change: (inout TLSOptions) -> Void = { _ in }
        ) async throws {
            let server = try await TLSServer(authority, name) {
                $0.clientAuthority = authority.path("other-root.pem")
                $0.maximumVersion = version
            }
            var configuration = SessionConfiguration()
            configuration.callbackQueue = callbackQueue
            configuration.proxy = .none
            configuration.tls.certificateAuthorityFile = authority.path("root.pem")
            configuration.tls.clientCertificate = .pem(file: authority.path("client.pem"), keyFile: authority.path("client.key"))
            change(&configuration.tls)
            let policies = policy.map { ServerTrustPolicyManager(policies: ["localhost": $0]) }
            let manager = SessionManager(configuration: configuration, serverTrustPolicyManager: policies)
            if let decision { manager.delegate.onServerTrust { _ in decision } }
            if name == "elsewhere" {
                let stream = manager.stream(withSecureHostName: "localhost", port: server.port)
                await #expect {
                    try await stream.write(Data("x".utf8))
                } throws: {
                    $0.transferFailure?.kind == .serverCertificate
                }
                #expect(await server.nextConnection()?.hasCertificate == false)
            }
            let response = await manager.request(server.url).serializingString().response
            #expect((response.value != nil) == isAccepted, "\(name) \(String(describing: response.error))")
            guard !isAccepted || decision != nil else { return }
            // The first connection of an accepted host ends as well, for the closure to decide.
            #expect(await server.nextConnection()?.hasCertificate == false, "\(name) \(String(describing: policy))")
            if !isAccepted { #expect(response.error?.transferFailure?.kind == .serverCertificate) }
        }
        try await check("elsewhere")
        try await check("good") { $0.publicKeyHashes = [Data(count: 32)] }
        let pinned = ServerTrustPolicy.pinPublicKeys(publicKeys: keys, validateCertificateChain: true, validateHost: true)
        try await check("good", pinned)
        try await check("good", .pinCertificates(certificates: pins, validateCertificateChain: false, validateHost: false))
        try await check("good", .customEvaluation { _, _ in false })
        try await check("good", nil, .reject)
        try await check("self", nil, .performDefaultHandling)
        try await check("self", nil, .accept, isAccepted: true)
        let issuer = [try authority.certificate("root").publicKey]
        let own = ServerTrustPolicy.pinPublicKeys(publicKeys: issuer, validateCertificateChain: true, validateHost: true)
        try await check("good", own, isAccepted: true)
    }

    @Test("a server that requires a certificate and gets none is reported") func missing() async throws {
        let error = try await response(nil).error
        #expect(error?.transferFailure?.kind == .clientCertificate, "\(String(describing: error))")
        #expect((error as? CurlewError)?.urlError?.code == .clientCertificateRequired)
        // Before TLS 1.3 the alert is the same as for the lack of a common cipher.
        let old = try await response(nil, version: "1.2").error?.transferFailure
        #expect(old?.kind == .clientCertificate || old?.kind == .secureConnection)
        #expect(old?.requestWasSent == false)
    }

    @Test("a server that does not trust the certificate's authority is reported") func wrongAuthority() async throws {
        let stranger = ClientCertificate.pem(file: authority.path("stranger.pem"), keyFile: authority.path("stranger.key"))
        let error = try await response(stranger, version: "1.2").error
        #expect(error?.transferFailure?.kind == .clientCertificate, "\(String(describing: error))")
        #expect(error?.transferFailure?.phase == .securing)
        // In TLS 1.3 the alert follows the request, and may be lost with the connection.
        let late = try await response(stranger).error?.transferFailure
        #expect(late?.kind == .clientCertificate || late?.kind == .connectionLost)
    }

    @Test("a server's public key can be pinned by its hash") func hashes() async throws {
        let server = try await TLSServer(authority, "good")
        let key = try authority.certificate("good").publicKey.der
        let process = try ChildProcess("sh", "-c", "base64 -d | openssl dgst -sha256 -binary | base64")
        process.writeLine(key.base64EncodedString())
        process.closeInput()
        let hash = try #require(Data(base64Encoded: await process.finish().output.joined()))
        for (pins, isAccepted) in [([hash], true), ([Data(count: 32), hash], true), ([Data(count: 32)], false)] {
            let manager = makeManager {
                $0.tls.verifiesServer = false
                $0.tls.publicKeyHashes = Set(pins)
            }
            let response = await manager.request(server.url).serializingString().response
            #expect((response.value != nil) == isAccepted)
            if !isAccepted { #expect(response.error?.transferFailure?.kind == .serverCertificate) }
        }
    }
}
