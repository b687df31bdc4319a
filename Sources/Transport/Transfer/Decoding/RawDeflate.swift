// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// DEFLATE without anything around it (RFC 1951), for streams of messages that share what was compressed before. A stream of zlib stands in an
// allocation of its own: zlib keeps a pointer back to it.

/// Why bytes could not be compressed or decompressed.
package enum RawDeflateError: Error, Sendable, Hashable {
    /// zlib has no memory.
    case outOfMemory
    /// The bytes are no DEFLATE; in zlib's words, why.
    case corrupt(String)
}

/// Compresses messages one after the other; each ends on a byte, so that it can be sent.
///
/// One thread at a time.
package final class RawDeflater {
    private static let pieceSize = 16 * 1024
    /// What ends each message, and is not sent (RFC 7692, section 7.2.1).
    private static let tailSize = 4

    private let stream: UnsafeMutablePointer<z_stream>
    private let buffer: UnsafeMutableRawBufferPointer

    /// Makes a deflater with a window of 2 to the power of 9 to 15, and a level of 1, the fastest, to 9.
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

    /// The message compressed, without the empty block at its end; not for empty messages.
    package func compress(_ message: UnsafeRawBufferPointer) throws(RawDeflateError) -> Data {
        var result = Data()
        var rest = message[...]
        repeat {
            // zlib counts in 32 bits.
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
            // The state can't be corrupt, nor the input: what is left is memory.
            guard code == Z_OK || code == Z_BUF_ERROR else { throw .outOfMemory }
            result.append(contentsOf: buffer[..<(buffer.count - Int(stream.pointee.avail_out))])
        } while stream.pointee.avail_out == 0
    }

    /// Forgets what was compressed before.
    package func reset() {
        deflateReset(stream)
    }
}

/// Undoes what a ``RawDeflater`` of somebody else did.
///
/// One thread at a time.
package final class RawInflater {
    private static let pieceSize = 32 * 1024

    private let stream: UnsafeMutablePointer<z_stream>
    private let buffer: UnsafeMutableRawBufferPointer

    /// Makes an inflater for a window of 2 to the power of 8 to 15.
    package init(windowBits: Int) throws(RawDeflateError) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        buffer = .allocate(byteCount: Self.pieceSize, alignment: 16)
        // zlib's deflate takes 9 where it is told 8: many a peer's window is larger than it says.
        let bits = Int32(min(max(windowBits, 9), 15))
        guard ccurlew_inflate_init(stream, -bits) == Z_OK else { throw .outOfMemory }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
        buffer.deallocate()
    }

    /// Decompresses a piece, and hands over what comes of it until `sink` says `false`; whether it never did.
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
            case Z_BUF_ERROR: return true  // wants more input
            case Z_STREAM_END: try goOn()
            case Z_MEM_ERROR: throw .outOfMemory
            default: throw .corrupt(stream.pointee.msg.map { String(cString: $0) } ?? "code \(code)")
            }
        }
    }

    /// A block said that it is the last: what follows it refers to what came before all the same (RFC 7692, section 7.2.3.4).
    ///
    /// The window stays where it is. To copy it out and in again lets a server keep a processor busy with blocks of two bytes.
    private func goOn() throws(RawDeflateError) {
        guard inflateResetKeep(stream) == Z_OK else { throw .outOfMemory }
    }

    /// Forgets what was decompressed before.
    package func reset() {
        inflateReset(stream)
    }
}
