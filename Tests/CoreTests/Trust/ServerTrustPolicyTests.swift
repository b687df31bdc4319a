// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct ServerTrustPolicyTests {
    private let host = "www.example.org"
    private let root: Certificate
    private let intermediate: Certificate
    private let leaf: Certificate
    private let expired: Certificate
    private let otherRoot: Certificate

    init() throws {
        func certificate(_ pem: String) throws -> Certificate { try #require(Certificate(pem: Data(pem.utf8))) }
        root = try certificate(TestCertificates.root)
        intermediate = try certificate(TestCertificates.intermediate)
        leaf = try certificate(TestCertificates.leaf)
        expired = try certificate(TestCertificates.expired)
        otherRoot = try certificate(TestCertificates.otherRoot)
    }

    private func evaluates(_ policy: ServerTrustPolicy, _ chain: Certificate..., host: String? = nil) -> Bool {
        policy.evaluate(ServerTrust(host: host ?? self.host, certificates: chain), forHost: host ?? self.host)
    }

    // MARK: Evaluation

    @Test("the default evaluation requires a trust anchor of the session") func defaultEvaluation() {
        #expect(!evaluates(.performDefaultEvaluation(validateHost: true), leaf, intermediate, root))
        #expect(!evaluates(.performRevokedEvaluation(validateHost: true, revocationFlags: []), leaf, intermediate, root))
    }

    @Test("pinned certificates (leaf, intermediate or root) are the only trust anchors") func pinnedChain() {
        for pin in [leaf, intermediate, root] {
            func policy(validateHost: Bool) -> ServerTrustPolicy {
                .pinCertificates(certificates: [otherRoot, pin], validateCertificateChain: true, validateHost: validateHost)
            }
            #expect(evaluates(policy(validateHost: true), leaf, intermediate))
            #expect(!evaluates(policy(validateHost: true), leaf, intermediate, host: "other.example.org"))
            #expect(evaluates(policy(validateHost: false), leaf, intermediate, host: "other.example.org"))
            #expect(!evaluates(policy(validateHost: true), expired, intermediate) || pin == leaf)
        }
        #expect(
            !evaluates(
                .pinCertificates(certificates: [otherRoot], validateCertificateChain: true, validateHost: true), leaf, intermediate, root))
        #expect(!evaluates(.pinCertificates(certificates: [], validateCertificateChain: true, validateHost: false), leaf, intermediate))
    }

    @Test("without chain validation a pinned certificate in the path suffices") func pinnedCertificates() {
        func policy(_ pin: Certificate) -> ServerTrustPolicy {
            .pinCertificates(certificates: [pin], validateCertificateChain: false, validateHost: false)
        }
        #expect(evaluates(policy(expired), expired))
        #expect(evaluates(policy(intermediate), expired, intermediate))
        #expect(!evaluates(policy(root), leaf, intermediate))
        // Sent by the server, but not part of the verified chain.
        #expect(!evaluates(policy(root), leaf, root))
        #expect(!evaluates(policy(leaf), otherRoot, leaf))
        let strict = ServerTrustPolicy.pinCertificates(certificates: [leaf], validateCertificateChain: false, validateHost: true)
        #expect(evaluates(strict, leaf))
        #expect(!evaluates(strict, leaf, host: "example.org"))
    }

    @Test("any key in the path may be pinned") func pinnedKeys() {
        func policy(_ pin: Certificate) -> ServerTrustPolicy {
            .pinPublicKeys(publicKeys: [otherRoot.publicKey, pin.publicKey], validateCertificateChain: false, validateHost: true)
        }
        for pin in [leaf, intermediate, root] { #expect(evaluates(policy(pin), leaf, intermediate, root)) }
        // The same key in another certificate.
        #expect(evaluates(policy(leaf), expired))
        #expect(!evaluates(policy(root), leaf, intermediate))
        #expect(!evaluates(policy(root), leaf, root))
        #expect(!evaluates(policy(leaf), leaf, host: "example.org"))
        #expect(
            !evaluates(
                .pinPublicKeys(publicKeys: [leaf.publicKey], validateCertificateChain: true, validateHost: true), leaf, intermediate, root))
    }

    @Test("disabled evaluation accepts every server, custom evaluation those that the closure accepts") func closures() {
        #expect(evaluates(.disableEvaluation, expired))
        #expect(evaluates(.customEvaluation { trust, host in trust.host == host && trust.certificates.first?.commonName == host }, leaf))
        #expect(!evaluates(.customEvaluation { _, _ in false }, leaf))
    }

    @Test("revocation is checked by a requested stapled response and by configured lists only") func revocation() {
        #expect(!evaluates(.performRevokedEvaluation(validateHost: false, revocationFlags: .stapledResponse), leaf, intermediate, root))
        #expect(!evaluates(.performRevokedEvaluation(validateHost: false, revocationFlags: .revocationLists), leaf, intermediate, root))
    }

    // MARK: Pins

    @Test("pins are read from DER and PEM files, and other files are skipped") func pinsOfADirectory() throws {
        let directory = try TemporaryDirectory()
        try directory.write(root.der, to: "1.cer")
        try directory.write(intermediate.der, to: "2.CRT")
        try directory.write(leaf.pem, to: "3.Der")
        try directory.write(expired.pem + otherRoot.pem, to: "4.pem")
        try directory.write(Data("no certificate".utf8), to: "5.cer")
        try directory.write(Data(), to: "6.der")
        try directory.write(root.der, to: "7.txt")
        try directory.write(Data(TestCertificates.leafKey.utf8), to: "8.PEM")
        try FileManager.default.createDirectory(at: directory.file("9.cer"), withIntermediateDirectories: false)
        #expect(mkfifo(directory.file("A.cer").path, 0o600) == 0)
        let certificates = [root, intermediate, leaf, expired, otherRoot]
        #expect(ServerTrustPolicy.certificates(in: directory.url) == certificates)
        #expect(ServerTrustPolicy.publicKeys(in: directory.url) == certificates.map(\.publicKey) + [leaf.publicKey])
        let bundle = try #require(Bundle(url: directory.url))
        #expect(ServerTrustPolicy.certificates(in: bundle) == certificates)
        #expect(ServerTrustPolicy.publicKeys(in: bundle).count == 6)
        #expect(ServerTrustPolicy.certificates(in: directory.file("nothing")).isEmpty)
        #expect(ServerTrustPolicy.certificates().isEmpty)
    }

    // MARK: Manager

    @Test(
        "a policy is found by its host, case-insensitively",
        arguments: [("example.org", true), ("EXAMPLE.org.", true), ("a.example.org", false)])
    func lookUp(_ host: String, _ isFound: Bool) {
        let manager = ServerTrustPolicyManager(policies: ["Example.org": .disableEvaluation, "[::1]": .disableEvaluation])
        #expect((manager.serverTrustPolicy(forHost: host) != nil) == isFound)
        #expect(manager.serverTrustPolicy(forHost: "::1") != nil)
        #expect(manager.policies.count == 2)
    }

    @Test("a subclass may map patterns of hosts") func subclass() {
        final class Manager: ServerTrustPolicyManager, @unchecked Sendable {  // immutable
            override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
                host.hasSuffix(".example.org") ? policies["*"] : super.serverTrustPolicy(forHost: host)
            }
        }
        let manager = Manager(policies: ["*": .disableEvaluation])
        #expect(manager.serverTrustPolicy(forHost: "a.example.org") != nil)
        #expect(manager.serverTrustPolicy(forHost: "example.org") == nil)
    }

    // MARK: Options

    @Test("each host has its policy's TLS options, however its URL is spelled; others have the session's") func optionsByHost() throws {
        let policies = ["example.org": ServerTrustPolicy.disableEvaluation, "::1": .performDefaultEvaluation(validateHost: false)]
        let session = Session(
            configuration: SessionConfiguration(), serverTrustPolicyManager: ServerTrustPolicyManager(policies: policies),
            transport: MockTransport(), delegate: SessionDelegate())
        for url in ["https://example.org/", "HTTPS://user:secret@EXAMPLE.org.:8443/a?b", "https://ex%61mple.org"] {
            let options = try #require(session.tlsOptions(for: url))
            #expect(!options.verifiesCertificateChain && !options.verifiesHostName)
            #expect(options.trust?.host == "example.org")
        }
        #expect(session.tlsOptions(for: "https://example.org:8443/")?.trust?.port == 8443)
        let local = try #require(session.tlsOptions(for: "https://[::1]/"))
        #expect(local.verifiesCertificateChain && !local.verifiesHostName)
        for url in ["https://other.example.org/", "https://example.org.evil.example/", "https://example.org@evil.example/"] {
            #expect(session.tlsOptions(for: url) == nil)
        }
    }

    @Test("policies become TLS options and trust requirements") func options() throws {
        let session = Session(configuration: SessionConfiguration(), transport: MockTransport(), delegate: SessionDelegate())
        var given = TLSOptions()
        given.certificateAuthorityFile = "/a.pem"
        func applied(_ policy: ServerTrustPolicy) -> TLSOptions {
            policy.applied(to: given, host: host, port: 443, in: session, version: 0)
        }

        let pinned = applied(.pinCertificates(certificates: [leaf, root], validateCertificateChain: true, validateHost: true))
        #expect(pinned.pinnedAuthorities.map { Certificate.all(inPEM: $0) } == [leaf, root])
        // A proxy's authorities stay.
        #expect(pinned.certificateAuthorityFile == "/a.pem")
        #expect(pinned.verifiesServer)

        let unchecked = applied(.pinCertificates(certificates: [leaf], validateCertificateChain: false, validateHost: true))
        #expect(!unchecked.verifiesCertificateChain && unchecked.verifiesHostName)
        #expect(unchecked.trust?.rule == .certificate([leaf]))

        let keys = applied(.pinPublicKeys(publicKeys: [leaf.publicKey], validateCertificateChain: true, validateHost: false))
        #expect(keys.verifiesCertificateChain && !keys.verifiesHostName && keys.certificateAuthorityFile == "/a.pem")
        #expect(keys.trust?.rule == .publicKey([leaf.publicKey]))

        #expect(applied(.performRevokedEvaluation(validateHost: true, revocationFlags: .stapledResponse)).requiresStapledResponse)
        guard case .refuse = applied(.performRevokedEvaluation(validateHost: true, revocationFlags: .revocationLists)).trust?.rule else {
            Issue.record("revocation lists were required without a file")
            return
        }
    }
}
