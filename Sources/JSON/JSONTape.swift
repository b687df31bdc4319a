// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// One entry of the tape: the kind of a value and the place of its text.
///
/// From the lowest bit: 4 bits kind, 4 flags, 24 length, 32 offset. A length of more than 24 bits is stored in the entry that follows. For
/// arrays and objects the offset is the index after their last entry. A second entry holds the number of elements in its lower half and,
/// for objects, the index of the key to try first in its upper half.
struct TapeWord {
    /// The kind of a value. An integer rather than an enumeration, because every access to the tape starts with it.
    struct Kind: Equatable {
        let bits: UInt64

        static let null = Kind(bits: 0)
        static let `false` = Kind(bits: 1)
        static let `true` = Kind(bits: 2)
        static let number = Kind(bits: 3)
        static let string = Kind(bits: 4)
        static let array = Kind(bits: 8)
        static let object = Kind(bits: 9)
        /// The bit that arrays and objects share.
        static let container: UInt64 = 8
    }

    // Strings: free of escapes and control characters; ASCII only.
    static let isPlain: UInt64 = 0x10
    static let isASCII: UInt64 = 0x20
    // Numbers: an optional sign and digits only.
    static let isInteger: UInt64 = 0x10
    // Objects: some key is not plain ASCII, so that comparing bytes does not decide equality; no two keys are equal.
    static let hasComplexKeys: UInt64 = 0x10
    static let hasDistinctKeys: UInt64 = 0x20
    // Strings and numbers: the length is in the next entry.
    static let isLong: UInt64 = 0x80

    static let maximumInlineLength = 0xFF_FFFF

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

/// A text and its tape: one entry for each value, in one array in the order of the text.
///
/// A tape instead of a tree, because it takes one allocation for the whole text, and values that no type asks for are skipped by their
/// offset. Read without reference counting; valid only while its ``JSONDocument`` is retained.
///
/// The tape begins with a `null`, used for missing values, followed by the root value. Indices come from the tape itself, so they are
/// always in bounds.
struct JSONTape {
    /// Followed by ``padding`` zeros, so that a word can be read at any offset.
    let bytes: UnsafePointer<UInt8>
    let words: UnsafeMutablePointer<UInt64>

    static let padding = 16
    static let null = 0
    static let root = 1

    @inline(__always) subscript(index: Int) -> TapeWord {
        get { TapeWord(bits: words[index]) }
        nonmutating set { words[index] = newValue.bits }
    }

    /// Returns the index after a value.
    @inline(__always) func index(after index: Int) -> Int {
        let word = self[index]
        if word.has(TapeWord.Kind.container) { return word.offset }
        return word.has(TapeWord.isLong) ? index &+ 2 : index &+ 1
    }

    /// Returns the number of an array's elements or an object's pairs.
    @inline(__always) func count(at index: Int) -> Int {
        Int(truncatingIfNeeded: words[index + 1] & 0xFFFF_FFFF)
    }

    /// Returns the text of a string or number.
    @inline(__always) func text(at index: Int) -> UnsafeBufferPointer<UInt8> {
        let word = self[index]
        let length = word.has(TapeWord.isLong) ? Int(truncatingIfNeeded: words[index &+ 1]) : word.length
        return UnsafeBufferPointer(start: bytes + word.offset, count: length)
    }

    /// Returns why a value does not have the requested type.
    @inline(never) func failure(at index: Int) -> ValueFailure {
        self[index].kind == .null ? .isNull : .typeMismatch
    }

    @inline(__always) func bool(at index: Int) throws(ValueFailure) -> Bool {
        let kind = self[index].kind
        if kind == .true { return true }
        if kind == .false { return false }
        // As in Foundation: for Bool alone, null is a type mismatch.
        throw .typeMismatch
    }

    /// Returns the value's kind as error messages name it.
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
