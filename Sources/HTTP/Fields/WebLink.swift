// SPDX-License-Identifier: Apache-2.0

/// A link of a `Link` header field (RFC 8288): ``HTTPHeaders/links``.
public struct WebLink: Hashable, Sendable {
    /// A parameter of a link.
    public struct Parameter: Hashable, Sendable {
        /// The name, in lowercase.
        public let name: String
        /// The value, without quotation marks; empty if there is none. The value of a name that ends in `*` is decoded (RFC 8187); without a
        /// valid one in UTF-8 there is no such parameter.
        public let value: String

        /// Creates a parameter. The value of a name that ends in `*` is written as an extended one (RFC 8187).
        public init(name: String, value: String) {
            self.name = name.utf8.lowercasedText
            self.value = value
        }

        fileprivate var fieldValue: String {
            if name.hasByteSuffix("*") { return "; \(name)=UTF-8''\(value.extendedValue)" }
            return value.isEmpty ? "; \(name)" : "; \(name)=\(value.quotedString)"
        }
    }

    /// The target as received: often relative to the URL of the response.
    public let target: String
    /// The parameters, in order.
    public let parameters: [Parameter]

    /// Creates a link to a URL or a reference.
    public init(target: String, parameters: [Parameter] = []) {
        self.target = target
        self.parameters = parameters
    }

    /// The relation types, in lowercase; of the first `rel` parameter only (RFC 8288, section 3.3).
    public var relations: [String] {
        (self["rel"] ?? "").splitScalars { $0.properties.isWhitespace }.map { $0.utf8.lowercasedText }
    }

    /// The context of the link, if it is not the response itself.
    public var anchor: String? { self["anchor"] }

    /// The title: of `title*` if that is given, as it may have any characters, else of `title` (RFC 8288, section 3.4.1).
    public var title: String? { self["title*"] ?? self["title"] }

    /// The languages of the target, each of a `hreflang` parameter.
    public var languages: [String] { parameters.filter { $0.name.hasSameBytes(as: "hreflang") }.map(\.value) }

    /// The expected media type of the target (`type`).
    public var mediaType: String? { self["type"] }

    /// The value of the first parameter of the given name, which must be lowercase.
    public subscript(name: String) -> String? { parameters.first { $0.name.hasSameBytes(as: name) }?.value }

    /// Returns whether the link has a relation type, ignoring case.
    public func hasRelation(_ type: String) -> Bool { relations.contains { $0.equalsIgnoringASCIICase(type) } }

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
            let (name, argument) = parser.takeLooseParameter { $0.isBlank || $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: ",") }
            guard !name.isEmpty else { continue }
            let value = argument ?? ""
            // One that can't be decoded is left out (RFC 8288, appendix B.3).
            guard let value = name.hasByteSuffix("*") ? value.decodedExtendedValue() : value else { continue }
            parameters.append(Parameter(name: String(name), value: value))
        }
    }

    /// The link as the field has it.
    package var fieldValue: String {
        "<\(target.replacingScalars(">", with: "%3E"))>" + parameters.map(\.fieldValue).joined()
    }
}

extension HTTPHeaders {
    /// The links of the `Link` fields (RFC 8288), in order. A syntax error ends its field, and the links before it are kept (appendix B.2).
    ///
    /// Setting them replaces all fields of that name.
    public var links: [WebLink] {
        get { WebLink.parse(values(for: "Link")) }
        set { set("Link", to: newValue.map(\.fieldValue).joined(separator: ", ")) }
    }
}

// MARK: - Reflection

extension WebLink: RedactedReflectable {
    /// The target, redacted, and the parameters.
    package var shownParts: KeyValuePairs<String, Any> { ["target": target.redactedURL, "parameters": parameters] }
}
