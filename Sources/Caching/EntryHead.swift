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
///
/// A large body may begin at a multiple of ``alignment``, so that a file system can share its blocks with those of a copy; the bytes before
/// it are then zeros that are not read.
struct EntryHead: Equatable {
    static let magic = Data("CURLEWCE".utf8)
    private static let magicWord: UInt64 = 0x4543_5745_4C52_5543  // "CURLEWCE"
    /// The length of the fields that the hash of the head covers.
    private static let hashedSize = 28
    /// Readers reject other versions; each version has a directory of its own.
    static let version: UInt32 = 2
    static let size = 44
    /// What a body is aligned to, in bytes: the largest block of common file systems.
    static let alignment = 4096

    let keyLength: Int
    let metadataLength: Int
    let bodyLength: Int
    private let headHash: UInt64
    let bodyHash: UInt64
    private let isAligned: Bool

    /// The offset of the body in the file.
    var bodyOffset: Int64 { Self.bodyOffset(keyLength, metadataLength, isAligned: isAligned) }
    var fileSize: Int64 { bodyOffset + Int64(bodyLength) }

    /// The offset of a body in its file.
    static func bodyOffset(_ keyLength: Int, _ metadataLength: Int, isAligned: Bool) -> Int64 {
        let end = Int64(size) + Int64(keyLength) + Int64(metadataLength)
        return isAligned ? (end + Int64(alignment) - 1) / Int64(alignment) * Int64(alignment) : end
    }

    /// Describes an entry; `nil` if a part is too long for its length field.
    init?(_ entry: CacheEntry, _ key: CacheKey) {
        self.init(key, entry.metadata, bodyLength: entry.body.count, bodyHash: XXHash64.hash(of: entry.body))
    }

    /// Describes an entry whose body is written already; `nil` if a part is too long for its length field.
    init?(_ key: CacheKey, _ metadata: Data, bodyLength: Int, bodyHash: UInt64, isAligned: Bool = false) {
        guard UInt32(exactly: key.bytes.count) != nil, UInt32(exactly: metadata.count) != nil else { return nil }
        keyLength = key.bytes.count
        metadataLength = metadata.count
        self.bodyLength = bodyLength
        self.bodyHash = bodyHash
        self.isAligned = isAligned
        headHash = Self.hash(Self.lengths(keyLength, metadataLength, bodyLength), key.bytes, metadata)
    }

    /// Parses a head; `nil` if it is invalid, or its lengths do not add up to the size of the file.
    init?(_ bytes: Data, fileSize: Int64) {
        guard let head = bytes.withUnsafeBytes({ EntryHead($0, fileSize: fileSize) }) else { return nil }
        self = head
    }

    /// Parses a head; `nil` if it is invalid, or its lengths do not add up to the size of the file.
    init?(_ bytes: UnsafeRawBufferPointer, fileSize: Int64) {
        func number<T: FixedWidthInteger>(at offset: Int, _: T.Type) -> T {
            T(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: T.self))
        }
        guard bytes.count == Self.size, number(at: 0, UInt64.self) == Self.magicWord else { return nil }
        let (version, keyLength, metadataLength) = (number(at: 8, UInt32.self), number(at: 12, UInt32.self), number(at: 16, UInt32.self))
        let (bodyLength, headHash, bodyHash) = (number(at: 20, UInt64.self), number(at: 28, UInt64.self), number(at: 36, UInt64.self))
        guard version == Self.version, let bodyLength = Int(exactly: bodyLength) else { return nil }
        // Subtracted, which can't overflow, rather than added: the lengths of a foreign file could overflow a sum.
        let isAligned = [false, true].first {
            fileSize - Self.bodyOffset(Int(keyLength), Int(metadataLength), isAligned: $0) == Int64(bodyLength)
        }
        guard let isAligned else { return nil }
        self.keyLength = Int(keyLength)
        self.metadataLength = Int(metadataLength)
        self.bodyLength = bodyLength
        self.isAligned = isAligned
        self.headHash = headHash
        self.bodyHash = bodyHash
    }

    /// Whether the head was written for this key and metadata.
    func agrees(with key: Data, _ metadata: Data) -> Bool {
        headHash == Self.hash(Self.lengths(keyLength, metadataLength, bodyLength), key, metadata)
    }

    /// The metadata in what follows a head, if that is of this key and both were written together.
    ///
    /// - Parameters:
    ///   - bytes: the bytes of this head.
    ///   - rest: the key and the metadata that follow it.
    func metadata(for key: Data, bytes: UnsafeRawBufferPointer, rest: UnsafeRawBufferPointer) -> Data? {
        guard rest.count == keyLength + metadataLength, Self.areEqual(key, rest.prefix(keyLength)) else { return nil }
        var hash = XXHash64()
        hash.update(UnsafeRawBufferPointer(rebasing: bytes[..<Self.hashedSize]))
        hash.update(rest)
        return hash.value == headHash ? Data(copying: rest.dropFirst(keyLength)) : nil
    }

    /// Compares at once: the elements of a `Data`, one after the other, take longer than reading a small file.
    private static func areEqual(_ data: Data, _ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        guard data.count == bytes.count else { return false }
        return data.withUnsafeBytes { data in
            guard let a = data.baseAddress, let b = UnsafeRawBufferPointer(rebasing: bytes).baseAddress else { return true }
            return memcmp(a, b, data.count) == 0
        }
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
    /// Copies bytes, without the generic initializer's search for what kind of a sequence they are.
    init(copying bytes: Slice<UnsafeRawBufferPointer>) {
        let bytes = UnsafeRawBufferPointer(rebasing: bytes)
        self = bytes.baseAddress.map { Data(bytes: $0, count: bytes.count) } ?? Data()
    }

    fileprivate mutating func append(_ number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}
