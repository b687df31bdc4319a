// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// A policy becomes what libcurl checks during the handshake, as far as that goes, and a requirement for what comes after it.

extension Session {
    /// Whether code of users has a part in making a transfer ready: then not on the transport's thread.
    var mustPrepareOffTransport: Bool { serverTrustPolicyManager != nil }

    /// The TLS options for a URL's host, if it has a policy. A URL without a host is not sent.
    func tlsOptions(for url: String) -> TLSOptions? {
        guard hasTrustRules, let components = URLComponents(string: url), let host = components.host,
            components.scheme?.lowercased() == "https"
        else { return nil }
        return tlsOptions(for: host.comparableHost, port: components.port ?? 443)
    }

    /// Whether servers are judged by more than the session's TLS options.
    var hasTrustRules: Bool { serverTrustPolicyManager != nil || delegate?.asksAboutConnections == true }

    /// The TLS options for a host: those of the session, changed by the host's policy, or to have the delegate asked; `nil` if there is
    /// neither.
    func tlsOptions(for host: String, port: Int) -> TLSOptions? {
        let policy = serverTrustPolicyManager?.serverTrustPolicy(forHost: host)
        if delegate?.asksAboutConnections == true { return askingDelegate(of: host, port: port, under: policy) }
        guard let policy else { return nil }
        return policy.applied(to: configuration.options.tls, host: host, port: port, in: self)
    }
}

extension ServerTrustPolicy {
    /// The policy's name, for messages.
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

    func applied(to session: TLSOptions, host: String, port: Int, in scope: Session) -> TLSOptions {
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
                options.certificateAuthorities = pins.reduce(into: Data()) { $0 += $1.pem }
                options.certificateAuthorityFile = nil
            } else {
                rule = pins.isEmpty ? .refuse("there are no pins") : .certificate(Set(pins))
            }
        case .pinPublicKeys(let pins, let validateChain, let validateHost):
            (options.verifiesCertificateChain, options.verifiesHostName) = (validateChain, validateHost)
            rule = pins.isEmpty ? .refuse("there are no pins") : .publicKey(Set(pins))
        case .disableEvaluation: break
        case .customEvaluation(let evaluate):
            rule = .evaluator(
                TrustEvaluator(scope: scope) { [queue = scope.queue] trust, answer in queue.async { answer(evaluate(trust, host)) } })
        }
        options.trust = TrustRequirement(rule, policy: name, host: host, port: port)
        return options
    }
}

extension ServerTrustPolicy.RevocationFlags {
    /// Has libcurl check what these ask for; what else is required.
    fileprivate func rule(with options: inout TLSOptions) -> TrustRequirement.Rule {
        if contains(.stapledResponse) || contains(.anyAvailableMethod) && options.revocationListFile == nil {
            options.requiresStapledResponse = true
        }
        if contains(.revocationLists), options.revocationListFile == nil {
            return .refuse("it asks for revocation lists, and the configuration has none")
        }
        return .none
    }
}
