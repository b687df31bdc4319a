// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A challenge of a server as it stands in `WWW-Authenticate` (RFC 9110, section 11.6.1).
struct AuthenticationChallenge: Sendable, Equatable {
    /// The scheme's name in lower case.
    let scheme: String
    /// What follows the scheme instead of parameters; `nil` where there are parameters, or nothing.
    var token68: String?
    /// The parameters by their names in lower case, quotes and escapes undone; of a repeated one, the first.
    var parameters: [String: String] = [:]

    init(scheme: String, token68: String? = nil, parameters: [String: String] = [:]) {
        self.scheme = scheme.lowercased()
        self.token68 = token68
        self.parameters = parameters
    }

    /// The challenges of a response, in their order: one field may hold several, and there may be several fields.
    static func challenges(in fields: some Sequence<String>) -> [AuthenticationChallenge] {
        fields.flatMap { field in
            var parser = ChallengeParser(field)
            return parser.parse()
        }
    }
}

/// Reads one field. Servers may send anything: what can't be read is passed over up to the next comma, and ends the challenge it stood in.
private struct ChallengeParser {
    private let bytes: [UInt8]
    private var position = 0
    private var challenges: [AuthenticationChallenge] = []
    /// Whether parameters belong to the last challenge; not behind nonsense, where nobody knows whose they are.
    private var isOpen = false

    init(_ field: String) {
        bytes = Array(field.utf8)
    }

    mutating func parse() -> [AuthenticationChallenge] {
        while skipSeparators() { readElement() }
        return challenges
    }

    /// An element of the list: a parameter of the challenge before, or a scheme with the first of what belongs to it.
    private mutating func readElement() {
        guard let name = readToken() else { return skipNonsense() }
        let afterName = position
        skipBlanks()
        if position < bytes.count, bytes[position] == UInt8(ascii: "=") { return isOpen ? readParameter(name) : skipNonsense() }
        guard afterName < position || isAtElementEnd else { return skipNonsense() }
        challenges.append(AuthenticationChallenge(scheme: name))
        isOpen = true
        guard !isAtElementEnd else { return }
        readFirst()
    }

    /// What follows a scheme: a token68, or the first parameter.
    private mutating func readFirst() {
        let start = position
        if let token = readToken68(), isAtElementEnd {
            challenges[challenges.count - 1].token68 = token
            isOpen = false
            return
        }
        position = start
        guard let name = readToken() else { return skipNonsense() }
        skipBlanks()
        readParameter(name)
    }

    private mutating func readParameter(_ name: String) {
        guard position < bytes.count, bytes[position] == UInt8(ascii: "=") else { return skipNonsense() }
        position += 1
        skipBlanks()
        guard let value = position < bytes.count && bytes[position] == quote ? readQuoted() : readToken() else { return skipNonsense() }
        skipBlanks()
        guard isAtElementEnd else { return skipNonsense() }
        let name = name.lowercased()
        let last = challenges.count - 1
        if challenges[last].parameters[name] == nil { challenges[last].parameters[name] = value }
    }

    // MARK: Pieces

    private var isAtElementEnd: Bool { position >= bytes.count || bytes[position] == UInt8(ascii: ",") }

    /// Whether anything is left behind commas and white space.
    private mutating func skipSeparators() -> Bool {
        while position < bytes.count, isBlank(bytes[position]) || bytes[position] == UInt8(ascii: ",") { position += 1 }
        return position < bytes.count
    }

    private mutating func skipBlanks() {
        while position < bytes.count, isBlank(bytes[position]) { position += 1 }
    }

    /// To the next comma that stands in no quotes.
    private mutating func skipNonsense() {
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

    /// A quoted string without its quotes and escapes; `nil` when it has no end.
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
    /// RFC 9110, section 11.2, but for the padding.
    fileprivate var isToken68Character: Bool {
        HTTPToken.isTokenCharacter(self) && !"!#$%&'*^`|".utf8.contains(self) || self == UInt8(ascii: "/")
    }
}
