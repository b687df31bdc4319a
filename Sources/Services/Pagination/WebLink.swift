// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A link of a `Link` header field (RFC 8288).
public struct WebLink: Hashable, Sendable {
    /// A parameter of a link.
    public struct Parameter: Hashable, Sendable {
        /// The name, in small letters.
        public let name: String
        /// The value, without quotation marks; empty where there is none. That of a name with `*` is decoded (RFC 8187).
        public let value: String
    }

    /// Where it leads, as it came: often relative to where the response came from.
    public let target: String
    /// The parameters in their order.
    public let parameters: [Parameter]

    /// The types of the link's relation: of the first `rel` only, in small letters.
    public var relations: [String] {
        (self["rel"] ?? "").split(whereSeparator: \.isWhitespace).map { $0.lowercased() }
    }

    /// What the link is about, if not the response itself.
    public var anchor: String? { self["anchor"] }

    /// The value of the first parameter of that name, which is written in small letters.
    public subscript(name: String) -> String? { parameters.first { $0.name == name }?.value }

    /// Whether the link has a relation of this type; letters count as small ones.
    public func hasRelation(_ type: String) -> Bool { relations.contains(type.lowercased()) }

    /// The URL where it leads; `nil` when it gives none.
    ///
    /// Without a user name and password that the target itself has: a server must not choose the account under which the next request is
    /// made. Those of `base` stay where the target is relative to it.
    public func url(relativeTo base: URL) -> URL? {
        target.resolved(against: base)
    }

    /// The links of the values of `Link` fields, in their order.
    ///
    /// As RFC 8288, appendix B.2, has it: what can't be read ends its field, and what came before it counts.
    public static func parse(_ fields: [String]) -> [WebLink] {
        fields.flatMap { field in
            var parser = LinkParser(field)
            return parser.links()
        }
    }
}

extension HTTPHeaders {
    /// The links of the `Link` fields (RFC 8288).
    public var links: [WebLink] { WebLink.parse(values(for: "Link")) }
}

/// Reads the value of a `Link` field, by scalars: a letter with an accent put on a quotation mark must not hide it.
private struct LinkParser {
    private var rest: Substring.UnicodeScalarView

    init(_ field: String) {
        rest = field[...].unicodeScalars
    }

    mutating func links() -> [WebLink] {
        var links: [WebLink] = []
        while true {
            rest = rest.drop { Self.isSpace($0) || $0 == "," }
            guard rest.first == "<", let end = rest.firstIndex(of: ">") else { return links }
            let target = rest[rest.index(after: rest.startIndex)..<end]
            rest = rest[rest.index(after: end)...]
            links.append(WebLink(target: String(target), parameters: parameters()))
            // Behind a link, only the next one can follow.
            rest = rest.drop { $0 != "," }
        }
    }

    private mutating func parameters() -> [WebLink.Parameter] {
        var parameters: [WebLink.Parameter] = []
        while true {
            skipSpace()
            guard rest.first == ";" else { return parameters }
            rest.removeFirst()
            skipSpace()
            let name = take { !Self.isSpace($0) && $0 != "=" && $0 != ";" && $0 != "," }.lowercased()
            skipSpace()
            var value = ""
            if rest.first == "=" {
                rest.removeFirst()
                skipSpace()
                value = rest.first == "\"" ? quoted() : take { !Self.isSpace($0) && $0 != ";" && $0 != "," }
            }
            guard !name.isEmpty else { continue }
            parameters.append(WebLink.Parameter(name: name, value: name.hasSuffix("*") ? Self.decoded(value) : value))
        }
    }

    /// The text between quotation marks, each backslash taken away in front of what it protects; one without an end reaches to the field's.
    private mutating func quoted() -> String {
        rest.removeFirst()
        var text = String.UnicodeScalarView()
        while let scalar = rest.popFirst(), scalar != "\"" {
            if scalar == "\\" {
                if let protected = rest.popFirst() { text.append(protected) }
            } else {
                text.append(scalar)
            }
        }
        return String(text)
    }

    /// A value with its charset and language (RFC 8187, section 3.2); as it came if it is none, or not in UTF-8.
    private static func decoded(_ value: String) -> String {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].lowercased() == "utf-8" else { return value }
        return parts[2].removingPercentEncoding ?? value
    }

    private mutating func skipSpace() { rest = rest.drop(while: Self.isSpace) }

    private mutating func take(while condition: (Unicode.Scalar) -> Bool) -> String {
        let taken = rest.prefix(while: condition)
        rest = rest[taken.endIndex...]
        return String(taken)
    }

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }
}
