// SPDX-License-Identifier: Apache-2.0

/// Valid gzip and zlib streams without compression: "stored" DEFLATE blocks (RFC 1951, section 3.2.4).
///
/// Accepted by every decoder, and made without a compression library.
package enum StoredDeflate {
    /// Returns `bytes` as a gzip member (RFC 1952), for `Content-Encoding: gzip`.
    package static func gzip(_ bytes: Data) -> Data {
        // Magic number, DEFLATE, no flags, no time, no extra flags, unknown system.
        var stream = Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF])
        appendBlocks(bytes, to: &stream)
        stream.append(littleEndian: CRC32.checksum(of: bytes))
        stream.append(littleEndian: UInt32(truncatingIfNeeded: bytes.count))
        return stream
    }

    /// Returns `bytes` as a zlib stream (RFC 1950), the format of `Content-Encoding: deflate`.
    package static func zlib(_ bytes: Data) -> Data {
        var stream = Data([0x78, 0x01])
        appendBlocks(bytes, to: &stream)
        stream.append(littleEndian: adler32(of: bytes).byteSwapped)
        return stream
    }

    private static func appendBlocks(_ bytes: Data, to stream: inout Data) {
        var rest = bytes[...]
        repeat {
            let block = rest.prefix(0xFFFF)
            rest = rest.dropFirst(block.count)
            stream.append(rest.isEmpty ? 1 : 0)  // the final block's flag; type 00, padded to the byte
            stream.append(littleEndian: UInt16(block.count))
            stream.append(littleEndian: ~UInt16(block.count))
            stream.append(block)
        } while !rest.isEmpty
    }
}

extension Data {
    fileprivate mutating func append(littleEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }
}
