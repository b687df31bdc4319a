// SPDX-License-Identifier: Apache-2.0

/// Receives a body. Used only on the operation's queue.
protocol BodySink: AnyObject, Sendable {
    /// The number of bytes received.
    var count: Int64 { get }
    /// Whether the bytes received can be discarded, so that the body starts over.
    var canRestart: Bool { get }
    /// Prepares for bytes that follow those already received; called again after ``close()``.
    func open() throws
    /// Writes bytes and returns how many were accepted; 0 while there is no space.
    func write(_ data: Data) throws -> Int
    /// Discards the bytes received.
    func restart() throws
    /// Releases what is held open; more bytes follow only after another ``open()``.
    func close()
    /// Commits a complete, accepted body. The last call, except for ``discard()`` after an error.
    func commit() throws
    /// Discards an incomplete body, as the operation has failed or the response was rejected. The last call.
    func discard()
}

extension BodySink {
    func commit() throws { close() }

    func discard() { close() }
}

/// Keeps a body in memory, up to a limit.
final class MemorySink: BodySink, @unchecked Sendable {  // used on one queue
    private(set) var data: Data
    private let limit: Int

    init(_ data: Data = Data(), limit: Int) {
        self.data = data
        self.limit = limit
    }

    var count: Int64 { Int64(data.count) }
    var canRestart: Bool { true }

    func open() {}

    func write(_ piece: Data) throws -> Int {
        guard data.count + piece.count <= limit else { throw URLError(.dataLengthExceedsMaximum) }
        data.append(piece)
        return piece.count
    }

    func restart() { data = Data() }

    func close() {}
}

/// Writes a body to a partial file in its destination's directory, which gets its name when the body is complete.
final class FileSink: BodySink, @unchecked Sendable {  // used on one queue
    let url: URL
    private(set) var count: Int64
    /// The file being written. While the operation is paused, it stays open if it has no name, as it would be lost otherwise.
    private var part: PartFile?
    /// The URL of the file if it has a name, or the one in the archive that the operation was made from.
    private var partURL: URL?
    /// Whether this operation created or opened the file, rather than only knowing its name from an archive.
    private var isOwned = false
    /// Whether an archive made since the file was last opened refers to it: then the file outlives the operation.
    private var isArchived = false

    /// - Parameters:
    ///   - url: the destination.
    ///   - partName: the name of a file in the same directory that holds the beginning of the body.
    ///   - count: the number of bytes of the body in that file; bytes after them are removed.
    init(_ url: URL, partName: String? = nil, count: Int64 = 0) {
        self.url = url
        self.count = partName == nil ? 0 : count
        partURL = partName.map { url.deletingLastPathComponent().appendingPathComponent($0) }
    }

    deinit {
        if isOwned { discard() }
    }

    var canRestart: Bool { true }

    /// Opens the partial file, if there is one; another process may have truncated or removed it if it has a name.
    func open() throws {
        guard count > 0, part == nil else { return }
        _ = try reopen()
    }

    private func reopen() throws -> PartFile? {
        guard let part = partURL.flatMap({ PartFile(continuing: $0) }) else {
            (partURL, count) = (nil, 0)
            return nil
        }
        count = min(count, part.offset)
        try part.truncate(to: count)
        adopt(part)
        return part
    }

    private func opened() throws -> PartFile {
        if let part = try part ?? reopen() { return part }
        let part = try PartFile.make(for: url)
        adopt(part)
        return part
    }

    private func adopt(_ part: PartFile) {
        (self.part, partURL) = (part, part.isNamed ? part.url : nil)
        (isOwned, isArchived) = (true, false)
    }

    func write(_ data: Data) throws -> Int {
        try opened().write(data)
        count += Int64(data.count)
        return data.count
    }

    func restart() throws {
        try opened().truncate()
        count = 0
    }

    func close() {
        guard let part else { return }
        // What could be written is the beginning of the body, from which it is resumed.
        do { try part.close() } catch { count = min(count, part.length) }
        if part.isNamed { self.part = nil } else { part.resume() }
    }

    /// Keeps the file when the operation fails, as an archive refers to it. Returns its name; `nil` if there is no file.
    func keepForArchive() -> String? {
        if let part {
            // Without a name the archive can't refer to it, and the restored operation starts over.
            guard (try? part.giveName()) != nil else { return nil }
            (self.part, partURL) = (nil, part.url)
        }
        isArchived = partURL != nil
        return partURL?.lastPathComponent
    }

    func commit() throws {
        let part = try opened()
        try part.close()
        try part.move(to: url, replacing: true, creatingDirectories: false)
        forget()
    }

    func discard() {
        guard !isArchived else { return close() }
        // `nil` for a file that another operation has opened meanwhile, which is so left to that operation.
        (part ?? partURL.flatMap { PartFile(continuing: $0) })?.discard()
        forget()
    }

    private func forget() {
        (part, partURL, isOwned) = (nil, nil, false)
    }
}

extension PartFile {
    /// Creates an empty file in the destination's directory.
    ///
    /// - Throws: `CocoaError` with the path, also if something other than a regular file or a symbolic link exists there.
    static func make(for destination: URL) throws -> PartFile {
        try checkReplaceable(destination)
        return try PartFile(in: destination.deletingLastPathComponent(), for: destination.lastPathComponent)
    }

    func write(_ data: Data) throws {
        try data.withUnsafeBytes { try write($0) }
    }
}

/// Writes a body to the user's stream, at the pace at which the stream accepts bytes.
final class StreamSink: BodySink, @unchecked Sendable {  // used on one queue
    let stream: OutputStream
    private(set) var count: Int64 = 0

    init(_ stream: OutputStream) {
        self.stream = stream
    }

    var canRestart: Bool { count == 0 }

    func open() {
        if stream.streamStatus == .notOpen { stream.open() }
    }

    func write(_ data: Data) throws -> Int {
        try check()
        guard stream.hasSpaceAvailable else { return try full() }
        let written = data.withUnsafeBytes { bytes in
            // A piece is never empty, so it has a base address.
            bytes.bindMemory(to: UInt8.self).baseAddress.map { stream.write($0, maxLength: bytes.count) } ?? 0
        }
        guard written >= 0 else { throw OperationError.outputStreamFailed(underlying: error) }
        guard written > 0 else { throw OperationError.outputStreamFull }
        count += Int64(written)
        return written
    }

    private func check() throws {
        switch stream.streamStatus {
        case .error: throw OperationError.outputStreamFailed(underlying: error)
        case .closed, .atEnd: throw OperationError.outputStreamFull
        default: break
        }
    }

    /// Returns 0, as there is no space; throws if the stream has an error, as then there never will be.
    private func full() throws -> Int {
        if let error { throw OperationError.outputStreamFailed(underlying: error) }
        return 0
    }

    /// The stream's error. `nil` for Foundation's own class, whose `streamError` traps on Linux.
    private var error: (any Error)? {
        type(of: stream) == OutputStream.self ? nil : stream.streamError
    }

    func restart() throws {
        guard canRestart else { throw OperationError.outputStreamNotRestartable }
    }

    func close() {
        stream.close()
    }
}
