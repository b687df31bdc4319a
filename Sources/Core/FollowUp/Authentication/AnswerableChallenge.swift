// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A server's challenge in a supported scheme.
struct AnswerableChallenge: Sendable, Equatable {
    /// The scheme, with the parameters that the answer depends on.
    enum Scheme: Sendable, Equatable {
        case basic
        case digest(DigestChallenge)
        /// Answered by libcurl, as it authenticates the connection.
        case ntlm
        /// Answered by libcurl, with the Kerberos tickets of the process.
        case negotiate
    }

    let scheme: Scheme
    /// The realm (RFC 9110, section 11.5); `nil` for schemes without one.
    let realm: String?

    /// `nil` for an unsupported scheme, or parameters that can't be answered.
    init?(_ challenge: AuthenticationChallenge) {
        realm = challenge.parameters["realm"]
        switch challenge.scheme {
        case "basic": scheme = .basic
        case "digest":
            guard let digest = DigestChallenge(challenge) else { return nil }
            scheme = .digest(digest)
        // A token behind the name belongs to a handshake on another connection; libcurl starts its own.
        case "ntlm" where CurlInfo.current.supportsNTLM: scheme = .ntlm
        case "negotiate" where CurlInfo.current.supportsNegotiate: scheme = .negotiate
        default: return nil
        }
    }

    /// Returns the challenges of a response that can be answered, strongest first; equally strong ones in the server's order.
    static func ranked(_ challenges: [AuthenticationChallenge]) -> [AnswerableChallenge] {
        let known = challenges.compactMap { AnswerableChallenge($0) }.enumerated()
        return known.sorted { ($1.element.strength, $0.offset) < ($0.element.strength, $1.offset) }.map(\.element)
    }

    /// The strength of the scheme; higher is stronger.
    private var strength: Int {
        switch scheme {
        case .basic: 0
        case .ntlm: 1
        case .digest(let challenge): 2 + challenge.algorithm.hash.rawValue
        case .negotiate: 4
        }
    }

    /// Foundation's constant for the scheme.
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

    /// Whether only the nonce has expired, and the same credentials may be accepted with the new one.
    var isStale: Bool {
        if case .digest(let challenge) = scheme { challenge.isStale } else { false }
    }
}

extension HTTPOrigin {
    /// Foundation's protection space for a challenge of this origin.
    func space(of challenge: AnswerableChallenge) -> URLProtectionSpace {
        space(protocol: scheme == "https" ? NSURLProtectionSpaceHTTPS : NSURLProtectionSpaceHTTP, challenge.realm, challenge.method)
    }

    /// The spaces under which users may have stored a credential for a challenge: some use the URL's scheme instead of Foundation's
    /// constant, or the default method.
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

/// The Basic scheme (RFC 7617), in UTF-8.
enum BasicAuthentication {
    /// Returns the value of `Authorization`; `nil` if the user has a colon, which separates it from the password, or either has a control
    /// character, which the RFC forbids.
    static func authorization(user: String, password: String) -> String? {
        let hasControls = (user + password).utf8.contains { $0 < 0x20 || $0 == 0x7F }
        guard !hasControls, !user.utf8.contains(UInt8(ascii: ":")) else { return nil }
        return "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }
}
