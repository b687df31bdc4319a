// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// The directives of `Cache-Control` fields (RFC 9111, section 5.2). Fuzzed (`FuzzTests`, `cache-control`).
struct CacheDirectives {
    /// The seconds to which larger numbers are clamped (RFC 9111, section 1.2.2).
    private static let longest = 2_147_483_648.0

    private var values: [String: String] = [:]

    /// Parses the directives of a request or response; without `Cache-Control`, `Pragma: no-cache` counts as `no-cache`.
    init(_ headers: HTTPHeaders) {
        guard let field = headers.value(for: "Cache-Control") else {
            if headers.value(for: "Pragma")?.lowercased().contains("no-cache") == true { values["no-cache"] = "" }
            return
        }
        for directive in Self.list(field) {
            let parts = directive.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = parts[0].trimmingCharacters(in: .whitespaces).lowercased()
            let value = parts.count > 1 ? parts[1].trimmingCharacters(in: CharacterSet(charactersIn: " \t\"")) : ""
            // The first of repeated directives counts (RFC 9111, section 4.2.1).
            if values[name] == nil { values[name] = value }
        }
    }

    /// Whether a directive is present.
    func has(_ name: String) -> Bool { values[name] != nil }

    /// The seconds of a directive's value; `nil` without the directive. An invalid value counts as 0, so that the response counts as stale.
    ///
    /// - Parameter bare: the seconds of a directive without a value.
    func seconds(_ name: String, bare: TimeInterval = 0) -> TimeInterval? {
        guard let value = values[name] else { return nil }
        guard !value.isEmpty else { return bare }
        guard value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return 0 }
        return min(Double(value) ?? Self.longest, Self.longest)
    }

    /// The members of a comma-separated list; commas in quoted strings do not separate.
    static func list(_ field: String) -> [String] {
        var members = [""]
        var isQuoted = false
        for scalar in field.unicodeScalars {
            if scalar == "\"" { isQuoted.toggle() }
            if scalar == ",", !isQuoted { members.append("") } else { members[members.count - 1].unicodeScalars.append(scalar) }
        }
        return members.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }
}
