// SPDX-License-Identifier: Apache-2.0

/// An entity tag (RFC 9110, section 8.8.3).
package struct EntityTag: Sendable, Hashable {
    /// The tag as received, with its quotes and the mark of a weak one.
    package let text: String
    /// Whether the tag is weak: equal tags mean equivalent representations, not of equal bytes.
    package var isWeak: Bool { text.hasBytePrefix("W/") }

    /// Creates a tag from a field's value; `nil` for an empty one. Tags without quotes, which some hosts send, are kept as they are.
    package init?(_ value: Substring) {
        let trimmed = value.trimmingBlanks
        guard !trimmed.isEmpty else { return nil }
        text = String(trimmed)
    }

    package init?(_ value: String) { self.init(value[...]) }

    /// Compares two tags weakly (RFC 9110, section 8.8.3.2).
    package func matchesWeakly(_ other: EntityTag) -> Bool { text.matchesWeakly(other.text) }

    /// Compares two tags strongly: weak ones are never equal.
    package func matchesStrongly(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && text.hasSameBytes(as: other.text) }

    /// The tags of `If-Match` or `If-None-Match`; `nil` for `*`.
    package static func list(_ value: String) -> [EntityTag]? {
        let members = FieldParser.members(of: value)
        guard members != ["*"] else { return nil }
        return members.compactMap { EntityTag($0) }
    }
}

extension String {
    /// The entity tag without the mark of a weak one, as the weak comparison sees it (RFC 9110, section 8.8.3.2).
    package var opaqueTag: Substring { hasBytePrefix("W/") ? dropFirstScalars(2) : self[...] }

    /// Compares two entity tags weakly, by their bytes: `==` would take `"\u{212A}"`, the sign for kelvin, for `"K"`.
    package func matchesWeakly(_ other: String) -> Bool { opaqueTag.hasSameBytes(as: other.opaqueTag) }

    /// Whether this is an entity tag, strong or weak, that can be sent back (RFC 9110, section 8.8.3).
    package var isEntityTag: Bool { String(opaqueTag).isStrongEntityTag }

    /// Whether this is a strong entity tag, which is the same only for the same bytes. Only ASCII ones are accepted: others can't be sent
    /// back byte for byte.
    package var isStrongEntityTag: Bool {
        let bytes = utf8
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"") else { return false }
        return bytes.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }
    }
}
