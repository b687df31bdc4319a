// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

/// The protection space of a server trust challenge, which Foundation has only on Apple's systems, with the Security framework.
private final class ServerTrustSpace: URLProtectionSpace, @unchecked Sendable {  // immutable
    let trust: ServerTrust

    init(_ trust: ServerTrust) {
        self.trust = trust
        super.init(
            host: trust.host, port: trust.port, protocol: NSURLProtectionSpaceHTTPS, realm: nil,
            authenticationMethod: NSURLAuthenticationMethodServerTrust)
    }

    /// Always `nil`: a trust object can't be archived.
    required init?(coder: NSCoder) { nil }

    // Foundation on Linux replaces a method that it does not know by the default one.
    override var authenticationMethod: String { NSURLAuthenticationMethodServerTrust }

    override func copy(with zone: NSZone? = nil) -> Any { self }
}

extension URLAuthenticationChallenge {
    /// The certificates that the server has sent, in a server trust challenge; `nil` in a challenge for credentials.
    ///
    /// Server trust challenges are delivered to ``SessionDelegate/sessionDidReceiveChallenge``. To accept the server, answer with
    /// `useCredential` and `URLCredential(trust:)`.
    public var serverTrust: ServerTrust? { protectionSpace.shownTrust }
}

extension URLProtectionSpace {
    /// The server's certificates, in the protection space of a server trust challenge.
    package var shownTrust: ServerTrust? { (self as? ServerTrustSpace)?.trust }
}

extension URLCredential {
    /// The user of credentials that accept a server; random, so that it is no user's name.
    private static let trustMarker = "curlew.server-trust.\(UUID().uuidString)"

    /// Creates the credential that accepts the server of a challenge with a `serverTrust`. It has no other use.
    public convenience init(trust: ServerTrust) {
        self.init(user: Self.trustMarker, password: "", persistence: .none)
    }

    fileprivate var acceptsServer: Bool { user == Self.trustMarker }
}

extension SessionDelegate {
    /// Whether a closure handles session-level challenges, server trust among them.
    var handlesSessionChallenges: Bool {
        closures.withLock { $0.sessionDidReceiveChallenge != nil || $0.serverTrustDecision != nil }
    }
}

/// A task whose owner evaluates servers.
struct OwnedTask: Sendable {
    let closures: RequestClosures
    weak var task: SessionTask?
}

extension RequestDriver {
    /// The current task, if the request's owner evaluates servers.
    var ownedTask: OwnedTask? {
        guard let closures = ownClosures, closures.values.taskDidReceiveConnectionChallenge != nil else { return nil }
        return OwnedTask(closures: closures, task: task)
    }
}

extension Session {
    /// The TLS options for a host whose trust the session's delegate evaluates: libcurl checks only what can't be evaluated afterwards.
    ///
    /// - Parameters:
    ///   - policy: the host's policy, which decides if the delegate chooses the default handling.
    ///   - policyVersion: distinguishes it from other policies of the host.
    ///   - owned: the task whose owner evaluates in place of the delegate; `nil` for none.
    func delegatedOptions(
        for host: String, port: Int, under policy: ServerTrustPolicy?, version policyVersion: Int, _ owned: OwnedTask?
    ) -> TLSOptions {
        var options = configuration.options.tls
        let required = policy?.applied(to: options, host: host, port: port, in: self, version: policyVersion) ?? options
        options.requiresStapledResponse = options.requiresStapledResponse || required.requiresStapledResponse
        options.verifiesHostName = false
        // The signature of a stapled response is verified against the chain.
        options.verifiesCertificateChain = options.requiresStapledResponse && required.verifiesCertificateChain
        let version = policyVersion &+ (owned == nil ? delegate?.closures.withLock { $0.trustVersion } ?? 0 : 0)
        let (scope, token) = owned.map { ($0.closures as AnyObject, $0.closures.token) } ?? (self, token)
        let evaluator = TrustEvaluator(scope: scope, version: version, token: token) { [weak self] trust, completion in
            guard let self else { return completion(false) }
            queue.async { self.evaluate(trust, under: policy, owned, completion) }
        }
        options.trust = TrustRequirement(
            .evaluator(evaluator), policy: "sessionDidReceiveChallenge", host: host, port: port, chooser: certificateChooser(owned))
        return options
    }

    /// Calls the closure with a server trust challenge, and `completion` once with the result. Runs on the session's queue.
    private func evaluate(
        _ trust: ServerTrust, under policy: ServerTrustPolicy?, _ owned: OwnedTask?, _ completion: @escaping @Sendable (Bool) -> Void
    ) {
        let (closure, decide) = delegate?.closures.withLock { ($0.sessionDidReceiveChallenge, $0.serverTrustDecision) } ?? (nil, nil)
        if owned == nil, let decide { return evaluate(trust, under: policy, decide, completion) }
        let challenge = URLAuthenticationChallenge(
            protectionSpace: ServerTrustSpace(trust.withKnownIssuers()), proposedCredential: nil, previousFailureCount: 0,
            failureResponse: nil, error: nil,
            sender: ChallengeSender())
        let isDecided = Lock(false)
        let apply = { @Sendable [weak self] (disposition: URLSession.AuthChallengeDisposition, credential: URLCredential?) in
            let isFirst = isDecided.withLock { isDecided in
                defer { isDecided = true }
                return !isDecided
            }
            guard isFirst else { return }
            switch disposition {
            case .cancelAuthenticationChallenge, .rejectProtectionSpace: completion(false)
            case .useCredential where credential?.acceptsServer == true: completion(true)
            // Also `useCredential` with a name and a password, which say nothing about the server.
            default:
                guard let self else { return completion(false) }
                queue.async { completion(self.accepts(trust, under: policy)) }
            }
        }
        if let owned {
            // The requests with the same closures share the decision: one that has ended meanwhile does not make it for the others.
            let asked = owned.task.flatMap { delegate?.owner(of: $0) == nil ? nil : $0 }
            guard let task = asked ?? delegate?.task(with: owned.closures, to: trust.host, port: trust.port) else {
                return apply(.cancelAuthenticationChallenge, nil)
            }
            owned.closures.values.taskDidReceiveConnectionChallenge?(self, task, challenge, apply)
        } else if let closure {
            closure(self, challenge, apply)
        } else {
            apply(.performDefaultHandling, nil)
        }
    }

    /// Awaits the delegate's decision.
    private func evaluate(
        _ trust: ServerTrust, under policy: ServerTrustPolicy?,
        _ decide: @escaping @Sendable (ServerTrust) async throws -> ServerTrustDecision,
        _ completion: @escaping @Sendable (Bool) -> Void
    ) {
        let shown = trust.withKnownIssuers()
        SharedWork.task { [weak self] in
            switch try? await decide(shown) {
            case .accept: completion(true)
            case .reject, nil: completion(false)
            case .performDefaultHandling:
                guard let self else { return completion(false) }
                queue.async { completion(self.accepts(trust, under: policy)) }
            }
        }
    }

    /// The default handling: whether the host's policy, or the TLS options without one, accept a server. May read files.
    private func accepts(_ trust: ServerTrust, under policy: ServerTrustPolicy?) -> Bool {
        let tls = configuration.options.tls
        var (checksChain, host) = (tls.verifiesCertificateChain, tls.verifiesHostName ? trust.host : nil)
        switch policy {
        case nil: break
        case .performDefaultEvaluation(let validateHost): (checksChain, host) = (true, validateHost ? trust.host : nil)
        case .some(let policy): return policy.evaluate(trust, forHost: trust.host)
        }
        guard checksChain else { return host.map { trust.sentCertificates.first?.isValid(forHost: $0) ?? false } ?? true }
        return trust.validPath(forHost: host, revocationLists: trust.revocationLists) != nil
    }
}
