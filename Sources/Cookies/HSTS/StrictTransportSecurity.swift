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
        var names: Set<String> = []
        var parser = FieldParser(text)
        repeat {
            parser.skipBlanks()
            if parser.isAtEnd || parser.next == UInt8(ascii: ";") { continue }
            guard let (token, value) = parser.takeParameter() else { return nil }
            let name = token.lowercased()
            guard names.insert(name).inserted else { return nil }
            switch name {
            case "max-age":
                guard let value, value.isAllDigits else { return nil }
                maximumAge = min(Int(value) ?? Self.longestAge, Self.longestAge)
            case "includesubdomains":
                guard value == nil else { return nil }
                includesSubdomains = true
            default: break
            }
        } while parser.skip(";")
        guard parser.isAtEnd, names.contains("max-age") else { return nil }
    }
}
