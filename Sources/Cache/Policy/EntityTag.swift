// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// An entity tag (RFC 9110, section 8.8.3).
package struct EntityTag: Sendable, Hashable {
    /// The tag as received, with its quotes and the mark of a weak one.
    package let text: String
    /// Whether the tag is weak: equal tags tell of equivalent representations, not of equal bytes.
    package var isWeak: Bool { text.hasBytePrefix("W/") }
    /// The tag without the mark of a weak one.
    private var opaque: Substring { isWeak ? text.dropFirstScalars(2) : text[...] }

    /// Creates a tag from a field's value; `nil` for an empty one. Tags without quotes, which some hosts send, are kept as they are.
    package init?(_ value: some StringProtocol) {
        let trimmed = Substring(value).trimmingBlanks
        guard !trimmed.isEmpty else { return nil }
        text = String(trimmed)
    }

    /// Compares two tags weakly (RFC 9110, section 8.8.3.2).
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaque.hasSameBytes(as: other.opaque) }

    /// Compares two tags strongly: weak ones are never equal.
    package func matchesStrongly(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && text.hasSameBytes(as: other.text) }

    /// The tags of `If-Match` or `If-None-Match`; `nil` for `*`.
    package static func list(_ value: String) -> [EntityTag]? {
        let members = FieldParser.members(of: value)
        guard members != ["*"] else { return nil }
        return members.compactMap { EntityTag($0) }
    }
}
