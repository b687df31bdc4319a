// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The first bytes of an entry's file, which say how the others are divided. Numbers are little-endian.
///
///     offset  length
///          0       8  "CURLEWCE"
///          8       4  the version of the form
///         12       4  length of the key
///         16       4  length of the metadata
///         20       8  length of the body
///         28       8  CRC-64 of what stands before, of the key and of the metadata
///         36       8  CRC-64 of the body
///         44          the key, the metadata, the body
struct EntryHead: Equatable {
    static let magic = Data("CURLEWCE".utf8)
    /// A reader refuses every other; readers of other versions look elsewhere, in a directory of their own.
    static let version: UInt32 = 1
    static let size = 44

    let keyLength: Int
    let metadataLength: Int
    let bodyLength: Int
    private let headCheck: UInt64
    let bodyCheck: UInt64

    var fileSize: Int64 { Int64(Self.size) + Int64(keyLength) + Int64(metadataLength) + Int64(bodyLength) }

    /// What an entry has; `nil` if a part is longer than can be said.
    init?(_ entry: CacheEntry, _ key: CacheKey) {
        guard UInt32(exactly: key.bytes.count) != nil, UInt32(exactly: entry.metadata.count) != nil else { return nil }
        keyLength = key.bytes.count
        metadataLength = entry.metadata.count
        bodyLength = entry.body.count
        bodyCheck = CRC64.check(of: entry.body)
        headCheck = Self.check(Self.lengths(keyLength, metadataLength, bodyLength), key.bytes, entry.metadata)
    }

    /// Reads a head; `nil` if it is none, or lengths and the size of the file do not agree.
    init?(_ bytes: Data, fileSize: Int64) {
        guard bytes.count == Self.size, bytes.prefix(8) == Self.magic else { return nil }
        let (version, keyLength, metadataLength, bodyLength, headCheck, bodyCheck) = bytes.withUnsafeBytes { bytes in
            func number<T: FixedWidthInteger>(at offset: Int, _: T.Type) -> T {
                T(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: T.self))
            }
            return (
                number(at: 8, UInt32.self), number(at: 12, UInt32.self), number(at: 16, UInt32.self), number(at: 20, UInt64.self),
                number(at: 28, UInt64.self), number(at: 36, UInt64.self)
            )
        }
        // A difference, which can't overflow, where the sum of what a foreign file says could.
        let rest = fileSize - Int64(Self.size) - Int64(keyLength) - Int64(metadataLength)
        guard version == Self.version, rest >= 0, bodyLength == UInt64(rest) else { return nil }
        self.keyLength = Int(keyLength)
        self.metadataLength = Int(metadataLength)
        self.bodyLength = Int(rest)
        self.headCheck = headCheck
        self.bodyCheck = bodyCheck
    }

    /// Whether key and metadata are those for which the head was written.
    func agrees(with key: Data, _ metadata: Data) -> Bool {
        headCheck == Self.check(Self.lengths(keyLength, metadataLength, bodyLength), key, metadata)
    }

    var bytes: Data {
        var bytes = Self.lengths(keyLength, metadataLength, bodyLength)
        bytes.append(headCheck)
        bytes.append(bodyCheck)
        return bytes
    }

    private static func lengths(_ key: Int, _ metadata: Int, _ body: Int) -> Data {
        var bytes = magic
        bytes.append(version)
        bytes.append(UInt32(key))
        bytes.append(UInt32(metadata))
        bytes.append(UInt64(body))
        return bytes
    }

    private static func check(_ parts: Data...) -> UInt64 {
        var crc = CRC64()
        for part in parts { crc.update(part) }
        return crc.value
    }
}

extension Data {
    fileprivate mutating func append(_ number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}
