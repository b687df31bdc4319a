// SPDX-License-Identifier: Apache-2.0

/// Items of a URL's query, in their order, escaped when the URL is made.
///
/// ```swift
/// let query: HTTPQuery = ["q": term, "page": 2, "sort": nil as String?]
/// ```
///
/// Values are written as their description; an item whose value is `nil` is left out.
public struct HTTPQuery: Hashable, Sendable {
    /// A name with a value.
    public struct Item: Hashable, Sendable {
        /// The name, not escaped.
        public let name: String
        /// The value, not escaped.
        public let value: String

        /// Makes an item.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The items in their order; names may be repeated.
    public let items: [Item]

    /// Makes a query of items.
    public init(_ items: [Item] = []) {
        self.items = items
    }

    /// Makes a query of a dictionary's entries, sorted by name.
    public init(_ dictionary: [String: any CustomStringConvertible]) {
        items = dictionary.sorted { $0.key < $1.key }.map { Item(name: $0.key, value: $0.value.description) }
    }

    /// Makes a query of the parts that the closure lists.
    public init(@HTTPQueryBuilder _ build: () -> HTTPQuery) {
        self = build()
    }

    /// The items of both; where a name is in both, only `rhs` counts.
    public static func + (lhs: HTTPQuery, rhs: HTTPQuery) -> HTTPQuery {
        let names = Set(rhs.items.map(\.name))
        return HTTPQuery(lhs.items.filter { !names.contains($0.name) } + rhs.items)
    }

    /// The value of the first item of that name.
    public subscript(name: String) -> String? { items.first { $0.name == name }?.value }

    /// The items as they stand in a URL.
    var encoded: String {
        items.map { "\(URLEncoding.default.escape($0.name))=\(URLEncoding.default.escape($0.value))" }.joined(separator: "&")
    }

    /// An encoded query with these items behind it, and without its own of their names.
    func added(to query: String?) -> String? {
        guard !items.isEmpty else { return query }
        let names = Set(items.map(\.name))
        let kept = (query ?? "").split(separator: "&").filter { !names.contains(Self.name(of: $0)) }
        return (kept.map(String.init) + [encoded]).joined(separator: "&")
    }

    private static func name(of item: Substring) -> String {
        let name = item.prefix { $0 != "=" }.replacing("+", with: " ")
        return name.removingPercentEncoding ?? String(name)
    }
}

// MARK: - Literals

extension HTTPQuery: ExpressibleByDictionaryLiteral {
    /// Makes a query of a literal's entries in their order, repeated names kept, `nil` left out.
    public init(dictionaryLiteral elements: (String, Any?)...) {
        items = elements.compactMap { name, value in value.flatMap { describe($0) }.map { Item(name: name, value: $0) } }
    }
}

// MARK: - Descriptions

extension HTTPQuery: CustomStringConvertible, CustomReflectable {
    /// The items as they stand in a URL, redacted (``/CurlewHTTP/Redaction``).
    public var description: String { Redaction.current.form(encoded) }

    /// The items, redacted.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: items, displayStyle: .collection) }
}

extension HTTPQuery.Item: CustomStringConvertible, CustomReflectable {
    /// The item as it stands in a URL, redacted (``/CurlewHTTP/Redaction``).
    public var description: String { HTTPQuery([self]).description }

    /// Nothing beyond the description.
    public var customMirror: Mirror { .redacted(self) }
}

// MARK: - Builder

/// Puts a query together of parts, one a line.
@resultBuilder
public enum HTTPQueryBuilder {
    /// A query, or a literal of one.
    public static func buildExpression(_ query: HTTPQuery) -> HTTPQuery { query }
    /// An item.
    public static func buildExpression(_ item: HTTPQuery.Item) -> HTTPQuery { HTTPQuery([item]) }
    /// A name with a value; nothing for `nil`.
    public static func buildExpression(_ item: (String, (any CustomStringConvertible)?)) -> HTTPQuery {
        HTTPQuery(item.1.map { [HTTPQuery.Item(name: item.0, value: $0.description)] } ?? [])
    }
    /// The items of all parts, repeated names kept.
    public static func buildBlock(_ parts: HTTPQuery...) -> HTTPQuery { buildArray(parts) }
    /// The part, or nothing.
    public static func buildOptional(_ part: HTTPQuery?) -> HTTPQuery { part ?? [:] }
    /// The part of a branch.
    public static func buildEither(first part: HTTPQuery) -> HTTPQuery { part }
    /// The part of a branch.
    public static func buildEither(second part: HTTPQuery) -> HTTPQuery { part }
    /// The parts of a loop.
    public static func buildArray(_ parts: [HTTPQuery]) -> HTTPQuery { HTTPQuery(parts.flatMap(\.items)) }
}
