// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension StoredResponse {
    /// The version of the format, its first byte; others are not read.
    private static let version: UInt8 = 2

    /// The response as bytes, for the metadata of a cache entry: version, times, status, part, and length-prefixed strings, with numbers in
    /// little-endian order.
    package var encoded: Data {
        var writer = ByteWriter()
        writer.put(Self.version)
        encode(to: &writer)
        return Data(writer.bytes)
    }

    /// Decodes what ``encoded`` has made. The bytes are untrusted, as another program may have written them: any give a response or `nil`
    /// (fuzzed: `FuzzTests`, `stored-response`).
    package init?(decoding data: Data) {
        var reader = ByteReader([UInt8](data))
        guard reader.byte() == Self.version, let response = Self.decode(from: &reader), reader.isAtEnd else { return nil }
        self = response
    }

    func encode(to writer: inout ByteWriter) {
        writer.put(requestTime.bitPattern)
        writer.put(responseTime.bitPattern)
        writer.put(UInt64(statusCode))
        writer.put(part == nil ? UInt8(0) : 1)
        if let part {
            writer.put(UInt64(bitPattern: part.offset))
            writer.put(UInt64(bitPattern: part.length))
            writer.put(UInt64(bitPattern: part.total ?? -1))
        }
        writer.put(url)
        writer.put(partition)
        writer.put(UInt64(selection.names.count))
        for name in selection.names { writer.put(name) }
        writer.put(UInt8(selection.fingerprint.count))
        for byte in selection.fingerprint { writer.put(byte) }
        writer.put(UInt64(headers.count))
        for field in headers {
            writer.put(field.name)
            writer.put(field.value)
        }
    }

    static func decode(from reader: inout ByteReader) -> StoredResponse? {
        guard let requested = reader.word(), let received = reader.word(), let status = reader.word(), (100...999).contains(status),
            let hasPart = reader.byte(), hasPart < 2
        else { return nil }
        let requestTime = Double(bitPattern: requested)
        let responseTime = Double(bitPattern: received)
        guard requestTime.isFinite, responseTime.isFinite else { return nil }
        var part: Part?
        if hasPart == 1 {
            guard let offset = reader.word().map(Int64.init(bitPattern:)), let length = reader.word().map(Int64.init(bitPattern:)),
                let total = reader.word().map(Int64.init(bitPattern:)), offset >= 0, length > 0, total >= -1,
                case let (end, overflow) = offset.addingReportingOverflow(length), !overflow, total == -1 || end <= total
            else { return nil }
            part = Part(offset: offset, length: length, total: total == -1 ? nil : total)
        }
        guard let url = reader.text(), let partition = reader.text(), let nameCount = reader.count(eachAtLeast: 8) else { return nil }
        var names: [String] = []
        for _ in 0..<nameCount {
            guard let name = reader.text() else { return nil }
            names.append(name)
        }
        guard let digestLength = reader.byte(), digestLength == 0 || digestLength == 32, let fingerprint = reader.bytes(Int(digestLength)),
            let fieldCount = reader.count(eachAtLeast: 16)
        else { return nil }
        var fields: [HTTPHeader] = []
        fields.reserveCapacity(fieldCount)
        for _ in 0..<fieldCount {
            guard let name = reader.text(), let value = reader.text() else { return nil }
            fields.append(HTTPHeader(name: name, value: value))
        }
        return StoredResponse(
            url: url, statusCode: Int(status), headers: HTTPHeaders(fields), requestTime: requestTime, responseTime: responseTime,
            selection: SelectionKey(names: names, fingerprint: fingerprint), part: part, partition: partition)
    }
}

/// Appends numbers and strings to bytes.
struct ByteWriter {
    private(set) var bytes: [UInt8] = []

    mutating func put(_ byte: UInt8) { bytes.append(byte) }

    mutating func put(_ word: UInt64) {
        withUnsafeBytes(of: word.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func put(_ text: String) {
        put(UInt64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }
}

/// Reads numbers and strings from bytes; `nil` at their end.
struct ByteReader {
    private let content: [UInt8]
    private var index = 0

    init(_ content: [UInt8]) { self.content = content }

    var isAtEnd: Bool { index == content.count }
    private var left: Int { content.count - index }

    mutating func byte() -> UInt8? {
        guard left >= 1 else { return nil }
        defer { index += 1 }
        return content[index]
    }

    mutating func word() -> UInt64? {
        guard left >= 8 else { return nil }
        defer { index += 8 }
        return (0..<8).reduce(UInt64(0)) { $0 | UInt64(content[index + $1]) << UInt64(8 * $1) }
    }

    /// A number of elements, each of which has at least that many bytes, so that a false one reserves no memory.
    mutating func count(eachAtLeast size: Int) -> Int? {
        guard let word = word(), let count = Int(exactly: word), count <= left / size else { return nil }
        return count
    }

    mutating func bytes(_ count: Int) -> [UInt8]? {
        guard count <= left else { return nil }
        defer { index += count }
        return Array(content[index..<(index + count)])
    }

    mutating func text() -> String? {
        guard let word = word(), let count = Int(exactly: word), count <= left else { return nil }
        defer { index += count }
        return String(validating: content[index..<(index + count)], as: UTF8.self)
    }
}
