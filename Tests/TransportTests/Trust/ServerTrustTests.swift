// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct ServerTrustTests {
    private let root: Certificate
    private let otherRoot: Certificate
    private let intermediate: Certificate
    private let leaf: Certificate
    private let expired: Certificate

    init() throws {
        func certificate(_ pem: String) throws -> Certificate { try #require(Certificate(pem: Data(pem.utf8))) }
        root = try certificate(TestCertificates.root)
        otherRoot = try certificate(TestCertificates.otherRoot)
        intermediate = try certificate(TestCertificates.intermediate)
        leaf = try certificate(TestCertificates.leaf)
        expired = try certificate(TestCertificates.expired)
    }

    private func trust(_ certificates: Certificate...) -> ServerTrust {
        ServerTrust(host: "WWW.example.org.", certificates: certificates)
    }

    @Test("certificates that lead to an anchor are valid: root, intermediate or leaf") func anchors() {
        let trust = trust(leaf, intermediate)
        #expect(trust.host == "www.example.org")
        for anchor in [root, intermediate, leaf] { #expect(trust.isValid(anchors: [anchor], forHost: "www.example.org")) }
        #expect(!trust.isValid(anchors: [otherRoot]))
        #expect(!trust.isValid(anchors: []))
        #expect(!trust.isValid())
        #expect(!trust.isValid(anchors: [root], forHost: "example.org"))
        #expect(trust.isValid(anchors: [root], forHost: "a.example.net"))
    }

    @Test("missing, expired or empty certificates are not valid") func invalid() {
        #expect(!trust(leaf).isValid(anchors: [root]))
        #expect(!trust(expired, intermediate).isValid(anchors: [root]))
        #expect(!trust().isValid(anchors: [root]))
        #expect(trust().certificates.isEmpty)
    }

    @Test("the path has the leaf and its issuers in order, and no other certificates") func path() {
        #expect(trust(leaf, root, intermediate).certificates == [leaf, intermediate, root])
        #expect(trust(leaf, expired, intermediate, otherRoot).certificates == [leaf, intermediate])
        #expect(trust(expired, intermediate).certificates == [expired, intermediate])
        #expect(trust(leaf).certificates == [leaf])
        #expect(trust(leaf, root).certificates == [leaf])
        // It has the issuer's name, but did not sign the certificate.
        #expect(trust(intermediate, otherRoot).certificates == [intermediate])
        #expect(trust(leaf, root, intermediate).sentCertificates == [leaf, root, intermediate])
        #expect(trust(leaf, intermediate).validPath(anchors: [root]) == [leaf, intermediate, root])
    }

    @Test("the options' anchors are used") func options() throws {
        let directory = try TemporaryDirectory()
        var options = TLSOptions()
        options.certificateAuthorityFile = try directory.write(root.pem, to: "root.pem").path
        func isValid(_ options: TLSOptions) -> Bool {
            ServerTrust(host: "www.example.org", port: 443, sent: [leaf, intermediate], path: nil, options: options).isValid()
        }
        #expect(isValid(options))
        options.certificateAuthorities = otherRoot.pem
        #expect(!isValid(options))
        options.certificateAuthorities = root.pem + otherRoot.pem
        #expect(isValid(options))
        options.certificateAuthorities = nil
        options.certificateAuthorityFile = "/nonexistent"
        #expect(!isValid(options))
    }

    @Test("a root that the host does not send is known from the anchors") func knownIssuers() {
        func path(_ sent: [Certificate], _ anchors: [Certificate]) -> [Certificate] {
            var options = TLSOptions()
            options.certificateAuthorities = Data(anchors.map(\.pem).joined())
            let trust = ServerTrust(host: "www.example.org", port: 443, sent: sent, path: nil, options: options)
            #expect(trust.withKnownIssuers().sentCertificates == sent)
            return trust.withKnownIssuers().certificates
        }
        #expect(path([leaf, intermediate], [otherRoot, root]) == [leaf, intermediate, root])
        #expect(path([leaf], [root, intermediate]) == [leaf, intermediate])
        #expect(path([expired, intermediate], [root]) == [expired, intermediate, root])
        #expect(path([leaf, intermediate, root], [root]) == [leaf, intermediate, root])
        for anchors in [[], [otherRoot]] { #expect(path([leaf, intermediate], anchors) == [leaf, intermediate]) }
        #expect(path([], [root]).isEmpty)
    }

    @Test("requirements with equal rules are equal") func requirements() {
        final class Scope {}
        let (first, second) = (Scope(), Scope())
        func requirement(_ rule: TrustRequirement.Rule) -> TrustRequirement {
            TrustRequirement(rule, policy: "p", host: "h", port: 443)
        }
        #expect(requirement(.certificate([leaf, root])) == requirement(.certificate([root, leaf])))
        #expect(requirement(.certificate([leaf])) != requirement(.certificate([root])))
        #expect(requirement(.publicKey([leaf.publicKey])) != requirement(.certificate([leaf])))
        #expect(
            requirement(.evaluator(TrustEvaluator(scope: first, token: "t") { _, _ in }))
                == requirement(.evaluator(TrustEvaluator(scope: first, token: "t") { _, _ in })))
        #expect(
            requirement(.evaluator(TrustEvaluator(scope: first, token: "t") { _, _ in }))
                != requirement(.evaluator(TrustEvaluator(scope: second, token: "t") { _, _ in })))
    }
}
