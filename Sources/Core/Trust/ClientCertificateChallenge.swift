// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

/// The protection space of a challenge for the client's certificate, which Foundation has only on Apple's systems.
private final class ClientCertificateSpace: URLProtectionSpace, @unchecked Sendable {  // immutable
    let issuers: [Data]

    init(_ request: CertificateRequest) {
        issuers = request.issuers
        super.init(
            host: request.host, port: request.port, protocol: NSURLProtectionSpaceHTTPS, realm: nil,
            authenticationMethod: NSURLAuthenticationMethodClientCertificate)
    }

    /// Always `nil`, as for the other spaces of connections.
    required init?(coder: NSCoder) { nil }

    // Foundation on Linux replaces a method that it does not know by the default one.
    override var authenticationMethod: String { NSURLAuthenticationMethodClientCertificate }

    override func copy(with zone: NSZone? = nil) -> Any { self }
}

extension URLAuthenticationChallenge {
    /// The distinguished names of the issuers whose certificates the server accepts, in DER (RFC 5280, section 4.1.2.4), in a challenge for the
    /// client's certificate; empty if it has named none, and accepts those of any. `nil` in other challenges.
    ///
    /// The `distinguishedNames` of Foundation's `URLProtectionSpace` are always `nil` on Linux.
    public var certificateIssuers: [Data]? { protectionSpace.shownIssuers }
}

extension URLProtectionSpace {
    /// The accepted issuers, in the protection space of a challenge for the client's certificate.
    package var shownIssuers: [Data]? { (self as? ClientCertificateSpace)?.issuers }
}

extension Session {
    /// What chooses client certificates: the owner of a task, or else the session's delegate; `nil` if none does.
    func certificateChooser(_ owned: OwnedTask?) -> CertificateChooser? {
        var version = 0
        if owned == nil {
            let (isAsked, trustVersion) =
                delegate?.closures.withLock { ($0.sessionDidReceiveChallenge != nil, $0.trustVersion) } ?? (false, 0)
            guard isAsked else { return nil }
            version = trustVersion
        }
        return CertificateChooser(owned?.closures.certificateChoices ?? certificateChoices, version: version) {
            [weak self] request, completion in
            guard let self else { return completion(.cancel) }
            queue.async { self.choose(for: request, owned, completion) }
        }
    }

    /// Calls the closure with a challenge, and `completion` once with the result. Runs on the session's queue.
    private func choose(
        for request: CertificateRequest, _ owned: OwnedTask?, _ completion: @escaping @Sendable (CertificateChooser.Answer) -> Void
    ) {
        let challenge = URLAuthenticationChallenge(
            protectionSpace: ClientCertificateSpace(request), proposedCredential: nil, previousFailureCount: request.failureCount,
            failureResponse: nil, error: nil, sender: ChallengeSender())
        let isDecided = Lock(false)
        let apply = { @Sendable [queue] (disposition: URLSession.AuthChallengeDisposition, credential: URLCredential?) in
            let isFirst = isDecided.withLock { isDecided in
                defer { isDecided = true }
                return !isDecided
            }
            guard isFirst else { return }
            switch (disposition, credential?.identity) {
            case (.cancelAuthenticationChallenge, _): completion(.cancel)
            // Reads files.
            case (.useCredential, let certificate?) where certificate.isFor("https://\(request.host.bracketed):\(request.port)"):
                queue.async { completion(.certificate(certificate.read)) }
            // Also `useCredential` with a name and a password, which are no certificate, and with one of other origins.
            default: completion(.none)
            }
        }
        if let owned {
            // The others that wait have tasks of their own.
            guard let task = owned.task else { return completion(.notAsked) }
            owned.closures.values.taskDidReceiveConnectionChallenge?(self, task, challenge, apply)
        } else if let closure = delegate?.closures.withLock({ $0.sessionDidReceiveChallenge }) {
            closure(self, challenge, apply)
        } else {
            apply(.performDefaultHandling, nil)
        }
    }
}
