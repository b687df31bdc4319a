// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The head of a response: status and header fields.
///
/// Stored as the received bytes; fields are looked up on access. Parsing involves no connection, and is fuzzed.
public struct ResponseHead: Sendable, Hashable {
    /// The status code (RFC 9110, section 15).
    public let statusCode: Int
    /// The announced number of body bytes; `nil` if none was announced, or if decoding will change it.
    package internal(set) var expectedBodyLength: Int64?
    /// The heads of the interim responses (1xx; RFC 9110, section 15.2) that came before this one in answer to the same request, in the order
    /// received: `100 Continue`, `103 Early Hints` (RFC 8297). Empty if there were none, and for a response from a cache.
    ///
    /// ``TransferObserver/transfer(_:didReceiveInterim:)`` reports them as they come, but for `100 Continue`.
    public package(set) var interimResponses: [ResponseHead] = []
    /// Whether its `Strict-Transport-Security` is a stored one, perhaps received long ago; `false` by default.
    package var hasStoredSecurity = false
    /// What the field lines begin with, as far as that is known.
    var initials = LineInitials.unknown
    private let bytes: [UInt8]

    /// Whether a status is that of an interim response (RFC 9110, section 15.2): not 101, after which there is no other.
    package static func isInterim(_ statusCode: Int) -> Bool { (100..<200).contains(statusCode) && statusCode != 101 }

    /// Creates a head from its bytes: status line and field lines, each with its line break, without the blank line at the end.
    ///
    /// `nil` if the first line is not a status line (RFC 9112, section 4).
    package init?(bytes: [UInt8]) {
        guard let plain = ResponseHead(bytes: bytes, expectedBodyLength: nil) else { return nil }
        let isDecoded = plain.contains("content-encoding") && plain.hasKnownCodings
        self.init(bytes: bytes, expectedBodyLength: isDecoded ? nil : plain.value(for: "Content-Length").flatMap { Int64($0) })
    }

    /// Creates a head from its bytes and a body length that was computed while they were received.
    package init?(bytes: [UInt8], expectedBodyLength: Int64?) {
        guard let statusCode = Self.statusCode(of: bytes[...]) else { return nil }
        self.statusCode = statusCode
        self.expectedBodyLength = expectedBodyLength.flatMap { $0 >= 0 ? $0 : nil }
        self.bytes = bytes
    }

    /// Creates a head from its parts, of `HTTP/1.1` and without a reason phrase.
    public init(statusCode: Int, headers: HTTPHeaders = [:]) {
        self.statusCode = statusCode
        let lines = headers.map { "\($0.name): \($0.value)\r\n" }.joined()
        bytes = Array("HTTP/1.1 \(statusCode) \r\n\(lines)".utf8)
        let isDecoded = headers["Content-Encoding"].map { ContentDecoder.knows($0) } ?? false
        expectedBodyLength = isDecoded ? nil : headers["Content-Length"].flatMap { Int64($0) }
    }

    /// Returns the fields of a body's trailers, in the order received (RFC 9110, section 6.5).
    static func fields(_ lines: [UInt8]) -> HTTPHeaders {
        ResponseHead(bytes: Array("HTTP/1.1 200\r\n".utf8) + lines, expectedBodyLength: nil)?.headers ?? HTTPHeaders()
    }

    /// Whether the body has content codings, all of which Curlew decodes.
    package var hasKnownCodings: Bool { headers["Content-Encoding"].map { ContentDecoder.knows($0) } ?? false }

    /// The version in the status line, such as `HTTP/1.1` or `HTTP/2`.
    public var httpVersion: String {
        string(bytes[..<(bytes.firstIndex(of: space) ?? bytes.endIndex)])
    }

    /// The reason phrase; empty in HTTP/2 and later, which have none.
    public var reasonPhrase: String {
        let line = bytes.prefix { $0 != carriageReturn && $0 != lineFeed }
        let parts = line.split(separator: space, maxSplits: 2, omittingEmptySubsequences: false)
        return parts.count > 2 ? string(parts[2]) : ""
    }

    /// All fields in the order received, with repetitions; folded lines are joined (RFC 9112, section 5.2).
    ///
    /// Bytes that are not UTF-8 are decoded as ISO 8859-1.
    public var headers: HTTPHeaders {
        var fields: [HTTPHeader] = []
        forEachField { name, value in
            fields.append(HTTPHeader(name: string(name), value: Self.unfolded(value)))
            return true
        }
        return HTTPHeaders(fields)
    }

    /// The value of the first field of that name, compared case-insensitively; `nil` if there is none. That of ``headers`` joins repeated
    /// fields.
    public func value(for name: String) -> String? {
        bytes(of: name).map { Self.unfolded($0) }
    }

    /// The values of all fields of that name, without those that contain a NUL, or a carriage return outside a line break.
    package func validValues(for name: String) -> [String] {
        var found: [String] = []
        var copy = name
        copy.withUTF8 { wanted in
            forEachField { field, value in
                if Self.matches(field, wanted), Self.isValid(value) { found.append(Self.unfolded(value)) }
                return true
            }
        }
        return found
    }

    private static func isValid(_ value: ArraySlice<UInt8>) -> Bool {
        value.indices.allSatisfy { index in
            switch value[index] {
            case carriageReturn: index + 1 < value.endIndex && value[index + 1] == lineFeed
            case let byte: byte != 0
            }
        }
    }

    /// The value of the first field of that name as received bytes.
    package func bytes(of name: String) -> ArraySlice<UInt8>? {
        var found: ArraySlice<UInt8>?
        var copy = name
        copy.withUTF8 { wanted in
            forEachField { field, value in
                guard Self.matches(field, wanted) else { return true }
                found = value
                return false
            }
        }
        return found
    }

    /// Whether there is a field of that name; cheaper than reading its value.
    package func contains(_ name: StaticString) -> Bool {
        var found = false
        let wanted = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        forEachField { field, _ in
            found = Self.matches(field, wanted)
            return !found
        }
        return found
    }

    /// Whether a line begins so, with letters compared case-insensitively: without one, there is no field with such a name. Much cheaper
    /// than reading the names. `beginning` is in lower case.
    package func hasLine(beginningWith beginning: StaticString) -> Bool {
        guard initials.contains(beginning.utf8Start[0]) else { return false }
        return bytes.withUnsafeBytes { bytes in
            let wanted = UnsafeBufferPointer(start: beginning.utf8Start, count: beginning.utf8CodeUnitCount)
            guard let base = bytes.baseAddress, let first = wanted.first else { return false }
            var start = 0
            while start < bytes.count, let feed = memchr(base + start, Int32(lineFeed), bytes.count - start) {
                start = feed - UnsafeMutableRawPointer(mutating: base) + 1
                guard start + wanted.count <= bytes.count, bytes[start].asciiLowercased == first else { continue }
                if zip(bytes[start...], wanted).allSatisfy({ $0.asciiLowercased == $1 }) { return true }
            }
            return false
        }
    }

    /// Calls `body` for each field until it returns `false`. Lines without a colon or a name, or with white space or control characters in
    /// the name, are skipped: also white space before the colon makes a line no field (RFC 9112, section 5.1), for libcurl too.
    private func forEachField(_ body: (ArraySlice<UInt8>, ArraySlice<UInt8>) -> Bool) {
        var start = endOfLine(from: bytes.startIndex)
        // Lines folded onto the status line belong to no field.
        while start < bytes.endIndex, bytes[start].isBlank { start = endOfLine(from: start) }
        while start < bytes.endIndex {
            var end = endOfLine(from: start)
            while end < bytes.endIndex, bytes[end].isBlank { end = endOfLine(from: end) }
            let line = bytes[start..<end]
            start = end
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let name = line[..<colon]
            guard !name.isEmpty, !name.contains(where: { $0 <= space }) else { continue }
            if !body(name, trimmed(line[(colon + 1)...])) { return }
        }
    }

    private func endOfLine(from start: Int) -> Int {
        bytes[start...].firstIndex(of: lineFeed).map { $0 + 1 } ?? bytes.endIndex
    }

    private static func matches(_ field: ArraySlice<UInt8>, _ wanted: UnsafeBufferPointer<UInt8>) -> Bool {
        field.count == wanted.count && zip(field, wanted).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }

    /// The value as a string; a line break inside, with the white space around it, becomes one space, as does a carriage return or a NUL
    /// (RFC 9110, section 5.5).
    private static func unfolded(_ value: ArraySlice<UInt8>) -> String {
        guard value.contains(where: { $0 == lineFeed || $0 == carriageReturn || $0 == 0 }) else { return string(value) }
        let unfolded = value.split(separator: lineFeed).map { Array(trimmed($0)) }.joined(separator: [space])
        return string(ArraySlice(unfolded.map { $0 == carriageReturn || $0 == 0 ? space : $0 }))
    }

    /// The status code in a status line: three digits after the version.
    package static func statusCode(of line: ArraySlice<UInt8>) -> Int? {
        line.withUnsafeBufferPointer { line in
            guard line.count > 5, line[0] == UInt8(ascii: "H"), line[1] == UInt8(ascii: "T"), line[2] == UInt8(ascii: "T"),
                line[3] == UInt8(ascii: "P"), line[4] == UInt8(ascii: "/")
            else { return nil }
            var index = 5
            while index < line.count, line[index] != space {
                guard line[index] != lineFeed else { return nil }
                index += 1
            }
            var code = 0
            var count = 0
            index += 1
            while index < line.count, line[index].isASCIIDigit {
                guard count < 3 else { return nil }
                code = code * 10 + Int(line[index] - UInt8(ascii: "0"))
                count += 1
                index += 1
            }
            return count == 3 ? code : nil
        }
    }
}

/// The letters that lines begin with, without case, as bits; some other bytes count as letters. Noted while the lines are received, so that
/// most heads need not be searched. Not part of what a head is: all are equal.
struct LineInitials: Sendable, Hashable {
    /// Any may be.
    static let unknown = LineInitials(bits: .max)

    private var bits: UInt32 = 0

    init() {}

    private init(bits: UInt32) { self.bits = bits }

    mutating func note(_ byte: UInt8) { bits |= 1 << UInt32(byte & 31) }

    func contains(_ byte: UInt8) -> Bool { bits & 1 << UInt32(byte & 31) != 0 }

    static func == (lhs: LineInitials, rhs: LineInitials) -> Bool { true }

    func hash(into hasher: inout Hasher) {}
}

private let space = UInt8(ascii: " ")
private let lineFeed = UInt8(ascii: "\n")
private let carriageReturn = UInt8(ascii: "\r")

private func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let start = bytes.firstIndex { !$0.isBlankOrBreak } ?? bytes.endIndex
    let end = bytes.lastIndex { !$0.isBlankOrBreak }.map { $0 + 1 } ?? start
    return bytes[start..<end]
}

/// Decodes the bytes as UTF-8 or, if they are invalid, as ISO 8859-1, which maps every byte.
private func string(_ bytes: ArraySlice<UInt8>) -> String {
    String(validating: bytes, as: UTF8.self) ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
}

// MARK: - Descriptions

extension ResponseHead: CustomStringConvertible, RedactedReflectable {
    /// The status and the header fields, one per line; redacted (``Redaction``), with control characters escaped.
    public var description: String { "\(Redaction.escaped(httpVersion)) \(statusCode)\n\(headers)" }

    /// Version, status and header fields, as in the description.
    package var shownParts: KeyValuePairs<String, Any> {
        ["httpVersion": Redaction.escaped(httpVersion), "statusCode": statusCode, "headers": headers]
    }
}
