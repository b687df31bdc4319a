// SPDX-License-Identifier: Apache-2.0

/// Reads DER (ITU-T X.690, section 10) element by element, always within the given bytes.
///
/// Enforces the rules of DER that determine where an element ends: one-byte tags, definite lengths in their shortest form.
///
/// Like every parser of bytes from peers, it takes bytes, returns values or an error, and knows no connection, so that it can be fuzzed
/// (Tests/FuzzTests).
struct DERReader {
    /// A tag with its class and whether it is constructed.
    struct Tag: RawRepresentable, Equatable {
        let rawValue: UInt8

        static let boolean = Tag(rawValue: 0x01)
        static let integer = Tag(rawValue: 0x02)
        static let bitString = Tag(rawValue: 0x03)
        static let octetString = Tag(rawValue: 0x04)
        static let objectIdentifier = Tag(rawValue: 0x06)
        static let utcTime = Tag(rawValue: 0x17)
        static let generalizedTime = Tag(rawValue: 0x18)
        static let sequence = Tag(rawValue: 0x30)
        static let set = Tag(rawValue: 0x31)

        /// A context-specific tag: `[number]`.
        static func contextSpecific(_ number: UInt8, isConstructed: Bool = false) -> Tag {
            Tag(rawValue: 0x80 | (isConstructed ? 0x20 : 0) | number)
        }
    }

    /// An element: its tag, its contents, and all of its bytes.
    struct Element {
        let tag: Tag
        let contents: ArraySlice<UInt8>
        let bytes: ArraySlice<UInt8>
    }

    /// The input violates the rules, or has another structure than expected.
    struct Malformed: Error {}

    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    var isAtEnd: Bool { rest.isEmpty }

    /// Whether the next element has this tag.
    func isNext(_ tag: Tag) -> Bool { rest.first == tag.rawValue }

    /// Reads the next element.
    mutating func next() throws(Malformed) -> Element {
        let all = rest
        guard let tag = rest.popFirst(), tag & 0x1F != 0x1F else { throw Malformed() }
        let length = try nextLength()
        guard length <= rest.count else { throw Malformed() }
        let contents = rest.prefix(length)
        rest = rest.dropFirst(length)
        return Element(tag: Tag(rawValue: tag), contents: contents, bytes: all[..<contents.endIndex])
    }

    private mutating func nextLength() throws(Malformed) -> Int {
        guard let first = rest.popFirst() else { throw Malformed() }
        guard first >= 0x80 else { return Int(first) }
        let count = Int(first & 0x7F)
        // 0 would be BER's indefinite length; no certificate has 2³² bytes.
        guard (1...4).contains(count), count <= rest.count else { throw Malformed() }
        let length = rest.prefix(count).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard length >= 0x80, length >> (8 * UInt64(count - 1)) != 0 else { throw Malformed() }
        rest = rest.dropFirst(count)
        return Int(length)
    }

    /// Reads the next element, which must have this tag.
    mutating func next(_ tag: Tag) throws(Malformed) -> Element {
        let element = try next()
        guard element.tag == tag else { throw Malformed() }
        return element
    }

    /// Returns a reader of the next element's contents; the element must have this tag.
    mutating func enter(_ tag: Tag = .sequence) throws(Malformed) -> DERReader {
        DERReader(try next(tag).contents)
    }

    /// Skips the next element if it has this tag.
    mutating func skip(_ tag: Tag) throws(Malformed) {
        if isNext(tag) { _ = try next() }
    }

    /// Throws if there are further elements.
    func end() throws(Malformed) {
        guard isAtEnd else { throw Malformed() }
    }
}
