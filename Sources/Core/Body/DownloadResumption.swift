// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Resumes a download from a part file, and keeps what a failed attempt leaves for a later one.
///
/// Between attempts it retains the part file with its record. For an attempt it opens that file, requests the rest (`Range`, `If-Range`),
/// and has ``ResumeDecision`` judge the response. Bytes are appended only to a 206 that contradicts neither itself nor the record; a 200
/// starts over, a 416 at the full length completes the file, a response that does not fit is followed by a request for the whole, and the
/// body of any other status goes to a file of its own.
///
/// The part of a failed download stays open without a name (``ResumablePart``) as long as the request or one of its responses is retained;
/// reading the resume data gives it a name, and makes it the user's. With `resumePreviousDownload` it has a name that the next process
/// finds (`.name.part`), and a ``ResumeRecord`` beside it (`.name.part.json`), which is written by rename before the first byte: the file's
/// length is the offset, so a killed process loses only the bytes it had in memory, those of a fifth of a second.
///
/// Used by one thread at a time: the one that makes a task, the event loop's, and the session's queue, in turn.
final class DownloadResumption: Sendable {
    private struct State {
        /// What is requested; `nil` if it can't be requested in ranges.
        var request: ResumableRequest?
        /// The record of the part file; of a download that outlives its process, only while that file is open.
        var record: ResumeRecord?
        /// The open part file of a resumed download, until it is taken for writing.
        var file: PartFile?
        /// The offset of the requested range; `nil` if the whole was requested.
        var offset: Int64?
        /// Whether a failed attempt leaves anything for a later one.
        var isWanted = true
        /// Whether this object owns the part file, which is then discarded unless the resume data is read.
        var isOwned = false
        var part: ResumablePart?
        /// The finished file that the request asks about; `nil` if it requests a body in any case.
        var finished: FinishedDownload?
        /// The version of the body that is being received, to mark the finished file with.
        var version: FinishedDownload.Version?
    }

    /// The destination, if a later download to it resumes this one.
    private let destination: URL?
    /// The part file's URL, if the next process has to find it.
    private let stableURL: URL?
    private let state: Lock<State>

    /// - Parameters:
    ///   - record: the record of the part file to resume from.
    ///   - destination: the destination, if the part file has to be found by a later download to it.
    init(record: ResumeRecord? = nil, destination: URL? = nil) {
        self.destination = destination
        stableURL = destination.map { PartFile.stableURL(for: $0) }
        state = Lock(State(record: record, part: record.map { ResumablePart($0) }))
    }

    deinit {
        // An attempt that was abandoned before it began has left the file open.
        state.withLock { $0.isOwned ? $0.file : nil }?.discard()
    }

    // MARK: For users

    /// The resume data, which from now on the user owns together with its part file; `nil` while the download runs, or if there is none.
    var resumeData: Data? { resumablePart?.take() }

    /// The part that a failed download has left.
    var resumablePart: ResumablePart? { state.withLock { $0.isWanted ? $0.part : nil } }

    /// Leaves nothing for a later attempt, and removes the part that an earlier one has left.
    func drop() {
        state.withLock { state in
            state.isWanted = false
            return state.part
        }?.remove()
    }

    // MARK: Requesting the rest

    /// Makes a transfer request the rest, if there is a part to resume from. Opens files, so it may block briefly.
    func prepare(_ transfer: inout TransferRequest, _ request: ResumableRequest?, in session: Session) {
        // A range that the user has set is another part of the file; only GET has ranges (RFC 9110, section 14.2).
        let isPossible = transfer.method == .get && transfer.body == nil && transfer.headers.value(for: "Range") == nil
        let request = isPossible ? request?.sent(as: session.firstExchange(of: transfer)) : nil
        let own = state.withLock { state -> PartFile? in
            state.request = request
            state.file = nil
            state.offset = nil
            state.finished = nil
            let part = state.part?.reclaim()
            state.part = nil
            // The ownership of the file does not change.
            state.isOwned = part?.file != nil
            if let part { state.record = part.record }
            return part?.file
        }
        guard let request else { return }
        // A coded body can't be resumed.
        if stableURL != nil { transfer.headers.update(name: "Accept-Encoding", value: "identity") }
        guard let (record, file) = open(request, own) else { return askAboutFinishedFile(&transfer, request) }
        // Read once, so that the requested range and the writes start at the same offset.
        let offset = file.offset
        state.withLock { state in
            state.record = record
            state.file = file
            state.offset = offset
        }
        transfer.headers.update(name: "Range", value: "bytes=\(offset)-")
        transfer.headers.update(name: "If-Range", value: record.validator)
        transfer.headers.update(name: "Accept-Encoding", value: "identity")
    }

    /// Makes a transfer ask whether the file at the destination is current, if that is a finished download of the same URL.
    private func askAboutFinishedFile(_ transfer: inout TransferRequest, _ request: ResumableRequest) {
        guard let destination, FinishedDownload.mayAsk(transfer.headers),
            let finished = FinishedDownload(of: request, at: destination), let condition = finished.condition
        else { return }
        state.withLock { $0.finished = finished }
        transfer.headers.update(condition)
    }

    /// Opens the part file and returns it with its record; `nil` if there is nothing to resume from, or another download has locked it.
    private func open(_ request: ResumableRequest, _ own: PartFile?) -> (ResumeRecord, PartFile)? {
        let known = state.withLock { $0.record }
        if let own, let known {
            guard known.url == request.url, known.responder == request.responder, own.offset > 0, own.offset <= known.total ?? .max
            else { return nil }
            return (known, own)
        }
        guard let url = known.map({ URL(fileURLWithPath: $0.partFile) }) ?? stableURL, let file = PartFile(continuing: url) else {
            return nil
        }
        // A file with a stable name is described by the record on disk: another download may have replaced it since this record was made.
        let stored = known?.isStable == false ? nil : Self.storedRecord(url)
        guard var record = known ?? stored, record.url == request.url, record.responder == request.responder else { return nil }
        if record.isStable {
            guard let stored, stored.describesSameBytes(as: record) else { return nil }
            record.sender = stored.sender
        }
        guard file.offset > 0, file.offset <= record.total ?? .max else { return nil }
        return (record, file)
    }

    private static func recordURL(_ partFile: URL) -> URL { partFile.appendingPathExtension("json") }

    private static func storedRecord(_ partFile: URL) -> ResumeRecord? {
        (try? PrivateFile.read(recordURL(partFile).path, upTo: 1 << 20)).flatMap { try? ResumeRecord($0) }
    }

    // MARK: Judging the response

    /// Notes from where a response comes, and whose credentials have answered a challenge before it.
    func note(source: String, user: String?) {
        state.withLock { state in
            state.request?.source = source
            state.request?.user = user
        }
    }

    /// Returns what the head of a response means, and the offset at which the part file ends. Its source is noted before.
    func judge(_ head: ResponseHead) -> (decision: ResumeDecision, offset: Int64) {
        let (record, offset, request) = state.withLock { state in
            state.version = nil
            return (state.record, state.offset, state.request)
        }
        guard let record, let offset, let request else { return (head.statusCode == 200 ? .startOver : .unrelated, 0) }
        return (ResumeDecision(record, offset: offset, head, to: request), offset)
    }

    /// The content type of the first response, for a response that does not repeat it.
    var contentType: String? { state.withLock { $0.record?.contentType } }

    /// The offset of the requested range; `nil` if the whole was requested.
    var offset: Int64? { state.withLock { $0.offset } }

    /// The finished file at the destination that a 304 is about, and what has asked about it; `nil` if the request has not.
    var finished: (file: FinishedDownload, request: ResumableRequest)? {
        state.withLock { state in state.finished.flatMap { file in state.request.map { (file, $0) } } }
    }

    /// The version of the received body, to mark the finished file with; `nil` if a later download can't ask about it.
    var version: FinishedDownload.Version? { state.withLock { $0.version } }

    /// Makes a transfer request the whole, because the bytes on disk are of no use.
    func requestWhole(_ transfer: inout TransferRequest) {
        let finished = state.withLock { state in
            state.offset = nil
            defer { state.finished = nil }
            return state.finished
        }
        if let condition = finished?.condition { transfer.headers.remove(name: condition.name) }
        transfer.headers.remove(name: "Range")
        transfer.headers.remove(name: "If-Range")
    }

    // MARK: Writing

    /// Takes the part file, to append to it.
    func takeFile(total: Int64? = nil) -> PartFile? {
        state.withLock { state in
            if let total { state.record?.total = total }
            if destination != nil { state.version = state.record.map { FinishedDownload.Version($0, state.request) } }
            defer { state.file = nil }
            return state.file
        }
    }

    /// Creates a part file for the whole in a directory, the destination's or the session's. Removes the previous part file.
    func makeFile(_ head: ResponseHead, in directory: URL, for name: String, isNamed: Bool = false) throws -> PartFile {
        let (old, request) = state.withLock { state in
            defer { state.record = nil }
            return (state.file, state.request)
        }
        let record = request.flatMap { ResumeRecord($0, head) }
        let file = try stableFile(old, record) ?? PartFile(in: directory, for: name, isNamed: isNamed)
        if let old, old !== file { remove(old) }
        state.withLock { state in
            state.file = nil
            state.record = record
            state.record?.partFile = file.url.path
            state.record?.isStable = file.url == stableURL
            state.isOwned = file.url != stableURL
            if destination != nil { state.version = request.flatMap { FinishedDownload.Version($0, head) } }
        }
        return file
    }

    /// Empties the part file with the stable name, and writes its record; `nil` if there is no such name, or another download has the file.
    private func stableFile(_ old: PartFile?, _ record: ResumeRecord?) throws -> PartFile? {
        guard let url = stableURL else { return nil }
        guard let file = old?.url == url ? old : PartFile(continuing: url, isMade: true) else { return nil }
        // In this order, so that bytes are at no moment described by the record of another version.
        unlink(Self.recordURL(url).path)
        try file.truncate()
        guard var record = record?.withoutHeaders else { return file }
        record.partFile = url.path
        record.isStable = true
        if let data = record.data { try Self.write(data, to: Self.recordURL(url)) }
        return file
    }

    private static func write(_ data: Data, to url: URL) throws {
        let file = try PartFile(in: url.deletingLastPathComponent(), for: url.lastPathComponent, isPrivate: true)
        do {
            try data.withUnsafeBytes { try file.write($0) }
            try file.close()
            try file.move(to: url, replacing: true, creatingDirectories: false)
        } catch {
            file.discard()
            throw error
        }
    }

    // MARK: Completion

    /// Makes the received bytes unusable for resumption, because they contradict what was announced.
    func distrust() {
        state.withLock { $0.record = nil }
    }

    /// Keeps the closed file of a failed transfer for resumption, or removes it; returns whether it was kept.
    func keep(_ file: PartFile) -> Bool {
        let length = file.length
        let isKept = state.withLock { state in
            guard state.isWanted, length > 0, state.record?.partFile == file.url.path else { return false }
            state.record?.offset = length
            state.part = state.record.map { ResumablePart($0, file, isOwned: state.isOwned) }
            return true
        }
        if !isKept { discard(file) }
        return isKept
    }

    /// Removes a file and its record.
    func discard(_ file: PartFile) {
        remove(file)
        state.withLock { if $0.record?.partFile == file.url.path { $0.record = nil } }
    }

    private func remove(_ file: PartFile) {
        unlink(Self.recordURL(file.url).path)
        file.discard()
    }

    /// Forgets a file that was moved to its destination. That of another response, such as an error page, leaves the part file's record
    /// alone.
    func forget(_ file: PartFile) {
        let isStable = state.withLock { state in
            guard state.record?.partFile == file.url.path else { return false }
            defer { state.record = nil }
            return state.record?.isStable == true
        }
        if isStable || file.url == stableURL { unlink(Self.recordURL(file.url).path) }
        file.unlock()
    }

    /// Ends the attempt: a part file to which it has not written is kept for a later one, or removed if it is of no use.
    ///
    /// - Parameter isAccepted: whether the request has its response, and will not request the rest.
    func endAttempt(isAccepted: Bool) {
        let (file, isUseful) = state.withLock { state in
            defer { state.file = nil }
            // Neither a complete body nor a refused one can be resumed.
            if state.file == nil, state.part == nil { state.record = nil }
            // A file that the user owns by its resume data is not removed because another response was accepted.
            let isUnused = isAccepted && (state.isOwned || state.record?.isStable == true)
            return (state.file, state.isWanted && state.offset != nil && !isUnused)
        }
        guard let file else { return }
        guard isUseful else { return discard(file) }
        try? file.close()
        state.withLock { state in
            state.part = isAccepted ? nil : state.record.map { ResumablePart($0, file, isOwned: state.isOwned) }
        }
        file.unlock()
    }
}

/// The part of a failed download, from which it can be resumed.
///
/// The part file is removed with the last reference to this object, unless the resume data was read: then it has a name, and the user owns
/// it.
final class ResumablePart: Sendable {
    private struct State {
        var record: ResumeRecord
        /// The part file, which has no name until the resume data is read.
        var file: PartFile?
        /// Whether the next attempt has taken the file.
        var isReclaimed = false
    }

    private let state: Lock<State>

    /// Keeps the record of a file that the user owns.
    init(_ record: ResumeRecord) {
        state = Lock(State(record: record))
    }

    /// Keeps a closed file with its record.
    ///
    /// - Parameter isOwned: whether this object owns the file, and removes it in the end.
    init(_ record: ResumeRecord, _ file: PartFile, isOwned: Bool) {
        if isOwned { file.takeName() }
        state = Lock(State(record: record, file: isOwned ? file : nil))
        file.unlock()
    }

    deinit {
        state.withLock { $0.file }?.discard()
    }

    /// Returns the resume data, and names the part file, which from now on the user owns; `nil` if the file can't be named, or another
    /// attempt is resuming it.
    func take() -> Data? {
        state.withLock { state in
            guard !state.isReclaimed else { return nil }
            if let file = state.file {
                do { try file.giveName() } catch { return nil }
                state.record.partFile = file.url.path
                state.file = nil
            }
            return state.record.withoutSender.data
        }
    }

    /// The size of the resume data, in bytes.
    var count: Int { state.withLock { $0.record }.withoutSender.data?.count ?? 0 }

    /// Hands the part to another attempt; without a file if the user owns that.
    func reclaim() -> (record: ResumeRecord, file: PartFile?) {
        state.withLock { state in
            state.isReclaimed = true
            defer { state.file = nil }
            state.file?.resume()
            return (state.record, state.file)
        }
    }

    /// Removes the part file at once.
    func remove() {
        let (record, file) = state.withLock { state in
            state.isReclaimed = true
            defer { state.file = nil }
            return (state.record, state.file)
        }
        // A file without a name is not the one at its URL.
        if let file { return file.discard() }
        // Another download that resumes from it has locked it, and needs it.
        guard let file = PartFile(continuing: URL(fileURLWithPath: record.partFile)) else { return }
        if record.isStable { unlink(record.partFile + ".json") }
        file.discard()
    }
}
