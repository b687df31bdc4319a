// SPDX-License-Identifier: Apache-2.0

package typealias NumberMap = _NumberMap

/// A dictionary for numbers that an attacker can't choose, such as those of tasks. Not part of the interface: public for the same reason as
/// `_Lock`.
///
/// Most of `Dictionary`'s cost is its hash, which is unpredictable for attackers, and each request is looked up several times. Open
/// addressing with linear probing, at most half full; removing a value moves the following ones up.
public struct _NumberMap<Value> {
    @usableFromInline
    struct Entry {
        @usableFromInline var number: Int
        @usableFromInline var value: Value

        @inlinable
        init(number: Int, value: Value) {
            self.number = number
            self.value = value
        }
    }

    @usableFromInline var entries: [Entry?]
    @usableFromInline var taken = 0
    /// 64 minus the binary logarithm of the capacity.
    @usableFromInline var shift: UInt64

    /// Creates an empty map.
    @inlinable
    public init() {
        entries = Array(repeating: nil, count: 16)
        shift = 60
    }

    /// The number of values.
    @inlinable public var count: Int { taken }

    /// The value for a number; setting `nil` removes it.
    @inlinable
    public subscript(number: Int) -> Value? {
        get { entries[place(of: number)]?.value }
        set {
            guard let newValue else { return remove(number) }
            if 2 * count >= entries.count { grow() }
            let place = place(of: number)
            if entries[place] == nil { taken += 1 }
            entries[place] = Entry(number: number, value: newValue)
        }
    }

    /// All values, in no particular order.
    @inlinable
    public var values: [Value] { entries.compactMap { $0?.value } }

    /// The index of a number, or the index at which it would be inserted.
    @inlinable
    func place(of number: Int) -> Int {
        var place = home(of: number)
        while let entry = entries[place], entry.number != number { place = (place + 1) & (entries.count - 1) }
        return place
    }

    /// The preferred index of a number. The multiplication distributes consecutive numbers.
    @inlinable
    func home(of number: Int) -> Int {
        Int(truncatingIfNeeded: (UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15) >> shift)
    }

    @inlinable
    mutating func remove(_ number: Int) {
        var hole = place(of: number)
        guard entries[hole] != nil else { return }
        taken -= 1
        let mask = entries.count - 1
        var next = hole
        while true {
            next = (next + 1) & mask
            guard let entry = entries[next] else { break }
            // An entry whose probe sequence includes the hole would no longer be found.
            guard (next - home(of: entry.number)) & mask >= (next - hole) & mask else { continue }
            entries[hole] = entry
            hole = next
        }
        entries[hole] = nil
    }

    @inlinable
    mutating func grow() {
        let old = entries
        entries = Array(repeating: nil, count: 2 * old.count)
        shift -= 1
        for entry in old {
            if let entry { entries[place(of: entry.number)] = entry }
        }
    }
}

extension _NumberMap: Sendable where Value: Sendable {}
extension _NumberMap.Entry: Sendable where Value: Sendable {}
