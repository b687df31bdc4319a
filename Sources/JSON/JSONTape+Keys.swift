// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension JSONTape {
    /// With more keys than this, an index is cheaper than comparing.
    private static let maximumComparedKeys = 64

    /// Returns the index of a key's value in an object with plain keys.
    ///
    /// The search starts after the key found last, because types ask for keys in the order of their properties, and most texts have the
    /// same order.
    @inline(__always)
    func find(_ key: String, at object: Int) -> Int? {
        var key = key
        return key.withUTF8 { find($0, at: object) } ?? findEquivalent(key, at: object)
    }

    /// Finds a key that is canonically equivalent in Unicode, as the Kelvin sign is to K.
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

    /// Whether an object's keys can be compared byte by byte: they are ASCII without escapes, distinct, and few enough.
    @inline(__always)
    func hasPlainKeys(at object: Int) -> Bool {
        let word = self[object]
        if word.has(TapeWord.hasDistinctKeys) { return true }
        guard !word.has(TapeWord.hasComplexKeys), count(at: object) <= Self.maximumComparedKeys, areKeysDistinct(at: object)
        else { return false }
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

    /// Returns a hash of a key's length and its first and last bytes, in the high bits.
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

    /// Returns an object's keys in their order.
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

    /// Returns a key. Throws if its string is invalid.
    func key(at index: Int) throws -> String {
        do throws(ValueFailure) {
            return try string(at: index)
        } catch .invalid(let error) {
            throw error
        }
    }
}

/// An object's values by converted key; the first of equal keys wins.
///
/// Made only for objects whose keys can't be compared as bytes, or are too many for it, as an index costs a string for each key.
final class JSONKeyIndex {
    private var values: [String: Int] = [:]
    private(set) var all: [String] = []

    init(of decoder: JSONValueDecoder) throws {
        let tape = decoder.tape
        let count = tape.count(at: decoder.index)
        values.reserveCapacity(count)
        all.reserveCapacity(count)
        let name = decoder.options.keyConversion(in: decoder)
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
