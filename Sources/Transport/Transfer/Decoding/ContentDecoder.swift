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

/// Decodes one content coding incrementally. Further codings are added by conforming to this protocol.
package protocol CodingDecoder: AnyObject {
    /// Decodes a piece and calls `sink` with the result, in one or several pieces, until `sink` returns `false`.
    func decode(_ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) throws(ContentDecodingError) -> Bool)
        throws(ContentDecodingError)
        -> Bool

    /// The error if the body ended here: it is truncated; `nil` if it is complete.
    var failureAtEnd: ContentDecodingError? { get }
}

/// Decodes the content codings of a response's body (RFC 9110, section 8.4).
///
/// libcurl's own decoders report a truncated body as complete.
package struct ContentDecoder {
    /// More codings are an attack: no server compresses six times.
    private static let maximumCodings = 5

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
            throw ContentDecodingError("More than \(Self.maximumCodings) content codings: \(codings)")
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
        codings.splitScalars(separator: ",").map { $0.filterScalars { $0 != " " && $0 != "\t" }.lowercased() }.filter {
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

    /// Decodes a piece and calls `sink` with the result until it returns `false`, which is then returned.
    package func decode(
        _ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) -> Bool
    ) throws(ContentDecodingError) -> Bool {
        try decode(bytes, from: 0, sink)
    }

    private func decode(
        _ bytes: UnsafeRawBufferPointer, from stage: Int, _ sink: (UnsafeRawBufferPointer) -> Bool
    ) throws(ContentDecodingError) -> Bool {
        guard stage < stages.count else { return sink(bytes) }
        return try stages[stage].decode(bytes) { (piece) throws(ContentDecodingError) in try decode(piece, from: stage + 1, sink) }
    }

    /// The error if the body ended here: it is truncated; `nil` if it is complete.
    package var failureAtEnd: ContentDecodingError? {
        for stage in stages { if let failure = stage.failureAtEnd { return failure } }
        return nil
    }
}
