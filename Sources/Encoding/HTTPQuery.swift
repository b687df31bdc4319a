// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Items of a URL's query, in order, percent-encoded when the URL is built.
///
/// ```swift
/// let query: HTTPQuery = ["q": term, "page": 2, "sort": nil as String?]
/// ```
///
/// Values are written as their description; items whose value is `nil` are omitted.
public struct HTTPQuery: Hashable, Sendable {
    /// A name with a value.
    public struct Item: Hashable, Sendable {
        /// The name, unescaped.
        public let name: String
        /// The value, unescaped.
        public let value: String

        /// Creates an item.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The items, in order; names may repeat.
    public let items: [Item]

    /// Creates a query of items.
    public init(_ items: [Item] = []) {
        self.items = items
    }

    /// Creates a query of a dictionary's entries, sorted by name.
    public init(_ dictionary: [String: any CustomStringConvertible]) {
        items = dictionary.sorted { $0.key < $1.key }.map { Item(name: $0.key, value: $0.value.description) }
    }

    /// Creates a query of the items listed by the closure.
    public init(@HTTPQueryBuilder _ build: () -> HTTPQuery) {
        self = build()
    }

    /// Returns the items of both; items of `rhs` replace those of `lhs` of the same name.
    public static func + (lhs: HTTPQuery, rhs: HTTPQuery) -> HTTPQuery {
        let names = Set(rhs.items.map(\.name))
        return HTTPQuery(lhs.items.filter { !names.contains($0.name) } + rhs.items)
    }

    /// The value of the first item of the given name.
    public subscript(name: String) -> String? { items.first { $0.name == name }?.value }

    /// The items, percent-encoded for a URL.
    package var encoded: String {
        items.map { "\(URLEncoding.default.escape($0.name))=\(URLEncoding.default.escape($0.value))" }.joined(separator: "&")
    }

    /// Returns an encoded query with these items appended, replacing its items of the same names.
    package func appended(to query: String?) -> String? {
        guard !items.isEmpty else { return query }
        let names = Set(items.map(\.name))
        let kept = (query ?? "").splitScalars(separator: "&").filter { !names.contains(Self.name(of: $0)) }
        return (kept.map(String.init) + [encoded]).joined(separator: "&")
    }

    private static func name(of item: Substring) -> String {
        let name = item.prefixScalars { $0 != "=" }.replacingScalars("+", with: " ")
        return name.removingPercentEncoding ?? String(name)
    }
}

// MARK: - Literals

extension HTTPQuery: ExpressibleByDictionaryLiteral {
    /// Creates a query of a literal's entries, in order, keeping repeated names and omitting `nil`.
    public init(dictionaryLiteral elements: (String, Any?)...) {
        items = elements.compactMap { name, value in value.flatMap { describe($0) }.map { Item(name: name, value: $0) } }
    }
}

/// Returns the value's description; for an optional, that of the wrapped value, or `nil` if there is none.
package func describe(_ value: Any) -> String? {
    if let optional = value as? any OptionalDescription { return optional.wrappedDescription }
    return String(describing: value)
}

private protocol OptionalDescription {
    var wrappedDescription: String? { get }
}

extension Optional: OptionalDescription {
    fileprivate var wrappedDescription: String? { flatMap { describe($0) } }
}

// MARK: - Descriptions

extension HTTPQuery: LineConvertible, CustomReflectable {
    /// The encoded items, redacted (``/CurlewHTTP/Redaction``).
    package var line: String { Redaction.current.form(encoded) }

    /// The items, redacted.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: items, displayStyle: .collection) }
}

extension HTTPQuery.Item: LineConvertible, RedactedReflectable {
    /// The encoded item, redacted (``/CurlewHTTP/Redaction``).
    package var line: String { HTTPQuery([self]).description }
}

// MARK: - Builder

/// Combines a query from parts, one per line.
@resultBuilder
public enum HTTPQueryBuilder {
    /// Returns the query.
    public static func buildExpression(_ query: HTTPQuery) -> HTTPQuery { query }
    /// Returns a query of the item.
    public static func buildExpression(_ item: HTTPQuery.Item) -> HTTPQuery { HTTPQuery([item]) }
    /// Returns a query of the name and value; an empty one for `nil`.
    public static func buildExpression(_ item: (String, (any CustomStringConvertible)?)) -> HTTPQuery {
        HTTPQuery(item.1.map { [HTTPQuery.Item(name: item.0, value: $0.description)] } ?? [])
    }
    /// Returns the items of all parts, keeping repeated names.
    public static func buildBlock(_ parts: HTTPQuery...) -> HTTPQuery { buildArray(parts) }
    /// Returns the part, or no items.
    public static func buildOptional(_ part: HTTPQuery?) -> HTTPQuery { part ?? [:] }
    /// Returns the part of the first branch.
    public static func buildEither(first part: HTTPQuery) -> HTTPQuery { part }
    /// Returns the part of the second branch.
    public static func buildEither(second part: HTTPQuery) -> HTTPQuery { part }
    /// Returns the items of all iterations.
    public static func buildArray(_ parts: [HTTPQuery]) -> HTTPQuery { HTTPQuery(parts.flatMap(\.items)) }
}
