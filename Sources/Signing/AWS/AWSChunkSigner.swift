// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Encodes a body as `aws-chunked` for S3: in chunks, each signed with the signature of the one before, beginning with the request's.
///
/// The body that is sent is, for each chunk, ``header(of:)`` and the chunk, and ``end(trailers:)`` at last. Its rules are those of
/// [chunked uploads](https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html): all chunks but the last one have the same
/// size, of at least 8 KiB.
public struct AWSChunkSigner: Sendable {
    private let key: AWSScopedKey
    private let payload: AWSSignatureV4.Payload
    /// The signature before, in hexadecimal digits; at first the request's.
    public private(set) var signature: String
    /// Whether a chunk has to be ended before something else is written.
    private var isInChunk = false

    /// Creates the state at the beginning of a body.
    ///
    /// - Parameters:
    ///   - signer: what has signed the request.
    ///   - fields: what ``AWSSignatureV4/sign(method:url:headers:payload:credentials:at:)`` has returned for one of the payloads in chunks.
    ///   - credentials: those with which the request was signed.
    /// - Throws: ``AWSSigningError/notChunked`` for other fields.
    public init(_ signer: AWSSignatureV4, continuing fields: HTTPHeaders, credentials: AWSCredentials) throws(AWSSigningError) {
        let payloads: [AWSSignatureV4.Payload] = [.streaming, .streamingWithTrailers, .unsignedStreamingWithTrailers]
        let hash = fields["X-Amz-Content-Sha256"] ?? ""
        guard let payload = payloads.first(where: { $0.contentHash.hasSameBytes(as: hash) }), let timestamp = fields["X-Amz-Date"],
            let authorization = fields["Authorization"], let mark = authorization.firstScalarRange(of: "Signature=")
        else { throw .notChunked }
        self.payload = payload
        signature = String(authorization[mark.upperBound...])
        key = AWSScopedKey(signer, credentials, timestamp: timestamp)
    }

    /// Returns the bytes to send in front of a chunk: the end of the one before, if there is one, the length and the signature.
    ///
    /// Nothing is returned for an empty chunk, which would end the body.
    public mutating func header(of chunk: Data) -> Data {
        chunk.isEmpty ? Data() : Data(beginning(of: chunk).utf8)
    }

    /// Returns the bytes to send after the last chunk: its end, an empty chunk, and trailers.
    ///
    /// - Parameter trailers: those that the request's `X-Amz-Trailer` names, such as `x-amz-checksum-crc32c`; none by default.
    /// - Throws: ``AWSSigningError/undeclaredTrailers`` if there are trailers and the payload is ``AWSSignatureV4/Payload/streaming``.
    public mutating func end(trailers: HTTPHeaders = [:]) throws(AWSSigningError) -> Data {
        guard trailers.isEmpty || payload != .streaming else { throw .undeclaredTrailers }
        var text = beginning(of: Data())
        isInChunk = false
        let fields = CanonicalFields(trailers).lines
        text += fields.replacingScalars("\n", with: "\r\n")
        if payload == .streamingWithTrailers {
            signature = key.signature("AWS4-HMAC-SHA256-TRAILER", signature, SHA256.digest(of: fields.utf8).hexDigits)
            text += "\(Self.trailerField)\(signature)\r\n"
        }
        return Data("\(text)\r\n".utf8)
    }

    private mutating func beginning(of chunk: Data) -> String {
        var text = "\(isInChunk ? "\r\n" : "")\(String(chunk.count, radix: 16))"
        if payload != .unsignedStreamingWithTrailers {
            signature = key.signature(
                "AWS4-HMAC-SHA256-PAYLOAD", signature, AWSSignatureV4.Payload.empty.contentHash, SHA256.digest(of: chunk).hexDigits)
            text += "\(Self.signatureExtension)\(signature)"
        }
        isInChunk = true
        return "\(text)\r\n"
    }

    private static let signatureExtension = ";chunk-signature="
    private static let trailerField = "x-amz-trailer-signature:"

    /// Returns the length of an encoded body, for `Content-Length`; the greatest number if it is greater.
    ///
    /// - Parameters:
    ///   - length: the length of the body in bytes, which is also that of `X-Amz-Decoded-Content-Length`; 0 if it is negative.
    ///   - size: the size of all chunks but the last one, which may be shorter; at least 1.
    ///   - payload: one of the payloads in chunks.
    ///   - trailers: trailers as long as those that will be sent; none by default. Their values may be placeholders.
    public static func encodedLength(
        of length: Int64, inChunksOf size: Int, as payload: AWSSignatureV4.Payload, trailers: HTTPHeaders = [:]
    ) -> Int64 {
        let length = max(length, 0)
        let (count, rest) = length.quotientAndRemainder(dividingBy: Int64(max(size, 1)))
        let signature = 64
        let suffix = payload == .unsignedStreamingWithTrailers ? 0 : signatureExtension.utf8.count + signature
        // The length, the extension, and a line's end after it and after the chunk.
        func overhead(of size: Int64) -> Int64 { Int64(String(size, radix: 16).utf8.count + suffix + 4) }
        let fields = CanonicalFields(trailers).lines.utf8.reduce(0) { $0 + ($1 == UInt8(ascii: "\n") ? 2 : 1) }
        let end = payload == .streamingWithTrailers ? trailerField.utf8.count + signature + 2 : 0
        let (chunks, overflows) = count.multipliedReportingOverflow(by: overhead(of: Int64(max(size, 1))))
        let others = (rest > 0 ? overhead(of: rest) : 0) + overhead(of: 0) + Int64(fields + end)
        return overflows || chunks > .max - length || others > .max - length - chunks ? .max : length + chunks + others
    }
}

// MARK: - Descriptions

extension AWSChunkSigner: CustomStringConvertible, CustomReflectable {
    /// The scope of the key; never the key.
    public var description: String { "AWSChunkSigner(\(key.scope))" }
    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["scope": key.scope]) }
}
