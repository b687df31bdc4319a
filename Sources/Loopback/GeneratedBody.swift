// SPDX-License-Identifier: Apache-2.0

/// The pseudo-random bytes sent by ``ServerResponse/Body/generated(length:seed:offset:)``, for any range of them.
///
/// Each byte depends only on the seed and its position. Pages of 4 KiB are copied from one table and start with a number of their own, so
/// that a missing, repeated or displaced page is detected. Costs little more than a copy, even in a debug build.
public struct GeneratedBody: Sendable, Hashable {
    /// The seed, which distinguishes one infinite sequence of bytes from another.
    public let seed: UInt64

    private static let pageSize = 4096
    private static let pageCount = 61
    private static let table = makeTable()

    /// Creates the sequence of a seed.
    public init(seed: UInt64 = 0) {
        self.seed = seed
    }

    /// Returns the bytes at `offset ..< offset + count`.
    public func data(offset: Int64 = 0, count: Int) -> Data {
        var data = Data(count: count)
        data.withUnsafeMutableBytes { fill($0, offset: offset) }
        return data
    }

    /// Returns the CRC-32 of the bytes at `offset ..< offset + count` without holding them in memory.
    public func checksum(offset: Int64 = 0, count: Int64) -> UInt32 {
        var checksum = CRC32()
        forEachPiece(offset: offset, count: count) { piece in
            checksum.update(piece)
            return true
        }
        return checksum.value
    }

    /// Whether `bytes` are equal to those at `offset`.
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

    /// Fills `buffer` with the bytes starting at `offset`, which must not be negative, as in the other functions.
    public func fill(_ buffer: UnsafeMutableRawBufferPointer, offset: Int64) {
        // An offset that was computed wrongly.
        precondition(offset >= 0, "The offset must not be negative")
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

    /// Calls `body` with pieces of up to 256 KiB until it returns false. Returns whether it never did.
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

    /// Overwrites the part of the page's first eight bytes that overlaps with `count` bytes at `start`.
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

    /// Computes the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators").
    private static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed &>> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed &>> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed &>> 31)
    }
}
