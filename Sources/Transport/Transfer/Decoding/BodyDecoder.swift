// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Decodes the body of a response, and limits how far it may expand: a few bytes can decode to gigabytes.
struct BodyDecoder {
    /// The decoded length from which on the limit is enforced.
    private static let unlimitedLength: Int64 = 16 << 20

    private let decoder: ContentDecoder
    /// The largest decoded length as a multiple of the bytes received; `nil` for no limit.
    private let maximumExpansion: Int?
    private var decodedBytes: Int64 = 0

    /// Creates a decoder for the codings in the head; `nil` if there is nothing to decode.
    init?(for head: ResponseHead, maximumExpansion: Int?) throws(ContentDecodingError) {
        guard let decoder = try ContentDecoder(codings: head.headers.value(for: "Content-Encoding") ?? "") else { return nil }
        self.decoder = decoder
        self.maximumExpansion = maximumExpansion
    }

    /// Decodes a piece and calls `sink` with the result until it returns `false`, which is then returned.
    ///
    /// - Parameter received: the number of bytes received so far, those of this piece included.
    mutating func decode(
        _ bytes: UnsafeRawBufferPointer, received: Int64, _ sink: (UnsafeRawBufferPointer) -> Bool
    ) throws(ContentDecodingError) -> Bool {
        var length = decodedBytes
        var exceededLimit: Int?
        let continues = try decoder.decode(bytes) { piece in
            length += Int64(piece.count)
            exceededLimit = limit(exceededBy: length, received: received)
            return exceededLimit == nil && sink(piece)
        }
        decodedBytes = length
        if let exceededLimit {
            throw ContentDecodingError("The body expanded to more than \(exceededLimit) times the bytes received", kind: .tooLarge)
        }
        return continues
    }

    /// The limit that a decoded length exceeds; `nil` if it is allowed.
    private func limit(exceededBy length: Int64, received: Int64) -> Int? {
        guard length > Self.unlimitedLength, let maximumExpansion else { return nil }
        let (allowed, isUnlimited) = received.multipliedReportingOverflow(by: Int64(maximumExpansion))
        return isUnlimited || length <= allowed ? nil : maximumExpansion
    }

    /// The error if the body ended here: it is truncated; `nil` if it is complete.
    var failureAtEnd: ContentDecodingError? { decoder.failureAtEnd }
}
