// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A Digest challenge (RFC 7616, section 3.3).
struct DigestChallenge: Sendable, Equatable {
    /// The hash algorithm, plain or of the `-sess` form.
    struct Algorithm: Sendable, Equatable {
        enum Hash: Int, Sendable, Comparable {
            case md5
            case sha256

            /// Whether `lhs` is weaker.
            static func < (lhs: Hash, rhs: Hash) -> Bool { lhs.rawValue < rhs.rawValue }
        }

        let hash: Hash
        /// Whether it is a `-sess` algorithm, which hashes the credentials once per nonce.
        let isSession: Bool
        /// The name as the server spells it.
        let name: String

        /// `nil` for an unsupported algorithm.
        init?(_ name: String) {
            switch name.lowercased() {
            case "md5": (hash, isSession) = (.md5, false)
            case "md5-sess": (hash, isSession) = (.md5, true)
            case "sha-256": (hash, isSession) = (.sha256, false)
            case "sha-256-sess": (hash, isSession) = (.sha256, true)
            default: return nil
            }
            self.name = name
        }

        /// The digest in hexadecimal digits.
        func digest(_ text: String) -> String {
            switch hash {
            case .md5: MD5.digest(of: text.utf8).hexDigits
            case .sha256: SHA256.digest(of: text.utf8).hexDigits
            }
        }
    }

    let realm: String
    var nonce: String
    let opaque: String?
    let algorithm: Algorithm
    /// Whether the challenge has an `algorithm`; otherwise it is MD5, and the response has none either.
    let namesAlgorithm: Bool
    /// Whether the challenge has `qop=auth`; otherwise the response is computed by RFC 2069.
    let hasQualityOfProtection: Bool
    /// Whether the previous nonce has expired, and the same credentials may be accepted with this one.
    let isStale: Bool
    /// Whether the user name is sent hashed.
    let hashesUser: Bool
    /// Whether the challenge has `charset=UTF-8`; the server then supports `username*`.
    let isUTF8: Bool
    /// The beginnings of the URIs to which the credentials belong; empty for all of the origin.
    let domain: [String]

    /// `nil` for a challenge that can't be answered: without a nonce, with an unsupported algorithm or quality of protection, or with text
    /// that is not valid in a header field.
    init?(_ challenge: AuthenticationChallenge) {
        let parameters = challenge.parameters
        guard challenge.scheme == "digest", let nonce = parameters["nonce"] else { return nil }
        guard let algorithm = Algorithm(parameters["algorithm"] ?? "MD5") else { return nil }
        let texts = [nonce, parameters["realm"], parameters["opaque"]].compactMap { $0 }
        guard texts.allSatisfy({ $0.isSendable }) else { return nil }
        let protections = (parameters["qop"] ?? "").lowercased().splitScalars { $0 == "," || $0 == " " || $0 == "\t" }
        guard protections.isEmpty || protections.contains("auth") else { return nil }
        realm = parameters["realm"] ?? ""
        self.nonce = nonce
        opaque = parameters["opaque"]
        self.algorithm = algorithm
        namesAlgorithm = parameters["algorithm"] != nil
        hasQualityOfProtection = !protections.isEmpty
        isStale = parameters["stale"]?.lowercased() == "true"
        hashesUser = parameters["userhash"]?.lowercased() == "true"
        isUTF8 = parameters["charset"]?.lowercased() == "utf-8"
        domain = (parameters["domain"] ?? "").splitScalars { $0 == " " || $0 == "\t" }.map { String($0) }
    }
}

/// Computes the `Authorization` fields of one user for one Digest challenge, and counts the uses of its nonce.
struct DigestSession: Sendable {
    private let user: String
    /// The hash of user, realm and password, in place of the password.
    private let account: String
    private let clientNonce: String
    /// The first nonce of the session, which goes into the hash of a `-sess` algorithm.
    private let firstNonce: String
    private(set) var challenge: DigestChallenge
    private var count: UInt32 = 0

    /// `nil` if the user's name can't be sent in the forms that the challenge allows.
    init?(_ challenge: DigestChallenge, user: String, password: String, clientNonce: String = Self.makeClientNonce()) {
        guard user.isSendable || challenge.hashesUser || challenge.isUTF8 else { return nil }
        self.challenge = challenge
        self.user = user
        account = Self.account(user, password, challenge)
        self.clientNonce = clientNonce
        firstNonce = challenge.nonce
    }

    /// Replaces the nonce, and restarts its count (`nextnonce`; RFC 7616, section 3.5).
    mutating func take(nextNonce: String) {
        guard nextNonce.isSendable, nextNonce != challenge.nonce else { return }
        challenge.nonce = nextNonce
        count = 0
    }

    /// Returns the value of `Authorization` for a request.
    ///
    /// - Parameter target: the request target, as in the request line.
    mutating func authorization(method: String, target: String) -> String {
        count &+= 1
        let nonceCount = count.hexDigits
        let algorithm = challenge.algorithm
        let request = algorithm.digest("\(method):\(target)")
        let middle = challenge.hasQualityOfProtection ? "\(nonceCount):\(clientNonce):auth:" : ""
        let response = algorithm.digest("\(secret):\(challenge.nonce):\(middle)\(request)")
        var fields = userFields
        fields += ["realm=\(challenge.realm.quotedString)", "nonce=\(challenge.nonce.quotedString)", "uri=\(target.quotedString)"]
        if challenge.namesAlgorithm { fields.append("algorithm=\(algorithm.name)") }
        if challenge.hasQualityOfProtection { fields += ["qop=auth", "nc=\(nonceCount)"] }
        if challenge.hasQualityOfProtection || algorithm.isSession { fields.append("cnonce=\(clientNonce.quotedString)") }
        fields.append("response=\(response.quotedString)")
        if let opaque = challenge.opaque { fields.append("opaque=\(opaque.quotedString)") }
        return "Digest " + fields.joined(separator: ", ")
    }

    private static func account(_ user: String, _ password: String, _ challenge: DigestChallenge) -> String {
        challenge.algorithm.digest("\(user):\(challenge.realm):\(password)")
    }

    /// Whether the answers are those of a user with a password.
    func isOf(user: String, password: String) -> Bool {
        user.hasSameBytes(as: self.user) && Self.account(user, password, challenge) == account
    }

    /// Whether the answers are those of the same user, for the same realm.
    func isOfSameUser(as other: DigestSession) -> Bool {
        user.hasSameBytes(as: other.user) && challenge.realm.hasSameBytes(as: other.challenge.realm)
    }

    /// H(A1) (RFC 7616, section 3.4.2).
    private var secret: String {
        challenge.algorithm.isSession ? challenge.algorithm.digest("\(account):\(firstNonce):\(clientNonce)") : account
    }

    private var userFields: [String] {
        if challenge.hashesUser {
            return ["username=\(challenge.algorithm.digest("\(user):\(challenge.realm)").quotedString)", "userhash=true"]
        }
        // The extended notation (RFC 8187) is used only with charset=UTF-8 (RFC 7616, section 3.4).
        guard challenge.isUTF8, !user.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else { return ["username=\(user.quotedString)"] }
        return ["username*=UTF-8''\(user.extendedValue)"]
    }

    private static func makeClientNonce() -> String {
        // The generator is cryptographically secure on Linux and Apple's systems.
        var generator = SystemRandomNumberGenerator()
        return (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }.hexDigits
    }
}

extension String {
    /// Whether the text is valid in a header field: a line break would begin another one.
    fileprivate var isSendable: Bool { utf8.allSatisfy { ($0 >= 0x20 || $0 == 0x09) && $0 != 0x7F } }
}
