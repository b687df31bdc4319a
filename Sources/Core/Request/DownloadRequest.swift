// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A request whose response's body is written to a file while it is received.
///
/// The file gets its final name only when it is complete. Until then it is beside its destination or, if that is a closure or `nil`, in the
/// session's temporary directory. Where the file system supports it (`O_TMPFILE` on Linux), it has no name until then, so that a killed
/// process leaves nothing; elsewhere its name is hidden (`.name.XXXXXX.part`). When the handlers of a failed download run, there is no
/// file. If it can be resumed, the bytes received stay in an open file without a name as long as the request or one of its responses is
/// retained; reading ``resumeData`` gives that file a name.
public final class DownloadRequest: Request, @unchecked Sendable {  // as its superclass
    /// What a download may do to move its file to the destination.
    public struct DownloadOptions: OptionSet, Sendable {
        /// The options' bits.
        public let rawValue: UInt

        /// Creates options from bits.
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// Creates the missing directories of the destination.
        public static let createIntermediateDirectories = DownloadOptions(rawValue: 1 << 0)
        /// Replaces a file at the destination. Without this option the download fails (`CocoaError.fileWriteFileExists`), and the existing
        /// file stays. A directory or a special file is never replaced: the download fails with this option, too.
        public static let removePreviousFile = DownloadOptions(rawValue: 1 << 1)
        /// Resumes an earlier download of the same URL to the same file, even if its process was killed.
        ///
        /// Only for a destination that is a URL. The received bytes are stored beside it in a hidden file (`.name.part`, and
        /// `.name.part.json` for the URL and the validator) until the download is complete or refused, or cancelled with
        /// ``DownloadRequest/cancel(createResumeData:)`` and `false`. The request asks for no content coding. The response needs a strong
        /// `ETag`, or else a `Last-Modified`; without, or if the server has another version, the download starts over. Of concurrent
        /// downloads to the same file one is resumable, and the others download as without this option.
        ///
        /// A file that is already there, from an earlier download of the same URL with this option, is loaded again only if it has changed:
        /// its `ETag` (strong or weak) or `Last-Modified` is kept in the extended attribute `user.curlew.validator`, together with its length
        /// and modification time, and sent as `If-None-Match` or `If-Modified-Since`. A 304 succeeds with that file, which stays as it is,
        /// also without ``removePreviousFile``; the response has status 200, as if from a cache, and ``DownloadRequest/isFileUnchanged`` is
        /// `true`. The whole file is requested if it was edited or replaced since, if its file system has no extended attributes, if a
        /// redirect leads elsewhere than it did, or if the request has conditions or a `Range` of its own.
        public static let resumePreviousDownload = DownloadOptions(rawValue: 1 << 2)
    }

    /// Returns the destination of a file. Called once, on the session's queue, when the body is complete and before validation, for every
    /// status.
    @preconcurrency public typealias DownloadFileDestination =
        @Sendable (_ temporaryURL: URL, _ response: HTTPURLResponse) -> (destinationURL: URL, options: DownloadOptions)

    let receiver: FileReceiver

    init(
        original: Result<RequestTask, any Error>, session: Session, sessionDelegate: SessionDelegate, receiver: FileReceiver,
        settings: RequestSettings? = nil
    ) {
        self.receiver = receiver
        super.init(
            original: original,
            driver: RequestDriver(session: session, sessionDelegate: sessionDelegate, body: receiver, settings: settings))
    }

    /// The data that resumes a cancelled or failed download; `nil` while it runs, and if it can't be resumed.
    ///
    /// For ``SessionManager/download(resumingWith:interceptor:requestOptions:to:options:)``, also in another process. A download can be
    /// resumed if a part of the file was received in response to a GET, with a strong `ETag` or else a `Last-Modified`, and without a
    /// content coding. The data is JSON, whose form may change. It has the URL, without user name and password, and the request's header
    /// fields, but not `Authorization`, `Cookie`, those of ``RedirectPolicy/sensitiveHeaders``, and those whose names are usual for
    /// secrets, such as `X-Api-Key`: adapter and session add them again. A token or a signature in the URL's query is a part of it, so
    /// store the data as a secret. It has the path of the part file. The first read names that file, which may block briefly; from then on
    /// the caller owns the file, and removes it if it is not used. Also `nil` if the file can't be named.
    public var resumeData: Data? { receiver.resumption.resumeData }

    /// Cancels the request as ``cancel(createResumeData:)`` does, with resume data.
    public override func cancel() {
        cancel(createResumeData: true)
    }

    /// Cancels the request; its handlers run with ``CurlewError/cancelled``.
    ///
    /// - Parameter createResumeData: whether the received bytes are kept for ``resumeData`` and ``DownloadOptions/resumePreviousDownload``,
    ///   or removed.
    public func cancel(createResumeData: Bool) {
        if !createResumeData, driver.state.withLock({ $0.lifecycle.stage != .finished }) { receiver.resumption.drop() }
        super.cancel()
    }

    /// Whether the file at the destination is that of an earlier download, which the server has confirmed: nothing was received. Only with
    /// ``DownloadOptions/resumePreviousDownload``; `false` until the response's head is received.
    public var isFileUnchanged: Bool { receiver.isUnchanged }

    /// The complete file, where it is now; `nil` for a failed download, and once the file was removed.
    package var fileURL: URL? { receiver.fileURL }

    override var hasBody: Bool { receiver.bodyCount > 0 }

    /// The progress of receiving the file, in bytes; the total is −1 until it is known. A resumed download starts at its offset.
    public var progress: Progress { receiver.downloadProgress.progress }

    /// Calls `closure` while the file is received, and last when it is complete.
    ///
    /// Calls are coalesced: at most one is queued at a time. A request has one closure; setting another replaces it.
    ///
    /// - Parameters:
    ///   - queue: where the closure is called; `nil`, the default, is the configuration's ``SessionConfiguration/callbackQueue``.
    ///   - closure: receives the progress.
    @preconcurrency @discardableResult
    public func downloadProgress(queue: DispatchQueue? = nil, closure: @escaping ProgressHandler) -> Self {
        receiver.downloadProgress.setHandler(closure, queue: queue ?? session.configuration.callbackQueue)
        return self
    }

    /// Returns a closure whose destination is in a directory of the user, with the file name that the response suggests
    /// (``SuggestedFileName``), and no options. The file stays where it is if there is no such directory.
    public static func suggestedDownloadDestination(
        for directory: FileManager.SearchPathDirectory = .documentDirectory, in domain: FileManager.SearchPathDomainMask = .userDomainMask
    ) -> DownloadFileDestination {
        { temporaryURL, response in
            guard let directory = FileManager.default.urls(for: directory, in: domain).first else { return (temporaryURL, []) }
            // Not Foundation's suggestion, which reads only some forms of the field, and may be no name at all.
            let field = response.value(forHTTPHeaderField: "Content-Disposition")
            let name = SuggestedFileName.name(contentDisposition: field, url: response.url ?? temporaryURL)
            return (directory.appendingPathComponent(name), [])
        }
    }
}
