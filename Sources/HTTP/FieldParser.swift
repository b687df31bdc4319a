// SPDX-License-Identifier: Apache-2.0

/// Parses the values of header fields: tokens, quoted strings, parameters and lists (RFC 9110, section 5.6).
///
/// A cursor over bytes, so that a combining mark after a delimiter does not merge with it into one `Character`. All delimiters are ASCII,
/// so that what is between two of them is text. Returns slices of the value where nothing has to be unescaped. A field's own rules are
/// those of its parser, which calls this one.
package struct FieldParser: Sendable {
    /// What has not been consumed yet.
    package private(set) var rest: Substring.UTF8View

    package init(_ value: Substring) { rest = value.utf8 }

    package init(_ value: String) { rest = value[...].utf8 }

    /// The next byte; `nil` at the end.
    package var next: UInt8? { rest.first }

    package var isAtEnd: Bool { rest.isEmpty }

    // MARK: Bytes

    /// Consumes a delimiter, if it is next.
    package mutating func skip(_ delimiter: Unicode.Scalar) -> Bool {
        guard let next = rest.first, Unicode.Scalar(next) == delimiter else { return false }
        rest.removeFirst()
        return true
    }

    /// Consumes a byte, which may be a part of a scalar; `nil` at the end.
    package mutating func takeByte() -> UInt8? { rest.popFirst() }

    /// Consumes spaces and tabs; returns whether there were any.
    @discardableResult
    package mutating func skipBlanks() -> Bool { !take { $0.isBlank }.isEmpty }

    /// Consumes the bytes that satisfy a condition, which must not separate the bytes of a scalar.
    @discardableResult
    package mutating func take(while isPart: (UInt8) -> Bool) -> Substring {
        let part = rest.prefix(while: isPart)
        rest = rest[part.endIndex...]
        return Substring(part)
    }

    /// Consumes the text up to a delimiter outside of quoted strings, or up to the end.
    @discardableResult
    package mutating func take(upTo delimiter: Unicode.Scalar) -> Substring {
        let (bytes, end) = (rest, UInt8(truncatingIfNeeded: delimiter.value))
        var index = bytes.startIndex
        var isQuoted = false
        while index < bytes.endIndex {
            let byte = bytes[index]
            if byte == end, !isQuoted { break }
            if byte == quote { isQuoted.toggle() }
            index = bytes.index(after: index)
            if byte == backslash, isQuoted, index < bytes.endIndex { index = bytes.index(after: index) }
        }
        rest = bytes[index...]
        return Substring(bytes[..<index])
    }

    // MARK: Tokens and quoted strings

    /// Consumes a token; `nil` if none is next.
    package mutating func takeToken() -> Substring? {
        let token = take(while: HTTPToken.isTokenCharacter)
        return token.isEmpty ? nil : token
    }

    /// Consumes a quoted string, and returns its content without escapes; `nil` if none is next, or if it is not closed.
    ///
    /// - Parameter mayBeOpen: whether one that is not closed extends to the end.
    package mutating func takeQuotedString(mayBeOpen: Bool = false) -> String? {
        guard skip("\"") else { return nil }
        var content = ""
        while true {
            content += take { $0 != quote && $0 != backslash }
            if skip("\"") { return content }
            guard skip("\\"), let escaped = Substring(rest).unicodeScalars.first else { return mayBeOpen ? content : nil }
            content.unicodeScalars.append(escaped)
            rest = rest.dropFirst(UTF8.width(escaped))
        }
    }

    // MARK: Parameters

    /// Consumes a parameter by the grammar, a token that has an argument or none; `nil` if it is malformed.
    package mutating func takeParameter() -> (name: Substring, argument: String?)? {
        guard let name = takeToken() else { return nil }
        skipBlanks()
        guard next == UInt8(ascii: "=") else { return (name, nil) }
        return takeArgument().map { (name, $0) }
    }

    /// Consumes an equals sign and a token or quoted string, with blanks around them; `nil` if they are malformed.
    package mutating func takeArgument() -> String? {
        guard skip("=") else { return nil }
        skipBlanks()
        guard let argument = next == quote ? takeQuotedString() : takeToken().map(String.init) else { return nil }
        skipBlanks()
        return argument
    }

    /// Consumes a parameter in which anything but delimiters is accepted, and a quoted string need not be closed. What follows a quoted
    /// string is not consumed.
    package mutating func takeLooseParameter(endingAt isDelimiter: (UInt8) -> Bool) -> (name: Substring, argument: String?) {
        let name = take { $0 != UInt8(ascii: "=") && !isDelimiter($0) }.trimmingBlanks
        skipBlanks()
        guard skip("=") else { return (name, nil) }
        skipBlanks()
        if next == quote { return (name, takeQuotedString(mayBeOpen: true)) }
        return (name, String(take { !isDelimiter($0) }.trimmingBlanks))
    }

    /// The name and the argument of a list's member, for fields that allow no whitespace around the equals sign (RFC 9111, section 5.2): it
    /// becomes part of the name or the argument, so that neither is recognized. Only an argument that is a quoted string is unquoted.
    package static func pair(_ member: Substring) -> (name: Substring, argument: String?) {
        guard let equals = member.utf8.firstIndex(of: UInt8(ascii: "=")) else { return (member, nil) }
        let argument = member[member.utf8.index(after: equals)...]
        var parser = FieldParser(argument)
        guard let content = parser.takeQuotedString(), parser.isAtEnd else { return (member[..<equals], String(argument)) }
        return (member[..<equals], content)
    }

    // MARK: Lists

    /// The members of a list (RFC 9110, section 5.6.1), without surrounding blanks and without empty ones.
    package static func members(of value: Substring, separator: Unicode.Scalar = ",") -> [Substring] {
        var members: [Substring] = []
        forEachMember(of: value, separator: separator) { members.append($0) }
        return members
    }

    package static func members(of value: String) -> [Substring] { members(of: value[...]) }

    /// Calls `body` with each member of a list, as ``members(of:separator:)`` returns them.
    package static func forEachMember(of value: Substring, separator: Unicode.Scalar = ",", _ body: (Substring) -> Void) {
        var parser = FieldParser(value)
        repeat {
            let member = parser.take(upTo: separator).trimmingBlanks
            if !member.isEmpty { body(member) }
        } while parser.skip(separator)
    }
}

private let quote = UInt8(ascii: "\"")
private let backslash = UInt8(ascii: "\\")

extension HTTPHeaders {
    /// The members of all lines of a field that is a list.
    package func members(of name: String) -> [Substring] {
        flatMap { $0.isNamed(name) ? FieldParser.members(of: $0.value) : [] }
    }
}

extension StringProtocol where SubSequence == Substring {
    /// The text without leading and trailing spaces and tabs.
    @inlinable package var trimmingBlanks: Substring {
        var bytes = self[...].utf8
        while bytes.first?.isBlank == true { bytes.removeFirst() }
        while bytes.last?.isBlank == true { bytes.removeLast() }
        return Substring(bytes)
    }
}

extension UInt8 {
    /// Whether the byte is a space or a tab.
    @inlinable @inline(__always)
    package var isBlank: Bool { self == 0x20 || self == 0x09 }

    /// Whether the byte is white space of ASCII: a blank, a line break, a vertical tab or a form feed.
    package var isSpace: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}
