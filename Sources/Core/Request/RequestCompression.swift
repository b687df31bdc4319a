// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Compresses the bodies of requests, for servers that are known to accept compressed bodies.
///
/// ```swift
/// manager.adapter = RequestCompression(.gzip, minimumSize: 1024)
/// ```
///
/// Compresses bodies in memory: a request's `httpBody`, and the bytes of an upload. Files, streams, sequences and forms are sent unchanged,
/// or fail the request, as `streamedBodyBehavior` says. Empty bodies are sent unchanged. A server that does not support the coding answers
/// 415 (RFC 9110, section 15.5.16). Each attempt compresses the body again, on the thread that creates the request or, for a retry, on the
/// session's queue.
public struct RequestCompression: RequestAdapter {
    /// The content coding. Later versions may add codings, so a `switch` needs a `default`.
    public enum Coding: String, Sendable, Hashable, CaseIterable {
        /// The gzip format (RFC 1952).
        case gzip
        /// The zlib format (RFC 1950), as RFC 9110, section 8.4.1.2 defines it.
        case deflate
    }

    /// How a request that already has a `Content-Encoding` is handled.
    public enum DuplicateHeaderBehavior: Sendable, Hashable, CaseIterable {
        /// It fails with ``CurlewError/URLRequestValidationFailureReason/bodyAlreadyEncoded(contentEncoding:)``.
        case error
        /// The body is compressed, and the field replaced; for a field that does not describe the body.
        case replace
        /// It is sent unchanged.
        case skip
    }

    /// How a body is handled that is not in memory: a file, a stream, a sequence or a form.
    public enum StreamedBodyBehavior: Sendable, Hashable, CaseIterable {
        /// It is sent uncompressed.
        case skip
        /// The request fails with ``StreamedBodyError``, and nothing is sent.
        case error
    }

    /// A body that was to be compressed is not in memory.
    public struct StreamedBodyError: LocalizedError, Sendable, Hashable {
        /// What to do about it.
        public var errorDescription: String? {
            "The request was not sent: RequestCompression compresses bodies in memory, and this one is a file, a stream, a sequence or a form."
        }
    }

    /// Compression to the gzip format with all defaults.
    public static var gzip: RequestCompression { RequestCompression(.gzip) }
    /// Compression to the zlib format with all defaults.
    public static var deflate: RequestCompression { RequestCompression(.deflate) }

    /// The content coding.
    package let coding: Coding
    /// How a request that already has a `Content-Encoding` is handled.
    package let duplicateHeaderBehavior: DuplicateHeaderBehavior
    /// How a body of any size is handled that is not in memory.
    package let streamedBodyBehavior: StreamedBodyBehavior
    /// The size in bytes from which bodies are compressed.
    package let minimumSize: Int
    /// The compression level, from 1 (fastest) to 9 (smallest).
    package let level: Int
    /// Returns whether to compress a body of at least the minimum size.
    package let shouldCompress: @Sendable (Data) -> Bool

    /// Creates an adapter that compresses bodies.
    ///
    /// - Parameters:
    ///   - coding: the content coding; gzip by default.
    ///   - duplicateHeaderBehavior: how a request that already has a `Content-Encoding` is handled; an error by default.
    ///   - streamedBodyBehavior: how a body is handled that is not in memory; sent uncompressed by default. Nothing else shows that it was,
    ///     so where the server relies on compression, make it an error.
    ///   - minimumSize: the size in bytes from which bodies are compressed; 1 by default.
    ///   - level: the compression level, from 1 (fastest) to 9 (smallest); 6 by default.
    ///   - shouldCompress: returns whether to compress a body of at least the minimum size; always by default. Called on the thread of
    ///     ``adapt(_:)``.
    @preconcurrency
    public init(
        _ coding: Coding = .gzip, duplicateHeaderBehavior: DuplicateHeaderBehavior = .error,
        streamedBodyBehavior: StreamedBodyBehavior = .skip, minimumSize: Int = 1, level: Int = 6,
        shouldCompress: @escaping @Sendable (_ body: Data) -> Bool = { _ in true }
    ) {
        self.coding = coding
        self.duplicateHeaderBehavior = duplicateHeaderBehavior
        self.streamedBodyBehavior = streamedBodyBehavior
        self.minimumSize = minimumSize
        self.level = level
        self.shouldCompress = shouldCompress
    }

    /// Returns the request with its body compressed and its `Content-Encoding` set, or unchanged.
    ///
    /// - Throws: ``CurlewError/urlRequestValidationFailed(reason:in:)`` for a body that is already encoded, if `duplicateHeaderBehavior` is
    ///   `error`; ``StreamedBodyError`` for a stream, if `streamedBodyBehavior` is `error`; `POSIXError.ENOMEM`.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        if streamedBodyBehavior == .error, urlRequest.httpBodyStream != nil { throw StreamedBodyError() }
        // Foundation on Linux traps when a copied request without a URL is changed. Such a request fails later, when it is sent.
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
        // A Content-Length that the user has set is that of the uncompressed body.
        request.setValue(nil, forHTTPHeaderField: "Content-Length")
        return request
    }
}

// MARK: - Bodies that adapters do not see

extension RequestAdapter {
    /// Checks a body that is not part of the request which adapters see: a file, a stream, a sequence or a form of an upload.
    ///
    /// - Throws: ``RequestCompression/StreamedBodyError``.
    func checkUnseenBody() throws {
        if let compression = self as? RequestCompression, compression.streamedBodyBehavior == .error {
            throw RequestCompression.StreamedBodyError()
        }
        for member in (self as? any AdapterGroup)?.members ?? [] { try member.checkUnseenBody() }
    }
}
