// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Why a body could not be decoded.
package struct ContentDecodingError: Error, Hashable {
    package let kind: TransferFailure.Kind
    package let message: String

    package init(_ message: String, kind: TransferFailure.Kind = .decoding) {
        self.kind = kind
        self.message = message
    }
}

/// Decodes one content coding incrementally, in steps of limited work. Further codings are added by conforming to this protocol.
package protocol CodingDecoder: AnyObject {
    /// Decodes until the input is used up or the decoder's buffer is full, and removes what was used from the input.
    ///
    /// - Returns: the decoded bytes, in the decoder's buffer: valid until the next call. Empty if the input does not suffice for any.
    func step(_ input: inout UnsafeRawBufferPointer) throws(ContentDecodingError) -> UnsafeRawBufferPointer

    /// Whether the next step may decode bytes without further input, because the buffer was too small for them.
    var hasMore: Bool { get }

    /// What the following stage has not used yet of the last step's bytes.
    var rest: UnsafeRawBufferPointer { get set }

    /// The error if the body ended here: it is truncated; `nil` if it is complete.
    var failureAtEnd: ContentDecodingError? { get }
}

/// Decodes the content codings of a response's body (RFC 9110, section 8.4).
///
/// libcurl's own decoders report a truncated body as complete.
package struct ContentDecoder {
    /// More codings are refused: a file that is compressed once more on its way has two, a misconfigured server three. A stage expands its
    /// input up to a thousand times, so that each further one multiplies the work that a byte of the response can cause.
    private static let maximumCodings = 3

    /// The codings offered to servers: exactly those that can be decoded.
    package static let accepted = known.joined(separator: ", ")

    /// The names of the supported codings, the preferred one first.
    package static var known: [String] {
        var names = ["gzip", "deflate"]
        #if Zstd
        names.insert("zstd", at: 0)
        #endif
        #if Brotli
        names.insert("br", at: 0)
        #endif
        return names
    }

    /// The decoders in decoding order: the last coding applied comes first.
    private let stages: [any CodingDecoder]

    /// Creates a decoder for a `Content-Encoding`; `nil` if there is nothing to decode.
    ///
    /// A body with an unknown coding is not decoded at all, regardless of the field's other codings: servers send values that are not
    /// codings (`none`, `utf-8`), or that describe how the body was uploaded to a store (`aws-chunked`). After partial decoding the field
    /// would be wrong.
    package init?(codings: String) throws(ContentDecodingError) {
        let names = Self.names(in: codings)
        guard !names.isEmpty, names.allSatisfy(Self.isKnown) else { return nil }
        guard names.count <= Self.maximumCodings else {
            let first = names.prefix(Self.maximumCodings + 5).joined(separator: ", ")
            let others = names.count > Self.maximumCodings + 5 ? ", …" : ""
            throw ContentDecodingError("\(names.count) content codings, at most \(Self.maximumCodings) are decoded: \(first)\(others)")
        }
        stages = names.reversed().compactMap { Self.stage(for: $0) }
    }

    /// Whether a `Content-Encoding` contains codings, all of which are supported.
    static func knows(_ codings: String) -> Bool {
        let names = names(in: codings)
        return !names.isEmpty && names.allSatisfy(isKnown)
    }

    /// The names in a `Content-Encoding`, in lower case, without `identity`, which is not a coding (RFC 9110, section 12.5.3).
    private static func names(in codings: String) -> [String] {
        codings.splitScalars(separator: ",").map { $0.trimmingScalars { $0 == " " || $0 == "\t" }.lowercased() }.filter {
            !$0.isEmpty && $0 != "identity"
        }
    }

    private static func isKnown(_ name: String) -> Bool { known.contains(name) || name == "x-gzip" }

    private static func stage(for name: String) -> (any CodingDecoder)? {
        switch name {
        case "gzip", "x-gzip": InflateDecoder(.gzip)
        case "deflate": InflateDecoder(.deflate)
        #if Brotli
        case "br": BrotliDecoder()
        #endif
        #if Zstd
        case "zstd": ZstdDecoder()
        #endif
        default: nil
        }
    }

    /// The bytes that a stage has put out.
    package struct Step {
        /// Valid until the next step.
        package let bytes: UnsafeRawBufferPointer
        /// The number of bytes that the stage has taken.
        let inputSize: Int
        /// Whether they come from the last stage, so that they are bytes of the body.
        package let isDecoded: Bool
    }

    /// Takes one step: the last stage that has something to do takes at most so much input, and puts out at most its buffer's size. Returns
    /// `nil` if more input is needed.
    package func step(_ input: inout UnsafeRawBufferPointer, atMost limit: Int = .max) throws(ContentDecodingError) -> Step? {
        var index = stages.count - 1
        while index > 0 {
            if stages[index].hasMore || !stages[index - 1].rest.isEmpty {
                return try step(stages[index], &stages[index - 1].rest, atMost: limit, isLast: index == stages.count - 1)
            }
            index -= 1
        }
        guard stages[0].hasMore || !input.isEmpty else { return nil }
        return try step(stages[0], &input, atMost: limit, isLast: stages.count == 1)
    }

    private func step(
        _ stage: any CodingDecoder, _ input: inout UnsafeRawBufferPointer, atMost limit: Int, isLast: Bool
    ) throws(ContentDecodingError) -> Step {
        var piece = UnsafeRawBufferPointer(rebasing: input.prefix(limit))
        let size = piece.count
        let bytes = try stage.step(&piece)
        let inputSize = size - piece.count
        input = UnsafeRawBufferPointer(rebasing: input.dropFirst(inputSize))
        if !isLast { stage.rest = bytes }
        return Step(bytes: bytes, inputSize: inputSize, isDecoded: isLast)
    }

    /// Whether a step can be taken without further input.
    package var hasMore: Bool {
        for stage in stages { if stage.hasMore || !stage.rest.isEmpty { return true } }
        return false
    }

    /// The error if the body ended here: it is truncated; `nil` if it is complete.
    package var failureAtEnd: ContentDecodingError? {
        for stage in stages { if let failure = stage.failureAtEnd { return failure } }
        return nil
    }
}
