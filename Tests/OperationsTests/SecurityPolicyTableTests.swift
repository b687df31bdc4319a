// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewOperations
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// Every combination of a policy's fields, and which servers it accepts.
@Suite(.timeLimit(.minutes(2)), .enabled(if: TLSAuthority.isAvailable)) struct SecurityPolicyTableTests {
    /// The certificate of a server for `localhost`.
    enum Server: String, CaseIterable {
        /// A certificate from a trusted authority.
        case good
        /// The same for another name.
        case elsewhere
        /// A self-signed certificate.
        case selfSigned = "self"
        /// The same for another name.
        case selfSignedElsewhere = "self-elsewhere"
        /// An expired certificate from the trusted authority.
        case expired
        /// The key of `good` in a certificate from an untrusted authority.
        case resigned

        var sent: [String] { [.good, .elsewhere, .expired].contains(self) ? [rawValue, "intermediate"] : [rawValue] }
    }

    enum Pins: CaseIterable {
        /// No pins, the server's own certificate (for `resigned` that of `good`), or another one.
        case none, right, wrong

        func certificates(for server: Server, of authority: TLSAuthority) throws -> [Certificate] {
            switch self {
            case .none: []
            case .right: [try authority.certificate(server == .resigned ? "good" : server.rawValue)]
            case .wrong: [try authority.certificate("second")]
            }
        }
    }

    /// The servers that a policy accepts, by its pins: none, right, wrong.
    typealias Accepted = [Set<Server>]

    struct Row {
        let mode: SecurityPolicy.PinningMode
        let allowsInvalid: Bool
        let validatesName: Bool
        /// With a domain, and without one.
        let named, unnamed: Accepted
    }

    private static let all = Set(Server.allCases)
    private static let nothing: Accepted = [[], [], []]

    static let table: [Row] =
        [
            Row(
                mode: .none, allowsInvalid: false, validatesName: true, named: [[.good], [.good], [.good]],
                unnamed: [[.good, .elsewhere], [.good, .elsewhere], [.good, .elsewhere]]),
            Row(
                mode: .none, allowsInvalid: false, validatesName: false,
                named: [[.good, .elsewhere], [.good, .elsewhere], [.good, .elsewhere]],
                unnamed: [[.good, .elsewhere], [.good, .elsewhere], [.good, .elsewhere]]),
            // A name in a certificate that anyone can make is rejected, whether or not there are pins that are not compared.
            Row(mode: .none, allowsInvalid: true, validatesName: true, named: nothing, unnamed: nothing),
            Row(mode: .none, allowsInvalid: true, validatesName: false, named: [all, all, all], unnamed: [all, all, all]),
            Row(
                mode: .publicKey, allowsInvalid: false, validatesName: true, named: [[], [.good], []],
                unnamed: [[], [.good, .elsewhere], []]),
            Row(
                mode: .publicKey, allowsInvalid: false, validatesName: false, named: [[], [.good, .elsewhere], []],
                unnamed: [[], [.good, .elsewhere], []]),
            Row(
                mode: .publicKey, allowsInvalid: true, validatesName: true, named: [[], [.good, .selfSigned, .expired, .resigned], []],
                unnamed: [[], all, []]),
            Row(mode: .publicKey, allowsInvalid: true, validatesName: false, named: [[], all, []], unnamed: [[], all, []]),
        ]
        + [false, true].flatMap { allowsInvalid in
            [
                Row(
                    mode: .certificate, allowsInvalid: allowsInvalid, validatesName: true, named: [[], [.good, .selfSigned], []],
                    unnamed: [[], [.good, .elsewhere, .selfSigned, .selfSignedElsewhere], []]),
                Row(
                    mode: .certificate, allowsInvalid: allowsInvalid, validatesName: false,
                    named: [[], [.good, .elsewhere, .selfSigned, .selfSignedElsewhere], []],
                    unnamed: [[], [.good, .elsewhere, .selfSigned, .selfSignedElsewhere], []]),
            ]
        }

    private let authority: TLSAuthority

    init() async throws {
        authority = try await TLSAuthority.shared()
    }

    /// A policy of the table, a server, and whether the policy accepts it.
    private struct Case: CustomStringConvertible {
        let policy: SecurityPolicy
        let description: String
        let accepts, acceptsUnnamed: Bool
    }

    private func cases(for server: Server) throws -> [Case] {
        try Self.table.flatMap { row in
            try zip(Pins.allCases, zip(row.named, row.unnamed)).map { pins, accepted in
                var policy = SecurityPolicy(
                    pinningMode: row.mode, pinnedCertificates: try pins.certificates(for: server, of: authority))
                policy.allowInvalidCertificates = row.allowsInvalid
                policy.validatesDomainName = row.validatesName
                return Case(
                    policy: policy,
                    description: "\(row.mode), pins \(pins), invalid \(row.allowsInvalid), name \(row.validatesName): \(server)",
                    accepts: accepted.0.contains(server), acceptsUnnamed: accepted.1.contains(server))
            }
        }
    }

    @Test("the table has every combination once")
    func table() throws {
        #expect(Self.table.count == 3 * 2 * 2)
        let policies = try cases(for: .good).map(\.policy)
        #expect(policies.count == 36 && Set(policies).count == 36)
    }

    @Test("a policy evaluates certificates as in the table, also after archiving", arguments: Server.allCases)
    func evaluation(_ server: Server) throws {
        var options = TLSOptions()
        options.certificateAuthorityFile = authority.path("root.pem")
        let trust = ServerTrust(
            host: "localhost", port: 443, sent: try server.sent.map { try authority.certificate($0) }, path: nil, options: options)
        for item in try cases(for: server) {
            let copy = try JSONDecoder().decode(SecurityPolicy.self, from: JSONEncoder().encode(item.policy))
            #expect(copy == item.policy)
            for policy in [item.policy, copy] {
                #expect(policy.evaluate(trust, forDomain: "localhost") == item.accepts, "\(item)")
                #expect(policy.evaluate(trust, forDomain: nil) == item.acceptsUnnamed, "\(item), without a domain")
                #expect(policy.serverTrustPolicy.evaluate(trust, forHost: "localhost") == item.accepts, "\(item), in the core")
            }
        }
    }

    @Test("a request reaches a server if the table says so; otherwise not a byte is sent", arguments: Server.allCases)
    func requests(_ server: Server) async throws {
        let running = try await TLSServer(authority, server.rawValue) { $0.closes = true }
        let session = makeSession { $0.tls.certificateAuthorityFile = authority.path("root.pem") }
        for item in try cases(for: server) {
            let operation = try URLConnectionOperation.make(running.url, session: session) { request in
                request.setValue("secret", forHTTPHeaderField: "Authorization")
            }
            operation.securityPolicy = item.policy
            await operation.runToEnd()
            let connection = await running.nextConnection()
            #expect((operation.error == nil) == item.accepts, "\(item)")
            #expect(connection?.requests == (item.accepts ? 1 : 0), "\(item)")
            guard !item.accepts else { continue }
            #expect(connection?.bytes == 0, "\(item)")
            #expect(operation.urlErrorCode == .userCancelledAuthentication, "\(item)")
        }
    }
}
