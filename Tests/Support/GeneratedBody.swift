// SPDX-License-Identifier: Apache-2.0

/// The pseudo-random bytes that ``ServerResponse/Body/generated(length:seed:offset:)`` sends, for any stretch of them.
///
/// The byte at a position depends on the seed and the position alone. Pages of 4 KiB are copied from one table and begin with
/// a number of their own, so that a missing, repeated or displaced page shows. Costs little more than a copy, in a debug
/// build too.
public struct GeneratedBody: Sendable, Hashable {
    /// What tells one endless row of bytes from another.
    public let seed: UInt64

    private static let pageSize = 4096
    private static let pageCount = 61
    private static let table = makeTable()

    /// The bytes of a seed.
    public init(seed: UInt64 = 0) {
        self.seed = seed
    }

    /// The bytes at `offset ..< offset + count`.
    public func data(offset: Int64 = 0, count: Int) -> Data {
        var data = Data(count: count)
        data.withUnsafeMutableBytes { fill($0, offset: offset) }
        return data
    }

    /// The CRC-32 of the bytes at `offset ..< offset + count`, without holding them.
    public func checksum(offset: Int64 = 0, count: Int64) -> UInt32 {
        var checksum = CRC32()
        forEachPiece(offset: offset, count: count) { piece in
            checksum.update(piece)
            return true
        }
        return checksum.value
    }

    /// Whether `bytes` are those that stand at `offset`.
    public func matches(_ bytes: some ContiguousBytes, offset: Int64 = 0) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var compared = 0
            return forEachPiece(offset: offset, count: Int64(bytes.count)) { piece in
                guard let expected = piece.baseAddress, let actual = bytes.baseAddress else { return true }
                defer { compared += piece.count }
                return memcmp(expected, actual + compared, piece.count) == 0
            }
        }
    }

    /// Fills `buffer` with the bytes from `offset` on.
    public func fill(_ buffer: UnsafeMutableRawBufferPointer, offset: Int64) {
        precondition(offset >= 0, "The bytes begin at 0")
        guard var target = buffer.baseAddress else { return }
        Self.table.withUnsafeBytes { table in
            guard let table = table.baseAddress else { return }
            var page = UInt64(offset) / UInt64(Self.pageSize)
            var start = Int(UInt64(offset) % UInt64(Self.pageSize))
            var left = buffer.count
            while left > 0 {
                let count = min(left, Self.pageSize - start)
                let row = Int((page &+ seed) % UInt64(Self.pageCount))
                memcpy(target, table + row * Self.pageSize + start, count)
                stamp(target, page: page, from: start, count: count)
                target += count
                left -= count
                page += 1
                start = 0
            }
        }
    }

    /// Calls `body` with the bytes in pieces of up to 256 KiB until it answers false; whether it never did.
    @discardableResult
    func forEachPiece(offset: Int64, count: Int64, _ body: (UnsafeRawBufferPointer) throws -> Bool) rethrows -> Bool {
        let size = Int(min(max(count, 1), 256 << 10))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        defer { buffer.deallocate() }
        var done: Int64 = 0
        while done < count {
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(Int64(size), count - done))])
            fill(piece, offset: offset + done)
            guard try body(UnsafeRawBufferPointer(piece)) else { return false }
            done += Int64(piece.count)
        }
        return true
    }

    /// Overwrites what `count` bytes from `start` on share with the eight that open a page.
    private func stamp(_ target: UnsafeMutableRawPointer, page: UInt64, from start: Int, count: Int) {
        guard start < 8 else { return }
        var number = Self.mix(seed &+ page &* 0x9E37_79B9_7F4A_7C15).littleEndian
        withUnsafeBytes(of: &number) { number in
            guard let number = number.baseAddress else { return }
            memcpy(target, number + start, min(count, 8 - start))
        }
    }

    private static func makeTable() -> [UInt8] {
        var table = [UInt8](repeating: 0, count: pageSize * pageCount)
        table.withUnsafeMutableBytes { table in
            var state: UInt64 = 0
            for position in stride(from: 0, to: table.count, by: 8) {
                state &+= 0x9E37_79B9_7F4A_7C15
                table.storeBytes(of: mix(state).littleEndian, toByteOffset: position, as: UInt64.self)
            }
        }
        return table
    }

    /// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators").
    private static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed &>> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed &>> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed &>> 31)
    }
}
