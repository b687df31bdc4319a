// SPDX-License-Identifier: Apache-2.0

/// A message digest that is computed piece by piece: SHA-256 with words of 32 bits, SHA-512 with words of 64 (FIPS 180-4).
package struct SHA2<Word: SHA2Word>: Sendable {
    private var state = Word.initial
    /// The beginning of a block.
    private var pending: [UInt8] = []
    private var length: UInt64 = 0

    private static var blockSize: Int { 2 * Word.bitWidth }

    /// Creates the digest of an empty message.
    package init() {}

    /// Appends bytes to the message.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        length &+= UInt64(bytes.count)
        var rest = bytes
        if !pending.isEmpty {
            let taken = min(Self.blockSize - pending.count, rest.count)
            pending += UnsafeRawBufferPointer(rebasing: rest[..<taken])
            rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
            guard pending.count == Self.blockSize else { return }
            let block = pending
            pending.removeAll(keepingCapacity: true)
            block.withUnsafeBytes { compress($0) }
        }
        let whole = rest.count - rest.count % Self.blockSize
        compress(UnsafeRawBufferPointer(rebasing: rest[..<whole]))
        pending += UnsafeRawBufferPointer(rebasing: rest[whole...])
    }

    /// Returns the digest of the bytes so far.
    package func digest() -> [UInt8] {
        var copy = self
        return pending.withUnsafeBytes { copy.finish(with: $0) }
    }

    /// Returns the digest of a whole message.
    package static func digest(of message: UnsafeRawBufferPointer) -> [UInt8] {
        var hash = SHA2()
        hash.length = UInt64(message.count)
        let whole = message.count - message.count % blockSize
        hash.compress(UnsafeRawBufferPointer(rebasing: message[..<whole]))
        return hash.finish(with: UnsafeRawBufferPointer(rebasing: message[whole...]))
    }

    /// Adds the last bytes, less than a block, with the padding: a byte that begins it, zeros, and the length in bits.
    private mutating func finish(with rest: UnsafeRawBufferPointer) -> [UInt8] {
        let end = rest.count + 1 + Word.bitWidth / 4
        let size = (end + Self.blockSize - 1) / Self.blockSize * Self.blockSize
        withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) { block in
            block.initializeMemory(as: UInt8.self, repeating: 0)
            block.copyMemory(from: rest)
            block[rest.count] = 0x80
            block.storeBytes(of: (length &* 8).bigEndian, toByteOffset: size - 8, as: UInt64.self)
            compress(UnsafeRawBufferPointer(block))
        }
        return [UInt8](unsafeUninitializedCapacity: state.count * Word.bitWidth / 8) { bytes, count in
            for word in state {
                for shift in stride(from: Word.bitWidth - 8, through: 0, by: -8) {
                    bytes[count] = UInt8(truncatingIfNeeded: word &>> Word(shift))
                    count += 1
                }
            }
        }
    }

    /// Adds whole blocks to the state.
    private mutating func compress(_ blocks: UnsafeRawBufferPointer) {
        guard !blocks.isEmpty else { return }
        state.withUnsafeMutableBufferPointer { state in
            Word.constants.withUnsafeBufferPointer { constants in
                withUnsafeTemporaryAllocation(of: Word.self, capacity: constants.count) { schedule in
                    for start in stride(from: 0, to: blocks.count, by: Self.blockSize) {
                        Self.fill(schedule, from: blocks, at: start)
                        Self.add(schedule, constants, to: state)
                    }
                }
            }
        }
    }

    @inline(__always)
    private static func fill(_ schedule: UnsafeMutableBufferPointer<Word>, from blocks: UnsafeRawBufferPointer, at start: Int) {
        for index in 0..<16 {
            schedule[index] = Word(bigEndian: blocks.loadUnaligned(fromByteOffset: start + index * (Word.bitWidth / 8), as: Word.self))
        }
        for index in 16..<schedule.count {
            let (low, high) = (Word.expandedLow(schedule[index - 15]), Word.expandedHigh(schedule[index - 2]))
            schedule[index] = schedule[index - 16] &+ low &+ schedule[index - 7] &+ high
        }
    }

    @inline(__always)
    private static func add(
        _ schedule: UnsafeMutableBufferPointer<Word>, _ constants: UnsafeBufferPointer<Word>, to state: UnsafeMutableBufferPointer<Word>
    ) {
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        for round in 0..<schedule.count {
            let choice = (e & f) ^ (~e & g)
            let first = h &+ Word.mixedHigh(e) &+ choice &+ constants[round] &+ schedule[round]
            let second = Word.mixedLow(a) &+ ((a & b) ^ (a & c) ^ (b & c))
            (h, g, f, e, d, c, b, a) = (g, f, e, d &+ first, c, b, a, first &+ second)
        }
        let sums = (a, b, c, d, e, f, g, h)
        withUnsafeBytes(of: sums) { bytes in
            for (index, word) in bytes.bindMemory(to: Word.self).enumerated() { state[index] &+= word }
        }
    }
}

/// The words of SHA-256 and SHA-512, with the functions in which these differ (FIPS 180-4, sections 4.1.2 and 4.1.3).
package protocol SHA2Word: FixedWidthInteger, UnsignedInteger, Sendable {
    static var initial: [Self] { get }
    static var constants: [Self] { get }
    static func mixedLow(_ word: Self) -> Self
    static func mixedHigh(_ word: Self) -> Self
    static func expandedLow(_ word: Self) -> Self
    static func expandedHigh(_ word: Self) -> Self
}

extension SHA2Word {
    /// Rotates to the right.
    @inline(__always) fileprivate func turned(_ count: Self) -> Self { self &>> count | self &<< (Self(Self.bitWidth) - count) }
}

extension UInt32: SHA2Word {
    package static let initial: [UInt32] = SHA2Constants.initial.map { UInt32(truncatingIfNeeded: $0 >> 32) }
    package static let constants: [UInt32] = SHA2Constants.rounds.prefix(64).map { UInt32(truncatingIfNeeded: $0 >> 32) }
    @inline(__always) package static func mixedLow(_ word: UInt32) -> UInt32 { word.turned(2) ^ word.turned(13) ^ word.turned(22) }
    @inline(__always) package static func mixedHigh(_ word: UInt32) -> UInt32 { word.turned(6) ^ word.turned(11) ^ word.turned(25) }
    @inline(__always) package static func expandedLow(_ word: UInt32) -> UInt32 { word.turned(7) ^ word.turned(18) ^ (word &>> 3) }
    @inline(__always) package static func expandedHigh(_ word: UInt32) -> UInt32 { word.turned(17) ^ word.turned(19) ^ (word &>> 10) }
}

extension UInt64: SHA2Word {
    package static let initial: [UInt64] = SHA2Constants.initial
    package static let constants: [UInt64] = SHA2Constants.rounds
    @inline(__always) package static func mixedLow(_ word: UInt64) -> UInt64 { word.turned(28) ^ word.turned(34) ^ word.turned(39) }
    @inline(__always) package static func mixedHigh(_ word: UInt64) -> UInt64 { word.turned(14) ^ word.turned(18) ^ word.turned(41) }
    @inline(__always) package static func expandedLow(_ word: UInt64) -> UInt64 { word.turned(1) ^ word.turned(8) ^ (word &>> 7) }
    @inline(__always) package static func expandedHigh(_ word: UInt64) -> UInt64 { word.turned(19) ^ word.turned(61) ^ (word &>> 6) }
}

private enum SHA2Constants {
    /// The first 64 bits of the fractional parts of the square roots of the first 8 primes.
    static let initial: [UInt64] = [
        0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1,
        0x510e_527f_ade6_82d1, 0x9b05_688c_2b3e_6c1f, 0x1f83_d9ab_fb41_bd6b, 0x5be0_cd19_137e_2179,
    ]

    /// The first 64 bits of the fractional parts of the cube roots of the first 80 primes; SHA-256 has the upper halves of the first 64.
    static let rounds: [UInt64] = [
        0x428a_2f98_d728_ae22, 0x7137_4491_23ef_65cd, 0xb5c0_fbcf_ec4d_3b2f, 0xe9b5_dba5_8189_dbbc, 0x3956_c25b_f348_b538,
        0x59f1_11f1_b605_d019, 0x923f_82a4_af19_4f9b, 0xab1c_5ed5_da6d_8118, 0xd807_aa98_a303_0242, 0x1283_5b01_4570_6fbe,
        0x2431_85be_4ee4_b28c, 0x550c_7dc3_d5ff_b4e2, 0x72be_5d74_f27b_896f, 0x80de_b1fe_3b16_96b1, 0x9bdc_06a7_25c7_1235,
        0xc19b_f174_cf69_2694, 0xe49b_69c1_9ef1_4ad2, 0xefbe_4786_384f_25e3, 0x0fc1_9dc6_8b8c_d5b5, 0x240c_a1cc_77ac_9c65,
        0x2de9_2c6f_592b_0275, 0x4a74_84aa_6ea6_e483, 0x5cb0_a9dc_bd41_fbd4, 0x76f9_88da_8311_53b5, 0x983e_5152_ee66_dfab,
        0xa831_c66d_2db4_3210, 0xb003_27c8_98fb_213f, 0xbf59_7fc7_beef_0ee4, 0xc6e0_0bf3_3da8_8fc2, 0xd5a7_9147_930a_a725,
        0x06ca_6351_e003_826f, 0x1429_2967_0a0e_6e70, 0x27b7_0a85_46d2_2ffc, 0x2e1b_2138_5c26_c926, 0x4d2c_6dfc_5ac4_2aed,
        0x5338_0d13_9d95_b3df, 0x650a_7354_8baf_63de, 0x766a_0abb_3c77_b2a8, 0x81c2_c92e_47ed_aee6, 0x9272_2c85_1482_353b,
        0xa2bf_e8a1_4cf1_0364, 0xa81a_664b_bc42_3001, 0xc24b_8b70_d0f8_9791, 0xc76c_51a3_0654_be30, 0xd192_e819_d6ef_5218,
        0xd699_0624_5565_a910, 0xf40e_3585_5771_202a, 0x106a_a070_32bb_d1b8, 0x19a4_c116_b8d2_d0c8, 0x1e37_6c08_5141_ab53,
        0x2748_774c_df8e_eb99, 0x34b0_bcb5_e19b_48a8, 0x391c_0cb3_c5c9_5a63, 0x4ed8_aa4a_e341_8acb, 0x5b9c_ca4f_7763_e373,
        0x682e_6ff3_d6b2_b8a3, 0x748f_82ee_5def_b2fc, 0x78a5_636f_4317_2f60, 0x84c8_7814_a1f0_ab72, 0x8cc7_0208_1a64_39ec,
        0x90be_fffa_2363_1e28, 0xa450_6ceb_de82_bde9, 0xbef9_a3f7_b2c6_7915, 0xc671_78f2_e372_532b, 0xca27_3ece_ea26_619c,
        0xd186_b8c7_21c0_c207, 0xeada_7dd6_cde0_eb1e, 0xf57d_4f7f_ee6e_d178, 0x06f0_67aa_7217_6fba, 0x0a63_7dc5_a2c8_98a6,
        0x113f_9804_bef9_0dae, 0x1b71_0b35_131c_471b, 0x28db_77f5_2304_7d84, 0x32ca_ab7b_40c7_2493, 0x3c9e_be0a_15c9_bebc,
        0x431d_67c4_9c10_0d4c, 0x4cc5_d4be_cb3e_42b6, 0x597f_299c_fc65_7e2a, 0x5fcb_6fab_3ad6_faec, 0x6c44_198c_4a47_5817,
    ]
}
