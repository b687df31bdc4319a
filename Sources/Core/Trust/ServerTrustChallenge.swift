// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A server that asks to be trusted. Foundation has challenges about that only where it has Apple's Security framework.
private final class ServerTrustSpace: URLProtectionSpace, @unchecked Sendable {  // immutable
    /// `NSURLAuthenticationMethodServerTrust`, which Foundation on Linux does not let anyone name.
    static let method = "NSURLAuthenticationMethodServerTrust"

    let trust: ServerTrust

    init(_ trust: ServerTrust) {
        self.trust = trust
        super.init(
            host: trust.host, port: trust.port, protocol: NSURLProtectionSpaceHTTPS, realm: nil, authenticationMethod: Self.method)
    }

    /// There is no archive of one.
    required init?(coder: NSCoder) { nil }

    // Foundation on Linux takes a method that it does not know for the default one.
    override var authenticationMethod: String { Self.method }

    override func copy(with zone: NSZone? = nil) -> Any { self }
}

extension URLAuthenticationChallenge {
    /// What the server has shown, where the question is whether it is trusted; `nil` for challenges that ask for credentials.
    ///
    /// Such a challenge comes to ``SessionDelegate/sessionDidReceiveChallenge``. To accept the server, answer with `useCredential` and
    /// `URLCredential(trust:)`.
    public var serverTrust: ServerTrust? { protectionSpace.shownTrust }
}

extension URLProtectionSpace {
    /// What the server has shown that asks to be trusted.
    package var shownTrust: ServerTrust? { (self as? ServerTrustSpace)?.trust }
}

extension URLCredential {
    /// Tells the credentials that accept a server from names and passwords.
    private static let trustMarker = "curlew.server-trust.\(UUID().uuidString)"

    /// Makes the credential that accepts a server, as the answer to a challenge with a `serverTrust`. It is good for nothing else.
    public convenience init(trust: ServerTrust) {
        self.init(user: Self.trustMarker, password: "", persistence: .none)
    }

    fileprivate var acceptsServer: Bool { user == Self.trustMarker }
}

extension SessionDelegate {
    /// Whether users are asked about connections: also whether servers are trusted.
    var asksAboutConnections: Bool {
        closures.withLock { $0.sessionDidReceiveChallenge != nil || $0.sessionDidReceiveChallengeWithCompletion != nil }
    }
}

extension Session {
    /// The TLS options for a host about which the session's delegate is asked: libcurl checks of it only what cannot be judged later.
    ///
    /// - Parameter policy: the host's, which decides where the delegate leaves it to the default handling.
    func askingDelegate(of host: String, port: Int, under policy: ServerTrustPolicy?) -> TLSOptions {
        var options = configuration.options.tls
        let required = policy?.applied(to: options, host: host, port: port, in: self) ?? options
        options.requiresStapledResponse = options.requiresStapledResponse || required.requiresStapledResponse
        options.verifiesHostName = false
        // Who has signed a stapled response is found out by the chain.
        options.verifiesCertificateChain = options.requiresStapledResponse && required.verifiesCertificateChain
        let evaluator = TrustEvaluator(scope: self) { [weak self] trust, answer in
            guard let self else { return answer(false) }
            queue.async { self.ask(about: trust, under: policy, answer) }
        }
        options.trust = TrustRequirement(.evaluator(evaluator), policy: "sessionDidReceiveChallenge", host: host, port: port)
        return options
    }

    /// Asks the delegate; on the session's queue.
    private func ask(about trust: ServerTrust, under policy: ServerTrustPolicy?, _ answer: @escaping @Sendable (Bool) -> Void) {
        let closures = delegate?.closures.withLock { $0 }
        let challenge = URLAuthenticationChallenge(
            protectionSpace: ServerTrustSpace(trust), proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: nil,
            sender: ChallengeSender())
        let isAnswered = Lock(false)
        let apply = { @Sendable [weak self] (disposition: URLSession.AuthChallengeDisposition, credential: URLCredential?) in
            let isFirst = isAnswered.withLock { isAnswered in
                defer { isAnswered = true }
                return !isAnswered
            }
            guard isFirst else { return }
            switch disposition {
            case .cancelAuthenticationChallenge, .rejectProtectionSpace: answer(false)
            case .useCredential where credential?.acceptsServer == true: answer(true)
            // A name and a password are no answer to this question.
            default:
                guard let self else { return answer(false) }
                queue.async { answer(self.accepts(trust, under: policy)) }
            }
        }
        if let later = closures?.sessionDidReceiveChallengeWithCompletion {
            later(self, challenge, apply)
        } else if let now = closures?.sessionDidReceiveChallenge {
            let (disposition, credential) = now(self, challenge)
            apply(disposition, credential)
        } else {
            apply(.performDefaultHandling, nil)
        }
    }

    /// Whether a server would be accepted if nobody were asked: by its host's policy, else by the TLS options. May read files.
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
