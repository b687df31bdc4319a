// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewLoopback
import CurlewTransport

/// A request as received by a ``MockTransport``: one exchange, with its whole body.
public struct MockRequest: Sendable {
    /// The number of the request at its transport, from 1.
    public let number: Int
    /// The method.
    public let method: HTTPMethod
    /// The absolute URL, as sent.
    public let url: String
    /// The header fields, with what adapters, credentials, cookies and deadlines have added, without those that libcurl derives: `Host`,
    /// `Content-Length`, `Transfer-Encoding`, `Accept-Encoding`.
    public let headers: HTTPHeaders
    /// The body; empty if there is none.
    public let body: Data
    /// The fields that were sent after the body.
    public let trailers: HTTPHeaders
    /// The options of the transfer: timeouts, TLS, proxy.
    public let options: TransferOptions
    /// The parts of the URL that the placeholders of the stub's pattern have matched, percent-decoded: `["id": "7"]` for `/users/{id}`.
    public internal(set) var parameters: [String: String] = [:]
    /// Whether a stub or an enqueued response has matched.
    public internal(set) var isMatched = false

    /// The path, percent-decoded; `/` if the URL has none.
    public var path: String { URLParts(url).path }

    /// The items of the query, decoded, in their order: `+` is a space, and an item without `=` has an empty value.
    public var query: [ServerField] { URLParts(url).items }

    /// Returns the value of the first query item with a name.
    public func query(_ name: String) -> String? { query.first { $0.name == name }?.value }

    /// The body as text; `nil` if it is not UTF-8.
    public var text: String? { String(data: body, encoding: .utf8) }

    /// Returns the body decoded from JSON.
    ///
    /// - Throws: the error of the decoder.
    public func decode<Value: Decodable>(_ type: Value.Type, using decoder: JSONDecoder = JSONDecoder()) throws -> Value {
        try decoder.decode(type, from: body)
    }

    /// The items of a form body (`application/x-www-form-urlencoded`), decoded.
    public var form: [ServerField] { URLParts.items(of: text ?? "") }
}

// MARK: - Descriptions

extension MockRequest: CustomStringConvertible, CustomReflectable {
    /// Method and URL, redacted (`Redaction`).
    public var description: String { "\(method) \(url.redactedURL)" }

    /// Method, URL, header fields, redacted, and the length of the body.
    public var customMirror: Mirror {
        .redacted(self, ["method": method, "url": url.redactedURL, "headers": headers, "body": "\(body.count) bytes"])
    }
}

/// The parts of an absolute URL, or of a path with a query, as they are matched.
struct URLParts {
    /// In lower case; empty if there is none.
    let scheme: String
    /// Host and port in lower case, without user info; empty if there is none.
    let authority: String
    private let rawPath: Substring
    private let rawQuery: Substring

    init(_ url: String) {
        var rest = url[...].prefixScalars { $0 != "#" }
        if let separator = rest.firstScalarRange(of: "://") {
            scheme = rest[..<separator.lowerBound].lowercased()
            rest = rest[separator.upperBound...]
            let authority = rest.prefixScalars { $0 != "/" && $0 != "?" }
            rest = rest[authority.endIndex...]
            self.authority = (authority.unicodeScalars.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority)
                .lowercased()
        } else {
            (scheme, authority) = ("", "")
        }
        rawPath = rest.prefixScalars { $0 != "?" }
        rawQuery = rest[rawPath.endIndex...].dropFirstScalars()
    }

    var path: String { rawPath.isEmpty ? "/" : Self.decoded(rawPath) }

    /// The segments of the path, decoded.
    var segments: [String] {
        rawPath.dropScalars { $0 == "/" }.splitScalars(separator: "/", omittingEmptySubsequences: false).map { Self.decoded($0) }
    }

    var items: [ServerField] { Self.items(of: rawQuery) }

    static func items(of query: some StringProtocol) -> [ServerField] {
        Substring(query).splitScalars(separator: "&").map { item in
            let parts = item.splitScalars(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map { decoded(String($0).replacingScalars("+", with: " ")) }
            return ServerField(parts[0], parts.count > 1 ? parts[1] : "")
        }
    }

    private static func decoded(_ text: some StringProtocol) -> String { text.removingPercentEncoding ?? String(text) }
}
