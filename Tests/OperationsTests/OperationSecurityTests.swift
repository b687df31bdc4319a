// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewOperations
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)), .enabled(if: TLSAuthority.isAvailable)) struct OperationSecurityTests {
    private let authority: TLSAuthority

    init() async throws {
        authority = try await TLSAuthority.shared()
    }

    /// A session that trusts the tests' root, or only the system's.
    private func session(trusting: Bool = true) -> OperationSession {
        makeSession { if trusting { $0.tls.certificateAuthorityFile = authority.path("root.pem") } }
    }

    private func operation(_ url: String, _ policy: SecurityPolicy, trusting: Bool = true) throws -> URLConnectionOperation {
        let operation = try URLConnectionOperation.make(url, session: session(trusting: trusting))
        operation.securityPolicy = policy
        return operation
    }

    struct Case: Sendable, CustomStringConvertible {
        var description: String
        var server = "good"
        var mode = SecurityPolicy.PinningMode.none
        var pins: [String] = []
        var allowsInvalid = false
        var validatesName = true
        var trusting = true
        var isAccepted: Bool
    }

    static let cases = [
        Case(description: "no pins: what the system trusts", isAccepted: true),
        Case(description: "no pins: not what it does not", trusting: false, isAccepted: false),
        Case(description: "no pins: not under another name", server: "elsewhere", isAccepted: false),
        Case(description: "no pins, no name: under another name", server: "elsewhere", validatesName: false, isAccepted: true),
        Case(description: "invalid allowed, name wanted, no pins: refused", server: "self", allowsInvalid: true, isAccepted: false),
        Case(description: "invalid allowed, name not wanted", server: "self", allowsInvalid: true, validatesName: false, isAccepted: true),
        Case(description: "any pinned key of the chain is enough", mode: .publicKey, pins: ["second", "intermediate"], isAccepted: true),
        Case(description: "a key that is not pinned", mode: .publicKey, pins: ["second"], isAccepted: false),
        Case(description: "a pinned key of an invalid chain", server: "self", mode: .publicKey, pins: ["self"], isAccepted: false),
        Case(
            description: "a pinned key of an invalid chain, allowed", server: "self", mode: .publicKey, pins: ["self"], allowsInvalid: true,
            isAccepted: true),
        Case(description: "pinned certificates are the anchors", mode: .certificate, pins: ["root"], trusting: false, isAccepted: true),
        Case(
            description: "self-signed, and its own anchor", server: "self", mode: .certificate, pins: ["self"], trusting: false,
            isAccepted: true),
        Case(description: "what is trusted, but not pinned", mode: .certificate, pins: ["other-root"], isAccepted: false),
        Case(description: "pins asked for, and none there", mode: .certificate, isAccepted: false),
    ]

    @Test("a policy accepts and rejects servers", arguments: cases)
    func policies(_ item: Case) async throws {
        let server = try await TLSServer(authority, item.server)
        var policy = SecurityPolicy(pinningMode: item.mode, pinnedCertificates: try item.pins.map { try authority.certificate($0) })
        policy.allowInvalidCertificates = item.allowsInvalid
        policy.validatesDomainName = item.validatesName
        let operation = try operation(server.url, policy, trusting: item.trusting)
        await operation.runToEnd()
        #expect((operation.error == nil) == item.isAccepted)
        if !item.isAccepted {
            #expect(operation.urlErrorCode == .userCancelledAuthentication)
            #expect(await server.nextConnection() == TLSServer.Connection(bytes: 0, requests: 0))
        }
        #expect(try JSONDecoder().decode(SecurityPolicy.self, from: JSONEncoder().encode(policy)) == policy)
    }

    @Test("pins fail for a URL without TLS before anything is sent")
    func pinsWithoutTLS() async throws {
        let server = try LoopbackServer.standard()
        let policy = SecurityPolicy(pinningMode: .publicKey, pinnedCertificates: [try authority.certificate("good")])
        let operation = try operation(server.url("/json"), policy)
        await operation.runToEnd()
        guard case OperationError.pinningRequiresTLS? = operation.error else { throw TestError("no error") }
        #expect(server.requestCount == 0)
    }

    @Test("the certificates in a directory are pins, regardless of the encoding their extension implies")
    func directory() throws {
        let directory = try TemporaryDirectory()
        let certificate = try authority.certificate("good")
        _ = try directory.write(certificate.der, to: "one.cer")
        _ = try directory.write(try authority.data("root.pem"), to: "two.crt")
        _ = try directory.write(Data("no certificate".utf8), to: "three.cer")
        #expect(SecurityPolicy.certificates(in: directory.url) == [certificate, try authority.certificate("root")])
        let policy = SecurityPolicy(pinningMode: .certificate)
        #expect(policy.pinnedCertificates == SecurityPolicy.certificates(in: .main))
    }

    @Test("a policy can be evaluated directly")
    func evaluation() throws {
        let certificate = try authority.certificate("good")
        var policy = SecurityPolicy(pinningMode: .publicKey, pinnedCertificates: [certificate])
        policy.allowInvalidCertificates = true
        let trust = ServerTrust(host: "localhost", certificates: [certificate])
        #expect(policy.evaluate(trust, forDomain: "localhost"))
        #expect(!policy.evaluate(trust, forDomain: "example.org"))
        #expect(policy.evaluate(trust, forDomain: nil))
    }

    // MARK: Challenges

    enum Disposition: CaseIterable {
        case accept, performDefault, credential, refuse, forget
    }

    @Test("a challenge closure alone decides whether a server is trusted", arguments: Disposition.allCases)
    func serverTrust(_ disposition: Disposition) async throws {
        let server = try await TLSServer(authority, "self")
        let operation = try operation(server.url, SecurityPolicy(), trusting: false)
        let asked = Log<String>()
        operation.setWillSendRequestForAuthenticationChallengeBlock { _, challenge in
            guard case .serverTrust(let trust) = challenge.kind else { return challenge.cancel() }
            asked.append("\(challenge.host) \(trust.certificates.first?.commonName ?? "")")
            switch disposition {
            case .accept: challenge.acceptServerTrust()
            case .performDefault: challenge.performDefaultHandling()
            // A user and a password do not decide about the server.
            case .credential: challenge.use(URLCredential(user: "curlew", password: "x", persistence: .none))
            case .refuse: challenge.cancel()
            case .forget: break
            }
        }
        await operation.runToEnd()
        #expect(asked.elements == ["localhost self"])
        #expect((operation.error == nil) == (disposition == .accept))
        if disposition != .accept { #expect(operation.urlErrorCode == .userCancelledAuthentication) }
    }

    @Test("an operation that waits for a trust decision can be cancelled")
    func cancelWhileAsked() async throws {
        let server = try await TLSServer(authority, "self")
        let operation = try operation(server.url, SecurityPolicy(), trusting: false)
        let kept = Log<OperationChallenge>()
        operation.setWillSendRequestForAuthenticationChallengeBlock { _, challenge in kept.append(challenge) }
        operation.start()
        await kept.wait(for: 1)
        operation.cancel()
        await operation.waitForEnd()
        #expect(operation.urlErrorCode == .cancelled)
        // Once answered, the challenge releases the operation.
        kept.elements.first?.cancel()
    }
}
