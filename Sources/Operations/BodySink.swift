// SPDX-License-Identifier: Apache-2.0

/// Where a body goes. Used on the operation's queue only.
protocol BodySink: AnyObject, Sendable {
    /// How many bytes it has got.
    var count: Int64 { get }
    /// Whether what it has got can be taken back.
    var canRestart: Bool { get }
    /// Gets ready for bytes behind those that it has; again after ``close()``.
    func open() throws
    /// Takes bytes; how many of them, 0 when there is no space now.
    func write(_ data: Data) throws -> Int
    /// Takes back what it has got.
    func restart() throws
    /// No more bytes come for now.
    func close()
    /// The body is whole and accepted. Last of all calls, but for ``discard()`` after an error.
    func commit() throws
    /// The operation has failed, or the response is refused: nothing that is incomplete stays. Last of all calls.
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

/// Writes a body to a hidden file beside its destination, which gets the destination's name when the body is whole.
final class FileSink: BodySink, @unchecked Sendable {  // used on one queue
    let url: URL
    private(set) var count: Int64
    /// The file that is written; closed during a pause.
    private var part: OutputPart?
    /// Where that file is, or was when the operation was archived.
    private var partURL: URL?
    /// Whether the file was made or opened by this operation, not only named in its archive.
    private var isOwned = false
    /// Whether an archive refers to the file since it was last opened: then it outlives the operation.
    private var isArchived = false

    /// - Parameters:
    ///   - url: the destination.
    ///   - partName: the name of a file beside it with the beginning of the body.
    ///   - count: how many bytes of the body that file has; what is behind them is removed.
    init(_ url: URL, partName: String? = nil, count: Int64 = 0) {
        self.url = url
        self.count = partName == nil ? 0 : count
        partURL = partName.map { url.deletingLastPathComponent().appendingPathComponent($0) }
    }

    deinit {
        if isOwned { discard() }
    }

    var canRestart: Bool { true }

    /// Opens the beginning of the body, if there is one; another process may have cut or removed it.
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
        take(part)
        return part
    }

    private func opened() throws -> OutputPart {
        if let part = try part ?? reopen() { return part }
        let part = try OutputPart.make(for: url)
        take(part)
        return part
    }

    private func take(_ part: OutputPart) {
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

    /// Has the file stay when the operation fails, as an archive refers to it: the name; `nil` where there is no file.
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
        // One that another operation has opened by now is that operation's.
        (part ?? partURL.flatMap { OutputPart.reopen($0) })?.remove()
        forget()
    }

    private func forget() {
        (part, partURL, isOwned) = (nil, nil, false)
    }
}

/// Writes a body to a stream of the user's, as fast as that takes it.
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
            // A piece is never empty, and so has an address.
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

    /// No space now; for ever, if the stream has an error.
    private func full() throws -> Int {
        if let error { throw OperationError.outputStreamFailed(underlying: error) }
        return 0
    }

    /// What the stream says of itself. Foundation's own on Linux can't be asked: that traps.
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
