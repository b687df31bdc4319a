// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A download of one file over several connections, from one server or from mirrors.
///
/// ```swift
/// let download = manager.segmentedDownload("https://example.org/image.iso", to: file)
/// let result = try await download.run { progress in print(progress.completed, progress.total ?? 0) }
/// ```
///
/// Each connection requests a range (RFC 9110, section 14), and those that are done take over from slow ones. Every partial response must
/// be of the same version by its validators, so that bytes of different versions are never mixed: a server that supports no ranges, has
/// neither a strong `ETag`, a reliable `Last-Modified` nor a `Repr-Digest`, or contradicts itself, is asked for the whole in one response.
///
/// The bytes are in a hidden file beside the destination, which gets its name when it is complete and its digests are verified. A record
/// beside it survives the process, also if that is killed: the next download to the same destination requests the rest only, provided
/// that the version is still the same. A finished file is asked for with its validator, so that it is not received again.
///
/// A value; each ``run(progress:)`` is a download of its own. Bodies are requested without content coding.
public struct SegmentedDownload: Sendable {
    /// The settings of a download.
    public struct Options: Sendable {
        /// The most connections in use at a time; 4 by default, at least 1. The session's limit per host applies as well.
        public var segments = 4
        /// The least number of bytes that is worth a request of its own; 1 MiB by default.
        public var minimumSegmentSize: Int64 = 1 << 20
        /// The most bytes per second, of all connections and of all downloads that share the value; `nil`, the default, for no limit.
        public var rateLimit: DownloadRateLimit?
        /// The SHA-256 digest that the complete file must have; `nil`, the default, for none. With it, mirrors need not be recognized by
        /// validators, and a file at the destination that has it is not requested at all.
        public var sha256: Data?
        /// Whether digests that the server names (RFC 9530, `Repr-Digest` and `Content-Digest`) are verified; they are by default.
        public var verifiesDigests = true
        /// Whether a file at the destination may be replaced; not by default. A finished download is replaced only if it has changed.
        public var replacesFile = false
        /// How many failures in a row, without a byte in between, are followed by another attempt; 5 by default.
        ///
        /// The delays between them double from half a second up to 30 seconds; a `Retry-After` applies instead.
        public var retryLimit = 5
        /// How long a connection may receive nothing before an idle one takes over its segment; 10 seconds by default.
        public var stallTimeout = Duration.seconds(10)
        /// Header fields of each request. Those about ranges, conditions and codings are set by the download.
        ///
        /// A mirror of another origin than the first URL's gets them without credentials, as a redirect would
        /// (``/CurlewCore/RedirectPolicy``): without `Authorization`, `Cookie`, `X-Api-Key` and others that are usual for secrets. Fields of
        /// the session, and those that an adapter adds, are sent to all.
        public var headers: HTTPHeaders = [:]
        /// Whether mirrors of other origins get the credentials in ``headers`` too; not by default.
        public var sendsCredentialsToMirrors = false

        /// Creates the defaults.
        public init() {}
    }

    /// How far a download is.
    public struct Progress: Sendable, Equatable {
        /// The number of bytes that the part file has.
        public var completed: Int64
        /// The length of the file; `nil` if it is unknown.
        public var total: Int64?
        /// The number of connections that receive.
        public var connections: Int

        /// Creates a progress.
        public init(completed: Int64, total: Int64?, connections: Int) {
            self.completed = completed
            self.total = total
            self.connections = connections
        }
    }

    /// What a download has led to.
    public struct Result: Sendable, Equatable {
        /// The destination.
        public let file: URL
        /// The length of the file in bytes.
        public let length: Int64
        /// The number of body bytes that were received.
        public let received: Int64
        /// The number of bytes that an earlier download had left.
        public let resumed: Int64
        /// Whether the file was there already, and still is what the server has.
        public let isUnchanged: Bool
        /// The algorithms of the digests that were verified, such as `sha-256`.
        public let verified: [String]
    }

    /// The URLs of the file, the preferred one first.
    public let urls: [any URLConvertible]
    /// Where the complete file will be.
    public let destination: URL
    /// The settings.
    public var options: Options
    private let manager: SessionManager

    init(manager: SessionManager, urls: [any URLConvertible], destination: URL, options: Options) {
        self.manager = manager
        self.urls = urls
        self.destination = destination
        self.options = options
    }

    /// Downloads the file.
    ///
    /// Cancelling the task cancels the download, which a later one resumes.
    ///
    /// - Parameter progress: called ten times a second at most, with a last call at the end; one call at a time, on any thread.
    /// - Throws: ``SegmentedDownloadError``, `CurlewError` of the request that failed last, `CocoaError` with the path for files,
    ///   `CancellationError`.
    public func run(progress: (@Sendable (Progress) -> Void)? = nil) async throws -> Result {
        do {
            return try await start(progress)
        } catch CurlewError.cancelled where Task.isCancelled {
            // A request may tell of the cancellation before the task itself does.
            throw CancellationError()
        }
    }

    private func start(_ progress: (@Sendable (Progress) -> Void)?) async throws -> Result {
        let urls = try urls.map { try $0.asURL() }
        guard let first = urls.first else { throw SegmentedDownloadError.noURL }
        if let unchanged = try await unchangedFile(at: first) {
            progress?(Progress(completed: unchanged.length, total: unchanged.length, connections: 0))
            return unchanged
        }
        let file = try SegmentFile(for: destination)
        do {
            return try await run(urls, file, progress)
        } catch let error as SegmentedDownloadError {
            if case .digestMismatch = error { file.discard() } else { file.end() }
            throw error
        } catch {
            file.end()
            throw error
        }
    }

    private func run(_ urls: [URL], _ file: SegmentFile, _ progress: (@Sendable (Progress) -> Void)?) async throws -> Result {
        var mode = SegmentedTransfer.Mode(first: 0, asksForWhole: false, resumes: true)
        var received: Int64 = 0
        var restarts = 0
        while true {
            let transfer = SegmentedTransfer(manager, urls, options, file, mode, progress)
            do {
                let summary = try await transfer.run()
                return try await finish(transfer, summary, file, received + summary.received)
            } catch let restart as SegmentedTransfer.Restart {
                received += transfer.received
                restarts += 1
                guard restarts < 4 + urls.count else { throw restart.failure }
                mode = SegmentedTransfer.Mode(
                    first: restart.first ?? mode.first, asksForWhole: restart.asksForWhole || restarts > 2, resumes: false)
            }
        }
    }

    private func finish(
        _ transfer: SegmentedTransfer, _ summary: SegmentedTransfer.Summary, _ file: SegmentFile, _ received: Int64
    ) async throws -> Result {
        var digests = options.verifiesDigests ? summary.digests : [:]
        var named = options.sha256.map { ["sha-256": $0] } ?? [:]
        // One that contradicts the caller's is an error as well.
        if digests["sha-256"] == named["sha-256"] { digests["sha-256"] = nil }
        for check in [named, digests] where !check.isEmpty {
            let mismatch = try await Self.onQueue { try file.check(check, until: $0) }
            if let mismatch {
                throw SegmentedDownloadError.digestMismatch(
                    algorithm: mismatch.algorithm, expected: mismatch.expected, actual: mismatch.actual)
            }
            named.merge(check) { first, _ in first }
        }
        let mark = summary.mark
        try file.commit(length: summary.length, replacing: options.replacesFile) { descriptor in
            if let mark { FinishedDownload.mark(descriptor, as: mark.url, mark.head, from: mark.source) }
        }
        return Result(
            file: destination, length: summary.length, received: received, resumed: summary.resumed, isUnchanged: false,
            verified: named.keys.sorted())
    }

    /// Runs blocking work on a queue, as the threads of tasks are few. The work is told when the task was cancelled.
    private static func onQueue<Value: Sendable>(
        _ body: @escaping @Sendable (_ isCancelled: @escaping () -> Bool) throws -> Value
    ) async throws -> Value {
        let isCancelled = Lock(false)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                DispatchQueue.global(qos: .utility).async {
                    continuation.resume(with: Swift.Result { try body { isCancelled.withLock { $0 } } })
                }
            }
        } onCancel: {
            isCancelled.withLock { $0 = true }
        }
    }

    // MARK: A file that is there

    /// Finds out whether the file at the destination is what the server has.
    ///
    /// - Throws: `CocoaError` with the code `fileWriteFileExists` if there is another file, which must not be replaced.
    private func unchangedFile(at url: URL) async throws -> Result? {
        var status = stat()
        guard lstat(destination.path, &status) == 0 else { return nil }
        try PartFile.checkReplaceable(destination)
        let length = Int64(status.st_size)
        if let sha256 = options.sha256 {
            let destination = destination
            if try await Self.onQueue({ try SegmentFile.check(["sha-256": sha256], at: destination, until: $0) }) == nil {
                return unchanged(length, verified: ["sha-256"])
            }
        } else if let finished = FinishedDownload(of: url, at: destination), try await isConfirmed(finished, at: url) {
            return unchanged(finished.length, verified: [])
        }
        guard options.replacesFile else { throw FileError.writing(destination.path, EEXIST) }
        return nil
    }

    private func unchanged(_ length: Int64, verified: [String]) -> Result {
        Result(file: destination, length: length, received: 0, resumed: 0, isUnchanged: true, verified: verified)
    }

    private func isConfirmed(_ finished: FinishedDownload, at url: URL) async throws -> Bool {
        var headers = options.headers.forWhole
        headers.update(finished.condition)
        let request = manager.streamRequest(url, headers: headers)
        let head = try await request.bodyStream().head()
        defer { request.cancel() }
        return finished.isConfirmed(by: head, from: request.sourceURL) && finished.isIntact(at: destination)
    }
}

extension SessionManager {
    /// Creates a download of one file over several connections.
    ///
    /// Needs `import CurlewDownloads`.
    ///
    /// Nothing is sent until ``SegmentedDownload/run(progress:)`` is called. The value retains the manager.
    ///
    /// - Parameters:
    ///   - url: the URL.
    ///   - mirrors: other URLs of the same file, which share the work if they have the same validators, and take over where this one fails.
    ///   - destination: the file's URL, in a directory that exists.
    ///   - options: the settings.
    public func segmentedDownload(
        _ url: any URLConvertible, mirrors: [any URLConvertible] = [], to destination: URL,
        options: SegmentedDownload.Options = SegmentedDownload.Options()
    ) -> SegmentedDownload {
        SegmentedDownload(manager: self, urls: [url] + mirrors, destination: destination, options: options)
    }
}

extension HTTPHeaders {
    /// The fields of a request for a whole body without a coding.
    var forWhole: HTTPHeaders {
        var headers = self
        for name in ["Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"] {
            headers.remove(name: name)
        }
        headers.update(name: "Accept-Encoding", value: "identity")
        return headers
    }
}

extension DataRequest {
    /// The URL that has responded, after redirects.
    var sourceURL: String { response?.url?.absoluteString ?? "" }
}
