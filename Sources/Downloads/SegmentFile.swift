// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// To whom a response was sent, and from where, by digests.
struct SegmentReceipt: Codable, Equatable, Sendable {
    /// The credentials; `nil` for none.
    var sender: String?
    /// The URL after redirects, without its query.
    var place: String?
}

/// The file into which segments are written, and the record beside it of what it has.
///
/// The file is hidden beside the destination and as long as the whole from the start, with holes. The record is a line of JSON about the
/// version, to which a line is appended for each range that has been written: after SIGKILL both are as the last call has left them, as
/// the system has the bytes. After a crash of the system only what was written to the disk counts. A lock on the file keeps other
/// downloads away.
final class SegmentFile: Sendable {
    /// The first line of the record.
    private struct Header: Codable {
        var format = 1
        /// The digest of the URL that has sent the version.
        let source: String
        let version: EntityVersion
        let system: String?
        /// Who has sent it; `nil` for plain requests, and in records of earlier versions.
        var responder: String?
        /// To whom, and from where; `nil` in records of earlier versions.
        var receipt: SegmentReceipt?
    }

    private struct State {
        var header: Header?
        var written = ByteRanges()
        /// The record's descriptor, and the lines that it has; −1 without a record.
        var record: Int32 = -1
        var lines = 0
        var isOpen = true
    }

    private static let mostLines = 4096
    private static let longestRecord = 4 << 20

    let destination: URL
    /// Who answers the requests (``SessionManager/responder(to:_:)``): bytes of another one are not continued.
    private let responder: String?
    private let part: PartFile
    private let descriptor: Int32
    private let state = Lock(State())

    private var recordURL: URL { part.url.appendingPathExtension("state") }
    var url: URL { part.url }

    /// Opens the part file of a destination, which is created if there is none, and locks it.
    ///
    /// - Throws: ``SegmentedDownloadError/inUse(_:)`` if another download has it; `CocoaError` with the path.
    init(for destination: URL, responder: String) throws {
        self.destination = destination
        self.responder = responder.isEmpty ? nil : responder
        let url = PartFile.stableURL(for: destination, kind: "segments")
        guard let part = PartFile(continuing: url, isMade: true) else {
            let code = errno
            guard access(url.path, F_OK) == 0 else { throw FileError.writing(url.deletingLastPathComponent().path, code) }
            throw SegmentedDownloadError.inUse(url)
        }
        self.part = part
        descriptor = open(url.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw FileError.writing(url.path, errno) }
    }

    deinit {
        if descriptor >= 0 { _ = systemClose(descriptor) }
        state.withLock { if $0.record >= 0 { _ = systemClose($0.record) } }
    }

    // MARK: The record

    /// Reads the record of an earlier download, and continues it; `nil` if there is none that can be used.
    func resume() throws -> (source: String, version: EntityVersion, receipt: SegmentReceipt, written: ByteRanges)? {
        guard let (header, written) = readRecord(), written.end <= header.version.total, written.end <= part.length,
            header.version.isValid, header.responder == responder, written.count > 0
        else { return nil }
        try state.withLock { state in
            state.header = header
            state.written = written
            try rewrite(&state)
        }
        return (header.source, header.version, header.receipt ?? SegmentReceipt(), written)
    }

    private func readRecord() -> (Header, ByteRanges)? {
        guard let data = try? PrivateFile.read(recordURL.path, upTo: Self.longestRecord) else { return nil }
        var lines = data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        // The last one is empty, or was cut.
        lines.removeLast()
        guard let first = lines.first, let header = try? JSONDecoder().decode(Header.self, from: Data(first)), header.format == 1 else {
            return nil
        }
        let trustsAll = header.system != nil && header.system == systemStart
        var (written, synced) = (ByteRanges(), ByteRanges())
        for line in lines.dropFirst() {
            let words = String(decoding: line, as: UTF8.self).splitScalars(separator: " ")
            if words == ["="] {
                synced = written
            } else if words.count == 3, words[0] == "+", let lower = Int64(words[1]), let upper = Int64(words[2]), 0 <= lower, lower < upper
            {
                written.insert(lower..<upper)
            } else {
                return nil
            }
        }
        return (header, trustsAll ? written : synced)
    }

    /// Empties the file for a version, whose ranges are recorded if it can be recognized later.
    func begin(_ version: EntityVersion?, from source: String, _ receipt: SegmentReceipt? = nil) throws {
        try state.withLock { state in
            closeRecord(&state)
            // In this order, so that bytes are at no moment described by the record of another version.
            unlink(recordURL.path)
            guard ftruncate(descriptor, 0) == 0, ftruncate(descriptor, off_t(version?.total ?? 0)) == 0 else {
                throw FileError.writing(url.path, errno)
            }
            state.written = ByteRanges()
            state.header = version.map {
                Header(source: source, version: $0, system: systemStart, responder: responder, receipt: receipt)
            }
            if version?.isReliable == true { try rewrite(&state) } else { state.header = nil }
        }
    }

    /// Replaces the record by one that has each range once, after the bytes have reached the disk.
    private func rewrite(_ state: inout State) throws {
        guard let header = state.header else { return }
        closeRecord(&state)
        guard syncData(descriptor) == 0 else { throw FileError.writing(url.path, errno) }
        let current = Header(
            source: header.source, version: header.version, system: systemStart, responder: responder, receipt: header.receipt)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var text = String(decoding: try encoder.encode(current), as: UTF8.self) + "\n"
        for range in state.written.ranges { text += "+ \(range.lowerBound) \(range.upperBound)\n" }
        text += "=\n"
        try PrivateFile.replace(recordURL.path, with: Data(text.utf8))
        state.record = open(recordURL.path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW)
        guard state.record >= 0 else { throw FileError.writing(recordURL.path, errno) }
        state.lines = state.written.ranges.count + 2
    }

    private func closeRecord(_ state: inout State) {
        if state.record >= 0 { _ = systemClose(state.record) }
        state.record = -1
    }

    /// Records that a range has been written.
    func record(_ range: Range<Int64>) throws {
        guard !range.isEmpty else { return }
        try state.withLock { state in
            state.written.insert(range)
            guard state.record >= 0 else { return }
            try append("+ \(range.lowerBound) \(range.upperBound)\n", &state)
            if state.lines > Self.mostLines { try rewrite(&state) }
        }
    }

    private func append(_ line: String, _ state: inout State) throws {
        let bytes = Array(line.utf8)
        var count = systemWrite(state.record, bytes)
        while count < 0, errno == EINTR { count = systemWrite(state.record, bytes) }
        guard count == bytes.count else {
            let code = count < 0 ? errno : ENOSPC
            // Half a line would be read as an error of the whole record.
            closeRecord(&state)
            throw FileError.writing(recordURL.path, code)
        }
        state.lines += 1
    }

    // MARK: Bytes

    /// Writes bytes at a position.
    func write(_ bytes: UnsafeRawBufferPointer, at position: Int64) throws {
        var (rest, position) = (bytes, position)
        while !rest.isEmpty {
            let count = pwrite(descriptor, rest.baseAddress, rest.count, off_t(position))
            guard count > 0 else {
                if count < 0, errno == EINTR { continue }
                throw FileError.writing(url.path, count < 0 ? errno : ENOSPC)
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            position += Int64(count)
        }
    }

    /// What differs from its digest: the algorithm, and both.
    typealias Mismatch = (algorithm: String, expected: Data, actual: Data)

    /// Reads the whole into a check of its digests. Blocks; throws `CancellationError` once `isCancelled` says so.
    func check(_ digests: [String: Data], until isCancelled: () -> Bool) throws -> Mismatch? {
        try Self.check(digests, of: descriptor, path: url.path, until: isCancelled)
    }

    /// The same for a file at a URL.
    static func check(_ digests: [String: Data], at file: URL, until isCancelled: () -> Bool) throws -> Mismatch? {
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw FileError.reading(file.path, errno) }
        defer { _ = systemClose(descriptor) }
        return try check(digests, of: descriptor, path: file.path, until: isCancelled)
    }

    private static func check(
        _ digests: [String: Data], of descriptor: Int32, path: String, until isCancelled: () -> Bool
    ) throws -> Mismatch? {
        var check = DigestCheck(digests)
        var position: off_t = 0
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        while true {
            guard !isCancelled() else { throw CancellationError() }
            let count = pread(descriptor, buffer.baseAddress, buffer.count, position)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw FileError.reading(path, errno) }
            guard count > 0 else { return check.mismatch() }
            check.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            position += off_t(count)
        }
    }

    // MARK: The end

    /// Moves the complete file to its destination, in the same directory, and removes the record.
    func commit(to destination: URL, length: Int64, replacing: Bool, mark: ((Int32) -> Void)?) throws {
        guard ftruncate(descriptor, off_t(length)) == 0 else { throw FileError.writing(url.path, errno) }
        if let mark { part.setMark(mark) }
        try part.close()
        let record = recordURL
        try part.move(to: destination, replacing: replacing, creatingDirectories: false)
        unlink(record.path)
    }

    /// Ends the use of the file: it is kept with its record, or removed if it can't be resumed.
    func end() {
        let isKept = state.withLock { state in
            guard state.record >= 0, state.written.count > 0, syncData(descriptor) == 0 else { return false }
            try? append("=\n", &state)
            closeRecord(&state)
            return true
        }
        if !isKept { discard() }
    }

    /// Removes the file and its record.
    func discard() {
        unlink(recordURL.path)
        part.discard()
    }
}

private func systemClose(_ descriptor: Int32) -> Int32 { close(descriptor) }
private func systemWrite(_ descriptor: Int32, _ bytes: [UInt8]) -> Int { write(descriptor, bytes, bytes.count) }
