// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Where a download goes on, and what it leaves for another that goes on later.
///
/// Between attempts it knows the record and the part file of what has come; for an attempt it opens that file, asks for the rest, and judges
/// the answer. Whoever makes a task, the transport's thread, and the session's queue use it one after the other.
final class DownloadResumption: Sendable {
    private struct State {
        /// What is asked for; `nil` if it can't be asked for in parts.
        var request: ResumableRequest?
        /// What there is to go on from; of a download that outlives its process, only while its part file is open.
        var record: ResumeRecord?
        /// The part file, opened, where the download goes on from something and does not write yet.
        var file: PartFile?
        /// Where the rest that was asked for begins; `nil` when the whole was asked for.
        var offset: Int64?
        /// Whether anything is to be left for later.
        var isWanted = true
        /// Whether the part file is ours, and discarded unless the resume data is read.
        var isOurs = false
        var kept: KeptPart?
    }

    /// The part file's place, where that is to be found again by the next process.
    private let stableURL: URL?
    private let state: Lock<State>

    /// Makes one of what there is.
    ///
    /// - Parameters:
    ///   - record: what to go on from.
    ///   - destination: where the file goes, if what comes is to be found there by whoever asks again.
    init(record: ResumeRecord? = nil, destination: URL? = nil) {
        stableURL = destination.map { PartFile.stableURL(for: $0) }
        state = Lock(State(record: record, kept: record.map { KeptPart($0) }))
    }

    deinit {
        // An attempt that was given up before it began has left it open.
        state.withLock { $0.isOurs ? $0.file : nil }?.discard()
    }

    // MARK: For users

    /// The resume data, from now on the user's, like the part file it leads to; `nil` while the download runs, and when there is none.
    var resumeData: Data? { kept?.take() }

    /// What a failed download has left.
    var kept: KeptPart? { state.withLock { $0.isWanted ? $0.kept : nil } }

    /// Leaves nothing, and removes what an earlier attempt has left.
    func drop() {
        state.withLock { state in
            state.isWanted = false
            return state.kept
        }?.remove()
    }

    // MARK: Asking

    /// Has a transfer ask for the rest, if there is something to go on from. May block for a moment.
    func prepare(_ transfer: inout TransferRequest, _ request: ResumableRequest?) {
        // A range of the user's own is another part of the file than ours; other methods know none (RFC 9110, section 14.2).
        let isPossible = transfer.method == .get && transfer.body == nil && transfer.headers.value(for: "Range") == nil
        let own = state.withLock { state -> PartFile? in
            state.request = isPossible ? request : nil
            state.file = nil
            state.offset = nil
            let kept = state.kept?.reclaim()
            state.kept = nil
            // The ownership of the file does not change.
            state.isOurs = kept?.file != nil
            if let kept { state.record = kept.record }
            return kept?.file
        }
        guard isPossible, let request else { return }
        // What is coded can't be resumed.
        if stableURL != nil { transfer.headers.update(name: "Accept-Encoding", value: "identity") }
        guard let (record, file) = open(request, own) else { return }
        // Where the file is written, whatever else is asked of the system meanwhile.
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

    /// The part file, opened, with its record; `nil` if there is nothing to go on from, or somebody else does.
    private func open(_ request: ResumableRequest, _ own: PartFile?) -> (ResumeRecord, PartFile)? {
        let known = state.withLock { $0.record }
        if let own, let known {
            guard known.url == request.url, own.offset > 0, own.offset <= known.total ?? .max else { return nil }
            return (known, own)
        }
        guard let url = known.map({ URL(fileURLWithPath: $0.partFile) }) ?? stableURL, let file = PartFile(continuing: url) else {
            return nil
        }
        // A file whose name is found again belongs to what is written beside it, whatever one remembers.
        let beside = known?.isStable == false ? nil : Self.recordBeside(url)
        guard let record = known ?? beside, record.url == request.url else { return nil }
        guard !record.isStable || (beside?.url == record.url && beside?.validator == record.validator) else { return nil }
        guard file.offset > 0, file.offset <= record.total ?? .max else { return nil }
        return (record, file)
    }

    private static func recordURL(_ partFile: URL) -> URL { partFile.appendingPathExtension("json") }

    private static func recordBeside(_ partFile: URL) -> ResumeRecord? {
        (try? Data(readingFrom: recordURL(partFile))).flatMap { try? ResumeRecord($0) }
    }

    // MARK: Judging

    /// What the head of an answer means, and where what is there ends.
    func judge(_ head: ResponseHead) -> (decision: ResumeDecision, offset: Int64) {
        let (record, offset) = state.withLock { ($0.record, $0.offset) }
        guard let record, let offset else { return (head.statusCode == 200 ? .startOver : .setAside, 0) }
        return (ResumeDecision(record, offset: offset, head), offset)
    }

    /// The content type of the first response, for one that does not repeat it.
    var contentType: String? { state.withLock { $0.record?.contentType } }

    /// Where the rest begins that was asked for.
    var offset: Int64? { state.withLock { $0.offset } }

    /// Has a transfer ask for the whole; the bytes on disk are of no use.
    func askForWhole(_ transfer: inout TransferRequest) {
        state.withLock { $0.offset = nil }
        transfer.headers.remove(name: "Range")
        transfer.headers.remove(name: "If-Range")
    }

    // MARK: Writing

    /// The part file, to write behind what is there.
    func takeFile(total: Int64? = nil) -> PartFile? {
        state.withLock { state in
            if let total { state.record?.total = total }
            defer { state.file = nil }
            return state.file
        }
    }

    /// A part file for the whole, in a directory: that of the destination, or that of the session. What was there before goes.
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
            state.isOurs = file.url != stableURL
        }
        return file
    }

    /// The part file that is found again, emptied, its record beside it; `nil` where none is wanted, or another download has it.
    private func stableFile(_ old: PartFile?, _ record: ResumeRecord?) throws -> PartFile? {
        guard let url = stableURL else { return nil }
        guard let file = old?.url == url ? old : PartFile(continuing: url, isMade: true) else { return nil }
        // In this order, so that at no moment bytes lie beside the record of others.
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

    // MARK: The end

    /// What has come contradicts what was announced: nobody goes on from that.
    func distrust() {
        state.withLock { $0.record = nil }
    }

    /// A closed file that a failed transfer has written: keeps it for later, or removes it. Whether it was kept.
    func keep(_ file: PartFile) -> Bool {
        let length = file.length
        let isKept = state.withLock { state in
            guard state.isWanted, length > 0, state.record?.partFile == file.url.path else { return false }
            state.record?.offset = length
            state.kept = state.record.map { KeptPart($0, file, isOurs: state.isOurs) }
            return true
        }
        if !isKept { discard(file) }
        return isKept
    }

    /// Removes a file of which nothing is to be left.
    func discard(_ file: PartFile) {
        remove(file)
        state.withLock { if $0.record?.partFile == file.url.path { $0.record = nil } }
    }

    private func remove(_ file: PartFile) {
        unlink(Self.recordURL(file.url).path)
        file.discard()
    }

    /// A file is at its destination. The file of another response, such as an error page, leaves the record of the part file as it is.
    func forget(_ file: PartFile) {
        let isStable = state.withLock { state in
            guard state.record?.partFile == file.url.path else { return false }
            defer { state.record = nil }
            return state.record?.isStable == true
        }
        if isStable || file.url == stableURL { unlink(Self.recordURL(file.url).path) }
        file.unlock()
    }

    /// The attempt is over: a part file that it has not touched stays for later, one of no use goes.
    ///
    /// - Parameter isAccepted: whether the request has its answer, and will not ask for the rest any more.
    func endAttempt(isAccepted: Bool) {
        let (file, isUseful) = state.withLock { state in
            defer { state.file = nil }
            // What is whole is nothing to go on from, nor is what was refused.
            if state.file == nil, state.kept == nil { state.record = nil }
            // A file that belongs to the user by its resume data is not removed because another response was accepted.
            let isUnused = isAccepted && (state.isOurs || state.record?.isStable == true)
            return (state.file, state.isWanted && state.offset != nil && !isUnused)
        }
        guard let file else { return }
        guard isUseful else { return discard(file) }
        try? file.close()
        state.withLock { state in
            state.kept = isAccepted ? nil : state.record.map { KeptPart($0, file, isOurs: state.isOurs) }
        }
        file.unlock()
    }
}

/// What a failed download has left. Nothing is left of its part file with the last reference, unless the resume data was taken: then it has a
/// name, and is the user's.
final class KeptPart: Sendable {
    private struct State {
        var record: ResumeRecord
        /// The part file, which has no name until the data is read.
        var file: PartFile?
        /// Whether the next attempt has taken the file.
        var isReclaimed = false
    }

    private let state: Lock<State>

    /// Keeps a record of a file that is not ours to remove.
    init(_ record: ResumeRecord) {
        state = Lock(State(record: record))
    }

    /// Keeps a closed file with its record.
    ///
    /// - Parameter isOurs: whether nothing of the file is to be left in the end.
    init(_ record: ResumeRecord, _ file: PartFile, isOurs: Bool) {
        if isOurs { file.takeName() }
        state = Lock(State(record: record, file: isOurs ? file : nil))
        file.unlock()
    }

    deinit {
        state.withLock { $0.file }?.discard()
    }

    /// The resume data, from now on the user's, as the part file is, which gets a name; `nil` where it can't have one, and when another attempt
    /// goes on with it.
    func take() -> Data? {
        state.withLock { state in
            guard !state.isReclaimed else { return nil }
            if let file = state.file {
                do { try file.giveName() } catch { return nil }
                state.record.partFile = file.url.path
                state.file = nil
            }
            return state.record.data
        }
    }

    /// The size of the resume data.
    var count: Int { state.withLock { $0.record }.data?.count ?? 0 }

    /// Another attempt resumes; returns the file if it is still ours.
    func reclaim() -> (record: ResumeRecord, file: PartFile?) {
        state.withLock { state in
            state.isReclaimed = true
            defer { state.file = nil }
            state.file?.goOn()
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
        // Without a name it is not what lies where it would be.
        if let file { return file.discard() }
        unlink(record.partFile)
        if record.isStable { unlink(record.partFile + ".json") }
    }
}
