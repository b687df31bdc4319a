// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewLoopback
import CurlewTransport

/// Which URLs a stub is for, written as a literal.
///
/// | pattern | matches |
/// | --- | --- |
/// | `/users/7` | that path at any host, with any query |
/// | `/users/{id}` | one segment, which ``MockRequest/parameters`` has by that name |
/// | `/users/*` | one segment |
/// | `/files/**` | everything below `/files`, and that itself |
/// | `/search?q=curlew&page=*` | a query with these items in any order, among others; `*` for any value |
/// | `https://api.example.org/users` | that scheme, host and port as well; `*` in place of the scheme or of a host's first label for any |
///
/// Paths and queries are compared after percent-decoding, hosts in lower case.
public struct URLPattern: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// Every URL.
    public static let any = URLPattern("**")

    /// The pattern as it was written.
    public let description: String
    private let parts: PatternParts

    /// Creates a pattern from its text.
    public init(_ pattern: String) {
        description = pattern
        parts = PatternParts(pattern)
    }

    /// Creates a pattern from a literal.
    public init(stringLiteral value: String) {
        self.init(value)
    }

    /// Whether the pattern matches a URL.
    public func matches(_ url: String) -> Bool { parameters(in: url) != nil }

    /// Returns what the placeholders have matched; `nil` if the pattern does not match.
    func parameters(in url: String) -> [String: String]? { parts.match(URLParts(url)) }
}

private struct PatternParts: Sendable, Hashable {
    private let scheme: String
    private let authority: String
    private let segments: [String]
    private let items: [ServerField]

    init(_ pattern: String) {
        // Placeholders and wildcards are not percent-encoded in patterns, so that the parts are those of any URL.
        let parts = URLParts(pattern)
        scheme = parts.scheme
        authority = parts.authority
        segments = parts.segments
        items = parts.items
    }

    func match(_ url: URLParts) -> [String: String]? {
        guard scheme.isEmpty || scheme == "*" || scheme == url.scheme, matchesAuthority(of: url) else { return nil }
        let actual = url.items
        for item in items where !actual.contains(where: { $0.name == item.name && (item.value == "*" || $0.value == item.value) }) {
            return nil
        }
        return Self.match(segments[...], url.segments[...])
    }

    private func matchesAuthority(of url: URLParts) -> Bool {
        guard !authority.isEmpty, authority != "*", authority != url.authority else { return true }
        // The default port need not be written.
        let defaults = ["http": ":80", "https": ":443"]
        if let port = defaults[url.scheme], url.authority + port == authority || authority + port == url.authority { return true }
        guard authority.hasBytePrefix("*.") else { return false }
        return url.authority.dropScalars { $0 != "." } == authority.dropFirst()
    }

    private static func match(_ pattern: ArraySlice<String>, _ path: ArraySlice<String>) -> [String: String]? {
        guard let first = pattern.first else { return path.isEmpty || path == [""] ? [:] : nil }
        if first == "**" {
            if pattern.count == 1 { return [:] }
            for start in path.startIndex...path.endIndex {
                if let found = match(pattern.dropFirst(), path[start...]) { return found }
            }
            return nil
        }
        guard let segment = path.first else { return first.isEmpty ? [:] : nil }
        let rest = match(pattern.dropFirst(), path.dropFirst())
        if first == "*" { return segment.isEmpty ? nil : rest }
        if first.hasBytePrefix("{"), first.hasByteSuffix("}") {
            guard !segment.isEmpty, var found = rest else { return nil }
            found[String(first.dropFirstScalars().dropLastScalars())] = segment
            return found
        }
        return first == segment ? rest : nil
    }
}

/// Which bodies a stub is for.
public struct BodyPattern: Sendable, CustomStringConvertible {
    /// Every body, and none.
    public static let any = BodyPattern("any body") { _ in true }
    /// No body, or an empty one.
    public static let empty = BodyPattern("no body") { $0.body.isEmpty }

    /// What the pattern matches.
    public let description: String
    let matches: @Sendable (MockRequest) -> Bool

    private init(_ description: String, _ matches: @escaping @Sendable (MockRequest) -> Bool) {
        self.description = description
        self.matches = matches
    }

    /// Exactly these bytes.
    public static func data(_ data: Data) -> BodyPattern { BodyPattern("\(data.count) bytes") { $0.body == data } }

    /// A body in UTF-8 that contains the text.
    public static func text(containing text: String) -> BodyPattern {
        BodyPattern("a body that contains a text") { $0.text?.contains(text) == true }
    }

    /// JSON that is equal to the value's; the order of keys and white space don't count.
    ///
    /// A value that can't be encoded matches nothing.
    public static func json(_ value: some Encodable & Sendable) -> BodyPattern {
        let expected = (try? JSONEncoder().encode(value)).flatMap { json($0) }
        return BodyPattern("JSON") { request in
            guard let expected else { return false }
            return json(request.body) == expected
        }
    }

    private static func json(_ data: Data) -> JSONValue? { try? JSONDecoder().decode(JSONValue.self, from: data) }

    /// A form (`application/x-www-form-urlencoded`) with these items, among others.
    public static func form(_ items: [String: String]) -> BodyPattern {
        BodyPattern("a form with \(items.keys.sorted().joined(separator: ", "))") { request in
            let form = request.form
            return items.allSatisfy { item in form.contains { $0.name == item.key && $0.value == item.value } }
        }
    }

    /// What a closure returns `true` for; it also sees the rest of the request. Called on the transport's queue, must not block.
    public static func matching(
        _ description: String = "what a closure accepts", _ matches: @escaping @Sendable (MockRequest) -> Bool
    ) -> BodyPattern {
        BodyPattern(description, matches)
    }
}

/// Which requests a stub is for.
struct RequestPattern: Sendable, CustomStringConvertible {
    private let method: HTTPMethod?
    private let url: URLPattern
    private let headers: HTTPHeaders
    private let body: BodyPattern

    init(_ method: HTTPMethod? = nil, _ url: URLPattern = .any, _ headers: HTTPHeaders = [:], _ body: BodyPattern = .any) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }

    /// Returns what the placeholders have matched; `nil` if the pattern does not match.
    func parameters(of request: MockRequest) -> [String: String]? {
        guard method == nil || method == request.method else { return nil }
        for header in headers where !request.headers.values(for: header.name).contains(header.value) { return nil }
        guard let parameters = url.parameters(in: request.url), body.matches(request) else { return nil }
        return parameters
    }

    /// Names of header fields only: their values may be secret.
    var description: String {
        let fields = headers.isEmpty ? "" : ", with \(headers.map(\.name).joined(separator: ", "))"
        let content = body.description == BodyPattern.any.description ? "" : ", \(body)"
        return "\(method?.rawValue ?? "any method") \(url.description.redactedURL)\(fields)\(content)"
    }
}
