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

/// Writes a body to a file, from where another process can go on.
final class FileSink: BodySink, @unchecked Sendable {  // used on one queue
    let url: URL
    private(set) var count: Int64
    private var handle: FileHandle?

    /// - Parameter count: how many bytes of the body the file has; what is behind them is removed.
    init(_ url: URL, count: Int64 = 0) {
        self.url = url
        self.count = count
    }

    deinit {
        close()
    }

    var canRestart: Bool { true }

    /// Of a file from which nothing is gone on the contents stay until it is known that there will be others.
    func open() throws {
        if count > 0 { try openFile() }
    }

    private func openFile() throws {
        guard handle == nil else { return }
        let descriptor = Foundation.open(url.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else {
            throw CocoaError(errno == ENOENT ? .fileNoSuchFile : .fileWriteNoPermission, userInfo: [NSURLErrorKey: url])
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // Somebody may have cut it: then less of it is there.
        count = min(count, Int64(clamping: try handle.seekToEnd()))
        try handle.truncate(atOffset: UInt64(count))
        try handle.seek(toOffset: UInt64(count))
        self.handle = handle
    }

    func write(_ data: Data) throws -> Int {
        try openFile()
        try handle?.write(contentsOf: data)
        count += Int64(data.count)
        return data.count
    }

    func restart() throws {
        try openFile()
        try handle?.truncate(atOffset: 0)
        try handle?.seek(toOffset: 0)
        count = 0
    }

    func close() {
        try? handle?.close()
        handle = nil
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
