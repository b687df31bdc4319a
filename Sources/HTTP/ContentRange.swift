// SPDX-License-Identifier: Apache-2.0

/// A `Content-Range` in bytes (RFC 9110, section 14.4).
package enum ContentRange: Sendable, Hashable {
    case part(first: Int64, last: Int64, total: Int64?)
    /// The range can't be satisfied in a body of this length.
    case none(total: Int64)

    /// Parses a field value; `nil` if it is malformed, has another unit, or contradicts itself. Strict, because the bytes of a response are
    /// put where it says: there are no blanks within, and several lines are malformed.
    package init?(_ text: String) {
        let words = text.splitScalars(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, words[0].equalsIgnoringASCIICase("bytes") else { return nil }
        let parts = words[1].splitScalars(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let total = Self.number(parts[1])
        guard total != nil || parts[1] == "*" else { return nil }
        if parts[0] == "*" {
            guard let total else { return nil }
            self = .none(total: total)
            return
        }
        let ends = parts[0].splitScalars(separator: "-", omittingEmptySubsequences: false).map { Self.number($0) }
        guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last, last < total ?? .max else { return nil }
        self = .part(first: first, last: last, total: total)
    }

    private static func number(_ text: Substring) -> Int64? {
        text.isAllDigits ? Int64(text) : nil
    }
}
