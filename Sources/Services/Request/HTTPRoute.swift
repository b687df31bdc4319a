// SPDX-License-Identifier: Apache-2.0

/// The path of a request behind the URL of its service: segments, each escaped on its own (RFC 3986, section 3.3).
///
/// ```swift
/// let byElements: HTTPRoute = ["users", user.id, "posts"]
/// let byText: HTTPRoute = "users/\(user.id)/posts"
/// ```
///
/// An element of an array, and a value put into a text, is one segment at the most: a `/` in it goes out as `%2F`, so that no value
/// leads to another path. In a text written in the program, `/` separates segments.
public struct HTTPRoute: Hashable, Sendable {
    /// The segments as they stand in the URL, percent-encoded; none is empty.
    public let segments: [String]

    /// Makes a route of segments that are escaped already; empty ones are left out.
    private init(escaped segments: [Substring]) {
        self.segments = segments.filter { !$0.isEmpty }.map(String.init)
    }

    /// Makes a route of one segment: the value's description. Nothing for an empty one, and for `nil`.
    public init(_ component: some CustomStringConvertible) {
        self.init(arrayLiteral: component)
    }

    /// Makes a route of the parts that the closure lists.
    public init(@HTTPRouteBuilder _ build: () -> HTTPRoute) {
        self = build()
    }

    /// The route `rhs` behind the route `lhs`.
    public static func + (lhs: HTTPRoute, rhs: HTTPRoute) -> HTTPRoute {
        HTTPRoute(escaped: (lhs.segments + rhs.segments).map { $0[...] })
    }

    /// Whether a segment would lead out of the path when the URL is resolved (RFC 3986, section 5.2.4).
    var hasDotSegment: Bool { segments.contains { $0 == "." || $0 == ".." } }

    static func escape(_ text: String, keeping kept: String = "") -> String {
        // Of what a segment may hold as it is, the delimiters are escaped too: servers differ about them.
        text.addingPercentEncoding(withAllowedCharacters: unreserved.union(CharacterSet(charactersIn: kept))) ?? ""
    }

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
}

// MARK: - Literals

extension HTTPRoute: ExpressibleByArrayLiteral {
    /// Makes a route of the elements' descriptions, a segment each; `nil` and empty ones are left out.
    public init(arrayLiteral elements: Any...) {
        self.init(escaped: elements.compactMap { describe($0) }.map { Self.escape($0)[...] })
    }
}

extension HTTPRoute: ExpressibleByStringInterpolation {
    /// Collects a text: `/` separates segments in what is written, and is escaped in what is put in.
    public struct StringInterpolation: StringInterpolationProtocol {
        var text = ""

        /// Starts an empty text.
        public init(literalCapacity: Int, interpolationCount: Int) {
            text.reserveCapacity(literalCapacity)
        }

        /// Adds what is written.
        public mutating func appendLiteral(_ literal: String) {
            text += HTTPRoute.escape(literal, keeping: "/")
        }

        /// Adds a value's description, as a part of one segment.
        public mutating func appendInterpolation(_ value: Any) {
            text += HTTPRoute.escape(describe(value) ?? "")
        }
    }

    /// Makes a route of a text, whose `/` separate segments.
    public init(stringLiteral value: String) {
        self.init(escaped: Self.escape(value, keeping: "/").split(separator: "/"))
    }

    /// Makes a route of a text with values in it.
    public init(stringInterpolation: StringInterpolation) {
        self.init(escaped: stringInterpolation.text.split(separator: "/"))
    }
}

// MARK: - CustomStringConvertible

extension HTTPRoute: CustomStringConvertible {
    /// The segments with `/` between them, as in the URL.
    public var description: String { segments.joined(separator: "/") }
}

/// The value's description; that of what it holds for an optional, `nil` for an empty one.
func describe(_ value: Any) -> String? {
    if let optional = value as? any OptionalDescription { return optional.wrappedDescription }
    return String(describing: value)
}

private protocol OptionalDescription {
    var wrappedDescription: String? { get }
}

extension Optional: OptionalDescription {
    fileprivate var wrappedDescription: String? { flatMap { describe($0) } }
}

// MARK: - Builder

/// Puts a route together of parts, one a line.
@resultBuilder
public enum HTTPRouteBuilder {
    /// A route, or a literal of one.
    public static func buildExpression(_ route: HTTPRoute) -> HTTPRoute { route }
    /// A text that is not a literal: one segment.
    @_disfavoredOverload public static func buildExpression(_ component: String) -> HTTPRoute { HTTPRoute(component) }
    /// A number: one segment.
    public static func buildExpression(_ component: some BinaryInteger) -> HTTPRoute { HTTPRoute(component.description) }
    /// An identifier: one segment.
    public static func buildExpression(_ component: UUID) -> HTTPRoute { HTTPRoute(component.uuidString) }
    /// The parts, one behind the other.
    public static func buildBlock(_ parts: HTTPRoute...) -> HTTPRoute { parts.reduce([], +) }
    /// The part, or nothing.
    public static func buildOptional(_ part: HTTPRoute?) -> HTTPRoute { part ?? [] }
    /// The part of a branch.
    public static func buildEither(first part: HTTPRoute) -> HTTPRoute { part }
    /// The part of a branch.
    public static func buildEither(second part: HTTPRoute) -> HTTPRoute { part }
    /// The parts of a loop.
    public static func buildArray(_ parts: [HTTPRoute]) -> HTTPRoute { parts.reduce([], +) }
}
