// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A link of a `Link` header field (RFC 8288).
public struct WebLink: Hashable, Sendable {
    /// A parameter of a link.
    public struct Parameter: Hashable, Sendable {
        /// The name, in lowercase.
        public let name: String
        /// The value, without quotation marks; empty if there is none. The value of a name that ends in `*` is decoded (RFC 8187)
        /// if it is valid and its charset is UTF-8.
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
        fields.flatMap { parse($0) }
    }

    private static func parse(_ field: String) -> [WebLink] {
        var parser = FieldParser(field)
        var links: [WebLink] = []
        while true {
            parser.take { $0.isBlank || $0 == UInt8(ascii: ",") }
            guard parser.skip("<") else { return links }
            let target = parser.take { $0 != UInt8(ascii: ">") }
            guard parser.skip(">") else { return links }
            links.append(WebLink(target: String(target), parameters: parameters(&parser)))
            // Only the next link can follow a link.
            parser.take { $0 != UInt8(ascii: ",") }
        }
    }

    private static func parameters(_ parser: inout FieldParser) -> [Parameter] {
        var parameters: [Parameter] = []
        while true {
            parser.skipBlanks()
            guard parser.skip(";") else { return parameters }
            parser.skipBlanks()
            let (token, argument) = parser.takeLooseParameter { $0.isBlank || $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: ",") }
            guard !token.isEmpty else { continue }
            let (name, value) = (token.lowercased(), argument ?? "")
            parameters.append(Parameter(name: name, value: name.hasByteSuffix("*") ? value.decodedExtendedValue() ?? value : value))
        }
    }
}

extension HTTPHeaders {
    /// The links of the `Link` fields (RFC 8288).
    ///
    /// Needs `import CurlewServices`.
    public var links: [WebLink] { WebLink.parse(values(for: "Link")) }
}

// MARK: - CustomReflectable

extension WebLink: CustomReflectable {
    /// The target, redacted, and the parameters.
    public var customMirror: Mirror { .redacted(self, ["target": target.redactedURL, "parameters": parameters]) }
}
