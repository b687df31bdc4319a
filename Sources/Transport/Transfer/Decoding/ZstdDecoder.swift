// SPDX-License-Identifier: Apache-2.0
#if Zstd
import CZstd

/// Decodes `zstd` (RFC 8878); requires the package trait Zstd.
package final class ZstdDecoder: CodingDecoder {
    /// 8 MiB, the largest window that a server may require of a client (RFC 9659, section 3).
    private static let maximumWindowLog: Int32 = 23
    private static let bufferSize = 32 * 1024

    // `nil` if out of memory. Freed in `deinit`.
    private let stream: OpaquePointer?
    private let buffer: UnsafeMutableRawBufferPointer
    private var hasInput = false
    /// Whether a frame is complete, and no byte of another one was received.
    private var isBetweenFrames = false
    package private(set) var hasMore = false
    package var rest = UnsafeRawBufferPointer(start: nil, count: 0)

    package init() {
        stream = ZSTD_createDStream()
        buffer = .allocate(byteCount: Self.bufferSize, alignment: 16)
        if let stream { _ = ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, Self.maximumWindowLog) }
    }

    deinit {
        if let stream { _ = ZSTD_freeDStream(stream) }
        buffer.deallocate()
    }

    package var failureAtEnd: ContentDecodingError? {
        // Many servers send a `Content-Encoding` without a body.
        isBetweenFrames || !hasInput ? nil : ContentDecodingError("The zstd body is truncated")
    }

    package func step(_ input: inout UnsafeRawBufferPointer) throws(ContentDecodingError) -> UnsafeRawBufferPointer {
        guard let stream else { throw ContentDecodingError("zstd ran out of memory") }
        if !input.isEmpty { hasInput = true }
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        var output = ZSTD_outBuffer(dst: buffer.baseAddress, size: buffer.count, pos: 0)
        let hint = ZSTD_decompressStream(stream, &output, &source)
        guard ZSTD_isError(hint) == 0 else {
            throw ContentDecodingError("The zstd body is corrupt: \(String(cString: ZSTD_getErrorName(hint)))")
        }
        input = UnsafeRawBufferPointer(rebasing: input[source.pos...])
        isBetweenFrames = hint == 0
        hasMore = output.pos == buffer.count && !isBetweenFrames
        return UnsafeRawBufferPointer(rebasing: buffer[..<output.pos])
    }
}
#endif
