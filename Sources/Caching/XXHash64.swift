// SPDX-License-Identifier: Apache-2.0

/// The 64-bit hash XXH64 with seed 0, as a checksum: it misses one random damage in 2⁶⁴, and is several times faster than a cyclic
/// redundancy check. Not cryptographic.
struct XXHash64 {
    private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
    private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
    private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
    private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5
    private static let stripe = 32

    private var lanes = (prime1 &+ prime2, prime2, UInt64(0), 0 &- prime1)
    private var count: UInt64 = 0
    /// Bytes that do not fill a stripe yet.
    private var rest = (UInt64(0), UInt64(0), UInt64(0), UInt64(0))
    private var restCount = 0

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        count &+= UInt64(bytes.count)
        var bytes = bytes[...]
        if restCount > 0 {
            let missing = min(Self.stripe - restCount, bytes.count)
            keep(bytes.prefix(missing))
            bytes = bytes.dropFirst(missing)
            guard restCount == Self.stripe else { return }
            let stripe = rest
            withUnsafeBytes(of: stripe) { consume($0) }
            restCount = 0
        }
        let whole = bytes.count / Self.stripe * Self.stripe
        consume(UnsafeRawBufferPointer(rebasing: bytes.prefix(whole)))
        keep(bytes.dropFirst(whole))
    }

    private mutating func keep(_ bytes: Slice<UnsafeRawBufferPointer>) {
        withUnsafeMutableBytes(of: &rest) { rest in
            UnsafeMutableRawBufferPointer(rebasing: rest[restCount...]).copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes))
        }
        restCount += bytes.count
    }

    mutating func update(_ data: Data) {
        data.withUnsafeBytes { update($0) }
    }

    /// Takes in whole stripes.
    private mutating func consume(_ bytes: UnsafeRawBufferPointer) {
        var (a, b, c, d) = lanes
        var offset = 0
        while offset < bytes.count {
            a = Self.round(a, Self.word(bytes, offset))
            b = Self.round(b, Self.word(bytes, offset + 8))
            c = Self.round(c, Self.word(bytes, offset + 16))
            d = Self.round(d, Self.word(bytes, offset + 24))
            offset += Self.stripe
        }
        lanes = (a, b, c, d)
    }

    /// The hash of all bytes so far.
    var value: UInt64 {
        var hash = Self.prime5
        if count >= UInt64(Self.stripe) {
            let (a, b, c, d) = lanes
            hash = Self.rotated(a, 1) &+ Self.rotated(b, 7) &+ Self.rotated(c, 12) &+ Self.rotated(d, 18)
            for lane in [a, b, c, d] { hash = (hash ^ Self.round(0, lane)) &* Self.prime1 &+ Self.prime4 }
        }
        hash = hash &+ count
        withUnsafeBytes(of: rest) { bytes in
            let bytes = UnsafeRawBufferPointer(rebasing: bytes[..<restCount])
            var offset = 0
            while offset + 8 <= bytes.count {
                hash = Self.rotated(hash ^ Self.round(0, Self.word(bytes, offset)), 27) &* Self.prime1 &+ Self.prime4
                offset += 8
            }
            if offset + 4 <= bytes.count {
                let half = UInt64(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
                hash = Self.rotated(hash ^ (half &* Self.prime1), 23) &* Self.prime2 &+ Self.prime3
                offset += 4
            }
            for byte in bytes[offset...] { hash = Self.rotated(hash ^ (UInt64(byte) &* Self.prime5), 11) &* Self.prime1 }
        }
        hash = (hash ^ hash >> 33) &* Self.prime2
        hash = (hash ^ hash >> 29) &* Self.prime3
        return hash ^ hash >> 32
    }

    static func hash(of data: Data) -> UInt64 {
        var hash = XXHash64()
        hash.update(data)
        return hash.value
    }

    @inline(__always)
    private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    @inline(__always)
    private static func rotated(_ word: UInt64, _ count: UInt64) -> UInt64 { word << count | word >> (64 - count) }

    @inline(__always)
    private static func round(_ lane: UInt64, _ word: UInt64) -> UInt64 {
        rotated(lane &+ word &* prime2, 31) &* prime1
    }
}
