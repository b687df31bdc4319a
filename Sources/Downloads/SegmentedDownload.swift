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
/// that the version is still the same. A finished file is asked for with its validator, so that it is not received again, also from a
/// server that ignores the condition, but repeats the validator.
///
/// A value; each ``run(progress:)`` is a download of its own. Bodies are requested without content coding. One that has a coding
/// nevertheless is decoded, unless the session's `decodesContent` is off.
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
        /// Whether digests that the server names (RFC 9530, `Repr-Digest` and `Content-Digest`) are verified; they are by default, but for
        /// the `Content-Digest` of a response that another connection has taken a part of.
        public var verifiesDigests = true
        /// Whether a file at the destination may be replaced; not by default. A finished download is replaced only if it has changed, or
        /// if the server has named no validator of it.
        public var replacesFile = false
        /// Whether the file gets the name that the first response suggests (``/CurlewCore/SuggestedFileName``), in the directory of the
        /// destination; not by default. The name is in ``SegmentedDownload/Result/file``.
        public var takesSuggestedName = false
        /// How many failures in a row, without a byte in between, are followed by another attempt; 5 by default. All failures count for a
        /// file that arrives in one response, which can't be continued.
        ///
        /// The delays between them double from half a second up to 30 seconds; a `Retry-After` applies instead. A delay of more than an
        /// hour, or one that ends after the deadline of the task (``/CurlewCore/Deadline/current``), is not waited for.
        public var retryLimit = 5
        /// Called before each delay, also one that is too long to be waited for, but not where another server continues at once; on any
        /// thread, `nil` by default.
        public var onWait: (@Sendable (RetryWait) -> Void)?
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
        /// The file: the destination, or the one with the suggested name.
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
    /// - Parameter progress: called ten times a second at most, and at last when the file is complete, before this returns; one call at a time,
    ///   on any thread.
    /// - Throws: ``SegmentedDownloadError``, `CurlewError` of the request that failed last, `CocoaError` with the path for files,
    ///   `CancellationError`.
    public func run(progress: (@Sendable (Progress) -> Void)? = nil) async throws -> Result {
        do {
            return try await start(progress)
        } catch CurlewError.cancelled where Task.isCancelled {
            // A request may report the cancellation before the task itself does.
            throw CancellationError()
        }
    }

    private func start(_ progress: (@Sendable (Progress) -> Void)?) async throws -> Result {
        let urls = try urls.map { try $0.asURL() }
        guard let first = urls.first else { throw SegmentedDownloadError.noURL }
        func end(_ unchanged: Result) -> Result {
            progress?(Progress(completed: unchanged.length, total: unchanged.length, connections: 0))
            return unchanged
        }
        let cookies = manager.session.cookieField(for: first.absoluteString, given: nil)
        if !options.takesSuggestedName, let unchanged = try await unchangedFile(at: first, cookies) { return end(unchanged) }
        let file = try SegmentFile(for: place(of: first), responder: responder(to: first))
        do {
            return try await run(urls, file, cookies, progress)
        } catch let found as SegmentedTransfer.Unchanged {
            file.end()
            return end(found.result)
        } catch let error as SegmentedDownloadError {
            if case .digestMismatch = error { file.discard() } else { file.end() }
            throw error
        } catch {
            file.end()
            throw error
        }
    }

    /// The path beside which the bytes are until the file has its name: the destination, or one for the URL, if the name is not known yet.
    private func place(of url: URL) -> URL {
        guard options.takesSuggestedName else { return destination }
        return destination.deletingLastPathComponent().appendingPathComponent("download-\(SegmentedTransfer.name(of: url).prefix(16))")
    }

    private func run(
        _ urls: [URL], _ file: SegmentFile, _ cookies: String?, _ progress: (@Sendable (Progress) -> Void)?
    ) async throws -> Result {
        var mode = SegmentedTransfer.Mode(first: 0, asksForWhole: false, resumes: true)
        var received: Int64 = 0
        var restarts = 0
        while true {
            let transfer = SegmentedTransfer(manager, urls, options, file, mode, cookies, progress)
            do {
                let summary = try await transfer.run()
                return try await finish(transfer, summary, file, received + summary.received)
            } catch let restart as SegmentedTransfer.Restart {
                received += transfer.received
                if let delay = restart.delay {
                    try await Task.sleep(for: delay)
                } else {
                    restarts += 1
                    guard restarts < 4 + urls.count else { throw restart.failure }
                }
                mode = SegmentedTransfer.Mode(
                    first: restart.first ?? mode.first, asksForWhole: restart.asksForWhole || restarts > 2, resumes: false,
                    failures: restart.failures)
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
            let mismatch = try await onBlockingQueue { try file.check(check, until: $0) }
            if let mismatch {
                throw SegmentedDownloadError.digestMismatch(
                    algorithm: mismatch.algorithm, expected: mismatch.expected, actual: mismatch.actual)
            }
            named.merge(check) { first, _ in first }
        }
        let mark = summary.mark
        let destination = summary.destination ?? destination
        try file.commit(to: destination, length: summary.length, replacing: options.replacesFile) { descriptor in
            guard let mark else { return }
            FinishedDownload.mark(
                descriptor, as: mark.url, by: responder(to: mark.url), for: mark.sender, mark.head, from: mark.source)
        }
        return Result(
            file: destination, length: summary.length, received: received, resumed: summary.resumed, isUnchanged: false,
            verified: named.keys.sorted())
    }

    // MARK: A file that is there

    private func unchangedFile(at url: URL, _ cookies: String?) async throws -> Result? {
        try await Self.unchangedFile(at: destination, of: url, by: responder(to: url), options) { finished in
            var headers = options.headers.forWhole
            if let condition = finished.condition { headers.update(condition) }
            let request = manager.streamRequest(url, headers: headers).validate(statusCode: [200, 304])
            let body = request.bodyStream()
            let head = try await body.head()
            defer { request.cancel() }
            let sender = request.sender(cookies: cookies)
            if finished.isConfirmed(by: head, from: request.sourceURL, for: sender) { return true }
            guard head.statusCode == 200 else {
                // Throws what the validation of the status says; with a file that may be replaced, that is the download's affair.
                if !options.replacesFile { for try await _ in body {} }
                return false
            }
            return finished.isRepeated(
                by: head, length: head.wholeLength(isDecoded: manager.decodesContent), from: request.sourceURL, for: sender)
        }
    }

    private func responder(to url: URL) -> String { manager.responder(to: url, nil) }
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

extension ResponseHead {
    /// The length of the whole, of a response with it or a part of it; `nil` if it is unknown.
    func wholeLength(isDecoded: Bool) -> Int64? {
        guard !isDecoded || !isCoded else { return nil }
        return statusCode == 206 ? byteRange?.total : expectedBodyLength
    }
}

extension SessionManager {
    /// Whether bodies with a content coding are decoded.
    var decodesContent: Bool { session.configuration.decodesContent }
}

extension DataRequest {
    /// The URL that has responded, after redirects.
    var sourceURL: String { response?.url?.absoluteString ?? "" }
}

// MARK: - CustomReflectable

extension SegmentedDownload: CustomReflectable {
    /// The URLs, redacted, and the destination.
    public var customMirror: Mirror {
        .redacted(self, ["urls": urls.map { "\($0)".redactedURL }, "destination": destination.path])
    }
}
