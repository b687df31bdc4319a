// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A requirement on a host's certificates beyond libcurl's verification in the handshake; part of ``TLSOptions``.
///
/// Checked in libcurl's pre-request callback, when a connection is established and nothing has been sent on it, and before that if a client
/// certificate is to be presented (``PresentationGuard``). Checked against the path that OpenSSL has verified: a host may send certificates
/// it does not own, so only the path is considered. A resumed TLS session has no certificates, so where a requirement needs them no session
/// is resumed.
package final class TrustRequirement: Sendable, Hashable {
    package enum Rule: Sendable, Hashable {
        /// No further requirement.
        case none
        /// One of the path's certificates is one of these, compared byte by byte.
        case certificate(Set<Certificate>)
        /// The key of one of the path's certificates is one of these.
        case publicKey(Set<PublicKey>)
        /// The evaluator decides.
        case evaluator(TrustEvaluator)
        /// Every certificate is refused, for this reason.
        case refuse(String)
        /// There is no usable rule, for this reason: no connection is made.
        case unusable(String)
    }

    /// The host and port to which the requirement applies.
    package let host: String
    package let port: Int
    /// The name of the policy, for messages.
    package let policy: String
    package let rule: Rule
    /// What chooses the client certificate, if the host requests one; `nil` for nothing. It says nothing about the host's certificates, and does
    /// not count where requirements are compared.
    package let chooser: CertificateChooser?

    package init(_ rule: Rule, policy: String, host: String, port: Int, chooser: CertificateChooser? = nil) {
        self.rule = rule
        self.chooser = chooser
        self.policy = policy
        self.host = host
        self.port = port
    }

    package static func == (lhs: TrustRequirement, rhs: TrustRequirement) -> Bool {
        lhs === rhs || lhs.host == rhs.host && lhs.port == rhs.port && lhs.policy == rhs.policy && lhs.rule == rhs.rule
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
        hasher.combine(policy)
    }

    /// An equal one without the closures that evaluate and choose, and what these keep: a memory may outlive them.
    var remembered: TrustRequirement {
        guard case .evaluator(let evaluator) = rule else { return self }
        return TrustRequirement(.evaluator(evaluator.remembered), policy: policy, host: host, port: port)
    }

    /// The message for a refusal: policy, host and reason.
    func message(_ reason: String) -> String { "\(policy) refused \(host): \(reason)" }

    /// Why no connection can be made under the requirement; `nil` if one can.
    var invalidity: String? { if case .unusable(let reason) = rule { reason } else { nil } }

    /// Why a host's verified path does not satisfy the rule, as its message; `nil` if it does, or if the evaluator decides.
    func refusal(of trust: ServerTrust) -> String? {
        switch rule {
        case .none, .evaluator: nil
        case .certificate(let pins):
            trust.certificates.contains { pins.contains($0) } ? nil : message("no certificate of \(trust) is pinned")
        case .publicKey(let pins):
            trust.certificates.contains { pins.contains($0.publicKey) } ? nil : message("no public key of \(trust) is pinned")
        case .refuse(let reason), .unusable(let reason): message(reason)
        }
    }

    /// Whether certificates are needed: a resumed TLS session has none.
    var needsCertificates: Bool { rule != .none }
}

/// Decides on certificates, off the event loop's thread.
///
/// Meanwhile the transfer keeps its slot, without a connection. ``TrustRegister`` remembers what was accepted, by host and path.
package final class TrustEvaluator: Sendable, Hashable {
    private let scope: ObjectIdentifier
    private let version: Int
    /// What no evaluator of another scope has, in no process.
    let token: String
    let evaluate: @Sendable (ServerTrust, _ completion: @escaping @Sendable (Bool) -> Void) -> Void

    /// - Parameters:
    ///   - scope: evaluators with the same scope, version and token are considered equal; a path accepted by one is not submitted again.
    ///   - version: changes with what evaluates.
    ///   - token: a random text of the scope, which its requests share responses by; by default the evaluator has one of its own.
    package init(
        scope: AnyObject, version: Int = 0, token: String = .makeToken(),
        _ evaluate: @escaping @Sendable (ServerTrust, _ completion: @escaping @Sendable (Bool) -> Void) -> Void
    ) {
        self.scope = ObjectIdentifier(scope)
        self.version = version
        self.token = token
        self.evaluate = evaluate
    }

    private init(_ scope: ObjectIdentifier, _ version: Int, _ token: String) {
        self.scope = scope
        self.version = version
        self.token = token
        evaluate = { _, completion in completion(false) }
    }

    /// An equal one that accepts nothing.
    fileprivate var remembered: TrustEvaluator { TrustEvaluator(scope, version, token) }

    /// What the partition of its requests has of it.
    var partitionText: String { "\(token) \(version)" }

    package static func == (lhs: TrustEvaluator, rhs: TrustEvaluator) -> Bool {
        // Also the token: the address of a scope that has ended may become that of another one.
        lhs.scope == rhs.scope && lhs.version == rhs.version && lhs.token == rhs.token
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(scope) }
}
