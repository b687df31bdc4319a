// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// DEFLATE without a container (RFC 1951), for streams of messages that share a window. The zlib stream is allocated separately, because
// zlib keeps a pointer back to it.

/// Why bytes could not be compressed or decompressed.
package enum RawDeflateError: Error, Sendable, Hashable {
    /// zlib is out of memory.
    case outOfMemory
    /// The bytes are not valid DEFLATE; the payload is zlib's message.
    case corrupt(String)
}

/// Compresses a sequence of messages; each ends on a byte boundary, so that it can be sent.
///
/// Not thread-safe.
package final class RawDeflater {
    private static let pieceSize = 16 * 1024
    /// The length of the empty block that ends each message and is not sent (RFC 7692, section 7.2.1).
    private static let tailSize = 4

    private let stream: UnsafeMutablePointer<z_stream>
    private let buffer: UnsafeMutableRawBufferPointer

    /// Creates a deflater with a window of 2 to the power of 9 to 15, and a level from 1, the fastest, to 9.
    package init(windowBits: Int, level: Int) throws(RawDeflateError) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        buffer = .allocate(byteCount: Self.pieceSize, alignment: 16)
        let bits = Int32(min(max(windowBits, 9), 15))
        guard ccurlew_deflate_init(stream, Int32(min(max(level, 1), 9)), -bits) == Z_OK else { throw .outOfMemory }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
        buffer.deallocate()
    }

    /// Compresses a message, without the empty block at its end. The message must not be empty.
    package func compress(_ message: UnsafeRawBufferPointer) throws(RawDeflateError) -> Data {
        var result = Data()
        var rest = message[...]
        repeat {
            // zlib's counters have 32 bits.
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 30))
            rest = rest.dropFirst(piece.count)
            try run(piece, isLast: rest.isEmpty, into: &result)
        } while !rest.isEmpty
        result.removeLast(min(Self.tailSize, result.count))
        return result
    }

    private func run(_ piece: UnsafeRawBufferPointer, isLast: Bool, into result: inout Data) throws(RawDeflateError) {
        stream.pointee.next_in = UnsafeMutablePointer(mutating: piece.assumingMemoryBound(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = uInt(piece.count)
        repeat {
            stream.pointee.next_out = buffer.assumingMemoryBound(to: UInt8.self).baseAddress
            stream.pointee.avail_out = uInt(buffer.count)
            let code = deflate(stream, isLast ? Z_SYNC_FLUSH : Z_NO_FLUSH)
            // Neither state nor input can be corrupt, so the only possible error is lack of memory.
            guard code == Z_OK || code == Z_BUF_ERROR else { throw .outOfMemory }
            result.append(contentsOf: buffer[..<(buffer.count - Int(stream.pointee.avail_out))])
        } while stream.pointee.avail_out == 0
    }

    /// Resets the window.
    package func reset() {
        deflateReset(stream)
    }
}

/// Decompresses the messages of a peer's ``RawDeflater``.
///
/// Not thread-safe.
package final class RawInflater {
    private static let pieceSize = 32 * 1024

    private let stream: UnsafeMutablePointer<z_stream>
    private let buffer: UnsafeMutableRawBufferPointer

    /// Creates an inflater for a window of 2 to the power of 8 to 15.
    package init(windowBits: Int) throws(RawDeflateError) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        buffer = .allocate(byteCount: Self.pieceSize, alignment: 16)
        // zlib's deflate replaces 8 by 9, so many peers use a larger window than announced.
        let bits = Int32(min(max(windowBits, 9), 15))
        guard ccurlew_inflate_init(stream, -bits) == Z_OK else { throw .outOfMemory }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
        buffer.deallocate()
    }

    /// Decompresses a piece and calls `sink` with the result until it returns `false`. Returns whether it never did.
    package func decompress(
        _ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) -> Bool
    ) throws(RawDeflateError) -> Bool {
        stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.assumingMemoryBound(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = uInt(bytes.count)
        while true {
            stream.pointee.next_out = buffer.assumingMemoryBound(to: UInt8.self).baseAddress
            stream.pointee.avail_out = uInt(buffer.count)
            let code = inflate(stream, Z_SYNC_FLUSH)
            let count = buffer.count - Int(stream.pointee.avail_out)
            if count > 0, !sink(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { return false }
            switch code {
            case Z_OK: if stream.pointee.avail_in == 0, stream.pointee.avail_out > 0 { return true }
            case Z_BUF_ERROR: return true  // needs more input
            case Z_STREAM_END: try continueAfterFinalBlock()
            case Z_MEM_ERROR: throw .outOfMemory
            default: throw .corrupt(stream.pointee.msg.map { String(cString: $0) } ?? "code \(code)")
            }
        }
    }

    /// Continues after a block marked as the last one: following blocks still refer to the bytes before it (RFC 7692, section 7.2.3.4).
    ///
    /// The window stays in place: copying it out and in again would let a server keep a processor busy with two-byte blocks.
    private func continueAfterFinalBlock() throws(RawDeflateError) {
        guard inflateResetKeep(stream) == Z_OK else { throw .outOfMemory }
    }

    /// Resets the window.
    package func reset() {
        inflateReset(stream)
    }
}
