// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewTransport

/// A server's challenge in a scheme that we know.
struct AnswerableChallenge: Sendable, Equatable {
    /// The scheme, with what answering it takes.
    enum Scheme: Sendable, Equatable {
        case basic
        case digest(DigestChallenge)
        /// libcurl's, which authenticates the connection.
        case ntlm
        /// libcurl's, with the tickets that Kerberos keeps for the process.
        case negotiate
    }

    let scheme: Scheme
    /// The part of the server that the credentials are for; `nil` for the schemes that have none.
    let realm: String?

    /// `nil` for a scheme that we don't know, or whose parameters can't be answered.
    init?(_ challenge: AuthenticationChallenge) {
        realm = challenge.parameters["realm"]
        switch challenge.scheme {
        case "basic": scheme = .basic
        case "digest":
            guard let digest = DigestChallenge(challenge) else { return nil }
            scheme = .digest(digest)
        // What follows the name belongs to a connection of its own, and libcurl begins anew.
        case "ntlm" where CurlInfo.current.supportsNTLM: scheme = .ntlm
        case "negotiate" where CurlInfo.current.supportsNegotiate: scheme = .negotiate
        default: return nil
        }
    }

    /// The challenges of a response that can be answered, the strongest first, and among equals the server's order.
    static func ranked(_ challenges: [AuthenticationChallenge]) -> [AnswerableChallenge] {
        let known = challenges.compactMap { AnswerableChallenge($0) }.enumerated()
        return known.sorted { ($1.element.strength, $0.offset) < ($0.element.strength, $1.offset) }.map(\.element)
    }

    /// Higher is better.
    private var strength: Int {
        switch scheme {
        case .basic: 0
        case .ntlm: 1
        case .digest(let challenge): 2 + challenge.algorithm.hash.rawValue
        case .negotiate: 4
        }
    }

    /// The scheme as Foundation names it.
    var method: String {
        switch scheme {
        case .basic: NSURLAuthenticationMethodHTTPBasic
        case .digest: NSURLAuthenticationMethodHTTPDigest
        case .ntlm: NSURLAuthenticationMethodNTLM
        case .negotiate: NSURLAuthenticationMethodNegotiate
        }
    }

    /// Whether the answer authenticates the connection rather than the request.
    var concernsConnection: Bool { scheme == .ntlm || scheme == .negotiate }

    /// Whether the server only forgot the nonce, and would take the same credentials with a new one.
    var isStale: Bool {
        if case .digest(let challenge) = scheme { challenge.isStale } else { false }
    }
}

// MARK: - Spaces

/// Whom credentials are for: scheme, host and port of a URL (RFC 9110, section 4.3.1).
struct Origin: Sendable, Hashable {
    let scheme: String
    let host: String
    let port: Int

    /// `nil` for a URL that is neither `http` nor `https`, or has no host.
    init?(_ url: URL) {
        guard let scheme = url.scheme?.lowercased(), let host = url.host?.lowercased(), !host.isEmpty else { return nil }
        guard let port = url.port ?? ["http": 80, "https": 443][scheme] else { return nil }
        (self.scheme, self.host, self.port) = (scheme, host, port)
    }

    /// Of a URL as it stands in a transfer.
    init?(_ url: String) {
        guard let url = URL(string: url) else { return nil }
        self.init(url)
    }

    /// Where a challenge comes from, as Foundation has it.
    func space(of challenge: AnswerableChallenge) -> URLProtectionSpace {
        space(protocol: scheme == "https" ? NSURLProtectionSpaceHTTPS : NSURLProtectionSpaceHTTP, challenge.realm, challenge.method)
    }

    /// The spaces under which users may have stored a credential for a challenge: some write the URL's scheme where Foundation has a
    /// constant, or leave the method to it.
    func spaces(of challenge: AnswerableChallenge) -> [URLProtectionSpace] {
        let own = space(of: challenge)
        return [own.`protocol`, scheme].flatMap { name in
            [challenge.method, NSURLAuthenticationMethodDefault].map { space(protocol: name, challenge.realm, $0) }
        }
    }

    private func space(protocol name: String?, _ realm: String?, _ method: String) -> URLProtectionSpace {
        URLProtectionSpace(host: host, port: port, protocol: name, realm: realm, authenticationMethod: method)
    }
}
