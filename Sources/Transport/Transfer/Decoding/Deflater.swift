// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// Compresses a whole buffer with zlib.
package enum Deflater {
    /// The container format.
    package enum Format: Sendable {
        /// RFC 1950; `deflate` in HTTP.
        case zlib
        /// RFC 1952, without name and modification time: equal inputs give equal outputs.
        case gzip
    }

    private static let pieceSize = 64 * 1024

    /// Compresses bytes.
    ///
    /// - Parameter level: from 1, the fastest, to 9, the smallest; other values are clamped.
    /// - Throws: `POSIXError.ENOMEM` if zlib is out of memory.
    package static func compress(_ data: Data, as format: Format, level: Int) throws -> Data {
        // Allocated separately, because zlib keeps a pointer back to it.
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        defer { stream.deallocate() }
        let level = Int32(min(max(level, 1), 9))
        guard ccurlew_deflate_init(stream, level, format == .gzip ? 15 + 16 : 15) == Z_OK else { throw POSIXError(.ENOMEM) }
        defer { deflateEnd(stream) }

        var result = Data()
        try data.withUnsafeBytes { bytes in
            var rest = bytes[...]
            repeat {
                // zlib's counters have 32 bits.
                let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 30))
                rest = rest.dropFirst(piece.count)
                try run(stream, piece, isLast: rest.isEmpty) { result.append(contentsOf: $0) }
            } while !rest.isEmpty
        }
        return result
    }

    private static func run(
        _ stream: UnsafeMutablePointer<z_stream>, _ piece: UnsafeRawBufferPointer, isLast: Bool, _ sink: (UnsafeRawBufferPointer) -> Void
    ) throws {
        stream.pointee.next_in = UnsafeMutablePointer(mutating: piece.assumingMemoryBound(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = uInt(piece.count)
        try withUnsafeTemporaryAllocation(byteCount: pieceSize, alignment: 16) { buffer in
            var code = Z_OK
            repeat {
                stream.pointee.next_out = buffer.assumingMemoryBound(to: UInt8.self).baseAddress
                stream.pointee.avail_out = uInt(buffer.count)
                code = deflate(stream, isLast ? Z_FINISH : Z_NO_FLUSH)
                // Neither state nor input can be corrupt, so the only possible error is lack of memory.
                guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else { throw POSIXError(.ENOMEM) }
                sink(UnsafeRawBufferPointer(rebasing: buffer[..<(buffer.count - Int(stream.pointee.avail_out))]))
            } while isLast ? code != Z_STREAM_END : stream.pointee.avail_out == 0
        }
    }
}
