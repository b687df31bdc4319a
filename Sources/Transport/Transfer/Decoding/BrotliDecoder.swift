// SPDX-License-Identifier: Apache-2.0
#if Brotli
import CBrotli

/// Decodes `br` (RFC 7932); requires the package trait Brotli.
///
/// Takes up to 16 MiB of memory, the largest window of the format. A step may fill all of it (``DecodingSlice``).
package final class BrotliDecoder: CodingDecoder {
    private static let bufferSize = 32 * 1024

    // `nil` if out of memory. Freed in `deinit`.
    private let state: OpaquePointer?
    private let buffer: UnsafeMutableRawBufferPointer
    private var hasInput = false
    private var isAtEnd = false
    package private(set) var hasMore = false
    package var rest = UnsafeRawBufferPointer(start: nil, count: 0)

    package init() {
        state = BrotliDecoderCreateInstance(nil, nil, nil)
        buffer = .allocate(byteCount: Self.bufferSize, alignment: 16)
    }

    deinit {
        if let state { BrotliDecoderDestroyInstance(state) }
        buffer.deallocate()
    }

    package var failureAtEnd: ContentDecodingError? {
        // Many servers send a `Content-Encoding` without a body.
        isAtEnd || !hasInput ? nil : ContentDecodingError("The br body is truncated")
    }

    package func step(_ input: inout UnsafeRawBufferPointer) throws(ContentDecodingError) -> UnsafeRawBufferPointer {
        guard let state else { throw ContentDecodingError("brotli ran out of memory") }
        guard !isAtEnd || input.isEmpty else { throw ContentDecodingError("The br body has bytes after its end") }
        if !input.isEmpty { hasInput = true }
        var next = input.assumingMemoryBound(to: UInt8.self).baseAddress
        var inputLeft = input.count
        var output = buffer.assumingMemoryBound(to: UInt8.self).baseAddress
        var outputLeft = buffer.count
        let result = BrotliDecoderDecompressStream(state, &inputLeft, &next, &outputLeft, &output, nil)
        input = UnsafeRawBufferPointer(rebasing: input.suffix(inputLeft))
        hasMore = result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT
        switch result {
        case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT, BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT: break
        // Bytes behind the end are refused by the next step.
        case BROTLI_DECODER_RESULT_SUCCESS: isAtEnd = true
        default:
            let reason = BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state)).map { String(cString: $0) }
            throw ContentDecodingError("The br body is corrupt: \(reason ?? "no reason given")")
        }
        return UnsafeRawBufferPointer(rebasing: buffer[..<(buffer.count - outputLeft)])
    }
}
#endif
