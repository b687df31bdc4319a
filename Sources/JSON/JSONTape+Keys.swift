// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension JSONTape {
    /// Above this many keys an index costs less than comparing.
    private static let mostCompared = 64

    /// The index of the value that belongs to a key of an object with plain keys.
    ///
    /// The search begins behind the key found last: types ask for keys in the order of their properties, and most texts have
    /// that order too.
    @inline(__always)
    func find(_ key: String, at object: Int) -> Int? {
        var key = key
        return key.withUTF8 { find($0, at: object) } ?? findEquivalent(key, at: object)
    }

    /// Strings are equal too when Unicode says so, as the Kelvin sign is to a K.
    @inline(never)
    private func findEquivalent(_ key: String, at object: Int) -> Int? {
        if key.utf8.allSatisfy({ $0 < 0x80 }) { return nil }
        var next = object + 2
        for _ in 0..<count(at: object) {
            if String(decoding: text(at: next), as: UTF8.self) == key { return next + 1 }
            next = index(after: next + 1)
        }
        return nil
    }

    @inline(__always)
    private func find(_ key: UnsafeBufferPointer<UInt8>, at object: Int) -> Int? {
        let end = self[object].offset
        let begin = Int(truncatingIfNeeded: words[object + 1] >> 32)
        var next = begin
        while next < end {
            if has(key, at: next) { return found(next, in: object) }
            next = index(after: next + 1)
        }
        next = object + 2
        while next < begin {
            if has(key, at: next) { return found(next, in: object) }
            next = index(after: next + 1)
        }
        return nil
    }

    @inline(__always)
    private func has(_ key: UnsafeBufferPointer<UInt8>, at index: Int) -> Bool {
        let word = self[index]
        return word.length == key.count && isEqual(key, UnsafeBufferPointer(start: bytes + word.offset, count: key.count))
    }

    @inline(__always)
    private func found(_ key: Int, in object: Int) -> Int {
        let next = UInt64(truncatingIfNeeded: index(after: key + 1))
        words[object + 1] = words[object + 1] & 0xFFFF_FFFF | next << 32
        return key + 1
    }

    /// Whether keys of an object are found by their bytes: they are ASCII without escapes, distinct, and not too many.
    @inline(__always)
    func hasPlainKeys(at object: Int) -> Bool {
        let word = self[object]
        if word.has(TapeWord.hasDistinctKeys) { return true }
        guard !word.has(TapeWord.hasOddKeys), count(at: object) <= Self.mostCompared, areKeysDistinct(at: object) else { return false }
        words[object] |= TapeWord.hasDistinctKeys
        return true
    }

    private func areKeysDistinct(at object: Int) -> Bool {
        var seen: UInt64 = 0
        var next = object + 2
        for position in 0..<count(at: object) {
            let word = self[next]
            let key = UnsafeBufferPointer(start: bytes + word.offset, count: word.length)
            let bit: UInt64 = 1 &<< (hash(key) &>> 58)
            // Only keys with the same bit can be equal.
            if seen & bit != 0, hasKey(key, amongFirst: position, of: object) { return false }
            seen |= bit
            next = index(after: next + 1)
        }
        return true
    }

    private func hasKey(_ key: UnsafeBufferPointer<UInt8>, amongFirst count: Int, of object: Int) -> Bool {
        var next = object + 2
        for _ in 0..<count {
            if has(key, at: next) { return true }
            next = index(after: next + 1)
        }
        return false
    }

    /// A hash of a key's length and its first and last bytes, in the high bits.
    @inline(__always)
    private func hash(_ key: UnsafeBufferPointer<UInt8>) -> UInt64 {
        guard let first = key.baseAddress else { return 0 }
        var word = load(first)
        if key.count < 8 {
            word &= (1 << UInt64(truncatingIfNeeded: key.count &* 8)) &- 1
        } else {
            word ^= load(first + (key.count - 8)) &* 31
        }
        return (word ^ UInt64(truncatingIfNeeded: key.count)) &* 0x9E37_79B9_7F4A_7C15
    }

    /// The keys of an object in their order.
    func keys(at object: Int) -> [String] {
        var names: [String] = []
        names.reserveCapacity(count(at: object))
        var next = object + 2
        for _ in 0..<count(at: object) {
            names.append(String(decoding: text(at: next), as: UTF8.self))
            next = index(after: next + 1)
        }
        return names
    }

    /// A key, which is a string, but perhaps not valid.
    func key(at index: Int) throws -> String {
        do throws(ValueFailure) {
            return try string(at: index)
        } catch .invalid(let error) {
            throw error
        }
    }
}

/// The values of an object by the names of their keys as types know them; the first of equal names counts.
final class JSONKeyIndex {
    private var values: [String: Int] = [:]
    private(set) var all: [String] = []

    init(of decoder: JSONValueDecoder) throws {
        let tape = decoder.tape
        let count = tape.count(at: decoder.index)
        values.reserveCapacity(count)
        all.reserveCapacity(count)
        let name = decoder.options.naming(in: decoder)
        var next = decoder.index + 2
        for _ in 0..<count {
            let name = name(try tape.key(at: next))
            next = tape.index(after: next)
            if values[name] == nil {
                values[name] = next
                all.append(name)
            }
            next = tape.index(after: next)
        }
    }

    subscript(name: String) -> Int? { values[name] }
}
