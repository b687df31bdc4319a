// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A link of a `Link` header field (RFC 8288).
public struct WebLink: Hashable, Sendable {
    /// A parameter of a link.
    public struct Parameter: Hashable, Sendable {
        /// The name, in lowercase.
        public let name: String
        /// The value, without quotation marks; empty if there is none. The value of a name that ends in `*` is decoded (RFC 8187).
        public let value: String
    }

    /// The target as received: often relative to the URL of the response.
    public let target: String
    /// The parameters, in order.
    public let parameters: [Parameter]

    /// The relation types, in lowercase; of the first `rel` parameter only.
    public var relations: [String] {
        (self["rel"] ?? "").split(whereSeparator: \.isWhitespace).map { $0.lowercased() }
    }

    /// The context of the link, if it is not the response itself.
    public var anchor: String? { self["anchor"] }

    /// The value of the first parameter of the given name, which must be lowercase.
    public subscript(name: String) -> String? { parameters.first { $0.name == name }?.value }

    /// Returns whether the link has a relation type, ignoring case.
    public func hasRelation(_ type: String) -> Bool { relations.contains(type.lowercased()) }

    /// Returns the URL of the target; `nil` if it isn't one.
    ///
    /// User name and password in the target itself are removed: a server must not choose the account that the next request is made with.
    /// Those of `base` are kept if the target is relative to it.
    public func url(relativeTo base: URL) -> URL? {
        target.resolved(against: base)
    }

    /// Parses the values of `Link` fields into links, in order.
    ///
    /// Follows RFC 8288, appendix B.2: a syntax error ends its field, and the links before it are kept.
    package static func parse(_ fields: [String]) -> [WebLink] {
        fields.flatMap { field in
            var parser = LinkParser(field)
            return parser.links()
        }
    }
}

extension HTTPHeaders {
    /// The links of the `Link` fields (RFC 8288).
    ///
    /// Needs `import CurlewServices`.
    public var links: [WebLink] { WebLink.parse(values(for: "Link")) }
}

/// Parses the value of a `Link` field by Unicode scalars, because a combining accent after a quotation mark would hide it from a parser of
/// characters.
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
            // Only the next link can follow a link.
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
            parameters.append(WebLink.Parameter(name: name, value: name.hasByteSuffix("*") ? Self.decoded(value) : value))
        }
    }

    /// Reads a quoted string and removes its escaping backslashes; one without a closing quotation mark extends to the end of the field.
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

    /// Decodes a value with charset and language (RFC 8187, section 3.2); returns it unchanged if it is not one, or not UTF-8.
    private static func decoded(_ value: String) -> String {
        let parts = value.splitScalars(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
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

// MARK: - CustomReflectable

extension WebLink: CustomReflectable {
    /// The target, redacted, and the parameters.
    public var customMirror: Mirror { .redacted(self, ["target": target.redactedURL, "parameters": parameters]) }
}
