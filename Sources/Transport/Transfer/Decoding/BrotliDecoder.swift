// SPDX-License-Identifier: Apache-2.0
#if Brotli
import CBrotli

/// Decodes `br` (RFC 7932); requires the package trait Brotli.
///
/// Takes up to 16 MiB of memory, the largest window of the format.
package final class BrotliDecoder: CodingDecoder {
    private static let bufferSize = 32 * 1024

    // `nil` if out of memory. Freed in `deinit`.
    private let state: OpaquePointer?
    private let buffer: UnsafeMutableRawBufferPointer
    private var hasInput = false
    private var isAtEnd = false

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

    package func decode(
        _ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) throws(ContentDecodingError) -> Bool
    ) throws(ContentDecodingError) -> Bool {
        guard !bytes.isEmpty else { return true }
        guard let state else { throw ContentDecodingError("brotli ran out of memory") }
        guard !isAtEnd else { throw ContentDecodingError("The br body has bytes after its end") }
        hasInput = true
        var input = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
        var inputLeft = bytes.count
        while true {
            var output = buffer.assumingMemoryBound(to: UInt8.self).baseAddress
            var outputLeft = buffer.count
            let result = BrotliDecoderDecompressStream(state, &inputLeft, &input, &outputLeft, &output, nil)
            let count = buffer.count - outputLeft
            if count > 0, try !sink(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { return false }
            switch result {
            case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: continue
            case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT: return true
            case BROTLI_DECODER_RESULT_SUCCESS:
                isAtEnd = true
                if inputLeft > 0 { throw ContentDecodingError("The br body has bytes after its end") }
                return true
            default:
                let reason = BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state)).map { String(cString: $0) }
                throw ContentDecodingError("The br body is corrupt: \(reason ?? "no reason given")")
            }
        }
    }
}
#endif
