// SPDX-License-Identifier: Apache-2.0

/// A name and a value: a header field or a query item.
public struct ServerField: Sendable, Hashable, Codable {
    /// The name as it was sent.
    public let name: String
    /// The value without surrounding whitespace.
    public let value: String

    /// Creates a field.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    package func isNamed(_ other: String) -> Bool {
        name.utf8.count == other.utf8.count && name.lowercased() == other.lowercased()
    }
}

/// A request as read by ``LoopbackServer``.
public struct ServerRequest: Sendable {
    /// The method, such as `GET`.
    public let method: String
    /// The request target as it was sent: a path with a query, or an absolute URL from a client that uses the server as a proxy.
    public let target: String
    /// 1 for HTTP/1.1, 0 for HTTP/1.0.
    public let minorVersion: Int
    /// The target's path, percent-decoded.
    public let path: String
    /// The header fields in the order they were sent.
    public let headers: [ServerField]
    /// The body without its transfer coding; empty if it was not kept.
    public internal(set) var body = Data()
    /// The size of the body in bytes, kept or not.
    public internal(set) var bodyLength: Int64 = 0
    /// The CRC-32 of the body, kept or not; 0 for an empty body.
    public internal(set) var bodyChecksum: UInt32 = 0
    /// The fields after a chunked body, in the order they were sent.
    public internal(set) var trailers: [ServerField] = []
    /// The parts of the path that the placeholders of the route's pattern have matched, percent-decoded.
    public package(set) var parameters: [String: String] = [:]
    /// The connection's number: 1 for the first one accepted by the server.
    public let connection: Int
    /// The request's number on its connection, starting at 1.
    public let sequence: Int

    package init(head: RequestHead, connection: Int, sequence: Int) {
        method = head.method
        target = head.target
        minorVersion = head.minorVersion
        headers = head.headers
        path = Self.path(of: head.target)
        self.connection = connection
        self.sequence = sequence
    }

    /// The query's items, decoded: `+` is a space, and an item without `=` has an empty value.
    public var query: [ServerField] {
        guard let mark = target.firstIndex(of: "?") else { return [] }
        return target[target.index(after: mark)...].split(separator: "&").map { item in
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map {
                Self.decoded($0.replacing("+", with: " "))
            }
            return ServerField(parts[0], parts.count > 1 ? parts[1] : "")
        }
    }

    /// Returns the value of the first query item with a name.
    public func query(_ name: String) -> String? {
        query.first { $0.name == name }?.value
    }

    /// Returns the value of the first field with a name, case-insensitively.
    public func header(_ name: String) -> String? {
        headers.first { $0.isNamed(name) }?.value
    }

    /// Returns the values of all fields with a name, case-insensitively.
    public func headers(named name: String) -> [String] {
        headers.filter { $0.isNamed(name) }.map(\.value)
    }

    /// Whether the client keeps the connection open for another request (RFC 9112, section 9.3).
    var wantsKeepAlive: Bool {
        let option = header("Connection")?.lowercased()
        return minorVersion > 0 ? option != "close" : option == "keep-alive"
    }

    private static func path(of target: String) -> String {
        var path = target.prefix { $0 != "?" }
        if !path.hasPrefix("/"), let scheme = path.firstRange(of: "://") {
            path = path[scheme.upperBound...].drop { $0 != "/" }
        }
        return decoded(path)
    }

    private static func decoded(_ text: some StringProtocol) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        return text.removingPercentEncoding ?? String(text)
    }
}

/// The request line and the fields of a request.
package struct RequestHead {
    package var method: String
    package var target: String
    package var minorVersion: Int
    package var headers: [ServerField]
}
