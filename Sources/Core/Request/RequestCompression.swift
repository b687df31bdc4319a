// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Compresses the bodies of requests, for servers of which one knows that they take that.
///
/// ```swift
/// manager.adapter = RequestCompression(.gzip, minimumSize: 1024)
/// ```
///
/// Takes bodies in memory: a request's `httpBody`, and the bytes of an upload. Files and streams go out as they are; so do empty bodies.
/// A server that does not know the coding answers 415 (RFC 9110, section 15.5.16). Each attempt compresses anew, on the thread that makes
/// the request or, for a retry, on the session's queue.
public struct RequestCompression: RequestAdapter {
    /// How a body is compressed.
    public enum Coding: String, Sendable, Hashable, CaseIterable {
        /// The gzip format (RFC 1952).
        case gzip
        /// The zlib format (RFC 1950), as RFC 9110, section 8.4.1.2 has it.
        case deflate
    }

    /// What is done with a request that has a `Content-Encoding` already.
    public enum DuplicateHeaderBehavior: Sendable, Hashable, CaseIterable {
        /// It fails with ``CurlewError/URLRequestValidationFailureReason/bodyAlreadyEncoded(contentEncoding:)``.
        case error
        /// The body is compressed, and the header replaced: it said what was not so.
        case replace
        /// It goes out as it is.
        case skip
    }

    /// Compression with the gzip format and all defaults.
    public static var gzip: RequestCompression { RequestCompression(.gzip) }
    /// Compression with the zlib format and all defaults.
    public static var deflate: RequestCompression { RequestCompression(.deflate) }

    /// How bodies are compressed.
    public let coding: Coding
    /// What is done with a request that has a `Content-Encoding` already.
    public let duplicateHeaderBehavior: DuplicateHeaderBehavior
    /// From how many bytes on a body is compressed.
    public let minimumSize: Int
    /// How hard to try: 1, the fastest, to 9, the smallest.
    public let level: Int
    /// Whether a body is to be compressed that is large enough.
    public let shouldCompress: @Sendable (Data) -> Bool

    /// Makes an adapter.
    ///
    /// - Parameters:
    ///   - coding: how bodies are compressed.
    ///   - duplicateHeaderBehavior: what is done with a request that has a `Content-Encoding` already; an error by default.
    ///   - minimumSize: from how many bytes on a body is compressed; 1 by default.
    ///   - level: 1, the fastest, to 9, the smallest; 6 by default.
    ///   - shouldCompress: whether to compress a body that is large enough; by default each. Called where the adapter is.
    @preconcurrency
    public init(
        _ coding: Coding = .gzip, duplicateHeaderBehavior: DuplicateHeaderBehavior = .error, minimumSize: Int = 1, level: Int = 6,
        shouldCompress: @escaping @Sendable (_ body: Data) -> Bool = { _ in true }
    ) {
        self.coding = coding
        self.duplicateHeaderBehavior = duplicateHeaderBehavior
        self.minimumSize = minimumSize
        self.level = level
        self.shouldCompress = shouldCompress
    }

    /// The request with its body compressed and its `Content-Encoding` set, or as it is.
    ///
    /// - Throws: ``CurlewError/urlRequestValidationFailed(reason:)`` for a body that was encoded before, if that is to be an error;
    ///   `POSIXError.ENOMEM`.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        // Foundation on Linux traps when a copied request without a URL is changed; it fails later for that.
        guard urlRequest.url != nil, let body = urlRequest.httpBody, body.count >= max(minimumSize, 1), shouldCompress(body) else {
            return urlRequest
        }
        if let present = urlRequest.value(forHTTPHeaderField: "Content-Encoding") {
            switch duplicateHeaderBehavior {
            case .error: throw CurlewError.urlRequestValidationFailed(reason: .bodyAlreadyEncoded(contentEncoding: present))
            case .skip: return urlRequest
            case .replace: break
            }
        }
        var request = urlRequest
        request.httpBody = try Deflater.compress(body, as: coding == .gzip ? .gzip : .zlib, level: level)
        request.setValue(coding.rawValue, forHTTPHeaderField: "Content-Encoding")
        // The length that one may have given was that of the body before.
        request.setValue(nil, forHTTPHeaderField: "Content-Length")
        return request
    }
}
