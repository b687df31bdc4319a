// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// One entry of the tape: what a value is and where its text lies.
///
/// From the lowest bit: 4 bits kind, 4 flags, 24 length, 32 offset. A length that does not fit stands in an entry of its own.
/// For arrays and objects the offset is the index after their last entry, and a second entry holds the number of elements in its
/// lower half, and in its upper half, for objects, the index of the key to try first.
struct TapeWord {
    /// What a value is. Numbers rather than an enumeration, as each look at the tape begins here.
    struct Kind: Equatable {
        let bits: UInt64

        static let null = Kind(bits: 0)
        static let `false` = Kind(bits: 1)
        static let `true` = Kind(bits: 2)
        static let number = Kind(bits: 3)
        static let string = Kind(bits: 4)
        static let array = Kind(bits: 8)
        static let object = Kind(bits: 9)
        /// What arrays and objects have in common.
        static let container: UInt64 = 8
    }

    // Strings: without escapes and control characters; of ASCII alone.
    static let isPlain: UInt64 = 0x10
    static let isASCII: UInt64 = 0x20
    // Numbers: digits and perhaps a sign before them.
    static let isInteger: UInt64 = 0x10
    // Objects: some key is more than plain ASCII, so that bytes do not decide whether keys are equal; no two keys are equal.
    static let hasOddKeys: UInt64 = 0x10
    static let hasDistinctKeys: UInt64 = 0x20
    // Strings and numbers: the length stands in the next entry.
    static let isLong: UInt64 = 0x80

    static let longestShort = 0xFF_FFFF

    var bits: UInt64

    @inline(__always) init(bits: UInt64) { self.bits = bits }

    @inline(__always) init(_ kind: Kind, flags: UInt64 = 0, length: Int = 0, offset: Int = 0) {
        bits = kind.bits | flags | UInt64(truncatingIfNeeded: length) << 8 | UInt64(truncatingIfNeeded: offset) << 32
    }

    @inline(__always) var kind: Kind { Kind(bits: bits & 0xF) }
    @inline(__always) var length: Int { Int(truncatingIfNeeded: bits >> 8 & 0xFF_FFFF) }
    @inline(__always) var offset: Int { Int(truncatingIfNeeded: bits >> 32) }
    @inline(__always) func has(_ flag: UInt64) -> Bool { bits & flag != 0 }
}

/// A text and its tape, read without any counting of references. Whoever holds one holds its ``JSONDocument`` too.
///
/// The tape begins with a `null`, for values that are missing; the text's value follows. Indices come from the tape itself, so
/// they are always inside.
struct JSONTape {
    /// Followed by ``padding`` zeros, so that whole words may be read anywhere.
    let bytes: UnsafePointer<UInt8>
    let words: UnsafeMutablePointer<UInt64>

    static let padding = 16
    static let null = 0
    static let root = 1

    @inline(__always) subscript(index: Int) -> TapeWord {
        get { TapeWord(bits: words[index]) }
        nonmutating set { words[index] = newValue.bits }
    }

    /// The index of what follows a value.
    @inline(__always) func index(after index: Int) -> Int {
        let word = self[index]
        if word.has(TapeWord.Kind.container) { return word.offset }
        return word.has(TapeWord.isLong) ? index &+ 2 : index &+ 1
    }

    /// The elements of an array, the pairs of an object.
    @inline(__always) func count(at index: Int) -> Int {
        Int(truncatingIfNeeded: words[index + 1] & 0xFFFF_FFFF)
    }

    /// The text of a string or number.
    @inline(__always) func text(at index: Int) -> UnsafeBufferPointer<UInt8> {
        let word = self[index]
        let length = word.has(TapeWord.isLong) ? Int(truncatingIfNeeded: words[index &+ 1]) : word.length
        return UnsafeBufferPointer(start: bytes + word.offset, count: length)
    }

    /// Why the value is not what was asked for.
    @inline(never) func failure(at index: Int) -> ValueFailure {
        self[index].kind == .null ? .isNull : .isOfOtherType
    }

    @inline(__always) func bool(at index: Int) throws(ValueFailure) -> Bool {
        let kind = self[index].kind
        if kind == .true { return true }
        if kind == .false { return false }
        // As in Foundation, where null is a mismatch for Bool alone.
        throw .isOfOtherType
    }

    /// What the value is, as error messages have it.
    func name(at index: Int) -> String {
        switch self[index].kind {
        case .null: "null"
        case .false, .true: "bool"
        case .number: "number"
        case .string: "a string"
        case .array: "an array"
        default: "a dictionary"
        }
    }
}
