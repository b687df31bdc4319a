// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP

/// The head of an entry's file, which describes the rest. Numbers are little-endian. The file is untrusted, as a crash or another program
/// may have damaged it: any bytes give a head or `nil` (`Tests/FuzzTests`).
///
///     offset  length
///          0       8  "CURLEWCE"
///          8       4  version of the format
///         12       4  length of the key
///         16       4  length of the metadata
///         20       8  length of the body
///         28       8  XXH64 of the fields before, the key and the metadata
///         36       8  XXH64 of the body
///         44          the key, the metadata, the body
struct EntryHead: Equatable {
    static let magic = Data("CURLEWCE".utf8)
    /// Readers reject other versions; each version has a directory of its own.
    static let version: UInt32 = 2
    static let size = 44

    let keyLength: Int
    let metadataLength: Int
    let bodyLength: Int
    private let headHash: UInt64
    let bodyHash: UInt64

    var fileSize: Int64 { Int64(Self.size) + Int64(keyLength) + Int64(metadataLength) + Int64(bodyLength) }

    /// Describes an entry; `nil` if a part is too long for its length field.
    init?(_ entry: CacheEntry, _ key: CacheKey) {
        self.init(key, entry.metadata, bodyLength: entry.body.count, bodyHash: XXHash64.hash(of: entry.body))
    }

    /// Describes an entry whose body is written already; `nil` if a part is too long for its length field.
    init?(_ key: CacheKey, _ metadata: Data, bodyLength: Int, bodyHash: UInt64) {
        guard UInt32(exactly: key.bytes.count) != nil, UInt32(exactly: metadata.count) != nil else { return nil }
        keyLength = key.bytes.count
        metadataLength = metadata.count
        self.bodyLength = bodyLength
        self.bodyHash = bodyHash
        headHash = Self.hash(Self.lengths(keyLength, metadataLength, bodyLength), key.bytes, metadata)
    }

    /// Parses a head; `nil` if it is invalid, or its lengths do not add up to the size of the file.
    init?(_ bytes: Data, fileSize: Int64) {
        guard bytes.count == Self.size, bytes.prefix(8) == Self.magic else { return nil }
        let (version, keyLength, metadataLength, bodyLength, headHash, bodyHash) = bytes.withUnsafeBytes { bytes in
            func number<T: FixedWidthInteger>(at offset: Int, _: T.Type) -> T {
                T(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: T.self))
            }
            return (
                number(at: 8, UInt32.self), number(at: 12, UInt32.self), number(at: 16, UInt32.self), number(at: 20, UInt64.self),
                number(at: 28, UInt64.self), number(at: 36, UInt64.self)
            )
        }
        // Subtracted, which can't overflow, rather than added: the lengths of a foreign file could overflow a sum.
        let rest = fileSize - Int64(Self.size) - Int64(keyLength) - Int64(metadataLength)
        guard version == Self.version, rest >= 0, bodyLength == UInt64(rest) else { return nil }
        self.keyLength = Int(keyLength)
        self.metadataLength = Int(metadataLength)
        self.bodyLength = Int(rest)
        self.headHash = headHash
        self.bodyHash = bodyHash
    }

    /// Whether the head was written for this key and metadata.
    func agrees(with key: Data, _ metadata: Data) -> Bool {
        headHash == Self.hash(Self.lengths(keyLength, metadataLength, bodyLength), key, metadata)
    }

    var bytes: Data {
        var bytes = Self.lengths(keyLength, metadataLength, bodyLength)
        bytes.append(headHash)
        bytes.append(bodyHash)
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

    private static func hash(_ parts: Data...) -> UInt64 {
        var hash = XXHash64()
        for part in parts { hash.update(part) }
        return hash.value
    }
}

extension Data {
    fileprivate mutating func append(_ number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}
