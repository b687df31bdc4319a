// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Decodes the body of a response, and limits how far it may expand: a few bytes can decode to gigabytes.
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

    /// Decodes a piece and calls `sink` with the result.
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
            guard let step = try decoder.step(&input, atMost: slice.largestInput) else { break }
            silentBytes = step.isDecoded && !step.bytes.isEmpty ? 0 : silentBytes + step.inputSize
            decodedBytes += Int64(step.bytes.count)
            if let limit = limit(exceededBy: decodedBytes, received: received) {
                throw ContentDecodingError("The body expanded to more than \(limit) times the bytes received", kind: .tooLarge)
            }
            let action = step.isDecoded && !step.bytes.isEmpty ? sink(step.bytes) : .proceed
            if action == .cancel { return .cancelled }
            guard action == .pause || slice.isOver(after: step) else { continue }
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

/// The decoding that is done in one turn of the event loop, for all transfers together: a few milliseconds, after which time limits,
/// cancellations and sockets are looked at. A transfer that comes later in the turn decodes a little nevertheless, so that each progresses.
///
/// The peer decides what a byte costs: of brotli in blocks of one byte, only about a megabyte of input is decoded in a second.
struct DecodingSlice {
    /// Five milliseconds: a multiple of what ordinary bodies take in a turn.
    private static let length: Nanoseconds = 5_000_000
    /// What a transfer may still do once the time is used up, in bytes of output.
    private static let workAfterEnd = 32 << 10
    /// The cost of a byte of input, in bytes of output.
    private static let workPerInput = 64

    private var turn: Nanoseconds = 0
    private var end: Nanoseconds = 0
    private var isUsedUp = false
    private var workDone = 0

    /// Begins a slice, unless the turn is still the same.
    mutating func begin(inTurn now: Nanoseconds) {
        guard turn != now else { return }
        turn = now
        end = MonotonicTime.now() + Self.length
        isUsedUp = false
        workDone = 0
    }

    /// The most input of a step, in bytes: the time is read after each.
    var largestInput: Int { isUsedUp ? Self.workAfterEnd / Self.workPerInput : 4 << 10 }

    /// Whether the transfer may do no more in this turn.
    mutating func isOver(after step: ContentDecoder.Step) -> Bool {
        guard isUsedUp else {
            isUsedUp = MonotonicTime.now() >= end
            return isUsedUp
        }
        workDone += step.bytes.count + step.inputSize * Self.workPerInput
        guard workDone >= Self.workAfterEnd else { return false }
        workDone = 0
        return true
    }
}
