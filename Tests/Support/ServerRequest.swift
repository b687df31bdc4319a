// SPDX-License-Identifier: Apache-2.0

/// A name with a value: a header field, or an item of a query.
public struct ServerField: Sendable, Hashable, Codable {
    /// The name as it was sent.
    public let name: String
    /// The value without the white space around it.
    public let value: String

    /// A name with a value.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    func isNamed(_ other: String) -> Bool {
        name.utf8.count == other.utf8.count && name.lowercased() == other.lowercased()
    }
}

/// A request as ``LoopbackServer`` read it.
public struct ServerRequest: Sendable {
    /// The method, as in `GET`.
    public let method: String
    /// The request target as it was sent: a path with a query, or a whole URL from a client that takes this for its proxy.
    public let target: String
    /// 1 for HTTP/1.1, 0 for HTTP/1.0.
    public let minorVersion: Int
    /// The target's path, percent-decoded.
    public let path: String
    /// The header fields in the order they came.
    public let headers: [ServerField]
    /// The body, without its transfer coding; empty where it was not kept.
    public internal(set) var body = Data()
    /// How many bytes the body had, kept or not.
    public internal(set) var bodyLength: Int64 = 0
    /// The CRC-32 of the body, kept or not; 0 for an empty one.
    public internal(set) var bodyChecksum: UInt32 = 0
    /// The connection's number: 1 for the first that the server accepted.
    public let connection: Int
    /// The request's number on its connection, from 1.
    public let sequence: Int

    init(head: RequestHead, connection: Int, sequence: Int) {
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

    /// The value of the first item of that name in the query.
    public func query(_ name: String) -> String? {
        query.first { $0.name == name }?.value
    }

    /// The value of the first field of that name, without regard to case.
    public func header(_ name: String) -> String? {
        headers.first { $0.isNamed(name) }?.value
    }

    /// The values of all fields of that name, without regard to case.
    public func headers(named name: String) -> [String] {
        headers.filter { $0.isNamed(name) }.map(\.value)
    }

    /// Whether the client lets the connection stand for another request (RFC 9112, section 9.3).
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

/// The first line and the fields of a request.
struct RequestHead {
    var method: String
    var target: String
    var minorVersion: Int
    var headers: [ServerField]
}
