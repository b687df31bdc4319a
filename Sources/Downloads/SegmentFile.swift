// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// The credentials that a response was sent for, and where it came from, as digests.
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
        /// Its responder; `nil` for plain requests, and in records of earlier versions.
        var responder: String?
        /// Its credentials and place; `nil` in records of earlier versions.
        var receipt: SegmentReceipt?
    }

    private struct State {
        var header: Header?
        var written = ByteRanges()
        /// The open record, and the lines that it has; `nil` without a record.
        var record: Descriptor?
        var lines = 0
        var isOpen = true
    }

    private static let mostLines = 4096
    private static let longestRecord = 4 << 20

    let destination: URL
    /// Who answers the requests (``SessionManager/responder(to:_:)``): bytes of another one are not continued.
    private let responder: String?
    private let part: PartFile
    private let file: Descriptor
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
        guard let file = Descriptor.open(url.path, O_RDWR | O_NOFOLLOW) else { throw FileError.writing(url.path, errno) }
        (self.part, self.file) = (part, file)
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
            (state.record, state.header) = (nil, nil)
            // In this order, so that bytes are at no moment described by the record of another version.
            unlink(recordURL.path)
            guard file.truncate(), file.truncate(to: version?.total ?? 0) else { throw FileError.writing(url.path, errno) }
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
        state.record = nil
        guard file.syncData() else {
            let code = errno
            // The system reports lost bytes once: the next call could succeed, and the record on the disk may have them.
            state.header = nil
            throw FileError.writing(url.path, code)
        }
        let current = Header(
            source: header.source, version: header.version, system: systemStart, responder: responder, receipt: header.receipt)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var text = String(decoding: try encoder.encode(current), as: UTF8.self) + "\n"
        for range in state.written.ranges { text += "+ \(range.lowerBound) \(range.upperBound)\n" }
        text += "=\n"
        try PrivateFile.replace(recordURL.path, with: Data(text.utf8))
        state.record = Descriptor.open(recordURL.path, O_WRONLY | O_APPEND | O_NOFOLLOW)
        guard state.record != nil else { throw FileError.writing(recordURL.path, errno) }
        state.lines = state.written.ranges.count + 2
    }

    /// Records that a range has been written.
    func record(_ range: Range<Int64>) throws {
        guard !range.isEmpty else { return }
        try state.withLock { state in
            state.written.insert(range)
            guard state.record != nil else { return }
            try append("+ \(range.lowerBound) \(range.upperBound)\n", &state)
            if state.lines > Self.mostLines { try rewrite(&state) }
        }
    }

    private func append(_ line: String, _ state: inout State) throws {
        do throws(SystemError) { try state.record?.write(Array(line.utf8)) } catch {
            // Half a line would be read as an error of the whole record.
            state.record = nil
            throw FileError.writing(recordURL.path, error.code)
        }
        state.lines += 1
    }

    // MARK: Bytes

    /// Writes bytes at a position.
    func write(_ bytes: UnsafeRawBufferPointer, at position: Int64) throws {
        do throws(SystemError) { try file.write(bytes, at: position) } catch { throw FileError.writing(url.path, error.code) }
    }

    /// What differs from its digest: the algorithm, and both.
    typealias Mismatch = (algorithm: String, expected: Data, actual: Data)

    /// Reads the whole into a check of its digests. Blocks; throws `CancellationError` once `isCancelled` says so.
    func check(_ digests: [String: Data], until isCancelled: () -> Bool) throws -> Mismatch? {
        try Self.check(digests, of: file, path: url.path, until: isCancelled)
    }

    /// The same for a file at a URL.
    static func check(_ digests: [String: Data], at file: URL, until isCancelled: () -> Bool) throws -> Mismatch? {
        let path = file.path
        guard let file = Descriptor.open(path, O_RDONLY | O_NONBLOCK) else { throw FileError.reading(path, errno) }
        return try check(digests, of: file, path: path, until: isCancelled)
    }

    private static func check(
        _ digests: [String: Data], of file: Descriptor, path: String, until isCancelled: () -> Bool
    ) throws -> Mismatch? {
        var check = DigestCheck(digests)
        var position: Int64 = 0
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        while true {
            guard !isCancelled() else { throw CancellationError() }
            let count: Int
            do throws(SystemError) { count = try file.read(into: buffer, at: position) } catch { throw FileError.reading(path, error.code) }
            check.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            guard count == buffer.count else { return check.mismatch() }
            position += Int64(count)
        }
    }

    // MARK: The end

    /// Moves the complete file to its destination, in the same directory, and removes the record.
    func commit(to destination: URL, length: Int64, replacing: Bool, mark: ((Int32) -> Void)?) throws {
        guard file.truncate(to: length) else { throw FileError.writing(url.path, errno) }
        if let mark { part.setMark(mark) }
        try part.close()
        let record = recordURL
        try part.move(to: destination, replacing: replacing, creatingDirectories: false)
        unlink(record.path)
    }

    /// Ends the use of the file: it is kept with its record, or removed if it can't be resumed.
    func end() {
        let isKept = state.withLock { state in
            // Without an open record the disk may be full: what the record has by then still counts.
            guard state.header != nil, state.written.count > 0, file.syncData() else { return false }
            try? append("=\n", &state)
            state.record = nil
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
