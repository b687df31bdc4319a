// SPDX-License-Identifier: Apache-2.0

/// The CRC-32 of zlib, gzip and PNG, updated incrementally.
///
/// Processes eight bytes per step ("slicing by 8") with operations that are fast even in a debug build: about 600 MB/s.
public struct CRC32: Sendable, Hashable {
    private static let tables = makeTables()
    private var register: UInt32 = 0xFFFF_FFFF

    /// Creates a checksum; 0 for no bytes.
    public init() {}

    /// The checksum of all bytes so far.
    public var value: UInt32 { ~register }

    /// Returns the checksum of `bytes`.
    public static func checksum(of bytes: some ContiguousBytes) -> UInt32 {
        var checksum = CRC32()
        checksum.update(bytes)
        return checksum.value
    }

    /// Adds bytes.
    public mutating func update(_ bytes: some ContiguousBytes) {
        bytes.withUnsafeBytes { update($0) }
    }

    /// Adds bytes.
    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        register = Self.tables.withUnsafeBufferPointer { tables in
            guard let tables = tables.baseAddress else { return register }
            return Self.advance(register, over: start, count: bytes.count, tables: tables)
        }
    }

    private static func advance(
        _ register: UInt32, over start: UnsafeRawPointer, count: Int, tables t: UnsafePointer<UInt32>
    ) -> UInt32 {
        var crc = register
        var position = start
        var left = count
        while left >= 8 {
            let word = UInt64(littleEndian: position.loadUnaligned(as: UInt64.self)) ^ UInt64(crc)
            crc = t[0x700 + Int(word & 0xFF)] ^ t[0x600 + Int((word &>> 8) & 0xFF)]
            crc ^= t[0x500 + Int((word &>> 16) & 0xFF)] ^ t[0x400 + Int((word &>> 24) & 0xFF)]
            crc ^= t[0x300 + Int((word &>> 32) & 0xFF)] ^ t[0x200 + Int((word &>> 40) & 0xFF)]
            crc ^= t[0x100 + Int((word &>> 48) & 0xFF)] ^ t[Int(word &>> 56)]
            position += 8
            left &-= 8
        }
        while left > 0 {
            crc = t[Int((crc ^ UInt32(position.load(as: UInt8.self))) & 0xFF)] ^ (crc &>> 8)
            position += 1
            left &-= 1
        }
        return crc
    }

    private static func makeTables() -> [UInt32] {
        var tables = [UInt32](repeating: 0, count: 8 * 256)
        for index in 0..<256 {
            tables[index] = (0..<8).reduce(UInt32(index)) { crc, _ in crc & 1 == 1 ? 0xEDB8_8320 ^ (crc >> 1) : crc >> 1 }
        }
        for index in 256..<tables.count {
            let previous = tables[index - 256]
            tables[index] = tables[Int(previous & 0xFF)] ^ (previous >> 8)
        }
        return tables
    }
}

/// Returns the Adler-32 checksum that ends a zlib stream (RFC 1950, section 8.2).
func adler32(of bytes: some Sequence<UInt8>) -> UInt32 {
    var low: UInt32 = 1
    var high: UInt32 = 0
    for byte in bytes {
        low = (low + UInt32(byte)) % 65521
        high = (high + low) % 65521
    }
    return high << 16 | low
}
