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
        case undecided(first: UInt8?)
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
    package private(set) var hasMore = false
    package var rest = UnsafeRawBufferPointer(start: nil, count: 0)

    package init(_ coding: Coding) {
        self.coding = coding
        state = coding == .gzip ? .inflating : .undecided(first: nil)
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

    package func step(_ input: inout UnsafeRawBufferPointer) throws(ContentDecodingError) -> UnsafeRawBufferPointer {
        if !input.isEmpty { hasInput = true }
        guard case .undecided(let first) = state else { return try inflateStep(&input) }
        guard let first else {
            guard input.count >= 2 else {
                state = .undecided(first: input.first)
                input = UnsafeRawBufferPointer(rebasing: input[input.endIndex...])
                return Self.nothing
            }
            try decide(input[0], input[1])
            return try inflateStep(&input)
        }
        guard let second = input.first else { return Self.nothing }
        try decide(first, second)
        // The first byte alone decodes to nothing.
        _ = try withUnsafeBytes(of: first) { byte in
            var byte = byte
            return Result { () throws(ContentDecodingError) in try inflateStep(&byte) }
        }.get()
        return try inflateStep(&input)
    }

    private static var nothing: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

    private func decide(_ first: UInt8, _ second: UInt8) throws(ContentDecodingError) {
        let isZlib = first & 0x0F == 8 && (Int(first) << 8 | Int(second)) % 31 == 0
        try initialize(windowBits: isZlib ? 15 : -15)
        state = .inflating
    }

    private func initialize(windowBits: Int32) throws(ContentDecodingError) {
        guard ccurlew_inflate_init(stream, windowBits) == Z_OK else { throw ContentDecodingError("zlib ran out of memory") }
        isInitialized = true
    }

    private func inflateStep(_ input: inout UnsafeRawBufferPointer) throws(ContentDecodingError) -> UnsafeRawBufferPointer {
        if !isInitialized { try initialize(windowBits: 15 + 16) }
        guard beginMemberIfNeeded(input) else {
            input = Self.nothing
            return Self.nothing
        }
        stream.pointee.next_in = UnsafeMutablePointer(mutating: input.assumingMemoryBound(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = uInt(input.count)
        stream.pointee.next_out = buffer.assumingMemoryBound(to: UInt8.self).baseAddress
        stream.pointee.avail_out = uInt(buffer.count)
        let code = inflate(stream, Z_NO_FLUSH)
        input = UnsafeRawBufferPointer(rebasing: input.suffix(Int(stream.pointee.avail_in)))
        hasMore = stream.pointee.avail_out == 0
        switch code {
        case Z_OK: break
        case Z_BUF_ERROR: hasMore = false  // needs more input
        case Z_STREAM_END:
            state = coding == .gzip ? .betweenMembers : .ended
            hasMore = false
        default:
            throw ContentDecodingError(
                "The \(coding) body is corrupt: \(stream.pointee.msg.map { String(cString: $0) } ?? "code \(code)")")
        }
        return UnsafeRawBufferPointer(rebasing: buffer[..<(buffer.count - Int(stream.pointee.avail_out))])
    }

    /// Whether there is something to inflate: bytes after the last member that don't begin another one are padding, and skipped.
    private func beginMemberIfNeeded(_ input: UnsafeRawBufferPointer) -> Bool {
        switch state {
        case .ended: return false
        case .betweenMembers:
            guard let first = input.first else { return false }
            guard first == 0x1F else {
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
