// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A parsed `Strict-Transport-Security` field (RFC 6797, section 6.1). Parses untrusted input, and is fuzzed (`FuzzTests`,
/// `strict-transport-security`).
package struct StrictTransportSecurity: Sendable, Equatable {
    /// The longest time that is kept, in seconds: 100 years, so that dates do not overflow.
    private static let longestAge = 100 * 365 * 86_400

    /// In seconds; 0 has the host forgotten.
    package private(set) var maximumAge = 0
    package private(set) var includesSubdomains = false

    /// Parses a field value; `nil` without `max-age`, with a directive that is repeated or has no valid value, or with broken syntax: all of
    /// it is ignored then.
    package init?(_ text: String) {
        guard let directives = Self.directives(Array(text.utf8)) else { return nil }
        var names: Set<String> = []
        for directive in directives {
            guard names.insert(directive.name).inserted else { return nil }
            switch directive.name {
            case "max-age":
                guard let value = directive.value, value.isAllDigits else { return nil }
                maximumAge = min(Int(value) ?? Self.longestAge, Self.longestAge)
            case "includesubdomains":
                guard directive.value == nil else { return nil }
                includesSubdomains = true
            default: break
            }
        }
        guard names.contains("max-age") else { return nil }
    }

    /// The directives, with lowercased names; `nil` for broken syntax. Empty ones are skipped.
    private static func directives(_ bytes: [UInt8]) -> [(name: String, value: String?)]? {
        var found: [(name: String, value: String?)] = []
        var rest = bytes[...]
        while true {
            skipBlanks(&rest)
            if !rest.isEmpty, rest.first != UInt8(ascii: ";") {
                guard let name = token(&rest) else { return nil }
                skipBlanks(&rest)
                var value: String?
                if rest.first == UInt8(ascii: "=") {
                    rest.removeFirst()
                    skipBlanks(&rest)
                    value = rest.first == UInt8(ascii: "\"") ? quoted(&rest) : token(&rest)
                    guard value != nil else { return nil }
                    skipBlanks(&rest)
                }
                found.append((name.lowercased(), value))
            }
            guard let next = rest.popFirst() else { return found }
            guard next == UInt8(ascii: ";") else { return nil }
        }
    }

    private static func skipBlanks(_ rest: inout ArraySlice<UInt8>) {
        rest = rest.drop { $0 == 0x20 || $0 == 0x09 }
    }

    private static func token(_ rest: inout ArraySlice<UInt8>) -> String? {
        let token = rest.prefix { $0 > 0x20 && $0 < 0x7F && !"()<>@,;:\\\"/[]?={}".utf8.contains($0) }
        rest = rest.dropFirst(token.count)
        return token.isEmpty ? nil : String(decoding: token, as: UTF8.self)
    }

    private static func quoted(_ rest: inout ArraySlice<UInt8>) -> String? {
        var bytes: [UInt8] = []
        rest.removeFirst()
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: bytes, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = rest.popFirst() else { return nil }
                bytes.append(escaped)
            default: bytes.append(byte)
            }
        }
        return nil
    }
}
