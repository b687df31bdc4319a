// SPDX-License-Identifier: Apache-2.0

/// The SHA-1 message digest (FIPS 180-4), of a message that may be computed piece by piece; for protocols that require it. Broken: not for
/// security purposes.
package struct SHA1: Sendable {
    private var state: [UInt32] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0]
    private var words = [UInt32](repeating: 0, count: 80)
    /// The bytes that do not make up a block yet.
    private var rest: [UInt8] = []
    private var count: UInt64 = 0

    /// Creates the digest of an empty message.
    package init() {}

    /// Appends bytes to the message.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        count += UInt64(bytes.count)
        var start = 0
        if !rest.isEmpty {
            start = min(MessageBlocks.size - rest.count, bytes.count)
            rest += bytes[..<start]
            guard rest.count == MessageBlocks.size else { return }
            let block = rest
            rest = []
            block.withUnsafeBytes { add($0) }
        }
        while bytes.count - start >= MessageBlocks.size {
            add(UnsafeRawBufferPointer(rebasing: bytes[start..<(start + MessageBlocks.size)]))
            start += MessageBlocks.size
        }
        rest += bytes[start...]
    }

    /// Returns the 20 bytes of the digest of what was appended.
    package func digest() -> [UInt8] {
        var copy = self
        var padding: [UInt8] = [0x80]
        while (rest.count + padding.count) % MessageBlocks.size != MessageBlocks.size - 8 { padding.append(0) }
        let bitCount = count &* 8
        padding += (0..<8).reversed().map { UInt8(truncatingIfNeeded: bitCount >> (8 * $0)) }
        padding.withUnsafeBytes { copy.update($0) }
        return copy.state.flatMap { word in (0..<4).reversed().map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
    }

    /// Returns the 20 bytes of the digest.
    package static func digest(of message: some Sequence<UInt8>) -> [UInt8] {
        var hash = SHA1()
        Array(message).withUnsafeBytes { hash.update($0) }
        return hash.digest()
    }

    private mutating func add(_ block: UnsafeRawBufferPointer) {
        for index in 0..<16 { words[index] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self)) }
        for index in 16..<80 {
            words[index] = (words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16]).rotatedLeft(1)
        }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for round in 0..<80 {
            let (mixed, constant): (UInt32, UInt32) =
                switch round {
                case ..<20: ((b & c) | (~b & d), 0x5a82_7999)
                case ..<40: (b ^ c ^ d, 0x6ed9_eba1)
                case ..<60: ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc)
                default: (b ^ c ^ d, 0xca62_c1d6)
                }
            (a, b, c, d, e) = (a.rotatedLeft(5) &+ mixed &+ e &+ constant &+ words[round], a, b.rotatedLeft(30), c, d)
        }
        for (index, value) in [a, b, c, d, e].enumerated() { state[index] &+= value }
    }
}

extension UInt32 {
    fileprivate func rotatedLeft(_ count: UInt32) -> UInt32 { self << count | self >> (32 - count) }
}
