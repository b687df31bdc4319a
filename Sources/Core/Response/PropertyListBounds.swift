// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

/// Limits on property lists from peers, which are checked before one is parsed: Foundation has only some of them.
///
/// In the binary format values refer to others by number, so that each of eight arrays can have the next one ten times: 150 bytes, of which a
/// parser makes a hundred million values.
enum PropertyListBounds {
    /// The nesting limit; that of `PropertyListSerialization`, and of JSON.
    static let maximumDepth = 512
    /// The number of values that a binary property list may have beyond its number of bytes. Each reference takes at least a byte, so that only
    /// one that refers to the same array or dictionary many times can have more values than bytes.
    static let sharedValues = 1 << 18
    /// The length of an XML element with another one in it: a shorter document than `maximumDepth` of them can't be nested too deeply.
    private static let shortestElement = "<dict></dict>".utf8.count

    /// Throws `DecodingError` for a property list beyond the limits.
    ///
    /// - Parameter limitsText: whether the nesting of other formats than the binary one is checked, too: `PropertyListDecoder` limits it in
    ///   none, and a document nested deeply overflows its stack.
    static func check(_ data: Data, limitsText: Bool) throws {
        if data.starts(with: Data("bplist".utf8)) {
            try data.withUnsafeBytes { bytes in
                var list = BinaryPropertyList(try BinaryPropertyList.Table(bytes))
                try list.check()
            }
        } else if limitsText, data.count > maximumDepth * shortestElement {
            _ = try PropertyListSerialization.propertyList(from: data, options: [], format: nil)
        }
    }

    static func failure(_ reason: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: [], debugDescription: "The property list \(reason)"))
    }
}

/// The references of a binary property list, followed without recursion, each once.
private struct BinaryPropertyList {
    /// Where the values are.
    struct Table {
        private let bytes: UnsafeRawBufferPointer
        private let offsetSize: Int
        private let referenceSize: Int
        private let offsets: Int
        let count: Int
        let top: Int

        /// Reads the last 32 bytes, which have sizes, counts and positions.
        init(_ bytes: UnsafeRawBufferPointer) throws(DecodingError) {
            self.bytes = bytes
            let trailer = bytes.count - 32
            guard trailer >= 8 else { throw PropertyListBounds.failure("is truncated") }
            offsetSize = Int(bytes[trailer + 6])
            referenceSize = Int(bytes[trailer + 7])
            count = Self.number(in: bytes, at: trailer + 8, size: 8) ?? .max
            top = Self.number(in: bytes, at: trailer + 16, size: 8) ?? .max
            offsets = Self.number(in: bytes, at: trailer + 24, size: 8) ?? .max
            let (size, isTooLarge) = count.multipliedReportingOverflow(by: offsetSize)
            guard 1...8 ~= offsetSize, 1...8 ~= referenceSize, top < count, offsets <= trailer, !isTooLarge, size <= trailer - offsets
            else { throw PropertyListBounds.failure("has no valid table of its values") }
        }

        /// A number of so many bytes, big endian; `nil` if it is not in the bytes, or too large.
        private static func number(in bytes: UnsafeRawBufferPointer, at offset: Int, size: Int) -> Int? {
            guard offset >= 0, offset <= bytes.count - size else { return nil }
            return Int(exactly: bytes[offset..<(offset + size)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        }

        /// The array or dictionary at an index of the table; `nil` for another value.
        func container(_ index: Int) throws(DecodingError) -> Container? {
            guard let offset = Self.number(in: bytes, at: offsets + index * offsetSize, size: offsetSize), offset < bytes.count else {
                throw PropertyListBounds.failure("has a value outside of its bytes")
            }
            let kind = bytes[offset] >> 4
            guard kind >= 0xA, kind <= 0xD else { return nil }
            var (count, first) = (Int(bytes[offset] & 0xF), offset + 1)
            if count == 0xF {
                // The count is a number of 1, 2, 4 or 8 bytes.
                guard first < bytes.count, bytes[first] & 0xFC == 0x10,
                    let long = Self.number(in: bytes, at: first + 1, size: 1 << Int(bytes[first] & 3))
                else { throw PropertyListBounds.failure("has a collection without a count") }
                first += 1 + 1 << Int(bytes[first] & 3)
                count = long
            }
            guard count <= (bytes.count - first) / referenceSize / (kind == 0xD ? 2 : 1) else {
                throw PropertyListBounds.failure("has a collection that is larger than its bytes")
            }
            return Container(first: first, count: kind == 0xD ? 2 * count : count)
        }

        /// The index of a container's value.
        func reference(_ number: Int, of container: Container) throws(DecodingError) -> Int {
            let offset = container.first + number * referenceSize
            guard let index = Self.number(in: bytes, at: offset, size: referenceSize), index < count else {
                throw PropertyListBounds.failure("refers to a value that it does not have")
            }
            return index
        }

        /// The largest number of values that may come of it.
        var limit: Int { bytes.count + PropertyListBounds.sharedValues }
    }

    /// The references of an array, or the keys and values of a dictionary.
    struct Container {
        let first: Int
        let count: Int
    }

    /// A container whose references are being followed.
    private struct Visit {
        let index: Int
        let container: Container
        var next = 0
        /// What the values so far come to.
        var size = 1
        var depth = 1
    }

    private static let isOpen = -1

    private let table: Table
    /// The number of values that each container comes to; 0 if it was not reached yet.
    private var sizes: [Int]
    private var depths: [UInt16]
    private var visits: [Visit] = []
    /// The number of references of all containers reached, which is not larger than the number of values.
    private var references = 0

    init(_ table: Table) {
        self.table = table
        sizes = Array(repeating: 0, count: table.count)
        depths = Array(repeating: 0, count: table.count)
    }

    mutating func check() throws(DecodingError) {
        try enter(table.top)
        while var visit = visits.popLast() {
            guard visit.next < visit.container.count else {
                sizes[visit.index] = visit.size
                depths[visit.index] = UInt16(visit.depth)
                continue
            }
            let index = try table.reference(visit.next, of: visit.container)
            guard sizes[index] != Self.isOpen else { throw PropertyListBounds.failure("contains itself") }
            if sizes[index] == 0 {
                visits.append(visit)
                // Comes back to this reference, and finds its size.
                try enter(index)
                continue
            }
            visit.next += 1
            visit.size += sizes[index]
            visit.depth = max(visit.depth, Int(depths[index]) + 1)
            try limit(visit.size, visit.depth)
            visits.append(visit)
        }
    }

    private mutating func enter(_ index: Int) throws(DecodingError) {
        guard let container = try table.container(index) else {
            sizes[index] = 1
            return
        }
        references += container.count
        try limit(references, visits.count + 1)
        sizes[index] = Self.isOpen
        visits.append(Visit(index: index, container: container))
    }

    private func limit(_ size: Int, _ depth: Int) throws(DecodingError) {
        guard depth <= PropertyListBounds.maximumDepth else {
            throw PropertyListBounds.failure("is nested more than \(PropertyListBounds.maximumDepth) levels deep")
        }
        guard size <= table.limit else {
            throw PropertyListBounds.failure("has more than \(table.limit) values, most of them by references to the same ones")
        }
    }
}
