// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension MultipartFormData {
    /// Returns the encoded body, in memory.
    ///
    /// Reads files and streams to their ends, and blocks meanwhile; a stream can be read only once.
    ///
    /// - Throws: ``CurlewError/multipartEncodingFailed(reason:in:)`` with the reason why the first invalid part could not be appended, or
    ///   with a read error.
    public func encode() throws -> Data {
        try encoded()
    }

    /// Same as ``encode()``, under a name that no other module declares.
    package func encoded() throws -> Data {
        var body = Data()
        let inMemory = parts.reduce(0) { sum, part in if case .data(let data) = part.source { sum + data.count } else { sum } }
        body.reserveCapacity(inMemory + 256 * (parts.count + 1))
        try writeAll { body.append(contentsOf: $0) }
        return body
    }

    /// Writes the encoded body to a new file, piece by piece.
    ///
    /// Reads files and streams to their ends, and blocks meanwhile; a stream can be read only once. On failure, the file is removed.
    ///
    /// - Throws: ``CurlewError/multipartEncodingFailed(reason:in:)`` with the reason why the first invalid part could not be appended or
    ///   why `fileURL` can't be written, or with a read or write error.
    public func writeEncodedData(to fileURL: URL) throws {
        try writeEncodedData(to: fileURL, permissions: 0o666)
    }

    /// Same as ``writeEncodedData(to:)``, with the file's permissions before the process's umask is applied.
    package func writeEncodedData(to fileURL: URL, permissions: mode_t) throws {
        try check()
        guard !FileManager.default.fileExists(atPath: fileURL.path) else {
            throw CurlewError.multipartEncodingFailed(reason: .outputStreamFileAlreadyExists(at: fileURL))
        }
        guard fileURL.isFileURL else {
            throw CurlewError.multipartEncodingFailed(reason: .outputStreamURLInvalid(url: fileURL))
        }
        let file = try OutputFile(fileURL, permissions: permissions)
        do {
            try writeAll { try file.write($0) }
            try file.close()
        } catch {
            file.discard()
            throw error
        }
    }

    // MARK: Sources

    /// Where the bytes of a body lie.
    package enum Piece {
        case bytes([UInt8])
        case data(Data)
        /// A file of this length in bytes.
        case file(URL, length: Int64)
        /// A stream of this length in bytes, which belongs to the receiver.
        case stream(InputStream, length: Int64)
        /// The source of a higher layer, of this length in bytes.
        case source(any Sendable, length: Int64)
    }

    /// Returns the body's pieces in their order, without reading files and streams. Streams are taken out: they can't be encoded again.
    ///
    /// - Throws: ``CurlewError/multipartEncodingFailed(reason:)`` with the reason why the first invalid part could not be appended, or for
    ///   a stream that was encoded before.
    package func takePieces() throws(CurlewError) -> [Piece] {
        try check()
        var pieces: [Piece] = []
        for (index, part) in parts.enumerated() {
            pieces.append(.bytes(Array(head(of: part, isFirst: index == 0).utf8)))
            let length = Int64(clamping: part.length)
            switch part.source {
            case .data(let data): pieces.append(.data(data))
            case .file(let url): pieces.append(.file(url, length: length))
            case .other(let source): pieces.append(.source(source, length: length))
            case .stream(let stream):
                guard let stream = stream.take() else { throw CurlewError.multipartEncodingFailed(reason: .bodyPartStreamConsumed) }
                pieces.append(.stream(stream, length: length))
            }
        }
        pieces.append(.bytes(Array(end.utf8)))
        return pieces
    }

    /// The number of parts of each kind of source that is not in memory.
    package var sourceCounts: (files: Int, streams: Int, others: Int) {
        parts.reduce(into: (0, 0, 0)) { counts, part in
            switch part.source {
            case .data: break
            case .file: counts.0 += 1
            case .stream: counts.1 += 1
            case .other: counts.2 += 1
            }
        }
    }

    // MARK: Parts

    /// The line breaks, the boundary and the fields before a part's bytes.
    private func head(of part: Part, isFirst: Bool) -> String {
        let fields = part.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
        return "\(isFirst ? "" : "\r\n")--\(boundary)\r\n\(fields)\r\n"
    }

    /// What follows the last part. A form without parts is encoded as browsers encode it.
    private var end: String { "\(parts.isEmpty ? "" : "\r\n")--\(boundary)--\r\n" }

    /// Throws the first failure to append a part, or an error for an invalid boundary, before anything is written.
    private func check() throws(CurlewError) {
        if let firstFailure { throw .multipartEncodingFailed(reason: firstFailure) }
        // RFC 2046, section 5.1.1: letters, digits, this punctuation, and spaces except at the end.
        let isValid =
            (1...70).contains(boundary.utf8.count) && boundary.utf8.last != UInt8(ascii: " ")
            && boundary.utf8.allSatisfy { isASCIILetterOrDigit($0) || "'()+_,-./:=? ".utf8.contains($0) }
        guard isValid else { throw .multipartEncodingFailed(reason: .boundaryInvalid(boundary)) }
    }

    private func isASCIILetterOrDigit(_ byte: UInt8) -> Bool {
        byte.isASCIIDigit || (0x61...0x7A).contains(byte.asciiLowercased)
    }

    private func writeAll(_ sink: Sink) throws {
        try check()
        let reader = PartReader()
        for (index, part) in parts.enumerated() {
            try write(head(of: part, isFirst: index == 0), sink)
            try reader.read(part, sink)
        }
        try write(end, sink)
    }

    private func write(_ text: String, _ sink: Sink) throws {
        try Array(text.utf8).withUnsafeBytes { try sink($0) }
    }
}

/// Receives the bytes of a body, piece by piece.
private typealias Sink = (UnsafeRawBufferPointer) throws -> Void

/// Reads parts and passes their bytes on.
private final class PartReader {
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 16)

    deinit {
        buffer.deallocate()
    }

    func read(_ part: MultipartFormData.Part, _ sink: Sink) throws {
        switch part.source {
        case .data(let data): try data.withUnsafeBytes { try sink($0) }
        case .file(let url): try read(url, length: part.length, sink)
        case .stream(let stream):
            guard let stream = stream.take() else { throw CurlewError.multipartEncodingFailed(reason: .bodyPartStreamConsumed) }
            try read(stream, length: part.length, sink)
        // Only an upload of the form can wait for it.
        case .other: throw CurlewError.multipartEncodingFailed(reason: .inputStreamReadFailed(error: CocoaError(.featureUnsupported)))
        }
    }

    private func read(_ url: URL, length: UInt64, _ sink: Sink) throws {
        // Opened without blocking, in case the file has been replaced by a pipe; a regular file ignores the flag.
        guard let file = Descriptor.open(url.path, O_RDONLY | O_NONBLOCK) else {
            throw CurlewError.multipartEncodingFailed(reason: .bodyPartInputStreamCreationFailed(for: url))
        }
        try copy(length: length, to: sink) { piece in
            do throws(SystemError) { return try file.read(into: piece) } catch {
                throw CurlewError.multipartEncodingFailed(reason: .inputStreamReadFailed(error: FileError.reading(url.path, error.code)))
            }
        }
    }

    private func read(_ stream: InputStream, length: UInt64, _ sink: Sink) throws {
        if stream.streamStatus == .notOpen { stream.open() }
        defer { stream.close() }
        try copy(length: length, to: sink) { piece in
            guard let start = piece.baseAddress else { return 0 }
            let count = stream.read(start.assumingMemoryBound(to: UInt8.self), maxLength: piece.count)
            // Getting the stream's error traps on Linux, so only its status is checked.
            guard (0...piece.count).contains(count), stream.streamStatus != .error else {
                throw CurlewError.multipartEncodingFailed(reason: .inputStreamReadFailed(error: CocoaError(.fileReadUnknown)))
            }
            return count
        }
    }

    /// Passes on all bytes up to the end, which must match the announced length.
    private func copy(length: UInt64, to sink: Sink, _ read: (UnsafeMutableRawBufferPointer) throws -> Int) throws {
        var rest = length
        while true {
            // One byte beyond the announced length is enough to detect that there are more.
            let wanted = rest < UInt64(buffer.count) ? Int(rest) + 1 : buffer.count
            let count = try read(UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]))
            guard count > 0, UInt64(count) <= rest else {
                let actual = length - rest + UInt64(count)
                guard actual == length else {
                    throw CurlewError.multipartEncodingFailed(reason: .bodyPartLengthMismatch(announced: length, actual: actual))
                }
                return
            }
            rest -= UInt64(count)
            try sink(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }
}

/// A new file, written through a buffer.
private final class OutputFile {
    private let url: URL
    private let file: Descriptor
    private let buffer: UnsafeMutableRawBufferPointer
    private var count = 0

    init(_ url: URL, permissions: mode_t) throws(CurlewError) {
        guard let file = Descriptor.open(url.path, O_WRONLY | O_CREAT | O_EXCL, mode: permissions) else {
            let exists = errno == EEXIST
            throw .multipartEncodingFailed(reason: exists ? .outputStreamFileAlreadyExists(at: url) : .outputStreamCreationFailed(for: url))
        }
        (self.url, self.file) = (url, file)
        buffer = .allocate(byteCount: 64 * 1024, alignment: 16)
    }

    deinit {
        buffer.deallocate()
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(CurlewError) {
        let fitting = min(buffer.count - count, bytes.count)
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<fitting]))
        count += fitting
        guard count == buffer.count else { return }
        try flush()
        let rest = UnsafeRawBufferPointer(rebasing: bytes[fitting...])
        guard rest.count >= buffer.count else { return try write(rest) }
        try writeAll(rest)
    }

    func close() throws(CurlewError) {
        try flush()
        do throws(SystemError) { try file.close() } catch { throw failure(error) }
    }

    /// Closes and removes the file.
    func discard() {
        try? file.close()
        unlink(url.path)
    }

    private func flush() throws(CurlewError) {
        defer { count = 0 }
        try writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }

    private func writeAll(_ bytes: UnsafeRawBufferPointer) throws(CurlewError) {
        do throws(SystemError) { try file.write(bytes) } catch { throw failure(error) }
    }

    private func failure(_ error: SystemError) -> CurlewError {
        .multipartEncodingFailed(reason: .outputStreamWriteFailed(error: FileError.writing(url.path, error.code)))
    }
}
