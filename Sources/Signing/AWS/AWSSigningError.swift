// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Why a request or URL can't be signed.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum AWSSigningError: Error, Sendable, Hashable {
    /// The URL is not absolute, or has no host or an invalid port.
    case invalidURL(String)
    /// The time for which a presigned URL can be used is not between 1 and 604,800 seconds (7 days).
    case invalidExpiration(Duration)
    /// The fields are not those of a signed request whose body is sent in chunks.
    case notChunked
    /// The service requires the digest of a body, and the body is neither in memory nor in a file, or is not to be digested.
    case bodyNotDigested
    /// The credentials with which the exchange was begun were replaced twice since.
    case credentialsReplaced
    /// A body has trailers, although it was signed as ``AWSSignatureV4/Payload/streaming``.
    case undeclaredTrailers
    /// The URL or the fields of an exchange are not those for which the chunks of its body were signed, such as those after a redirect.
    case chunksOfOtherRequest
}

extension AWSSigningError: CustomStringConvertible, LocalizedError, RedactedCases {
    /// The name of a case with a payload.
    package var caseName: String? {
        switch self {
        case .invalidURL: "invalidURL"
        case .invalidExpiration: "invalidExpiration"
        case .notChunked, .bodyNotDigested, .credentialsReplaced, .undeclaredTrailers, .chunksOfOtherRequest: nil
        }
    }

    /// What is wrong, as a sentence, without secrets.
    public var description: String {
        switch self {
        case .invalidURL(let url): "The URL can't be signed, as it is not absolute or has no valid host and port: \(url.redactedURL)"
        case .invalidExpiration(let time): "A presigned URL can't be valid for \(time.seconds) s: 1 to 604800 s are allowed."
        case .notChunked: "Chunks can't be signed, as the request was not signed with a payload in chunks."
        case .bodyNotDigested: "The service requires the digest of the body, which is known only for bodies in memory and files."
        case .credentialsReplaced: "The request can't be signed, as its credentials were replaced while it waited."
        case .undeclaredTrailers: "A body has trailers only if the request was signed with a payload that has them."
        case .chunksOfOtherRequest:
            "The body can't be sent again in this attempt, as its chunks were signed for another URL or other fields."
        }
    }

    /// The same sentence.
    public var errorDescription: String? { description }
}
