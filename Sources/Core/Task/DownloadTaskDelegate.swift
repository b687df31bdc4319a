// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Writes a response's body to a file and brings that to its destination.
///
/// The file is opened, moved and removed on the session's queue; only the writing happens on the transport's thread, in large pieces.
final class DownloadTaskDelegate: TaskDelegate, @unchecked Sendable {  // as its superclass
    /// Where the file goes.
    enum Destination: Sendable {
        /// Nowhere: it stays where it was written.
        case none
        /// To where the closure says when it is complete.
        case asked(DownloadRequest.DownloadFileDestination)
        /// To a place known from the start.
        case known(URL, DownloadRequest.DownloadOptions)
    }

    private struct FileState {
        var file: PartFile?
        var isOpening = false
        /// What to do when the file is open, if the end came before that.
        var afterOpening: (@Sendable () -> Void)?
        var temporaryURL: URL?
        var destinationURL: URL?
        var isSettled = false
        /// Whether the file lies at its destination.
        var isMoved = false
    }

    let downloadProgress = ProgressReporter()
    private let destination: Destination
    private let fileState = Lock(FileState())
    // The transport's thread as long as a transfer runs; afterwards anybody's.
    private var writing: PartFile?
    private(set) var bodyCount: Int64 = 0
    /// Is told of what was written instead of the progress; looked up once, not for each piece.
    private var tellWritten: (@Sendable (Session, SessionTask, Int64, Int64, Int64) -> Void)?

    init(session: Session, sessionDelegate: SessionDelegate, destination: Destination) {
        self.destination = destination
        super.init(session: session, sessionDelegate: sessionDelegate)
    }

    /// Where the body was written; it is no longer there when it was moved to its destination.
    var temporaryURL: URL? { fileState.withLock { $0.temporaryURL } }
    /// Where the file is, or should have gone.
    var destinationURL: URL? { fileState.withLock { $0.destinationURL } }

    /// The file that the handlers read.
    var fileURL: URL? { fileState.withLock { $0.destinationURL ?? $0.temporaryURL } }

    override func reset() {
        downloadProgress.reset()
        writing = nil
        bodyCount = 0
        let old = fileState.withLock { state in
            defer { state = FileState() }
            return state
        }
        old.file?.discard()
        // The file of the failed attempt is none that was there before.
        if old.isMoved, let url = old.destinationURL { unlink(url.path) }
    }

    // MARK: Receiving

    override func accept(_ head: ResponseHead) -> ReceiveAction {
        downloadProgress.setTotal(head.expectedBodyLength ?? -1)
        tellWritten = sessionDelegate.closures.withLock { $0.downloadTaskDidWriteData }
        fileState.withLock { $0.isOpening = true }
        session.queue.async { self.openFile() }
        return .pause
    }

    private func openFile() {
        let file = Result { try makeFile() }
        if case .failure(let error) = file { fail(error) }
        let next = fileState.withLock { state in
            state.file = try? file.get()
            state.temporaryURL = state.file?.url
            state.isOpening = false
            defer { state.afterOpening = nil }
            return state.afterOpening
        }
        if let next { return next() }
        let task = state.withLock { $0.task }
        if case .failure = file { task?.cancel() } else { task?.resumeReceiving() }
    }

    /// A new file: hidden beside a known destination, so that it only has to be renamed; else in the session's temporary directory.
    private func makeFile() throws -> PartFile {
        guard case .known(let url, let options) = destination else { return try PartFile(in: session.configuration.temporaryDirectory) }
        let directory = url.deletingLastPathComponent()
        if options.contains(.createIntermediateDirectories) {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        }
        // Said before anything is downloaded, and again when the file is moved.
        if !options.contains(.removePreviousFile), FileManager.default.fileExists(atPath: url.path) {
            throw FileError.writing(url.path, EEXIST)
        }
        return try PartFile(in: directory, for: url.lastPathComponent)
    }

    override func accept(_ bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        if writing == nil { writing = fileState.withLock { $0.file } }
        guard let file = writing else { return .cancel }
        bodyCount += Int64(bytes.count)
        do {
            try file.write(bytes)
        } catch {
            fail(error)
            return .cancel
        }
        progressed(by: Int64(bytes.count))
        return .proceed
    }

    private func progressed(by count: Int64) {
        guard let tell = tellWritten, let task = state.withLock({ $0.task }) else { return downloadProgress.update(completed: bodyCount) }
        let total = state.withLock { $0.head }?.expectedBodyLength ?? -1
        session.queue.async { [session, bodyCount] in tell(session, task, count, bodyCount, total) }
    }

    // MARK: The end

    /// A short body can be over before its file is open.
    override var isReadyToEnd: Bool { fileState.withLock { !$0.isOpening } }

    override func whenReadyToEnd(_ body: @escaping @Sendable () -> Void) {
        let mustWait = fileState.withLock { state in
            if state.isOpening { state.afterOpening = body }
            return state.isOpening
        }
        if !mustWait { body() }
    }

    override var mustConcludeOnQueue: Bool {
        fileState.withLock { !$0.isSettled } || super.mustConcludeOnQueue
    }

    /// Closes the file and, where a closure says so, brings it to its destination: that is asked whatever the response is.
    override func settle() {
        perform { file in
            do {
                try file.close()
            } catch {
                discard(file)
                throw error
            }
            if error == nil, give(file) { return }
            if case .asked(let closure) = destination, error == nil, let response = context(fallback: nil).response {
                let (url, options) = closure(file.url, response)
                try move(file, to: url, options)
            }
        }
    }

    /// Has the session's delegate take the file, if it wants to.
    private func give(_ file: PartFile) -> Bool {
        guard let take = sessionDelegate.closures.withLock({ $0.downloadTaskDidFinishDownloadingToURL }),
            let task = state.withLock({ $0.task })
        else { return false }
        take(session, task, file.url)
        file.discard()
        fileState.withLock { $0.isSettled = true }
        return true
    }

    /// Brings the file to the destination known from the start: the response was accepted.
    override func deliver() {
        perform { file in
            if case .known(let url, let options) = destination, error == nil { try move(file, to: url, options) }
        }
        fileState.withLock { $0.isSettled = true }
    }

    /// Does something with the file, unless that was done; a file that nobody will get is removed.
    private func perform(_ body: (PartFile) throws -> Void) {
        guard let file = fileState.withLock({ $0.isSettled ? nil : $0.file }) else { return }
        do {
            try body(file)
        } catch {
            fail(error)
        }
        guard error != nil, temporaryURL != nil, !isKeptOnFailure else { return }
        discard(file)
    }

    /// A complete file that a closure was to place, or a validation refused, stays where it can be read.
    private var isKeptOnFailure: Bool {
        if case .known = destination { return false }
        return state.withLock { $0.hasSucceeded }
    }

    private func discard(_ file: PartFile) {
        file.discard()
        fileState.withLock { $0.temporaryURL = nil }
    }

    private func move(_ file: PartFile, to url: URL, _ options: DownloadRequest.DownloadOptions) throws {
        fileState.withLock { $0.destinationURL = url }
        try file.move(
            to: url, replacing: options.contains(.removePreviousFile),
            creatingDirectories: options.contains(.createIntermediateDirectories))
        fileState.withLock { $0.isMoved = true }
    }
}
