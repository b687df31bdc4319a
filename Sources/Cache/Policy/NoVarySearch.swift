// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Which parts of a URL's query do not distinguish responses: the field `No-Vary-Search` (draft-ietf-httpbis-no-vary-search-10).
///
/// A structured dictionary (RFC 9651): `key-order`, a boolean, and one of `params` and `except`, lists of strings. Other keys are ignored. A
/// field that does not parse, or that breaks these rules, counts as absent, so that all of the query distinguishes.
package struct NoVarySearch: Sendable, Hashable {
    /// The parameters that do not distinguish. Names are bytes: no Unicode equivalence applies (section 5.1).
    private enum Ignored: Hashable {
        case only(Set<[UInt8]>)
        case allExcept(Set<[UInt8]>)
    }

    private struct Pair {
        let key: [UInt8]
        let value: [UInt8]
    }

    private var ignoresOrder = false
    private var ignored = Ignored.only([])

    /// Parses the field's value, all lines as one list; `nil` if it is invalid, or changes nothing.
    package init?(_ text: String) {
        guard let members = try? StructuredFields.dictionary(from: text) else { return nil }
        var isLimited = false
        for member in members {
            switch (member.key, member.value) {
            case ("key-order", .item(let item)):
                guard case .boolean(let flag) = item.value else { return nil }
                ignoresOrder = flag
            case ("params", .innerList(let list)) where !isLimited, ("except", .innerList(let list)) where !isLimited:
                guard let names = Self.names(list) else { return nil }
                isLimited = true
                ignored = member.key == "params" ? .only(names) : .allExcept(names)
            // Another type, or both lists.
            case ("key-order", _), ("params", _), ("except", _): return nil
            default: break
            }
        }
        guard ignoresOrder || ignored != .only([]) else { return nil }
    }

    /// The longest field that is read, in bytes.
    private static let longest = 8 << 10

    /// Parses the field of a response; `nil` without a valid one that changes anything.
    package init?(_ headers: HTTPHeaders) {
        guard let text = headers.value(for: "No-Vary-Search"), text.utf8.count <= Self.longest else { return nil }
        self.init(text)
    }

    /// Whether two URLs without fragments differ in nothing that distinguishes responses (section 5).
    package func areEquivalent(_ first: String, _ second: String) -> Bool {
        normalized(first).utf8.elementsEqual(normalized(second).utf8)
    }

    /// The URL without what does not distinguish: the same bytes for equivalent URLs, and for no others.
    package func normalized(_ url: String) -> String {
        let path = Self.path(of: url)
        var pairs = pairs(url.utf8.dropFirst(path.utf8.count + 1))
        // Values of one key keep their order.
        if ignoresOrder {
            let sorted = pairs.enumerated().sorted {
                $0.element.key == $1.element.key
                    ? $0.offset < $1.offset : $0.element.key.lexicographicallyPrecedes($1.element.key)
            }
            pairs = sorted.map(\.element)
        }
        // Lengths keep keys and values apart that contain separators.
        var bytes = Array(path.utf8) + [UInt8(ascii: "?")]
        for pair in pairs {
            bytes += "\(pair.key.count):".utf8
            bytes += pair.key
            bytes += "=\(pair.value.count):".utf8
            bytes += pair.value
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The URL without its query.
    package static func path(of url: String) -> String {
        guard let mark = url.utf8.firstIndex(of: UInt8(ascii: "?")) else { return url }
        return String(url[..<mark])
    }

    /// The rule as text: the same for equal rules.
    package var canonical: String {
        let (kind, names) =
            switch ignored {
            case .only(let names): ("only", names)
            case .allExcept(let names): ("except", names)
            }
        let list = names.map { "\($0.count):" + String(decoding: $0, as: UTF8.self) }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        return (ignoresOrder ? "any-order " : "") + kind + " " + list.joined()
    }

    /// The parameters of a query that distinguish.
    private func pairs(_ query: some Collection<UInt8>) -> [Pair] {
        query.split(separator: UInt8(ascii: "&")).compactMap { pair in
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let key = Self.decoded(parts[0])
            switch ignored {
            case .only(let names): if names.contains(key) { return nil }
            case .allExcept(let names): if !names.contains(key) { return nil }
            }
            return Pair(key: key, value: parts.count > 1 ? Self.decoded(parts[1]) : [])
        }
    }

    /// The names of a list; `nil` if it has another type than strings.
    private static func names(_ list: StructuredFields.InnerList) -> Set<[UInt8]>? {
        var names: Set<[UInt8]> = []
        for item in list.items {
            guard case .string(let name) = item.value else { return nil }
            names.insert(decoded(name.utf8))
        }
        return names
    }

    /// A key or value as `application/x-www-form-urlencoded` means it, in valid UTF-8.
    private static func decoded(_ text: some Collection<UInt8>) -> [UInt8] {
        Array(String(decoding: text.formDecoded, as: UTF8.self).utf8)
    }
}
