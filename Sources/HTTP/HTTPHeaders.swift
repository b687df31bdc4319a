// SPDX-License-Identifier: Apache-2.0

/// One header field (RFC 9110, section 5).
public struct HTTPHeader: Hashable, Sendable {
    /// The field's name as given; names compare without regard to case.
    public let name: String
    /// The field's value as given.
    public let value: String

    /// Makes a header of a name and a value. Neither is checked here: a request with an invalid one fails when it is made.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// Whether the name is a token and the value free of control characters but the tab (RFC 9110, sections 5.1 and 5.5).
    package var isValid: Bool {
        guard HTTPToken.isToken(name) else { return false }
        // Bytes in one piece are looked through several times as fast.
        return value.utf8.withContiguousStorageIfAvailable { !Self.hasControl($0) } ?? !Self.hasControl(value.utf8)
    }

    private static func hasControl(_ bytes: some Sequence<UInt8>) -> Bool {
        for byte in bytes where (byte < 0x20 && byte != 0x09) || byte == 0x7F { return true }
        return false
    }

    /// Whether `other` names the same field, without regard to case.
    package func isNamed(_ other: String) -> Bool {
        name.equalsIgnoringASCIICase(other)
    }
}

/// The header fields of a request or a response: ordered, names without regard to case, repeated fields kept.
public struct HTTPHeaders: Hashable, Sendable {
    @usableFromInline var fields: [HTTPHeader] = []

    /// Makes an empty list.
    public init() {}

    /// Makes a list of the given headers, in their order, repeated names kept.
    public init(_ headers: [HTTPHeader]) {
        fields = headers
    }

    /// Makes a list of a dictionary's entries, sorted by name.
    public init(_ dictionary: [String: String]) {
        fields = dictionary.sorted { $0.key < $1.key }.map { HTTPHeader(name: $0.key, value: $0.value) }
    }

    /// Adds a field behind the others; fields of the same name stay.
    public mutating func append(_ header: HTTPHeader) {
        fields.append(header)
    }

    /// Adds a field behind the others; fields of the same name stay.
    public mutating func append(name: String, value: String) {
        append(HTTPHeader(name: name, value: value))
    }

    /// Sets a field: replaces the first one of that name where it stands, removes further ones, or adds it at the end.
    public mutating func update(_ header: HTTPHeader) {
        guard let first = fields.firstIndex(where: { $0.isNamed(header.name) }) else { return append(header) }
        fields[first] = header
        fields[(first + 1)...].removeAll { $0.isNamed(header.name) }
    }

    /// Sets a field: replaces the first one of that name where it stands, removes further ones, or adds it at the end.
    public mutating func update(name: String, value: String) {
        update(HTTPHeader(name: name, value: value))
    }

    /// Removes all fields of that name.
    public mutating func remove(name: String) {
        fields.removeAll { $0.isNamed(name) }
    }

    /// The value of the field, repeated ones joined with `", "` (RFC 9110, section 5.3); `nil` when there is none.
    ///
    /// Not for `Set-Cookie`, whose values hold commas: take ``values(for:)``.
    public func value(for name: String) -> String? {
        let all = values(for: name)
        return all.count > 1 ? all.joined(separator: ", ") : all.first
    }

    /// The values of all fields of that name, in order.
    public func values(for name: String) -> [String] {
        fields.filter { $0.isNamed(name) }.map(\.value)
    }

    /// The value of the field as by ``value(for:)``; setting replaces all of that name, `nil` removes them.
    public subscript(name: String) -> String? {
        get { value(for: name) }
        set {
            if let newValue { update(name: name, value: newValue) } else { remove(name: name) }
        }
    }

    /// The fields as a dictionary; repeated ones are joined as by ``value(for:)``, under the first one's spelling.
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

    /// Adds `other`'s fields, each replacing those of the same name here.
    public mutating func merge(_ other: HTTPHeaders) {
        for name in Set(other.fields.map { $0.name.lowercased() }) { remove(name: name) }
        fields.append(contentsOf: other.fields)
    }
}

// MARK: - Collection

extension HTTPHeaders: RandomAccessCollection {
    /// The position of the first field.
    @inlinable public var startIndex: Int { fields.startIndex }
    /// The position behind the last field.
    @inlinable public var endIndex: Int { fields.endIndex }
    /// The field at a position, in the order they were added.
    @inlinable public subscript(position: Int) -> HTTPHeader { fields[position] }
}

// MARK: - Literals

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
    /// Makes a list of a literal's entries in their order, repeated names kept.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { HTTPHeader(name: $0.0, value: $0.1) }
    }
}

extension HTTPHeaders: ExpressibleByArrayLiteral {
    /// Makes a list of the given headers, in their order, repeated names kept.
    public init(arrayLiteral elements: HTTPHeader...) {
        fields = elements
    }
}

// MARK: - Descriptions

extension HTTPHeaders: CustomStringConvertible, CustomReflectable {
    /// The fields, one a line, as on the wire; each as its own description, so without secrets.
    public var description: String {
        let redaction = Redaction.current
        return fields.map(redaction.line).joined(separator: "\n")
    }

    /// The fields, without secrets.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: fields, displayStyle: .collection) }
}

extension HTTPHeader: CustomStringConvertible, CustomReflectable {
    /// The field as on the wire, redacted (``Redaction``): credentials, cookies and marked fields without the value, URLs in others without
    /// user name and password. Control characters are escaped.
    public var description: String { Redaction.current.line(self) }

    /// Name and value, as in the description.
    public var customMirror: Mirror {
        .redacted(self, ["name": Redaction.escaped(name), "value": Redaction.current.value(of: self)])
    }
}

// MARK: - Well-known fields

extension HTTPHeader {
    /// `Accept` (RFC 9110, section 12.5.1).
    public static func accept(_ value: String) -> HTTPHeader { HTTPHeader(name: "Accept", value: value) }
    /// `Accept-Encoding` (RFC 9110, section 12.5.3). A coding that Curlew can't undo is then delivered as it came.
    public static func acceptEncoding(_ value: String) -> HTTPHeader { HTTPHeader(name: "Accept-Encoding", value: value) }
    /// `Accept-Language` (RFC 9110, section 12.5.4).
    public static func acceptLanguage(_ value: String) -> HTTPHeader { HTTPHeader(name: "Accept-Language", value: value) }
    /// `Authorization` with any credentials (RFC 9110, section 11.6.2).
    public static func authorization(_ value: String) -> HTTPHeader { HTTPHeader(name: "Authorization", value: value) }
    /// `Authorization` with a bearer token (RFC 6750, section 2.1).
    public static func authorization(bearerToken: String) -> HTTPHeader { authorization("Bearer \(bearerToken)") }
    /// `Authorization` with a user's name and password, Base64 of their UTF-8 (RFC 7617, section 2).
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
    /// Whether the two are equal when the letters A to Z count as a to z; all other bytes count as they are.
    @inlinable
    package func equalsIgnoringASCIICase(_ other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count && zip(utf8, other.utf8).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }
}

extension UInt8 {
    /// The byte, A to Z made a to z.
    @inlinable @inline(__always)
    package var asciiLowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
}
