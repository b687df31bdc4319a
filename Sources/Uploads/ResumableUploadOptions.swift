// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension ResumableUpload {
    /// The protocols of servers.
    public enum Dialect: Sendable, Hashable {
        /// The tus resumable upload protocol 1.0.
        case tus
        /// Resumable uploads for HTTP, draft-ietf-httpbis-resumable-upload-11 (interop version 8): a request with this method and the file
        /// as its body, which is resumed if the server announces that it supports this version of the draft, and is a plain upload
        /// otherwise.
        ///
        /// A plain upload is sent again only if its method is one of ``Options/retryPolicy``, or nothing was sent.
        case httpDraft(method: HTTPMethod = .post)
    }

    /// The settings of an upload.
    public struct Options: Sendable {
        /// The protocol of the server; tus by default.
        public var dialect = Dialect.tus
        /// Describes the file to a tus server (`Upload-Metadata`), by its `filename` and `filetype` for example; empty by default. Keys
        /// have no spaces, commas and characters beyond ASCII; values are sent in Base64. An upload of which something else was said is not
        /// continued.
        public var metadata: [String: String] = [:]
        /// The most bytes of the file in one request; `nil`, the default, sends all that is left in one. For servers and proxies that limit
        /// the size of a body; each chunk takes a round trip.
        public var chunkSize: Int64?
        /// Whether the server is asked to verify a digest of each chunk: tus's checksum extension, if it supports SHA-256 or SHA-1, or
        /// `Content-Digest` (RFC 9530) with SHA-256 by the draft for HTTP. `false` by default. Each chunk is then read twice, and is 8 MiB
        /// unless ``chunkSize`` says otherwise: servers discard what was received of a chunk that is cut.
        public var verifiesChunks = false
        /// Whether the first chunk is sent with the request that begins the upload (tus's creation-with-upload extension), if the server
        /// supports that; `false` by default. Saves a round trip, for small files. If the response is lost, so is what was sent, and the
        /// server may have the file twice.
        public var sendsDataWithCreation = false
        /// Whether an interrupted upload is continued by the file's length and SHA-256, for which all of it is read first; `false` by
        /// default: then by its length, its modification time in nanoseconds and its inode.
        ///
        /// By the draft for HTTP the server is also asked to verify the digest of the whole (`Repr-Digest`, RFC 9530), and to send its own,
        /// which is compared: ``ResumableUploadError/Kind/checksumMismatch``.
        public var verifiesContent = false
        /// Where the state is kept until the upload is complete; `nil`, the default, for a hidden file beside the uploaded one. It is
        /// readable by its owner only, and has the upload's URL, but no credentials.
        ///
        /// It has the state of one upload. That of another file, or to another URL, is not continued: the upload starts over, and its state
        /// replaces the other.
        public var stateFile: URL?
        /// Which failures are followed by another attempt, after which delay, and how many in a row without a byte in between: those of
        /// `RetryPolicy` by default, five times. Its properties count, not its methods; which request failed makes no difference, as the
        /// server is asked for the offset before each attempt. A delay that ends after the deadline is not waited for.
        public var retryPolicy = RetryPolicy(retryLimit: 5)
        /// Called before each delay, also one that is too long to be waited for, on any thread; `nil` by default.
        public var onWait: (@Sendable (RetryWait) -> Void)?
        /// The longest time for the upload from its start, pauses included; `nil`, the default, for none but that of the task that starts
        /// it (``/CurlewCore/Deadline/current``).
        public var deadline: Duration?
        /// Header fields of each request, such as `Authorization`. Those of the protocol are set by the upload.
        public var headers: HTTPHeaders = [:]
        /// The options of each request: timeouts, interceptor, signer and others. Its deadline is one of each request.
        public var requestOptions = RequestOptions()
        /// Whether the server may name an upload of another origin; `false` by default, which fails with
        /// ``ResumableUploadError/Kind/otherOrigin``.
        ///
        /// Requests to it have the fields of the upload, of the session and of its adapter without credentials, as a redirect would
        /// (``/CurlewCore/RedirectPolicy``). They are not signed, and the interceptor of ``requestOptions`` does not see them. Before such an
        /// upload is continued or removed by a later one, an `OPTIONS` request to the endpoint finds out whether the credentials are the
        /// same. An origin without TLS is refused if the endpoint's has it.
        public var allowsOtherOrigins = false

        /// Creates the defaults.
        public init() {}

        func makeDialect() throws -> any UploadDialect {
            switch dialect {
            case .tus: try TusDialect(self)
            case .httpDraft(let method): DraftDialect(self, method: method)
            }
        }

        /// The number of bytes of the next request.
        func chunk(of rest: Int64) -> Int64 {
            min(max(chunkSize ?? (verifiesChunks ? 8 << 20 : .max), 1), rest)
        }
    }

    /// How far an upload is, in bytes of the whole file.
    public struct Progress: Sendable, Equatable {
        /// The bytes that the server has, and those of the current request that were handed to the network. It shrinks when a line is cut.
        public var completed: Int64
        /// The bytes that the server has reported to have.
        public var confirmed: Int64
        /// The length of the file; 0 before the upload is started.
        public var total: Int64

        /// Creates a progress.
        public init(completed: Int64, confirmed: Int64, total: Int64) {
            self.completed = completed
            self.confirmed = confirmed
            self.total = total
        }
    }

    /// What an upload has led to.
    public struct Response: Sendable {
        /// The head of the last response: to the request with the last bytes, or to the question that found the upload complete.
        public let head: ResponseHead
        /// The body of that response; of a tus server usually empty.
        public let body: Data
        /// The upload's URL on the server; `nil` if it never had one.
        public let uploadURL: URL?
        /// The length of the file in bytes.
        public let length: Int64
        /// The bytes of the file that were handed to the network by this object, those that were lost included.
        public let sent: Int64
        /// The bytes that the server had from an earlier upload.
        public let resumed: Int64
    }
}
