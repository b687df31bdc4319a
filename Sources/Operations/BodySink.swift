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

/// Writes a body to a hidden file in its destination's directory, which is renamed to the destination when the body is complete.
final class FileSink: BodySink, @unchecked Sendable {  // used on one queue
    let url: URL
    private(set) var count: Int64
    /// The file being written; closed while the operation is paused.
    private var part: OutputPart?
    /// The URL of that file, or the one in the archive that the operation was made from.
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

    /// Opens the partial file, if there is one; another process may have truncated or removed it.
    func open() throws {
        guard count > 0, part == nil else { return }
        _ = try reopen()
    }

    private func reopen() throws -> OutputPart? {
        guard let part = partURL.flatMap({ OutputPart.reopen($0) }) else {
            (partURL, count) = (nil, 0)
            return nil
        }
        count = try part.truncate(to: count)
        adopt(part)
        return part
    }

    private func opened() throws -> OutputPart {
        if let part = try part ?? reopen() { return part }
        let part = try OutputPart.make(for: url)
        adopt(part)
        return part
    }

    private func adopt(_ part: OutputPart) {
        (self.part, partURL) = (part, part.url)
        (isOwned, isArchived) = (true, false)
    }

    func write(_ data: Data) throws -> Int {
        try opened().write(data)
        count += Int64(data.count)
        return data.count
    }

    func restart() throws {
        count = try opened().truncate(to: 0)
    }

    func close() {
        part?.close()
        part = nil
    }

    /// Keeps the file when the operation fails, as an archive refers to it. Returns its name; `nil` if there is no file.
    func keepForArchive() -> String? {
        isArchived = partURL != nil
        return partURL?.lastPathComponent
    }

    func commit() throws {
        try opened().move(to: url)
        forget()
    }

    func discard() {
        guard !isArchived else { return close() }
        // `reopen` returns `nil` for a file that another operation has opened meanwhile, and so leaves it to that operation.
        (part ?? partURL.flatMap { OutputPart.reopen($0) })?.remove()
        forget()
    }

    private func forget() {
        (part, partURL, isOwned) = (nil, nil, false)
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
