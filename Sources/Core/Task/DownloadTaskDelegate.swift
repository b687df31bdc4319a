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

        /// The place for which a download goes on by itself.
        var resumed: URL? {
            if case .known(let url, let options) = self, options.contains(.resumePreviousDownload) { url } else { nil }
        }
    }

    /// Which file the body goes to.
    private enum Target {
        /// Behind what an earlier attempt has left.
        case append(total: Int64)
        /// Nowhere: that file is whole.
        case complete
        /// A file that may be gone on with.
        case whole(ResponseHead)
        /// A file of its own.
        case aside
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
    let resumption: DownloadResumption
    private let destination: Destination
    private let fileState = Lock(FileState())
    // The transport's thread as long as a transfer runs; afterwards anybody's.
    private var writing: PartFile?
    /// The number of bytes in the file.
    private(set) var bodyCount: Int64 = 0
    /// The length of the file, as far as known.
    private var total: Int64 = -1
    /// The length that the file is going to have, or it is not ours.
    private var requiredLength: Int64?
    /// Whether the body is no part of the file.
    private var isDropping = false
    /// Whether the file is not what was announced.
    private var isBroken = false
    /// Whether files are written under hidden names also where they need none; for tests of file systems that know no others.
    var namesFiles = false
    /// Is told of what was written instead of the progress; looked up once, not for each piece.
    private var tellWritten: (@Sendable (Session, SessionTask, Int64, Int64, Int64) -> Void)?

    init(session: Session, sessionDelegate: SessionDelegate, destination: Destination, resumption: DownloadResumption) {
        self.destination = destination
        self.resumption = resumption
        super.init(session: session, sessionDelegate: sessionDelegate)
    }

    /// What is needed to go on with the download, if it failed.
    override var data: Data? { resumption.resumeData }

    /// Where the body was written; it is no longer there when it was moved to its destination.
    var temporaryURL: URL? { fileState.withLock { $0.temporaryURL } }
    /// Where the file is, or should have gone.
    var destinationURL: URL? { fileState.withLock { $0.destinationURL } }

    /// The file that the handlers read.
    var fileURL: URL? { fileState.withLock { $0.destinationURL ?? $0.temporaryURL } }

    override var byteCounts: (received: Int64, sent: Int64) { (downloadProgress.count, 0) }

    override func reset() {
        // What has come counts as long as nobody says that it has to come again.
        downloadProgress.reset(completed: resumption.offset ?? 0)
        writing = nil
        bodyCount = 0
        total = -1
        requiredLength = nil
        isDropping = false
        isBroken = false
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
        tellWritten = sessionDelegate.closures.withLock { $0.downloadTaskDidWriteData }
        let (decision, offset) = resumption.judge(head)
        switch decision {
        case .append(let total):
            goOn(at: offset, of: total, head)
            return receive(into: .append(total: total))
        case .complete:
            isDropping = true
            goOn(at: offset, of: offset, ResponseHead(statusCode: 206, headers: head.headersWithoutBody))
            return receive(into: .complete)
        case .startOver, .setAside:
            total = head.expectedBodyLength ?? -1
            downloadProgress.reset(total: total)
            return receive(into: decision == .startOver ? .whole(head) : .aside)
        case .askForWhole:
            guard let transfer = state.withLock({ $0.task })?.currentTransfer else { return .cancel }
            return goOn(with: resumption.askForWhole(transfer))
        }
    }

    /// The file goes on where it ended. The answer need not repeat what the first one said of the content, but validations look at it.
    private func goOn(at offset: Int64, of total: Int64, _ head: ResponseHead) {
        bodyCount = offset
        self.total = total
        requiredLength = total
        downloadProgress.reset(completed: offset, total: total)
        var headers = head.headers
        let type = headers.value(for: "Content-Type") == nil ? resumption.contentType : nil
        if let type { headers.append(name: "Content-Type", value: type) }
        let supplemented = ResponseHead(statusCode: head.statusCode, headers: headers)
        let task = state.withLock { state in
            // A head that is made here has lost its version, so only where it must be.
            if type != nil || state.head?.statusCode != head.statusCode { state.head = supplemented }
            return state.task
        }
        guard let tell = sessionDelegate.closures.withLock({ $0.downloadTaskDidResumeAtOffset }), let task else { return }
        session.queue.async { [session] in tell(session, task, offset, total) }
    }

    private func receive(into target: Target) -> ReceiveAction {
        fileState.withLock { $0.isOpening = true }
        session.queue.async { self.openFile(for: target) }
        return .pause
    }

    private func openFile(for target: Target) {
        let file = Result { try makeFile(for: target) }
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

    private func makeFile(for target: Target) throws -> PartFile {
        let (directory, name) = try makePlace()
        switch target {
        case .append(let total): return try resumption.takeFile(total: total) ?? { throw FileError.writing(directory.path, ENOENT) }()
        case .complete: return try resumption.takeFile() ?? { throw FileError.writing(directory.path, ENOENT) }()
        case .whole(let head): return try resumption.makeFile(head, in: directory, for: name, isNamed: namesFiles)
        case .aside: return try PartFile(in: directory, for: name, isNamed: namesFiles)
        }
    }

    /// Where a new file goes: hidden beside a known destination, so that it only has to be renamed; else to the session's temporary
    /// directory.
    private func makePlace() throws -> (directory: URL, name: String) {
        guard case .known(let url, let options) = destination else { return (session.configuration.temporaryDirectory, "download") }
        let directory = url.deletingLastPathComponent()
        if options.contains(.createIntermediateDirectories) {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        }
        // Said before anything is downloaded, and again when the file is moved.
        if !options.contains(.removePreviousFile), FileManager.default.fileExists(atPath: url.path) {
            throw FileError.writing(url.path, EEXIST)
        }
        return (directory, url.lastPathComponent)
    }

    override func accept(_ bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        if writing == nil { writing = fileState.withLock { $0.file } }
        guard let file = writing else { return .cancel }
        if isDropping { return .proceed }
        if let requiredLength, Int64(bytes.count) > requiredLength - bodyCount {
            refuseLength("The body is longer than its Content-Range")
            return .cancel
        }
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
        session.queue.async { [session, bodyCount, total] in tell(session, task, count, bodyCount, total) }
    }

    /// The answer contradicts itself: nobody knows what it has brought.
    private func refuseLength(_ message: String) {
        isBroken = true
        resumption.distrust()
        let url = state.withLock { $0.task }?.currentTransfer?.url ?? ""
        fail(
            CurlewError.transferFailed(
                TransferFailure(
                    kind: .protocolViolation, url: url, phase: .receivingBody, message: message, requestWasSent: true,
                    bytesReceived: bodyCount)))
    }

    // MARK: The end

    override func taskWillEnd(_ outcome: TransferCompletion) {
        guard outcome.error == nil, let requiredLength, bodyCount != requiredLength else { return }
        refuseLength("The body is shorter than its Content-Range")
    }

    /// Nothing of what has come is to be kept, unless the request is over already.
    func leaveNothing() {
        if state.withLock({ $0.lifecycle.stage }) != .finished { resumption.drop() }
    }

    /// A short body can be over before its file is open.
    override var isReadyToEnd: Bool { fileState.withLock { !$0.isOpening } }

    override func whenReadyToEnd(_ body: @escaping @Sendable () -> Void) {
        let mustWait = fileState.withLock { state in
            if state.isOpening { state.afterOpening = body }
            return state.isOpening
        }
        if !mustWait { body() }
    }

    /// Also when a validation has come late: it may take the file away again.
    override var mustConcludeOnQueue: Bool {
        fileState.withLock { !$0.isSettled || $0.isMoved }
    }

    /// Closes the file and, where a closure says so, brings it to its destination: that is asked whatever the response is.
    override func settle() {
        perform { file in
            do {
                try file.close()
                if mustHaveName { try giveName(to: file) }
            } catch {
                discard(file)
                throw error
            }
            if error == nil, try give(file) { return resumption.forget(file) }
            if case .asked(let closure) = destination, error == nil, let response = context(fallback: nil).response {
                let (url, options) = closure(file.url, response)
                try move(file, to: url, options)
            }
        }
    }

    /// Whether the complete file is used where it was written: by a destination closure, handlers or a custom validation.
    private var mustHaveName: Bool {
        guard !isBroken, state.withLock({ $0.hasSucceeded }) else { return false }
        if case .known = destination { return error == nil && state.withLock { $0.validators.contains(where: \.isCustom) } }
        return true
    }

    private func giveName(to file: PartFile) throws {
        try file.giveName()
        fileState.withLock { $0.temporaryURL = file.url }
    }

    /// Has the session's delegate take the file, if it wants to.
    private func give(_ file: PartFile) throws -> Bool {
        guard let take = sessionDelegate.closures.withLock({ $0.downloadTaskDidFinishDownloadingToURL }),
            let task = state.withLock({ $0.task })
        else { return false }
        try giveName(to: file)
        take(session, task, file.url)
        file.discard()
        fileState.withLock { $0.isSettled = true }
        return true
    }

    /// Brings the file to the destination known from the start, if the response was accepted; takes it away from there if a validation
    /// that came late has refused it.
    override func deliver() {
        if error != nil { removeRefused() }
        perform { file in
            if case .known(let url, let options) = destination, error == nil { try move(file, to: url, options) }
        }
        resumption.endAttempt(isAccepted: error == nil)
        fileState.withLock { $0.isSettled = true }
    }

    private func removeRefused() {
        guard case .known(let url, _) = destination else { return }
        let wasMoved = fileState.withLock { state in
            defer { state.isMoved = false }
            return state.isMoved
        }
        if wasMoved { unlink(url.path) }
    }

    override var hasLeftovers: Bool {
        fileState.withLock { $0.isSettled && $0.file != nil && !$0.isMoved }
    }

    override func removeLeftovers() {
        guard let file = fileState.withLock({ $0.file }) else { return }
        resumption.discard(file)
        fileState.withLock { state in
            state.temporaryURL = nil
            state.file = nil
        }
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
        return !isBroken && state.withLock { $0.hasSucceeded }
    }

    /// Puts the file away: for later where the transfer has failed, for good where what it brought was refused.
    private func discard(_ file: PartFile) {
        if state.withLock({ $0.hasSucceeded }) || !resumption.keep(file) { resumption.discard(file) }
        fileState.withLock { state in
            state.temporaryURL = nil
            state.file = nil
        }
    }

    private func move(_ file: PartFile, to url: URL, _ options: DownloadRequest.DownloadOptions) throws {
        fileState.withLock { $0.destinationURL = url }
        // A closure may say that the file stays where it is.
        guard url.standardizedFileURL != file.url.standardizedFileURL else { return }
        try file.move(
            to: url, replacing: options.contains(.removePreviousFile),
            creatingDirectories: options.contains(.createIntermediateDirectories))
        resumption.forget(file)
        fileState.withLock { $0.isMoved = true }
    }
}

extension ResponseHead {
    /// The fields that are not about this response's own body.
    fileprivate var headersWithoutBody: HTTPHeaders {
        let own = ["Content-Length", "Content-Type", "Content-Encoding", "Content-Language", "Transfer-Encoding", "Trailer"]
        return HTTPHeaders(headers.filter { header in !own.contains { header.isNamed($0) } })
    }
}
