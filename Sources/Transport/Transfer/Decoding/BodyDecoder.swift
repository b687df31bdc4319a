// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Has ``ContentDecoder`` decode the body of a response, and limits how far it may expand: a few bytes can decode to gigabytes.
struct BodyDecoder {
    /// How decoding a piece has ended.
    enum Ending {
        /// All of it is decoded.
        case complete
        /// It was interrupted, and has to be given again.
        case interrupted
        /// The receiver does not want the rest.
        case cancelled
    }

    /// The decoded length from which on the limit is enforced.
    private static let unlimitedLength: Int64 = 16 << 20
    /// The number of bytes that may decode to nothing: twice what a block of a usual format takes.
    private static let largestSilence = 256 << 10

    private let decoder: ContentDecoder
    /// The largest decoded length as a multiple of the bytes received; `nil` for no limit.
    private let maximumExpansion: Int?
    /// The number of bytes that all stages together have put out. Those of an inner stage count, because a body of many codings may expand
    /// there and decode to nothing.
    private var decodedBytes: Int64 = 0
    /// The number of bytes of an interrupted piece that were decoded before.
    private var usedBytes = 0
    /// The number of bytes that the stages have taken since the last byte of the body.
    private var silentBytes = 0

    /// Creates a decoder for the codings in the head; `nil` if there is nothing to decode.
    init?(for head: ResponseHead, maximumExpansion: Int?) throws(ContentDecodingError) {
        guard let decoder = try ContentDecoder(codings: head.headers.value(for: "Content-Encoding") ?? "") else { return nil }
        self.decoder = decoder
        self.maximumExpansion = maximumExpansion
    }

    /// Decodes a piece and calls `sink` with the result: at least one step, and no more once the slice is over.
    ///
    /// - Parameters:
    ///   - bytes: the piece; after an interruption the same bytes, of which those that are decoded already are skipped.
    ///   - received: the number of bytes received so far, those of this piece included.
    ///   - slice: the work that may be done now.
    ///   - sink: receives the decoded bytes.
    mutating func decode(
        _ bytes: UnsafeRawBufferPointer, received: Int64, _ slice: inout DecodingSlice, _ sink: (UnsafeRawBufferPointer) -> ReceiveAction
    ) throws(ContentDecodingError) -> Ending {
        var input = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(usedBytes))
        while true {
            let next = try slice.take { () throws(ContentDecodingError) in
                try decoder.step(&input, atMost: DecodingSlice.largestInput)
            }
            guard let step = next else { break }
            silentBytes = step.isDecoded && !step.bytes.isEmpty ? 0 : silentBytes + step.inputSize
            decodedBytes += Int64(step.bytes.count)
            if let limit = limit(exceededBy: decodedBytes, received: received) {
                throw ContentDecodingError("The body expanded to more than \(limit) times the bytes received", kind: .tooLarge)
            }
            let action = step.isDecoded && !step.bytes.isEmpty ? sink(step.bytes) : .proceed
            if action == .cancel { return .cancelled }
            guard slice.isOver || action == .pause else { continue }
            // Nothing is left to interrupt if the step was the last one.
            guard !input.isEmpty || decoder.hasMore else { break }
            usedBytes = max(usedBytes, bytes.count - input.count)
            return .interrupted
        }
        usedBytes -= min(usedBytes, bytes.count)
        return .complete
    }

    /// The limit that a decoded length exceeds; `nil` if it is allowed.
    private func limit(exceededBy length: Int64, received: Int64) -> Int? {
        guard length > Self.unlimitedLength, let maximumExpansion else { return nil }
        let (allowed, isUnlimited) = received.multipliedReportingOverflow(by: Int64(maximumExpansion))
        return isUnlimited || length <= allowed ? nil : maximumExpansion
    }

    /// Whether what is received counts as progress of the transfer: padding and empty blocks decode to nothing, without end.
    var isProgressing: Bool { silentBytes <= Self.largestSilence }

    /// The error if the body ended here: it is truncated; `nil` if it is complete.
    var failureAtEnd: ContentDecodingError? { decoder.failureAtEnd }
}

/// The decoding that is done between two looks at the event loop's time limits, for all transfers together: a few milliseconds. Once they
/// are over, transfers wait for one of the next slices, in their order, before they decode anything.
///
/// The peer decides what a byte costs: of brotli in blocks of one byte, only about a megabyte of input is decoded in a second. And a single
/// step of brotli fills its window of 16 MiB before it puts out a byte, for which 14 bytes of input suffice: that takes a fifth of a
/// second, and can't be divided, neither by parameters nor by smaller buffers. So there is at most one such step in a slice.
struct DecodingSlice {
    /// Five milliseconds: a multiple of what ordinary bodies take in a turn.
    private static let length: Nanoseconds = 5_000_000
    /// The most input of a step, in bytes: the time is read after each.
    static let largestInput = 4 << 10

    private var end: Nanoseconds = 0
    /// Whether its time is used up.
    private(set) var isOver = false

    /// Whether something was decoded.
    var hasBegun: Bool { end > 0 }

    /// Begins with the first body to decode: its time is not that of other work.
    mutating func begin() {
        if !hasBegun { end = MonotonicTime.now() + Self.length }
    }

    /// Takes a step, whose time counts also if it fails. A slice that was not begun is over after one.
    mutating func take<Value>(_ step: () throws(ContentDecodingError) -> Value) throws(ContentDecodingError) -> Value {
        defer { if !isOver { isOver = MonotonicTime.now() >= end } }
        return try step()
    }
}
