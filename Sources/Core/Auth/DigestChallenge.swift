// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What a server says about Digest authentication (RFC 7616, section 3.3).
struct DigestChallenge: Sendable, Equatable {
    /// How the message digest is made.
    struct Algorithm: Sendable, Equatable {
        enum Hash: Int, Sendable, Comparable {
            case md5
            case sha256

            /// Whether `lhs` is the weaker one.
            static func < (lhs: Hash, rhs: Hash) -> Bool { lhs.rawValue < rhs.rawValue }
        }

        let hash: Hash
        /// Whether the digest of name and password is made once for all requests with a nonce.
        let isSession: Bool
        /// As the server spells it.
        let name: String

        /// `nil` for one we don't know.
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
    /// Whether the server named the algorithm; without that it is MD5, and the answer does not name it either.
    let namesAlgorithm: Bool
    /// Whether the server knows `qop=auth`; if not, it wants the digest of RFC 2069.
    let hasQualityOfProtection: Bool
    /// Whether the server forgot the nonce, and would take the same credentials with this one.
    let isStale: Bool
    /// Whether the server wants the digest of the name instead of the name.
    let hashesUser: Bool
    /// Whether the server says that names are in UTF-8: then it also knows `username*`.
    let isUTF8: Bool

    /// `nil` for a challenge that can't be answered: without a nonce, with an algorithm or protection that we don't know, or with a text
    /// that can't be sent back.
    init?(_ challenge: AuthenticationChallenge) {
        let parameters = challenge.parameters
        guard challenge.scheme == "digest", let nonce = parameters["nonce"] else { return nil }
        guard let algorithm = Algorithm(parameters["algorithm"] ?? "MD5") else { return nil }
        let texts = [nonce, parameters["realm"], parameters["opaque"]].compactMap { $0 }
        guard texts.allSatisfy({ $0.isSendable }) else { return nil }
        let protections = (parameters["qop"] ?? "").lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }
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
    }
}

/// Answers of one name and password to one digest challenge: counts how often its nonce was used.
struct DigestSession: Sendable {
    private let user: String
    private let password: String
    private let clientNonce: String
    /// The nonce with which the session began, on which the digest of a `-sess` algorithm rests.
    private let firstNonce: String
    private(set) var challenge: DigestChallenge
    private var count: UInt32 = 0

    /// `nil` when the challenge can't be answered by a user of that name.
    init?(_ challenge: DigestChallenge, user: String, password: String, clientNonce: String = Self.makeClientNonce()) {
        guard user.isSendable || challenge.hashesUser || challenge.isUTF8 else { return nil }
        self.challenge = challenge
        self.user = user
        self.password = password
        self.clientNonce = clientNonce
        firstNonce = challenge.nonce
    }

    /// The server wants another nonce from now on.
    mutating func take(nextNonce: String) {
        guard nextNonce.isSendable, nextNonce != challenge.nonce else { return }
        challenge.nonce = nextNonce
        count = 0
    }

    /// The value of `Authorization` for a request.
    ///
    /// - Parameter target: the path with the query, as it stands in the request's first line.
    mutating func authorization(method: String, target: String) -> String {
        count &+= 1
        let counter = "0000000" + String(count, radix: 16)
        let nonceCount = String(counter.suffix(8))
        let algorithm = challenge.algorithm
        let request = algorithm.digest("\(method):\(target)")
        let middle = challenge.hasQualityOfProtection ? "\(nonceCount):\(clientNonce):auth:" : ""
        let response = algorithm.digest("\(secret):\(challenge.nonce):\(middle)\(request)")
        var fields = userFields + ["realm=\(challenge.realm.quoted)", "nonce=\(challenge.nonce.quoted)", "uri=\(target.quoted)"]
        if challenge.namesAlgorithm { fields.append("algorithm=\(algorithm.name)") }
        if challenge.hasQualityOfProtection { fields += ["qop=auth", "nc=\(nonceCount)"] }
        if challenge.hasQualityOfProtection || algorithm.isSession { fields.append("cnonce=\(clientNonce.quoted)") }
        fields.append("response=\(response.quoted)")
        if let opaque = challenge.opaque { fields.append("opaque=\(opaque.quoted)") }
        return "Digest " + fields.joined(separator: ", ")
    }

    /// What the RFC calls H(A1).
    private var secret: String {
        let algorithm = challenge.algorithm
        let digest = algorithm.digest("\(user):\(challenge.realm):\(password)")
        return algorithm.isSession ? algorithm.digest("\(digest):\(firstNonce):\(clientNonce)") : digest
    }

    private var userFields: [String] {
        if challenge.hashesUser {
            return ["username=\(challenge.algorithm.digest("\(user):\(challenge.realm)").quoted)", "userhash=true"]
        }
        // Only a server that speaks of UTF-8 knows the extended notation (RFC 8187).
        guard challenge.isUTF8, !user.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else { return ["username=\(user.quoted)"] }
        return ["username*=UTF-8''\(user.extendedValue)"]
    }

    private static func makeClientNonce() -> String {
        // The system's source of random bytes, which is made for keys, too.
        var generator = SystemRandomNumberGenerator()
        return (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }.hexDigits
    }
}

extension String {
    /// Whether a header field can hold the text: a line break would make it two.
    fileprivate var isSendable: Bool { utf8.allSatisfy { ($0 >= 0x20 || $0 == 0x09) && $0 != 0x7F } }

    /// As a quoted string (RFC 9110, section 5.6.4).
    fileprivate var quoted: String {
        "\"" + replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    /// Percent-encoded as an extended parameter wants it (RFC 8187, section 3.2.1).
    fileprivate var extendedValue: String {
        utf8.map { byte in
            let isPlain = (byte < 0x7F && Character(UnicodeScalar(byte)).isASCIIAlphanumeric) || "!#$&+-.^_`|~".utf8.contains(byte)
            return isPlain ? String(UnicodeScalar(byte)) : "%" + [byte].hexDigits.uppercased()
        }.joined()
    }
}

extension Character {
    fileprivate var isASCIIAlphanumeric: Bool { isASCII && (isLetter || isNumber) }
}
