// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The parts of a URL that are signed.
struct SigningTarget {
    /// The value of `Host`: as it is written in the URL, without user name and password and the scheme's default port.
    var host: String
    private let scheme: String
    private let path: String
    /// The items of the query in their order, encoded.
    private var items: [(name: String, value: String)]

    init(_ url: String) throws(AWSSigningError) {
        guard let parts = URLParts(url) else { throw .invalidURL(url) }
        (scheme, host, path) = (parts.scheme, parts.host, parts.path)
        items = (parts.query ?? "").utf8.split(separator: UInt8(ascii: "&")).map { item in
            let name = item.prefix { $0 != UInt8(ascii: "=") }
            return (Self.encoded(name), Self.encoded(item[name.endIndex...].dropFirst()))
        }
    }

    /// The URL, without user name, password and fragment.
    var url: String {
        let query = items.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
        return "\(scheme)://\(host)\(path)\(query.isEmpty ? "" : "?")\(query)"
    }

    /// Puts an item at the end of the query, in place of those of that name; `nil` removes them.
    mutating func setItem(_ name: String, _ value: String?) {
        items.removeAll { $0.name.equalsIgnoringASCIICase(name) }
        if let value { items.append((name, Self.encoded(Array(value.utf8), keeping: []))) }
    }

    // MARK: Canonical form

    /// The items in the order of the bytes of name and value, as they are encoded.
    var canonicalQuery: String {
        let sorted = items.sorted { first, second in
            first.name.hasSameBytes(as: second.name)
                ? first.value.utf8.lexicographicallyPrecedes(second.value.utf8)
                : first.name.utf8.lexicographicallyPrecedes(second.name.utf8)
        }
        return sorted.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    }

    func path(by rule: AWSSignatureV4.PathRule) -> String {
        let segments = path.splitScalars(separator: "/", omittingEmptySubsequences: rule == .normalized)
        switch rule {
        case .once:
            // Segment by segment, so that an escaped slash stays one.
            return segments.map { Self.encoded($0.utf8.percentDecoded, keeping: []) }.joined(separator: "/")
        case .normalized:
            var result: [Substring] = []
            for segment in segments where segment != "." {
                if segment == ".." { _ = result.popLast() } else { result.append(segment) }
            }
            let end = path.hasByteSuffix("/") && !result.isEmpty ? "/" : ""
            return Self.encoded(Array("/\(result.joined(separator: "/"))\(end)".utf8), keeping: "/".utf8)
        }
    }

    /// A name or value of the query, decoded as a form, and encoded.
    private static func encoded(_ part: Substring.UTF8View) -> String {
        encoded(part.formDecoded, keeping: [])
    }

    /// Bytes percent-encoded but for the unreserved characters and others.
    private static func encoded(_ bytes: [UInt8], keeping others: some Collection<UInt8>) -> String {
        String(escaping: bytes) { URLHost.isUnreserved(bytes[$0]) || others.contains(bytes[$0]) }
    }
}

/// Header fields as they are signed: in the order of their names in lower case, the values of one name joined by commas, without blanks at
/// the ends, and with a single space in place of several blanks.
struct CanonicalFields {
    /// The names, separated by semicolons.
    let names: String
    /// The fields, each with a line feed.
    let lines: String

    init(_ headers: HTTPHeaders, without excluded: Set<String> = []) {
        let fields = Dictionary(grouping: headers) { $0.name.lowercased() }.filter { !excluded.contains($0.key) }
            .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        names = fields.map(\.key).joined(separator: ";")
        lines = fields.map { name, fields in
            "\(name):\(fields.map { Self.folded($0.value) }.joined(separator: ","))\n"
        }.joined()
    }

    private static func folded(_ value: String) -> String {
        value.splitScalars { $0 == " " || $0 == "\t" }.joined(separator: " ")
    }
}
