// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension SessionManager {
    /// Creates an upload of an asynchronous sequence of pieces whose chunks are signed as they are read, for S3; PUT by default.
    ///
    /// Neither the whole body is kept, nor is it read before it is sent. It is encoded as `aws-chunked`
    /// (`STREAMING-AWS4-HMAC-SHA256-PAYLOAD`), and `Content-Encoding` and `X-Amz-Decoded-Content-Length` say so. Each attempt has a signature
    /// of its own, which its chunks continue. Redirects are not followed, but are the response: another URL needs another signature.
    ///
    /// ```swift
    /// let request = manager.uploadInChunks({ file.chunks }, length: size, to: url, signer: signer)
    /// ```
    ///
    /// - Parameters:
    ///   - makeSequence: is called for each attempt, and returns a sequence with the same bytes, from the first one. An error that it throws
    ///     fails the request, and so does a sequence of another length.
    ///   - length: the number of bytes; 0 if it is negative.
    ///   - url: the URL of an object, or of a part.
    ///   - method: the method.
    ///   - headers: further header fields; a `Content-Encoding` names what the object is encoded with.
    ///   - signer: signs the request and its chunks, in place of the session's.
    ///   - chunkSize: the number of bytes of all chunks but the last one: 64 KiB by default, and at least 8 KiB.
    ///   - sendsChecksum: whether the SHA-256 digest of the body follows it, in a signed trailer (`x-amz-checksum-sha256`), which S3 compares
    ///     and stores; `false` by default.
    ///   - interceptor: adapts the request and decides about its retries.
    ///   - options: the settings of the request.
    @discardableResult
    public func uploadInChunks<S: AsyncSequence>(
        _ makeSequence: @escaping @Sendable () async throws -> S, length: Int64, to url: any URLConvertible, method: HTTPMethod = .put,
        headers: HTTPHeaders? = nil, signer: AWSSigner, chunkSize: Int = 65_536, sendsChecksum: Bool = false,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> UploadRequest where S.Element: Collection, S.Element.Element == UInt8 {
        let (length, size) = (max(length, 0), max(chunkSize, 8192))
        let upload = ChunkedUpload(signer, sendsChecksum: sendsChecksum)
        var fields = headers ?? [:]
        fields.update(name: "Content-Encoding", value: (["aws-chunked"] + fields.values(for: "Content-Encoding")).joined(separator: ","))
        fields.update(name: "X-Amz-Decoded-Content-Length", value: "\(length)")
        if sendsChecksum { fields.update(name: "X-Amz-Trailer", value: ChunkedUpload.checksum) }
        var options = options ?? RequestOptions()
        options.signer = upload
        var redirects = options.redirects ?? session.configuration.redirects
        redirects.limit = 0
        options.redirects = redirects
        let encodedLength = AWSChunkSigner.encodedLength(
            of: length, inChunksOf: size, as: upload.payload, trailers: upload.trailers(of: [UInt8](repeating: 0, count: 32)))
        let body = ChunkedBody(makeSequence: makeSequence, size: size, upload: upload)
        return self.upload(
            body.chunks, length: encodedLength, to: url, method: method, headers: fields, interceptor: interceptor, options: options)
    }
}

/// The signer of one upload, whose chunks continue its signature.
///
/// The body of an attempt may be read before the request is signed, and once more if libcurl has to send it again; all that signs in an
/// attempt is one signature, which is made once.
final class ChunkedUpload: ExchangeSigner {
    private struct Signed {
        let exchange: SignableExchange
        let fields: HTTPHeaders
        let chunks: AWSChunkSigner

        func isSame(as other: SignableExchange) -> Bool {
            exchange.url.hasSameBytes(as: other.url) && exchange.method == other.method
                && exchange.headers.elementsEqual(other.headers) {
                    $0.name.hasSameBytes(as: $1.name) && $0.value.hasSameBytes(as: $1.value)
                }
        }
    }

    private typealias Waiter = AsyncStream<AWSChunkSigner>.Continuation

    private struct State {
        var signed: Signed?
        var waiters: [Waiter] = []
    }

    /// The trailer of a checksum.
    static let checksum = "x-amz-checksum-sha256"

    let signer: AWSSigner
    let payload: AWSSignatureV4.Payload
    private let state = Lock(State())

    init(_ signer: AWSSigner, sendsChecksum: Bool) {
        self.signer = signer
        payload = sendsChecksum ? .streamingWithTrailers : .streaming
    }

    /// The trailers of a body with a digest.
    func trailers(of digest: [UInt8]) -> HTTPHeaders {
        payload == .streaming ? [:] : [Self.checksum: Data(digest).base64EncodedString()]
    }

    var identity: String { signer.identity }

    func prepare() async throws {
        // Of the attempt before.
        state.withLock { $0.signed = nil }
        try await signer.prepare()
    }

    func sign(_ exchange: SignableExchange) throws -> HTTPHeaders {
        let (fields, chunks, waiters) = try state.withLock { state throws -> (HTTPHeaders, AWSChunkSigner, [Waiter]) in
            if let signed = state.signed {
                guard signed.isSame(as: exchange) else { throw AWSSigningError.chunksOfOtherRequest }
                return (signed.fields, signed.chunks, [])
            }
            let (fields, signature, credentials) = try signer.sign(exchange, as: payload)
            let chunks = try AWSChunkSigner(signature, continuing: fields, credentials: credentials)
            state.signed = Signed(exchange: exchange, fields: fields, chunks: chunks)
            defer { state.waiters = [] }
            return (fields, chunks, state.waiters)
        }
        for waiter in waiters {
            waiter.yield(chunks)
            waiter.finish()
        }
        return fields
    }

    /// Returns what signs the chunks, once the request is signed.
    func chunks() async throws -> AWSChunkSigner {
        let (results, waiter) = AsyncStream.makeStream(of: AWSChunkSigner.self)
        let known = state.withLock { state in
            if state.signed == nil { state.waiters.append(waiter) }
            return state.signed?.chunks
        }
        if let known { return known }
        for await chunks in results { return chunks }
        throw CancellationError()
    }
}

/// The body of an upload. A type, as a closure would capture that of the sequence.
private struct ChunkedBody<Pieces: AsyncSequence>: Sendable where Pieces.Element: Collection, Pieces.Element.Element == UInt8 {
    let makeSequence: @Sendable () async throws -> Pieces
    let size: Int
    let upload: ChunkedUpload

    func chunks() async throws -> SignedChunks<Pieces> {
        SignedChunks(pieces: try await makeSequence(), size: size, upload: upload)
    }
}

/// The pieces of a sequence as signed chunks.
private struct SignedChunks<Pieces: AsyncSequence>: AsyncSequence where Pieces.Element: Collection, Pieces.Element.Element == UInt8 {
    let pieces: Pieces
    let size: Int
    let upload: ChunkedUpload

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(pieces: pieces.makeAsyncIterator(), size: size, upload: upload)
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var pieces: Pieces.AsyncIterator
        let size: Int
        let upload: ChunkedUpload
        private let digest = Digest()
        private var signer: AWSChunkSigner?
        /// Bytes that were read, of which `start` are in chunks already.
        private var bytes = Data()
        private var start = 0
        private var isAtEnd = false
        private var isFinished = false

        init(pieces: Pieces.AsyncIterator, size: Int, upload: ChunkedUpload) {
            (self.pieces, self.size, self.upload) = (pieces, size, upload)
        }

        mutating func next() async throws -> Data? {
            guard !isFinished else { return nil }
            try await fill()
            var signer = if let signer { signer } else { try await upload.chunks() }
            defer { self.signer = signer }
            let chunk = bytes[start...].prefix(size)
            guard !chunk.isEmpty else {
                isFinished = true
                return try signer.end(trailers: upload.trailers(of: digest.finish()))
            }
            start += chunk.count
            if upload.payload != .streaming { digest.update(chunk) }
            return signer.header(of: chunk) + chunk
        }

        /// Reads on until there are the bytes of a chunk.
        private mutating func fill() async throws {
            guard bytes.count - start < size, !isAtEnd else { return }
            bytes = Data(bytes[start...])
            start = 0
            while bytes.count < size {
                guard let piece = try await pieces.next() else {
                    isAtEnd = true
                    return
                }
                bytes.append(contentsOf: piece)
            }
        }
    }

    /// The digest of what was read, of one iterator.
    private final class Digest {
        private var state: LargeDigest<UInt32>? = LargeDigest()

        func update(_ bytes: Data) { bytes.withUnsafeBytes { state?.update($0) } }
        func finish() -> [UInt8] { state.take()?.finish() ?? [] }
    }
}
