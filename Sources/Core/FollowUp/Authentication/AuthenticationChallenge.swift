// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A challenge in a `WWW-Authenticate` field (RFC 9110, section 11.6.1).
///
/// Parses untrusted input, without knowing the connection, so that it can be fuzzed (`FuzzTests`, `challenge`).
struct AuthenticationChallenge: Sendable, Equatable {
    /// The scheme's name in lower case.
    let scheme: String
    /// The token68 that follows the scheme in place of parameters; `nil` without one.
    var token68: String?
    /// The parameters by lower-case name, unquoted; the first of repeated ones.
    var parameters: [String: String] = [:]

    init(scheme: String, token68: String? = nil, parameters: [String: String] = [:]) {
        self.scheme = scheme.lowercased()
        self.token68 = token68
        self.parameters = parameters
    }

    /// The largest number of challenges that are parsed, of all fields together: many times what servers send, and little enough that
    /// ranking them costs nothing. Further ones are ignored.
    static let limit = 64

    /// Parses the challenges of a response in order, at most ``limit``; each of the fields may hold several.
    static func challenges(in fields: some Sequence<String>) -> [AuthenticationChallenge] {
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
    private let bytes: [UInt8]
    private var position = 0
    private var challenges: [AuthenticationChallenge] = []
    /// Whether parameters belong to the last challenge; not after malformed input, where their challenge is unknown.
    private var isOpen = false

    init(_ field: String) {
        bytes = Array(field.utf8)
    }

    mutating func parse(atMost limit: Int) -> [AuthenticationChallenge] {
        // The last one's parameters are known only where the next one begins.
        while challenges.count <= limit, skipSeparators() { readElement() }
        return Array(challenges.prefix(limit))
    }

    /// Reads an element of the list: a parameter of the last challenge, or a scheme with its token68 or first parameter.
    private mutating func readElement() {
        guard let name = readToken() else { return skipMalformed() }
        let afterName = position
        skipBlanks()
        if position < bytes.count, bytes[position] == UInt8(ascii: "=") { return isOpen ? readParameter(name) : skipMalformed() }
        guard afterName < position || isAtElementEnd else { return skipMalformed() }
        challenges.append(AuthenticationChallenge(scheme: name))
        isOpen = true
        guard !isAtElementEnd else { return }
        readFirst()
    }

    /// Reads what follows a scheme: a token68, or the first parameter.
    private mutating func readFirst() {
        let start = position
        if let token = readToken68(), isAtElementEnd {
            challenges[challenges.count - 1].token68 = token
            isOpen = false
            return
        }
        position = start
        guard let name = readToken() else { return skipMalformed() }
        skipBlanks()
        readParameter(name)
    }

    private mutating func readParameter(_ name: String) {
        guard position < bytes.count, bytes[position] == UInt8(ascii: "=") else { return skipMalformed() }
        position += 1
        skipBlanks()
        guard let value = position < bytes.count && bytes[position] == quote ? readQuoted() : readToken() else { return skipMalformed() }
        skipBlanks()
        guard isAtElementEnd else { return skipMalformed() }
        let name = name.lowercased()
        let last = challenges.count - 1
        if challenges[last].parameters[name] == nil { challenges[last].parameters[name] = value }
    }

    // MARK: Tokens

    private var isAtElementEnd: Bool { position >= bytes.count || bytes[position] == UInt8(ascii: ",") }

    /// Skips commas and blanks; returns whether input is left.
    private mutating func skipSeparators() -> Bool {
        while position < bytes.count, isBlank(bytes[position]) || bytes[position] == UInt8(ascii: ",") { position += 1 }
        return position < bytes.count
    }

    private mutating func skipBlanks() {
        while position < bytes.count, isBlank(bytes[position]) { position += 1 }
    }

    /// Skips malformed input up to the next comma outside of quotes.
    private mutating func skipMalformed() {
        isOpen = false
        while !isAtElementEnd {
            if bytes[position] == quote { _ = readQuoted() } else { position += 1 }
        }
    }

    private mutating func readToken() -> String? { read(HTTPToken.isTokenCharacter) }

    private mutating func readToken68() -> String? {
        guard let token = read({ $0.isToken68Character }) else { return nil }
        let padding = bytes[position...].prefix { $0 == UInt8(ascii: "=") }.count
        position += padding
        let result = token + String(repeating: "=", count: padding)
        skipBlanks()
        return result
    }

    private mutating func read(_ isPart: (UInt8) -> Bool) -> String? {
        let part = bytes[position...].prefix(while: isPart)
        guard !part.isEmpty else { return nil }
        position = part.endIndex
        return String(decoding: part, as: UTF8.self)
    }

    /// Reads and unquotes a quoted string; `nil` if it is not terminated.
    private mutating func readQuoted() -> String? {
        var value: [UInt8] = []
        position += 1
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            if byte == quote { return String(decoding: value, as: UTF8.self) }
            if byte == UInt8(ascii: "\\"), position < bytes.count {
                value.append(bytes[position])
                position += 1
            } else {
                value.append(byte)
            }
        }
        return nil
    }

    private func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}

private let quote = UInt8(ascii: "\"")

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
