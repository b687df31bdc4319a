// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Parses field values that are lists (RFC 9110, section 5.6.1).
package enum FieldList {
    /// The members of a list, without surrounding whitespace and without empty ones; separators in quoted strings do not separate.
    package static func members(of value: String, separator: UInt8 = UInt8(ascii: ",")) -> [Substring] {
        var members: [Substring] = []
        let bytes = value.utf8
        var start = bytes.startIndex
        var index = start
        var isQuoted = false
        func add(_ end: String.Index) {
            let member = trimmed(value[start..<end])
            if !member.isEmpty { members.append(member) }
        }
        while index < bytes.endIndex {
            switch bytes[index] {
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: "\\") where isQuoted:
                let next = bytes.index(after: index)
                if next < bytes.endIndex { index = next }
            case separator where !isQuoted:
                add(index)
                start = bytes.index(after: index)
            default: break
            }
            index = bytes.index(after: index)
        }
        add(bytes.endIndex)
        return members
    }

    /// The members of all lines of a field.
    package static func members(of name: String, in headers: HTTPHeaders) -> [Substring] {
        headers.flatMap { $0.isNamed(name) ? members(of: $0.value) : [] }
    }

    /// Calls `body` with the name, in lower case, and the argument of each member of the form `name` or `name=argument`.
    ///
    /// Arguments in quotes are passed without them; whitespace around the equals sign is not allowed (RFC 9111, section 5.2) and becomes
    /// part of the name or the argument, so that neither is recognized.
    static func forEachParameter(of value: String, _ body: (_ name: String, _ argument: String?) -> Void) {
        for member in members(of: value) {
            guard let equals = member.utf8.firstIndex(of: UInt8(ascii: "=")) else {
                body(member.lowercased(), nil)
                continue
            }
            body(member[..<equals].lowercased(), unquoted(member[member.utf8.index(after: equals)...]))
        }
    }

    /// The content of a quoted string; other text as it is.
    private static func unquoted(_ text: Substring) -> String {
        let bytes = text.utf8
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"") else { return String(text) }
        let content = text.dropFirstScalars().dropLastScalars()
        guard content.utf8.contains(UInt8(ascii: "\\")) else { return String(content) }
        var result = ""
        var isEscaped = false
        for scalar in content.unicodeScalars {
            if scalar == "\\", !isEscaped {
                isEscaped = true
                continue
            }
            isEscaped = false
            result.unicodeScalars.append(scalar)
        }
        return result
    }

    /// The text without leading and trailing spaces and tabs.
    package static func trimmed(_ text: Substring) -> Substring {
        var bytes = text.utf8
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes = bytes.dropFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes = bytes.dropLast() }
        return Substring(bytes)
    }
}
