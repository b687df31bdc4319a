// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// A policy is translated into what libcurl verifies during the handshake, as far as possible, and a requirement checked after it.

extension Session {
    /// Whether preparing a transfer runs the user's code, which must not run on the event loop's thread.
    var mustPrepareOffTransport: Bool { serverTrustPolicyManager != nil }

    /// The TLS options for a URL's host, if they differ from the session's. `nil` for a URL without a host, which is never sent.
    ///
    /// - Parameter owned: the task whose owner evaluates in place of the session's delegate; `nil`, the default, for none.
    func tlsOptions(for url: String, _ owned: OwnedTask? = nil) -> TLSOptions? {
        guard owned != nil || hasTrustRules, let origin = HTTPOrigin(url: url), origin.scheme == "https" else { return nil }
        return tlsOptions(for: origin.host, port: origin.port, owned)
    }

    /// Whether trust in servers depends on more than the session's TLS options.
    var hasTrustRules: Bool { serverTrustPolicyManager != nil || delegate?.handlesSessionChallenges == true }

    /// The session's TLS options changed by the host's policy, or to have the delegate evaluate the host; `nil` if there is neither.
    ///
    /// - Parameter host: in normal form.
    func tlsOptions(for host: String, port: Int, _ owned: OwnedTask? = nil) -> TLSOptions? {
        if let defect = serverTrustPolicyManager?.defect {
            var options = configuration.options.tls
            options.trust = TrustRequirement(.unusable(defect), policy: "ServerTrustPolicyManager", host: host, port: port)
            return options
        }
        let policy = serverTrustPolicyManager?.serverTrustPolicy(forHost: host)
        // A subclass may return another closure each time, and closures can't be compared: each is asked, and none shares.
        let isOverridden = serverTrustPolicyManager.map { type(of: $0) != ServerTrustPolicyManager.self } ?? false
        let version = isOverridden ? Int.random(in: 1 ... .max) : 0
        if owned != nil || delegate?.handlesSessionChallenges == true {
            return delegatedOptions(for: host, port: port, under: policy, version: version, owned)
        }
        guard let policy else { return nil }
        return policy.applied(to: configuration.options.tls, host: host, port: port, in: self, version: version)
    }
}

extension ServerTrustPolicy {
    /// The policy's name for error messages.
    private var name: String {
        switch self {
        case .performDefaultEvaluation: "performDefaultEvaluation"
        case .performRevokedEvaluation: "performRevokedEvaluation"
        case .pinCertificates: "pinCertificates"
        case .pinPublicKeys: "pinPublicKeys"
        case .disableEvaluation: "disableEvaluation"
        case .customEvaluation: "customEvaluation"
        }
    }

    /// Returns the session's TLS options changed to enforce this policy for a host.
    ///
    /// Trust is evaluated in libcurl's pre-request callback, after the handshake and before the request is sent, on OpenSSL's verified
    /// chain: a peer may send certificates it does not own, so pins are compared with that chain only.
    ///
    /// - Parameter version: distinguishes closures from others of the session.
    func applied(to session: TLSOptions, host: String, port: Int, in scope: Session, version: Int) -> TLSOptions {
        var options = session
        options.verifiesServer = false
        var rule = TrustRequirement.Rule.none
        switch self {
        case .performDefaultEvaluation(let validateHost):
            (options.verifiesCertificateChain, options.verifiesHostName) = (true, validateHost)
        case .performRevokedEvaluation(let validateHost, let flags):
            (options.verifiesCertificateChain, options.verifiesHostName) = (true, validateHost)
            rule = flags.rule(with: &options)
        case .pinCertificates(let pins, let validateChain, let validateHost):
            (options.verifiesCertificateChain, options.verifiesHostName) = (validateChain && !pins.isEmpty, validateHost)
            if options.verifiesCertificateChain {
                options.pinnedAuthorities = pins.reduce(into: Data()) { $0 += $1.pem }
            } else {
                rule = pins.isEmpty ? .refuse("the policy has no pins") : .certificate(Set(pins))
            }
        case .pinPublicKeys(let pins, let validateChain, let validateHost):
            (options.verifiesCertificateChain, options.verifiesHostName) = (validateChain, validateHost)
            rule = pins.isEmpty ? .refuse("the policy has no pins") : .publicKey(Set(pins))
        case .disableEvaluation: break
        case .customEvaluation(let evaluate):
            rule = .evaluator(
                TrustEvaluator(scope: scope, version: version, token: scope.token) { [queue = scope.queue] trust, completion in
                    queue.async { completion(evaluate(trust.withKnownIssuers(), host)) }
                })
        }
        options.trust = TrustRequirement(rule, policy: name, host: host, port: port)
        return options
    }
}

extension ServerTrustPolicy.RevocationFlags {
    /// Sets the options for the checks that libcurl makes, and returns the requirement for the rest.
    fileprivate func rule(with options: inout TLSOptions) -> TrustRequirement.Rule {
        if contains(.stapledResponse) || contains(.anyAvailableMethod) && options.revocationListFile == nil {
            options.requiresStapledResponse = true
        }
        if contains(.revocationLists), options.revocationListFile == nil {
            return .refuse("the policy requires revocation lists, and tls.revocationListFile is not set")
        }
        return .none
    }
}
