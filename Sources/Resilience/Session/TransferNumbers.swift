// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// Numbers of transfers that no session has: those of sessions are positive, those of the cache negative and small.
struct TransferNumbers: Sendable {
    /// How many are taken at once.
    private static let blockSize = 1 << 16
    private static let lastBlock = Lock(Int.min)

    private var present = 0
    private var end = 0

    /// A number that no other value of this type returns.
    mutating func next() -> Int {
        if present == end {
            present = Self.lastBlock.withLock { last in
                last += Self.blockSize
                return last
            }
            end = present + Self.blockSize
        }
        present += 1
        return present
    }
}

/// Numbers for the transfers of one transport that follow from those of the requests, so that they need not be remembered.
struct DerivedNumbers: Sendable {
    /// The numbers of requests that have one: those of sessions, in practice all.
    private static let range = 0..<(1 << 40)
    private static let transports = Lock(0)

    /// Above those of ``TransferNumbers``, and far below the cache's; differs in the transports of a session.
    private let offset: Int

    init() {
        let serial = Self.transports.withLock { last in
            last = (last + 1) % (1 << 20)
            return last
        }
        offset = -(1 << 62) + serial << 40
    }

    /// The number of a request's transfer; `nil` if the request is one that a layer has numbered.
    func number(for request: Int) -> Int? { Self.range.contains(request) ? offset + request : nil }
}

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
