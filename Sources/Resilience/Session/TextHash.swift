// SPDX-License-Identifier: Apache-2.0

/// Makes numbers of texts, equal ones of equal texts. Which others have equal ones differs with each value of this type, so that
/// an attacker can't choose them; a fraction of the cost of `Hasher`.
struct TextHash: Sendable {
    private let seed: UInt64
    private let factor: UInt64

    init(seed: UInt64 = .random(in: .min ... .max), factor: UInt64 = .random(in: .min ... .max) | 1) {
        self.seed = seed
        self.factor = factor
    }

    func number(of text: String) -> Int {
        var text = text
        return text.withUTF8 { number(of: UnsafeRawBufferPointer($0)) }
    }

    func number(of bytes: UnsafeRawBufferPointer) -> Int {
        let count = bytes.count
        var hash = mixed(seed ^ UInt64(truncatingIfNeeded: count))
        var index = 0
        guard count >= 8 else {
            var rest: UInt64 = 0
            while index < count {
                rest = rest << 8 | UInt64(bytes[index])
                index += 1
            }
            return Int(truncatingIfNeeded: mixed(hash ^ rest))
        }
        while index &+ 8 < count {
            hash = mixed(hash ^ bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            index &+= 8
        }
        // The last eight, of which some may have been in the word before.
        return Int(truncatingIfNeeded: mixed(hash ^ bytes.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)))
    }

    private func mixed(_ value: UInt64) -> UInt64 {
        let product = value.multipliedFullWidth(by: factor)
        return product.high ^ product.low ^ seed
    }
}
