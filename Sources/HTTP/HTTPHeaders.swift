// SPDX-License-Identifier: Apache-2.0

/// One header field (RFC 9110, section 5).
public struct HTTPHeader: Hashable, Sendable {
    /// The field's name as given; names are compared case-insensitively.
    public let name: String
    /// The field's value as given.
    public let value: String

    /// Creates a field from a name and a value. Neither is validated here: a request with an invalid field fails when it is created.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// Whether both have the same name and value, byte by byte.
    public static func == (lhs: HTTPHeader, rhs: HTTPHeader) -> Bool {
        lhs.name.hasSameBytes(as: rhs.name) && lhs.value.hasSameBytes(as: rhs.value)
    }

    /// Whether the name is a token, and the value has no control characters except tabs (RFC 9110, sections 5.1 and 5.5).
    package var isValid: Bool {
        guard HTTPToken.isToken(name) else { return false }
        // Scanning contiguous bytes is several times as fast.
        return value.utf8.withContiguousStorageIfAvailable { !Self.hasControl($0) } ?? !Self.hasControl(value.utf8)
    }

    /// Whether the field may follow a body: not what frames the message, routes it, or is needed before its content (RFC 9110, section
    /// 6.5.1).
    package var mayBeTrailer: Bool { !Self.neverTrailers.contains(name.lowercased()) }

    private static let neverTrailers: Set<String> = [
        "authorization", "cache-control", "connection", "content-encoding", "content-length", "content-range", "content-type", "cookie",
        "expect", "host", "max-forwards", "pragma", "proxy-authorization", "range", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    private static func hasControl(_ bytes: some Sequence<UInt8>) -> Bool {
        for byte in bytes where (byte < 0x20 && byte != 0x09) || byte == 0x7F { return true }
        return false
    }

    /// Whether `other` is the name of the same field, compared case-insensitively.
    package func isNamed(_ other: String) -> Bool {
        name.equalsIgnoringASCIICase(other)
    }
}

/// The header fields of a request or a response: ordered, with case-insensitive names and repeated fields.
public struct HTTPHeaders: Hashable, Sendable {
    @usableFromInline var fields: [HTTPHeader] = []

    /// Creates an empty list.
    public init() {}

    /// Creates a list of the given fields, in their order, with repeated names.
    public init(_ headers: [HTTPHeader]) {
        fields = headers
    }

    /// Creates a list of a dictionary's entries, sorted by name.
    public init(_ dictionary: [String: String]) {
        fields = dictionary.sorted { $0.key < $1.key }.map { HTTPHeader(name: $0.key, value: $0.value) }
    }

    /// Appends a field; existing fields of the same name are kept.
    public mutating func append(_ header: HTTPHeader) {
        fields.append(header)
    }

    /// Appends a field; existing fields of the same name are kept.
    public mutating func append(name: String, value: String) {
        append(HTTPHeader(name: name, value: value))
    }

    /// Sets a field: replaces the first one of that name in place and removes further ones, or appends it.
    public mutating func update(_ header: HTTPHeader) {
        guard let first = fields.firstIndex(where: { $0.isNamed(header.name) }) else { return append(header) }
        fields[first] = header
        fields[(first + 1)...].removeAll { $0.isNamed(header.name) }
    }

    /// Sets a field: replaces the first one of that name in place and removes further ones, or appends it.
    public mutating func update(name: String, value: String) {
        update(HTTPHeader(name: name, value: value))
    }

    /// Removes all fields of that name.
    public mutating func remove(name: String) {
        fields.removeAll { $0.isNamed(name) }
    }

    /// Returns the value of the field, repeated ones joined with `", "` (RFC 9110, section 5.3); `nil` if there is none.
    ///
    /// Not for `Set-Cookie`, whose values contain commas: use ``values(for:)``.
    public func value(for name: String) -> String? {
        let all = values(for: name)
        return all.count > 1 ? all.joined(separator: ", ") : all.first
    }

    /// Returns the values of all fields of that name, in order.
    public func values(for name: String) -> [String] {
        fields.filter { $0.isNamed(name) }.map(\.value)
    }

    /// The value of the field, as returned by ``value(for:)``; setting it replaces all fields of that name, `nil` removes them.
    public subscript(name: String) -> String? {
        get { value(for: name) }
        set {
            if let newValue { update(name: name, value: newValue) } else { remove(name: name) }
        }
    }

    /// The fields as a dictionary; repeated ones are joined as by ``value(for:)``, with the first one's spelling.
    public var dictionary: [String: String] {
        var result: [String: String] = [:]
        var spelling: [String: String] = [:]
        for field in fields {
            let key = spelling[field.name.lowercased(), default: field.name]
            spelling[field.name.lowercased()] = key
            result[key] = result[key].map { $0 + ", " + field.value } ?? field.value
        }
        return result
    }

    /// Adds the fields of `other`, which replace those of the same name.
    package mutating func merge(_ other: HTTPHeaders) {
        for name in Set(other.fields.map { $0.name.lowercased() }) { remove(name: name) }
        fields.append(contentsOf: other.fields)
    }
}

// MARK: - Collection

extension HTTPHeaders: RandomAccessCollection {
    /// The position of the first field.
    @inlinable public var startIndex: Int { fields.startIndex }
    /// The position after the last field.
    @inlinable public var endIndex: Int { fields.endIndex }
    /// The field at a position, in the order in which they were added.
    @inlinable public subscript(position: Int) -> HTTPHeader { fields[position] }
}

// MARK: - Literals

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
    /// Creates a list of a literal's entries in their order, with repeated names.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { HTTPHeader(name: $0.0, value: $0.1) }
    }
}

extension HTTPHeaders: ExpressibleByArrayLiteral {
    /// Creates a list of the given fields, in their order, with repeated names.
    public init(arrayLiteral elements: HTTPHeader...) {
        fields = elements
    }
}

// MARK: - Descriptions

extension HTTPHeaders: CustomStringConvertible, CustomReflectable {
    /// The fields, one per line, in HTTP/1.1's format; each redacted as in its own description.
    public var description: String {
        let redaction = Redaction.current
        return fields.map(redaction.line).joined(separator: "\n")
    }

    /// The fields, redacted.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: fields, displayStyle: .collection) }
}

extension HTTPHeader: LineConvertible, RedactedReflectable {
    /// The field in HTTP/1.1's format, redacted (``Redaction``): credentials, cookies and marked fields without their values, URLs in other
    /// values without user name and password. Control characters are escaped.
    package var line: String { Redaction.current.line(self) }

    /// Name and value, as in the description.
    package var shownParts: KeyValuePairs<String, Any> {
        ["name": Redaction.escaped(name), "value": Redaction.current.value(of: self)]
    }
}

// MARK: - Well-known fields

extension HTTPHeader {
    /// `Accept` (RFC 9110, section 12.5.1).
    public static func accept(_ value: String) -> HTTPHeader { HTTPHeader(name: "Accept", value: value) }
    /// `Accept-Encoding` (RFC 9110, section 12.5.3). Bodies in a coding that Curlew doesn't support are delivered undecoded.
    public static func acceptEncoding(_ value: String) -> HTTPHeader { HTTPHeader(name: "Accept-Encoding", value: value) }
    /// `Accept-Language` (RFC 9110, section 12.5.4).
    public static func acceptLanguage(_ value: String) -> HTTPHeader { HTTPHeader(name: "Accept-Language", value: value) }
    /// `Authorization` with any credentials (RFC 9110, section 11.6.2).
    public static func authorization(_ value: String) -> HTTPHeader { HTTPHeader(name: "Authorization", value: value) }
    /// `Authorization` with a bearer token (RFC 6750, section 2.1).
    public static func authorization(bearerToken: String) -> HTTPHeader { authorization("Bearer \(bearerToken)") }
    /// `Authorization` with a user name and password, in Base64 of UTF-8 (RFC 7617, section 2). A colon in the user name, which the RFC
    /// forbids, ends it for the server; ``/CurlewCore/Request/authorizationHeader(user:password:)`` returns `nil` for it.
    public static func authorization(username: String, password: String) -> HTTPHeader {
        authorization("Basic \(Data("\(username):\(password)".utf8).base64EncodedString())")
    }
    /// `Content-Type` (RFC 9110, section 8.3).
    public static func contentType(_ value: String) -> HTTPHeader { HTTPHeader(name: "Content-Type", value: value) }
    /// `User-Agent` (RFC 9110, section 10.1.5).
    public static func userAgent(_ value: String) -> HTTPHeader { HTTPHeader(name: "User-Agent", value: value) }
}

// MARK: - ASCII

extension StringProtocol {
    /// Whether both are equal, ignoring the case of the ASCII letters only.
    @inlinable
    package func equalsIgnoringASCIICase(_ other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count && zip(utf8, other.utf8).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }
}

extension UInt8 {
    /// The byte, with A to Z mapped to a to z.
    @inlinable @inline(__always)
    package var asciiLowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
}

extension Collection<UInt8> {
    /// The bytes as text with A to Z mapped to a to z, and nothing else: `lowercased()` makes a k of the sign for kelvin.
    var lowercasedText: String {
        guard contains(where: { $0 &- 0x41 < 26 }) else { return String(decoding: self, as: UTF8.self) }
        return String(decoding: map(\.asciiLowercased), as: UTF8.self)
    }
}
