// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A part of a message that a signature covers: a field, or a derived component (RFC 9421, section 2).
///
/// ```swift
/// let components: [MessageComponent] = ["@method", "@target-uri", "content-digest", .queryParameter("page"), .field("priority").structured]
/// ```
public struct MessageComponent: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The name: of a field, in lower case, or of a derived component, with an `@`.
    public let name: String
    /// The parameters of the identifier, in order, such as `sf` or `req`.
    public let parameters: StructuredFields.Parameters

    init(_ name: String, _ parameters: StructuredFields.Parameters = [:]) {
        self.name = name
        self.parameters = parameters
    }

    /// Creates a component without parameters: a field by its name, in any case, or a derived component, such as `@method`.
    public init(stringLiteral name: String) { self.init(name.lowercased()) }

    /// The value of a field (RFC 9421, section 2.1), of all its lines.
    public static func field(_ name: String) -> MessageComponent { MessageComponent(name.lowercased()) }

    /// The method of a request (`@method`).
    public static let method = MessageComponent("@method")
    /// The absolute URL of a request, with its query (`@target-uri`).
    public static let targetURI = MessageComponent("@target-uri")
    /// The host of a request, with the port unless it is the default (`@authority`).
    public static let authority = MessageComponent("@authority")
    /// The scheme of a request's URL (`@scheme`).
    public static let scheme = MessageComponent("@scheme")
    /// The target in the first line of a request (`@request-target`), which proxies may change.
    public static let requestTarget = MessageComponent("@request-target")
    /// The path of a request's URL (`@path`).
    public static let path = MessageComponent("@path")
    /// The query of a request's URL, with the question mark (`@query`).
    public static let query = MessageComponent("@query")
    /// The status of a response (`@status`).
    public static let status = MessageComponent("@status")

    /// One parameter of a request's query (`@query-param`), which must not be repeated.
    ///
    /// - Parameter name: the name, decoded.
    public static func queryParameter(_ name: String) -> MessageComponent {
        MessageComponent("@query-param", ["name": .string(QueryItem.encoded(Array(name.utf8)))])
    }

    /// The field in the canonical form of structured fields (`sf`), so that spaces between its parts don't count.
    public var structured: MessageComponent { adding("sf", .boolean(true)) }
    /// The lines of the field as byte sequences (`bs`), for values that must not be joined, such as those of `Set-Cookie`.
    public var bytes: MessageComponent { adding("bs", .boolean(true)) }
    /// The component of the request to which a signed response is the answer (`req`).
    public var ofRequest: MessageComponent { adding("req", .boolean(true)) }
    /// The field among the trailers (`tr`).
    public var inTrailers: MessageComponent { adding("tr", .boolean(true)) }

    /// One member of a field that is a dictionary (`key`).
    public func member(_ key: String) -> MessageComponent { adding("key", .string(key)) }

    private func adding(_ name: String, _ value: StructuredFields.BareItem) -> MessageComponent {
        var parameters = parameters
        parameters[name] = value
        return MessageComponent(self.name, parameters)
    }

    var isDerived: Bool { name.hasBytePrefix("@") }

    var item: StructuredFields.Item { .init(.string(name), parameters: parameters) }

    /// What two identifiers of one component have in common: the order of the parameters does not count.
    var key: Key { Key(name: name, parameters: Dictionary(parameters.map { ($0.key, $0.value) }) { $1 }) }

    struct Key: Hashable {
        let name: String
        let parameters: [String: StructuredFields.BareItem]
    }
}

extension MessageComponent: CustomStringConvertible {
    /// The identifier as it is signed, such as `"@query-param";name="page"`.
    public var description: String { (try? StructuredFields.text(of: item)) ?? Redaction.escaped(name) }
}

/// Names and values of a query, as RFC 9421 covers them (section 2.2.8).
enum QueryItem {
    /// Percent-encoded by the rules of forms, with `%20` for a space.
    static func encoded(_ bytes: [UInt8]) -> String {
        String(escaping: bytes) { index in
            switch bytes[index] {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case let byte: "*-._".utf8.contains(byte)
            }
        }
    }

    /// The items of a query, decoded as a form and encoded again.
    static func all(in query: String) -> [(name: String, value: String)] {
        query.utf8.split(separator: UInt8(ascii: "&")).map { item in
            let name = item.prefix { $0 != UInt8(ascii: "=") }
            return (normalized(name), normalized(item[name.endIndex...].dropFirst()))
        }
    }

    private static func normalized(_ part: Substring.UTF8View) -> String {
        // Invalid UTF-8 is replaced, as the standard for forms demands.
        encoded(Array(String(decoding: part.formDecoded, as: UTF8.self).utf8))
    }
}
