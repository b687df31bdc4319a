// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What a host's certificates have to be beside what libcurl checks during the handshake; part of ``TLSOptions``.
package final class TrustRequirement: Sendable, Hashable {
    package enum Rule: Sendable, Hashable {
        /// Nothing more.
        case none
        /// One of the path is one of these, byte by byte.
        case certificate(Set<Certificate>)
        /// The key of one of the path is one of these.
        case publicKey(Set<PublicKey>)
        /// Somebody is asked.
        case judge(TrustJudge)
        /// Nothing will do, for this reason.
        case never(String)
    }

    /// The host and port for which this is required.
    package let host: String
    package let port: Int
    /// The name of the policy behind it, for messages.
    package let policy: String
    package let rule: Rule

    package init(_ rule: Rule, policy: String, host: String, port: Int) {
        self.rule = rule
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

    /// Whether the certificates have to be looked at: a resumed TLS session shows none.
    var needsCertificates: Bool { rule != .none }
}

/// Somebody who judges certificates; not on the event loop's thread.
package final class TrustJudge: Sendable, Hashable {
    private let scope: ObjectIdentifier
    let judge: @Sendable (ServerTrust, _ answer: @escaping @Sendable (Bool) -> Void) -> Void

    /// - Parameter scope: judges of the same scope are taken for one, whose verdict on a host's path is not asked for again.
    package init(
        scope: AnyObject, _ judge: @escaping @Sendable (ServerTrust, _ answer: @escaping @Sendable (Bool) -> Void) -> Void
    ) {
        self.scope = ObjectIdentifier(scope)
        self.judge = judge
    }

    package static func == (lhs: TrustJudge, rhs: TrustJudge) -> Bool { lhs.scope == rhs.scope }
    package func hash(into hasher: inout Hasher) { hasher.combine(scope) }
}
