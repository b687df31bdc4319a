// SPDX-License-Identifier: Apache-2.0
import CCurlew

/// Decodes `gzip` (RFC 1952) and `deflate` (RFC 1950, or raw RFC 1951 as some servers send it) with zlib.
package final class InflateDecoder: CodingDecoder {
    /// The codings that zlib decodes.
    package enum Coding: String {
        case gzip
        case deflate
    }

    private enum State {
        /// Waiting for the two bytes that distinguish the forms of `deflate`.
        case undecided([UInt8])
        case inflating
        /// A member is complete; another may follow (RFC 1952, section 2.2).
        case betweenMembers
        case ended
    }

    private static let bufferSize = 32 * 1024

    private let coding: Coding
    private var state: State
    // Allocated separately, because zlib keeps a pointer back to it.
    private let stream: UnsafeMutablePointer<z_stream>
    private let buffer: UnsafeMutableRawBufferPointer
    private var isInitialized = false
    private var hasInput = false

    package init(_ coding: Coding) {
        self.coding = coding
        state = coding == .gzip ? .inflating : .undecided([])
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        buffer = .allocate(byteCount: Self.bufferSize, alignment: 16)
    }

    deinit {
        if isInitialized { inflateEnd(stream) }
        stream.deallocate()
        buffer.deallocate()
    }

    package var failureAtEnd: ContentDecodingError? {
        switch state {
        case .betweenMembers, .ended: nil
        // Many servers send a `Content-Encoding` without a body.
        case .undecided, .inflating: hasInput ? ContentDecodingError("The \(coding) body is truncated") : nil
        }
    }

    package func decode(
        _ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) throws(ContentDecodingError) -> Bool
    ) throws(ContentDecodingError) -> Bool {
        guard !bytes.isEmpty else { return true }
        hasInput = true
        guard case .undecided(let held) = state else { return try inflateAll(bytes, sink) }
        let start = held + bytes
        guard start.count >= 2 else {
            state = .undecided(start)
            return true
        }
        let isZlib = start[0] & 0x0F == 8 && (Int(start[0]) << 8 | Int(start[1])) % 31 == 0
        try initialize(windowBits: isZlib ? 15 : -15)
        state = .inflating
        return try withBytes(of: start) { (all) throws(ContentDecodingError) in try inflateAll(all, sink) }
    }

    /// `withUnsafeBytes` with a typed error.
    private func withBytes(
        of array: [UInt8], _ body: (UnsafeRawBufferPointer) throws(ContentDecodingError) -> Bool
    ) throws(ContentDecodingError) -> Bool {
        let result = array.withUnsafeBytes { bytes in
            Result { () throws(ContentDecodingError) in try body(bytes) }
        }
        return try result.get()
    }

    private func initialize(windowBits: Int32) throws(ContentDecodingError) {
        guard ccurlew_inflate_init(stream, windowBits) == Z_OK else { throw ContentDecodingError("zlib ran out of memory") }
        isInitialized = true
    }

    private func inflateAll(
        _ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) throws(ContentDecodingError) -> Bool
    ) throws(ContentDecodingError) -> Bool {
        if !isInitialized { try initialize(windowBits: 15 + 16) }
        stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.assumingMemoryBound(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = uInt(bytes.count)
        var isOutputFull = false
        while stream.pointee.avail_in > 0 || isOutputFull {
            guard try beginMemberIfNeeded() else { return true }
            stream.pointee.next_out = buffer.assumingMemoryBound(to: UInt8.self).baseAddress
            stream.pointee.avail_out = uInt(buffer.count)
            let code = inflate(stream, Z_NO_FLUSH)
            let count = buffer.count - Int(stream.pointee.avail_out)
            if count > 0, try !sink(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { return false }
            isOutputFull = stream.pointee.avail_out == 0
            switch code {
            case Z_OK: break
            case Z_BUF_ERROR: return true  // needs more input
            case Z_STREAM_END:
                state = coding == .gzip ? .betweenMembers : .ended
                isOutputFull = false  // no output is pending
            default:
                throw ContentDecodingError(
                    "The \(coding) body is corrupt: \(stream.pointee.msg.map { String(cString: $0) } ?? "code \(code)")")
            }
        }
        return true
    }

    /// Whether there is something to inflate: bytes after the last member that don't begin another one are padding, and skipped.
    private func beginMemberIfNeeded() throws(ContentDecodingError) -> Bool {
        switch state {
        case .ended: return false
        case .betweenMembers:
            guard stream.pointee.avail_in > 0, stream.pointee.next_in.pointee == 0x1F else {
                state = .ended
                return false
            }
            inflateReset(stream)
            state = .inflating
            return true
        case .undecided, .inflating: return true
        }
    }
}
