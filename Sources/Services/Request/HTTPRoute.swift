// SPDX-License-Identifier: Apache-2.0

/// The path of a request, relative to its service's URL: segments, each percent-encoded on its own (RFC 3986, section 3.3).
///
/// ```swift
/// let byElements: HTTPRoute = ["users", user.id, "posts"]
/// let byText: HTTPRoute = "users/\(user.id)/posts"
/// ```
///
/// An array element or an interpolated value becomes at most one segment: a `/` in it is sent as `%2F`, so that no value can lead to
/// another path. In string literals, `/` separates segments.
public struct HTTPRoute: Hashable, Sendable {
    /// The segments, percent-encoded as in the URL; none is empty.
    public let segments: [String]

    /// Makes a route of segments that are already percent-encoded; empty ones are dropped.
    private init(escaped segments: [Substring]) {
        self.segments = segments.filter { !$0.isEmpty }.map(String.init)
    }

    /// Makes a route of one segment: the value's description. The route is empty if that is empty, or for `nil`.
    public init(_ component: some CustomStringConvertible) {
        self.init(arrayLiteral: component)
    }

    /// Makes a route of the parts listed by the closure.
    public init(@HTTPRouteBuilder _ build: () -> HTTPRoute) {
        self = build()
    }

    /// Returns the route `lhs` followed by `rhs`.
    public static func + (lhs: HTTPRoute, rhs: HTTPRoute) -> HTTPRoute {
        HTTPRoute(escaped: (lhs.segments + rhs.segments).map { $0[...] })
    }

    /// Whether resolving the URL would lead out of the path (RFC 3986, section 5.2.4).
    var hasDotSegment: Bool { segments.contains { [".", ".."].contains($0) } }

    static func escape(_ text: String, keeping kept: String = "") -> String {
        // The delimiters that a segment may contain unescaped are escaped too, because servers treat them differently.
        text.addingPercentEncoding(withAllowedCharacters: unreserved.union(CharacterSet(charactersIn: kept))) ?? ""
    }

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
}

// MARK: - Literals

extension HTTPRoute: ExpressibleByArrayLiteral {
    /// Makes a route of the elements' descriptions, one segment each; `nil` and empty ones are dropped.
    public init(arrayLiteral elements: Any...) {
        self.init(escaped: elements.compactMap { describe($0) }.map { Self.escape($0)[...] })
    }
}

extension HTTPRoute: ExpressibleByStringInterpolation {
    /// Builds a path: `/` separates segments in literal text, and is escaped in interpolated values.
    public struct StringInterpolation: StringInterpolationProtocol {
        var text = ""

        /// Starts with an empty path.
        public init(literalCapacity: Int, interpolationCount: Int) {
            text.reserveCapacity(literalCapacity)
        }

        /// Appends literal text.
        public mutating func appendLiteral(_ literal: String) {
            text += HTTPRoute.escape(literal, keeping: "/")
        }

        /// Appends a value's description, as part of one segment.
        public mutating func appendInterpolation(_ value: Any) {
            text += HTTPRoute.escape(describe(value) ?? "")
        }
    }

    /// Makes a route of a string literal, in which `/` separates segments.
    public init(stringLiteral value: String) {
        self.init(escaped: Self.escape(value, keeping: "/").splitScalars(separator: "/"))
    }

    /// Makes a route of a string literal with interpolated values.
    public init(stringInterpolation: StringInterpolation) {
        self.init(escaped: stringInterpolation.text.splitScalars(separator: "/"))
    }
}

// MARK: - CustomStringConvertible

extension HTTPRoute: CustomStringConvertible {
    /// The segments joined with `/`, as in the URL.
    public var description: String { segments.joined(separator: "/") }
}

// MARK: - Builder

/// Combines a route from parts, one per line.
@resultBuilder
public enum HTTPRouteBuilder {
    /// Returns the route.
    public static func buildExpression(_ route: HTTPRoute) -> HTTPRoute { route }
    /// Returns a string that is not a literal as one segment.
    @_disfavoredOverload public static func buildExpression(_ component: String) -> HTTPRoute { HTTPRoute(component) }
    /// Returns a number as one segment.
    public static func buildExpression(_ component: some BinaryInteger) -> HTTPRoute { HTTPRoute(component.description) }
    /// Returns an identifier as one segment.
    public static func buildExpression(_ component: UUID) -> HTTPRoute { HTTPRoute(component.uuidString) }
    /// Returns the parts in order.
    public static func buildBlock(_ parts: HTTPRoute...) -> HTTPRoute { parts.reduce([], +) }
    /// Returns the part, or an empty route.
    public static func buildOptional(_ part: HTTPRoute?) -> HTTPRoute { part ?? [] }
    /// Returns the part of the first branch.
    public static func buildEither(first part: HTTPRoute) -> HTTPRoute { part }
    /// Returns the part of the second branch.
    public static func buildEither(second part: HTTPRoute) -> HTTPRoute { part }
    /// Returns the parts of all iterations, in order.
    public static func buildArray(_ parts: [HTTPRoute]) -> HTTPRoute { parts.reduce([], +) }
}
