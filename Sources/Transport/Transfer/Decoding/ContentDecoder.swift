// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Why a body could not be decoded.
package struct DecodingError: Error, Hashable {
    package let kind: TransferFailure.Kind
    package let message: String

    package init(_ message: String) {
        kind = .decoding
        self.message = message
    }
}

/// Undoes one content coding, piece by piece. The seam at which further codings are added.
package protocol CodingDecoder: AnyObject {
    /// Decodes a piece and hands on what comes of it in one or several pieces, until `sink` returns `false`.
    func decode(_ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) throws(DecodingError) -> Bool) throws(DecodingError)
        -> Bool

    /// Why the body can't be whole, if it ended here.
    var failureAtEnd: DecodingError? { get }
}

/// Undoes the content codings of a response's body (RFC 9110, section 8.4).
package struct ContentDecoder {
    /// A longer chain is an attack: nobody compresses six times.
    private static let maximumCodings = 5

    /// What is offered to servers: exactly what is decoded here.
    package static let accepted = known.joined(separator: ", ")

    /// The names of the codings, the best one first.
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

    /// The decoders in the order in which bytes pass them: the last coding applied comes first.
    private let stages: [any CodingDecoder]

    /// Makes a decoder of a `Content-Encoding`; `nil` when nothing is to be undone.
    ///
    /// A body with a coding that Curlew does not know is left alone as a whole, whatever else the field names: servers put there what is no
    /// coding (`none`, `utf-8`), or what was done on the way to a store (`aws-chunked`). Undoing a part would make the field wrong.
    package init?(codings: String) throws(DecodingError) {
        let names = Self.names(in: codings)
        guard !names.isEmpty, names.allSatisfy(Self.isKnown) else { return nil }
        guard names.count <= Self.maximumCodings else {
            throw DecodingError("More than \(Self.maximumCodings) content codings: \(codings)")
        }
        stages = names.reversed().compactMap { Self.stage(for: $0) }
    }

    /// Whether a `Content-Encoding` names codings, and only such as are undone here.
    static func knows(_ codings: String) -> Bool {
        let names = names(in: codings)
        return !names.isEmpty && names.allSatisfy(isKnown)
    }

    /// The names in a `Content-Encoding`, in lower case; `identity` is none (RFC 9110, section 12.5.3).
    private static func names(in codings: String) -> [String] {
        codings.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }.filter { !$0.isEmpty && $0 != "identity" }
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

    /// Decodes a piece and hands on what comes of it, until `sink` returns `false`; that is then the result.
    package func decode(
        _ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) -> Bool
    ) throws(DecodingError) -> Bool {
        try decode(bytes, from: 0, sink)
    }

    private func decode(
        _ bytes: UnsafeRawBufferPointer, from stage: Int, _ sink: (UnsafeRawBufferPointer) -> Bool
    ) throws(DecodingError) -> Bool {
        guard stage < stages.count else { return sink(bytes) }
        return try stages[stage].decode(bytes) { (piece) throws(DecodingError) in try decode(piece, from: stage + 1, sink) }
    }

    /// Why the body can't be whole, if it ended here.
    package var failureAtEnd: DecodingError? {
        for stage in stages { if let failure = stage.failureAtEnd { return failure } }
        return nil
    }
}
