// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension AWSSignatureV4 {
    /// What a signature covers of a request's body: the last line of the canonical request.
    public struct Payload: Sendable, Hashable {
        /// The value of `X-Amz-Content-Sha256`: a digest in hexadecimal digits of lower case, or a name in upper case.
        public let contentHash: String
        let isDigest: Bool

        init(_ contentHash: String, isDigest: Bool = false) {
            self.contentHash = contentHash
            self.isDigest = isDigest
        }

        /// A body with a digest by SHA-256, given in hexadecimal digits.
        public static func digest(_ hex: String) -> Payload { Payload(hex.lowercased(), isDigest: true) }

        /// A body in memory, whose digest is computed.
        public static func body(_ body: Data) -> Payload { .digest(SHA256.digest(of: body).hexDigits) }

        /// No body.
        public static let empty = body(Data())

        /// Any body (`UNSIGNED-PAYLOAD`). S3 accepts it; only TLS protects the body then.
        public static let unsigned = Payload("UNSIGNED-PAYLOAD")

        /// A body in signed chunks (`STREAMING-AWS4-HMAC-SHA256-PAYLOAD`), encoded by ``AWSChunkSigner``.
        ///
        /// The request also needs `Content-Encoding: aws-chunked`, in front of other codings, `X-Amz-Decoded-Content-Length`, and as
        /// `Content-Length` that of the encoding.
        public static let streaming = Payload("STREAMING-AWS4-HMAC-SHA256-PAYLOAD")

        /// A body in signed chunks with signed trailers (`STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER`), which are named in `X-Amz-Trailer`.
        public static let streamingWithTrailers = Payload("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER")

        /// A body in chunks with trailers, none of which are signed (`STREAMING-UNSIGNED-PAYLOAD-TRAILER`), for a checksum that is known only
        /// at the end. Only TLS protects the body then.
        public static let unsignedStreamingWithTrailers = Payload("STREAMING-UNSIGNED-PAYLOAD-TRAILER")
    }
}
