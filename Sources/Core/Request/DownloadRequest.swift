// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A request whose response's body is written to a file while it comes.
///
/// The file has its final name only when it is whole: until then it lies beside its destination, or in the session's temporary directory
/// where the destination is known only at the end, or there is none. Where the file system can (`O_TMPFILE` on Linux), it has no name until
/// then, so that a killed process leaves nothing; elsewhere its name is hidden (`.name.XXXXXX.part`). A failed download has no file when its
/// handlers run. If it can be resumed, the bytes received stay in an open file without a name as long as the request or one of its responses
/// is retained; reading ``resumeData`` gives that file a name.
open class DownloadRequest: Request, @unchecked Sendable {  // as its superclass
    /// What may be done to put a file where it belongs.
    public struct DownloadOptions: OptionSet, Sendable {
        /// The options as bits.
        public let rawValue: UInt

        /// Makes options of bits.
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// Makes the directories on the way to the destination.
        public static let createIntermediateDirectories = DownloadOptions(rawValue: 1 << 0)
        /// Replaces the file at the destination. Without this it is an error (`CocoaError.fileWriteFileExists`), and stays; so does
        /// anything that is no file, with this too.
        public static let removePreviousFile = DownloadOptions(rawValue: 1 << 1)
        /// Goes on with what an earlier download of the same URL to the same file has left, even if its process was killed.
        ///
        /// Only with a destination that is a URL. What comes is kept beside it, hidden (`.name.part`, and `.name.part.json` for what is
        /// known of it), until the download is whole or refused, or ``DownloadRequest/cancel(createResumeData:)`` says that it is not
        /// wanted. The server is asked not to compress. It has to give the response a strong `ETag`, or else a `Last-Modified`; without,
        /// and when it has something newer, the download begins anew. Of several at once to the same file one does this, and the others
        /// download as without it.
        public static let resumePreviousDownload = DownloadOptions(rawValue: 1 << 2)
    }

    /// Says where a file goes, given where it is and the response it came with. Called once, on the session's queue, when the body is
    /// complete and before validation, whatever the status.
    @preconcurrency public typealias DownloadFileDestination =
        @Sendable (_ temporaryURL: URL, _ response: HTTPURLResponse) -> (destinationURL: URL, options: DownloadOptions)

    let receiver: FileReceiver

    init(
        original: Result<RequestTask, any Error>, session: Session, sessionDelegate: SessionDelegate, receiver: FileReceiver,
        interceptor: (any RequestInterceptor)? = nil
    ) {
        self.receiver = receiver
        super.init(
            original: original, driver: RequestDriver(session: session, sessionDelegate: sessionDelegate, body: receiver),
            interceptor: interceptor)
    }

    /// What is needed to go on with a download that was cancelled or failed; `nil` as long as it runs, and where that is impossible.
    ///
    /// For ``SessionManager/download(resumingWith:to:)``, also in another process. It is possible when part of a file has come with a
    /// strong `ETag`, or else a `Last-Modified`, in no content coding, as the answer to a GET. The data is JSON, of no promised form. It
    /// holds the URL, without user name and password, and the request's header fields, but not `Authorization`, `Cookie` and those that
    /// ``RedirectPolicy/sensitiveHeaders`` names: adapter and session add them again. It names the partial file. The first
    /// read gives that file its name and may block briefly; from then on the caller owns the file and removes it if it is not used. Also
    /// `nil` if the file can't be named.
    open var resumeData: Data? { receiver.resumption.resumeData }

    /// Ends the request as ``cancel(createResumeData:)`` does, with resume data.
    open override func cancel() {
        cancel(createResumeData: true)
    }

    /// Ends the request; its handlers run with ``CurlewError/cancelled``.
    ///
    /// - Parameter createResumeData: whether what has come stays for ``resumeData`` and ``DownloadOptions/resumePreviousDownload``, or is
    ///   removed.
    open func cancel(createResumeData: Bool) {
        if !createResumeData, driver.state.withLock({ $0.lifecycle.stage != .finished }) { receiver.resumption.drop() }
        super.cancel()
    }

    override var hasBody: Bool { receiver.bodyCount > 0 }

    /// How much of the file has come; the total is −1 as long as nobody knows it.
    open var progress: Progress { receiver.downloadProgress.progress }

    /// Has `closure` called while the file comes in, on `queue`, at last with the whole of it.
    ///
    /// Calls are dropped while one is waiting for the queue. One closure a request: a later one replaces it.
    @preconcurrency @discardableResult
    public func downloadProgress(queue: DispatchQueue? = nil, closure: @escaping ProgressHandler) -> Self {
        receiver.downloadProgress.setHandler(closure, queue: queue ?? session.configuration.callbackQueue)
        return self
    }

    /// A destination in a directory of the user, named as the response suggests, with no options; the temporary file where there is no
    /// such directory.
    public class func suggestedDownloadDestination(
        for directory: FileManager.SearchPathDirectory = .documentDirectory, in domain: FileManager.SearchPathDomainMask = .userDomainMask
    ) -> DownloadFileDestination {
        { temporaryURL, response in
            guard let directory = FileManager.default.urls(for: directory, in: domain).first else { return (temporaryURL, []) }
            // The name is the server's: only its last component counts, so that it leads nowhere else.
            let name = URL(fileURLWithPath: response.suggestedFilename ?? "").lastPathComponent
            let isName = !name.isEmpty && name != "/" && name != "." && name != ".."
            return (directory.appendingPathComponent(isName ? name : temporaryURL.lastPathComponent), [])
        }
    }
}
