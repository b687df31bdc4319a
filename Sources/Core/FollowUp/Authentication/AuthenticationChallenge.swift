// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A challenge in a `WWW-Authenticate` field (RFC 9110, section 11.6.1).
///
/// Parses untrusted input, without knowing the connection, so that it can be fuzzed (`FuzzTests`, `challenge`).
package struct AuthenticationChallenge: Sendable, Equatable {
    /// The scheme's name in lower case.
    package let scheme: String
    /// The token68 that follows the scheme in place of parameters; `nil` without one.
    package var token68: String?
    /// The parameters by lower-case name, unquoted; the first of repeated ones.
    package var parameters: [String: String] = [:]

    init(scheme: String, token68: String? = nil, parameters: [String: String] = [:]) {
        self.scheme = scheme.lowercased()
        self.token68 = token68
        self.parameters = parameters
    }

    /// The largest number of challenges that are parsed, of all fields together: many times what servers send, and little enough that
    /// ranking them costs nothing. Further ones are ignored.
    static let limit = 64

    /// Parses the challenges of a response in order, at most ``limit``; each of the fields may hold several.
    package static func challenges(in fields: some Sequence<String>) -> [AuthenticationChallenge] {
        var challenges: [AuthenticationChallenge] = []
        for field in fields where challenges.count < limit {
            var parser = ChallengeParser(field)
            challenges += parser.parse(atMost: limit - challenges.count)
        }
        return challenges
    }
}

/// Parses one field. Malformed input is skipped up to the next comma, and ends the challenge that contains it.
private struct ChallengeParser {
    private var parser: FieldParser
    private var challenges: [AuthenticationChallenge] = []
    /// Whether parameters belong to the last challenge; not after malformed input, where their challenge is unknown.
    private var isOpen = false

    init(_ field: String) {
        parser = FieldParser(field)
    }

    mutating func parse(atMost limit: Int) -> [AuthenticationChallenge] {
        // The last one's parameters are known only where the next one begins.
        while challenges.count <= limit, skipSeparators() { readElement() }
        return Array(challenges.prefix(limit))
    }

    /// Reads an element of the list: a parameter of the last challenge, or a scheme with its token68 or first parameter.
    private mutating func readElement() {
        guard let name = parser.takeToken() else { return skipMalformed() }
        let isSeparated = parser.skipBlanks()
        if parser.next == UInt8(ascii: "=") { return isOpen ? readParameter(name) : skipMalformed() }
        guard isSeparated || isAtElementEnd else { return skipMalformed() }
        challenges.append(AuthenticationChallenge(scheme: String(name)))
        isOpen = true
        guard !isAtElementEnd else { return }
        readFirst()
    }

    /// Reads what follows a scheme: a token68, or the first parameter.
    private mutating func readFirst() {
        let start = parser
        let token = parser.take(while: \.isToken68Character)
        let padding = parser.take { $0 == UInt8(ascii: "=") }
        parser.skipBlanks()
        if !token.isEmpty, isAtElementEnd {
            challenges[challenges.count - 1].token68 = String(token + padding)
            isOpen = false
            return
        }
        parser = start
        guard let name = parser.takeToken() else { return skipMalformed() }
        parser.skipBlanks()
        readParameter(name)
    }

    private mutating func readParameter(_ name: Substring) {
        guard let value = parser.takeArgument(), isAtElementEnd else { return skipMalformed() }
        let name = name.lowercased()
        let last = challenges.count - 1
        if challenges[last].parameters[name] == nil { challenges[last].parameters[name] = value }
    }

    private var isAtElementEnd: Bool { parser.isAtEnd || parser.next == UInt8(ascii: ",") }

    /// Skips commas and blanks; returns whether input is left.
    private mutating func skipSeparators() -> Bool {
        parser.take { $0.isBlank || $0 == UInt8(ascii: ",") }
        return !parser.isAtEnd
    }

    /// Skips malformed input up to the next comma outside of quotes.
    private mutating func skipMalformed() {
        isOpen = false
        parser.take(upTo: ",")
    }
}

extension UInt8 {
    /// Whether the byte may occur in a token68 before its padding (RFC 9110, section 11.2).
    fileprivate var isToken68Character: Bool {
        HTTPToken.isTokenCharacter(self) && !"!#$%&'*^`|".utf8.contains(self) || self == UInt8(ascii: "/")
    }
}

/// The sender that Foundation's challenges require. Does nothing, because closures answer challenges with a disposition.
final class ChallengeSender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
