// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Writes the body of a download to a file, and moves that to its destination.
///
/// With a destination URL the file is created beside it, without a name or with a hidden one (``PartFile``), and renamed when it is
/// complete and accepted. With a closure, or without a destination, it is created in the session's temporary directory, where it gets a
/// hidden name when it is complete; the closure is called once, then and before validation. When the handlers of a failed download run, no
/// file is left of it, except a complete one that a closure was to place or a validator refused, and what ``DownloadResumption`` keeps.
///
/// The file is opened, moved and removed on the session's queue; only the writing happens on the event loop's thread, in large pieces.
final class FileReceiver: BodyReceiver, @unchecked Sendable {  // fields without a lock belong to the transfer, and then to its end
    /// Where the file goes.
    enum Destination: Sendable {
        /// It stays where it was written.
        case none
        /// The URL that the closure returns when the file is complete.
        case asked(DownloadRequest.DownloadFileDestination)
        /// A URL known from the start.
        case known(URL, DownloadRequest.DownloadOptions)

        /// The file to which an earlier download is resumed automatically.
        var resumed: URL? {
            if case .known(let url, let options) = self, options.contains(.resumePreviousDownload) { url } else { nil }
        }
    }

    /// The file that a body is written to.
    private enum FileTarget {
        /// The part file, to which the body is appended.
        case append(total: Int64)
        /// The part file, which is complete: the body is dropped.
        case complete
        /// A new part file, from which the download can be resumed.
        case whole(ResponseHead)
        /// A file of its own, which leaves the part file as it is.
        case aside
    }

    private struct FileState {
        var file: PartFile?
        var temporaryURL: URL?
        var destinationURL: URL?
        /// Whether the file was committed or discarded.
        var isSettled = false
        /// Whether the file was moved to its destination.
        var isMoved = false
        /// Whether the file at the destination is that of an earlier download, which is current.
        var isUnchanged = false
    }

    // Any thread.
    let downloadProgress = ProgressReporter()
    let resumption: DownloadResumption
    private let destination: Destination
    /// The directory for files whose destination is not known from the start.
    private let temporaryDirectory: URL
    private let fileState = Lock(FileState())
    // The event loop's thread while a transfer runs; afterwards the thread that concludes the attempt.
    private var writing: PartFile?
    /// The number of bytes in the file.
    private(set) var bodyCount: Int64 = 0
    /// The expected length of the file; −1 if it is unknown.
    private var total: Int64 = -1
    /// The total length from `Content-Range`; a body of another length is rejected.
    private var requiredLength: Int64?
    /// Whether the body is dropped, because it is no part of the file.
    private var isDropping = false
    /// Whether the body contradicts what was announced.
    private var isBroken = false
    /// Whether files have hidden names also where they need none: for tests of file systems without unnamed files.
    var namesFiles = false
    /// The session's delegate, where it has closures for bodies: looked up once, not for each piece.
    private var listeners: BodyListeners?

    init(to destination: Destination, temporaryDirectory: URL, resumption: DownloadResumption) {
        self.destination = destination
        self.temporaryDirectory = temporaryDirectory
        self.resumption = resumption
    }

    // MARK: The received bytes

    /// The resume data of a failed download.
    var data: Data? { resumption.resumeData }

    /// The beginning of the closed file, where it was written or at its destination; `nil` once it was discarded.
    func beginning(_ count: Int) -> Data? {
        let (file, destination) = fileState.withLock { ($0.file, $0.isMoved ? $0.destinationURL : nil) }
        return destination.map { PartFile.beginning(count, at: $0.path) } ?? file?.beginning(count)
    }

    var receivedCount: Int64 { downloadProgress.count }

    /// Where the body was written; the file does not exist there any more once it was moved to its destination. `nil` once it was removed.
    var temporaryURL: URL? { fileState.withLock { $0.temporaryURL } }
    /// The file's destination, also if it could not be moved to the one of a closure. `nil` once it was removed.
    var destinationURL: URL? { fileState.withLock { $0.destinationURL } }

    /// Whether the file is that of an earlier download, which the server has confirmed.
    var isUnchanged: Bool { fileState.withLock { $0.isUnchanged } }

    /// The file that the handlers read.
    var fileURL: URL? { fileState.withLock { $0.isMoved ? $0.destinationURL : $0.temporaryURL } }

    // MARK: While the transfer runs

    func receive(_ head: ResponseHead, _ exchange: Exchange) throws -> HeadAction {
        listeners = exchange.listeners
        resumption.note(source: exchange.task?.currentTransfer?.url ?? "", user: exchange.task?.authenticatedUser)
        if head.statusCode == 304, let url = destination.resumed, let (finished, request) = resumption.finished {
            return receive(head, about: finished, at: url, for: request)
        }
        let (decision, offset) = resumption.judge(head)
        switch decision {
        case .append(let total):
            return prepare(.append(total: total), head: resume(at: offset, of: total, head))
        case .complete:
            isDropping = true
            let whole = ResponseHead(statusCode: 206, headers: head.headersWithoutBody)
            let resumed = resume(at: offset, of: offset, whole) ?? whole
            // Reported, because no piece of the body follows.
            downloadProgress.update(completed: offset, total: offset)
            return prepare(.complete, head: resumed)
        case .startOver, .unrelated:
            total = head.expectedBodyLength ?? -1
            downloadProgress.reset(total: total)
            return prepare(decision == .startOver ? .whole(head) : .aside, head: nil)
        case .requestWhole:
            return .restart { [resumption] in resumption.requestWhole(&$0) }
        }
    }

    /// Keeps the finished file at the destination if the response is about it, and the file has not changed since the request was sent.
    private func receive(_ head: ResponseHead, about finished: FinishedDownload, at url: URL, for request: ResumableRequest) -> HeadAction {
        guard finished.isConfirmed(by: head, from: request.source, for: request.senderDigest), finished.isIntact(at: url) else {
            return .restart { [resumption] in resumption.requestWhole(&$0) }
        }
        bodyCount = finished.length
        total = finished.length
        downloadProgress.update(completed: total, total: total)
        var headers = head.headersWithoutBody
        if let type = finished.contentType { headers.append(name: "Content-Type", value: type) }
        // What the response would have been without the condition, as a cache returns it (RFC 9111, section 4.3.4).
        return .prepare(head: ResponseHead(statusCode: 200, headers: headers)) { [self] in
            fileState.withLock { state in
                state.temporaryURL = url
                state.destinationURL = url
                state.isUnchanged = true
            }
        }
    }

    /// Resumes the file at its end.
    ///
    /// - Returns: the head with the content type of the first response, which this one need not repeat but validators check; `nil` to keep
    ///   the received head, because one that is created here has no HTTP version.
    private func resume(at offset: Int64, of total: Int64, _ head: ResponseHead) -> ResponseHead? {
        bodyCount = offset
        self.total = total
        requiredLength = total
        downloadProgress.reset(completed: offset, total: total)
        if let listeners, let resumed = listeners.resumed { listeners.queue.async { resumed(offset, total) } }
        guard head.value(for: "Content-Type") == nil, let type = resumption.contentType else { return nil }
        var headers = head.headers
        headers.append(name: "Content-Type", value: type)
        return ResponseHead(statusCode: head.statusCode, headers: headers)
    }

    private func prepare(_ target: FileTarget, head: ResponseHead?) -> HeadAction {
        .prepare(head: head) { [self] in
            let file = try makeFile(for: target)
            fileState.withLock { state in
                state.file = file
                state.temporaryURL = file.url
            }
        }
    }

    private func makeFile(for target: FileTarget) throws -> PartFile {
        let (directory, name) = try makePlace()
        switch target {
        case .append(let total): return try resumption.takeFile(total: total) ?? { throw FileError.writing(directory.path, ENOENT) }()
        case .complete: return try resumption.takeFile() ?? { throw FileError.writing(directory.path, ENOENT) }()
        case .whole(let head): return try resumption.makeFile(head, in: directory, for: name, isNamed: namesFiles)
        case .aside: return try PartFile(in: directory, for: name, isNamed: namesFiles)
        }
    }

    /// Returns where to create a new file: beside a known destination, so that it only has to be renamed; otherwise in the session's
    /// temporary directory.
    private func makePlace() throws -> (directory: URL, name: String) {
        guard case .known(let url, let options) = destination else { return (temporaryDirectory, "download") }
        let directory = url.deletingLastPathComponent()
        if options.contains(.createIntermediateDirectories) {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        }
        // Checked before anything is downloaded, and again when the file is moved.
        if !options.contains(.removePreviousFile), FileManager.default.fileExists(atPath: url.path) {
            throw FileError.writing(url.path, EEXIST)
        }
        return (directory, url.lastPathComponent)
    }

    func receive(_ bytes: UnsafeRawBufferPointer) throws -> ReceiveAction {
        if writing == nil { writing = fileState.withLock { $0.file } }
        guard let file = writing else { return .cancel }
        if isDropping { return .proceed }
        if let requiredLength, Int64(bytes.count) > requiredLength - bodyCount { throw wrongLength("longer") }
        bodyCount += Int64(bytes.count)
        try file.write(bytes)
        reportWritten(Int64(bytes.count))
        return .proceed
    }

    func receive(_ range: FileRange) throws -> Int64? {
        if writing == nil { writing = fileState.withLock { $0.file } }
        // What contradicts the head is refused as bytes are.
        guard let file = writing, !isDropping, requiredLength.map({ range.count <= $0 - bodyCount }) ?? true,
            let count = try file.append(range)
        else { return nil }
        bodyCount += count
        reportWritten(count)
        return count
    }

    /// Reports written bytes to the session's delegate instead of the progress, where it has a closure for them.
    private func reportWritten(_ count: Int64) {
        guard let listeners, let written = listeners.written else { return downloadProgress.update(completed: bodyCount) }
        if listeners.keepsProgress { downloadProgress.update(completed: bodyCount) }
        listeners.queue.async { [bodyCount, total] in written(count, bodyCount, total) }
    }

    func complete(_ outcome: TransferCompletion) throws {
        if outcome.error == nil, let requiredLength, bodyCount != requiredLength { throw wrongLength("shorter") }
    }

    /// The response contradicts itself, so that nothing can be resumed from what it brought.
    private func wrongLength(_ relation: String) -> BodyFailure {
        isBroken = true
        resumption.distrust()
        return BodyFailure(
            kind: .protocolViolation, message: "The body is \(relation) than its Content-Range", bytesReceived: bodyCount)
    }

    // MARK: When the attempt is concluded

    /// Also `true` for a late validation, which may remove the file again.
    var concludesOnQueue: Bool {
        fileState.withLock { !$0.isSettled || $0.isMoved }
    }

    /// Closes the file and moves it to the destination that a closure returns, if there is one: it is called for every status, as in
    /// Alamofire 4.
    func settle(_ attempt: CompletedAttempt) throws {
        try perform(attempt) { file in
            do {
                try file.close()
                if mustHaveName(attempt) { try giveName(to: file) }
            } catch {
                discard(file, of: attempt)
                throw error
            }
            if attempt.error == nil, try give(file, to: attempt.listeners) { return resumption.forget(file) }
            if case .asked(let closure) = destination, attempt.error == nil, let response = attempt.context.response {
                let (url, options) = closure(file.url, response)
                try move(file, to: url, options)
            }
        }
    }

    /// Whether the complete file is read where it was written: by a destination closure, handlers or a custom validator.
    private func mustHaveName(_ attempt: CompletedAttempt) -> Bool {
        guard !isBroken, attempt.isComplete else { return false }
        if case .known = destination { return attempt.error == nil && attempt.hasCustomValidator }
        return true
    }

    private func giveName(to file: PartFile) throws {
        try file.giveName()
        fileState.withLock { $0.temporaryURL = file.url }
    }

    /// Hands the file to the session's delegate; returns `false` if that has no closure for it.
    private func give(_ file: PartFile, to listeners: BodyListeners?) throws -> Bool {
        guard let take = listeners?.takeFile else { return false }
        try giveName(to: file)
        take(file.url)
        file.discard()
        forgetFile()
        fileState.withLock { $0.isSettled = true }
        return true
    }

    /// Moves the file to a destination known from the start, if the response was accepted; removes it from there if a late validator has
    /// refused it.
    func commit(_ attempt: CompletedAttempt) throws {
        if attempt.error != nil { removeRefused() }
        defer { fileState.withLock { $0.isSettled = true } }
        do {
            try perform(attempt) { file in
                guard case .known(let url, let options) = destination, attempt.error == nil else { return }
                if let version = resumption.version, let source = attempt.context.transfer?.url {
                    file.setMark { FinishedDownload.mark($0, as: version, from: source) }
                }
                try move(file, to: url, options)
            }
        } catch {
            resumption.endAttempt(isAccepted: false)
            throw error
        }
        resumption.endAttempt(isAccepted: attempt.error == nil)
    }

    private func removeRefused() {
        guard case .known(let url, _) = destination, fileState.withLock({ $0.isMoved }) else { return }
        forgetFile()
        unlink(url.path)
    }

    /// Performs `body` on the file unless it was committed or discarded; discards the file of a failed attempt.
    private func perform(_ attempt: CompletedAttempt, _ body: (PartFile) throws -> Void) throws {
        guard let file = fileState.withLock({ $0.isSettled ? nil : $0.file }) else { return }
        var failure = attempt.error
        defer {
            if failure != nil, temporaryURL != nil, !isKeptOnFailure(attempt) { discard(file, of: attempt) }
        }
        do {
            try body(file)
        } catch {
            failure = error
            throw error
        }
    }

    /// Whether a failed attempt's file stays: a complete one that a closure was to place, or a validator refused, can still be read.
    private func isKeptOnFailure(_ attempt: CompletedAttempt) -> Bool {
        if case .known = destination { return false }
        return !isBroken && attempt.isComplete
    }

    /// Keeps the file for resumption if the transfer has failed; removes it if the response was refused.
    private func discard(_ file: PartFile, of attempt: CompletedAttempt) {
        if attempt.isComplete || !resumption.keep(file) { resumption.discard(file) }
        forgetFile()
    }

    private func move(_ file: PartFile, to url: URL, _ options: DownloadRequest.DownloadOptions) throws {
        fileState.withLock { $0.destinationURL = url }
        // A closure may return the temporary URL: the file stays there.
        guard url.standardizedFileURL != file.url.standardizedFileURL else { return }
        try file.move(
            to: url, replacing: options.contains(.removePreviousFile),
            creatingDirectories: options.contains(.createIntermediateDirectories))
        resumption.forget(file)
        fileState.withLock { $0.isMoved = true }
    }

    /// No response names a file that was removed.
    private func forgetFile() {
        fileState.withLock { state in
            state.temporaryURL = nil
            state.destinationURL = nil
            state.isMoved = false
            state.file = nil
        }
    }

    func holdForRetry() -> Bool { true }

    var isDiscardable: Bool {
        fileState.withLock { $0.isSettled && $0.file != nil && !$0.isMoved }
    }

    func discard() {
        guard let file = fileState.withLock({ $0.file }) else { return }
        resumption.discard(file)
        forgetFile()
    }

    func reset() {
        // The bytes on disk count as received until a response shows that the server sends them again.
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
        // The file of the failed attempt, not one that existed before.
        if old.isMoved, let url = old.destinationURL { unlink(url.path) }
    }
}
