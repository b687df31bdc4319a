// SPDX-License-Identifier: Apache-2.0

/// The SHA-1 message digest (FIPS 180-4); for protocols that require it. Broken: not for security purposes.
package enum SHA1 {
    /// Returns the 20 bytes of the digest.
    package static func digest(of message: some Sequence<UInt8>) -> [UInt8] {
        var state: [UInt32] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0]
        let bytes = MessageBlocks.padded(message, lengthIsBigEndian: true)
        for start in stride(from: 0, to: bytes.count, by: MessageBlocks.size) {
            var words = MessageBlocks.words(of: bytes[start..<(start + MessageBlocks.size)])
            for index in 16..<80 {
                words.append((words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16]).rotatedLeft(1))
            }
            add(words, to: &state)
        }
        return state.flatMap { word in (0..<4).reversed().map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
    }

    private static func add(_ words: [UInt32], to state: inout [UInt32]) {
        var s = state
        for (round, word) in words.enumerated() {
            let (mixed, constant): (UInt32, UInt32) =
                switch round {
                case ..<20: ((s[1] & s[2]) | (~s[1] & s[3]), 0x5a82_7999)
                case ..<40: (s[1] ^ s[2] ^ s[3], 0x6ed9_eba1)
                case ..<60: ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3]), 0x8f1b_bcdc)
                default: (s[1] ^ s[2] ^ s[3], 0xca62_c1d6)
                }
            let next = s[0].rotatedLeft(5) &+ mixed &+ s[4] &+ constant &+ word
            s = [next, s[0], s[1].rotatedLeft(30), s[2], s[3]]
        }
        for index in 0..<5 { state[index] &+= s[index] }
    }
}

extension UInt32 {
    fileprivate func rotatedLeft(_ count: UInt32) -> UInt32 { self << count | self >> (32 - count) }
}
