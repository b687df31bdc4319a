// SPDX-License-Identifier: Apache-2.0
#if Brotli
import CBrotli

/// Undoes `br` (RFC 7932), with the trait Brotli.
///
/// It needs up to 16 MiB, the largest window of the format.
package final class BrotliDecoder: CodingDecoder {
    private static let bufferSize = 32 * 1024

    // `nil` without memory. The state is freed with the decoder.
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

    package var failureAtEnd: DecodingError? {
        // Many servers name a coding where there is no body at all.
        isAtEnd || !hasInput ? nil : DecodingError("The br body is cut short")
    }

    package func decode(
        _ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) throws(DecodingError) -> Bool
    ) throws(DecodingError) -> Bool {
        guard !bytes.isEmpty else { return true }
        guard let state else { throw DecodingError("brotli has no memory") }
        guard !isAtEnd else { throw DecodingError("The br body goes on behind its end") }
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
                if inputLeft > 0 { throw DecodingError("The br body goes on behind its end") }
                return true
            default:
                let reason = BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state)).map { String(cString: $0) }
                throw DecodingError("The br body is corrupt: \(reason ?? "no reason given")")
            }
        }
    }
}
#endif
