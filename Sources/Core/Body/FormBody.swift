// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A form as it was when it was handed over, from which the body of each attempt is made.
final class UploadForm: Sendable {
    /// Where the bytes of a part of the body lie.
    fileprivate enum Piece {
        case bytes([UInt8])
        case data(Data)
        /// A file of this length, which may be held open.
        case file(URL, length: Int64, held: HeldFile?)
        /// A stream or a sequence of this length, shared by all attempts.
        case source(any SharedBody, length: Int64)
    }

    private let pieces: [Piece]

    /// Takes the parts of a form. Files and streams are not read yet.
    ///
    /// - Parameter holdsFiles: whether the files are opened now and kept open, so that they can be removed by name before they are sent.
    /// - Throws: ``CurlewError/multipartEncodingFailed(reason:)``.
    init(_ form: MultipartFormData, holdsFiles: Bool = false) throws(CurlewError) {
        var pieces: [Piece] = []
        for piece in try form.takePieces() {
            switch piece {
            case .bytes(let bytes): pieces.append(.bytes(bytes))
            case .data(let data): pieces.append(.data(data))
            case .file(let url, let length):
                let held = holdsFiles ? try HeldFile(url, length: length) : nil
                pieces.append(.file(url, length: length, held: held))
            case .stream(let stream, let length): pieces.append(.source(StreamBody(stream), length: length))
            case .source(let source, let length):
                guard let body = (source as? FormSequence)?.takeBody() else {
                    throw .multipartEncodingFailed(reason: .bodyPartStreamConsumed)
                }
                pieces.append(.source(body, length: length))
            }
        }
        self.pieces = pieces
    }

    /// Whether another attempt can send the same body.
    var isRepeatable: Bool { sources.allSatisfy { $0.isRepeatable } }

    /// The body of an attempt, or one that fails with the reason why it could not be made: a file that is missing or has changed its length.
    var body: any BodySource {
        do {
            return FormBody(try pieces.map { try FormBody.Part($0) })
        } catch {
            return UnreadableBody(error: error)
        }
    }

    /// The request has finished: stops reading sequences.
    func finish() {
        for source in sources { (source as? SequenceBody)?.finish() }
    }

    private var sources: [any SharedBody] {
        pieces.compactMap { if case .source(let source, _) = $0 { source } else { nil } }
    }
}

/// A file that is kept open, and so can be read after its name was removed.
final class HeldFile: Sendable {
    /// The largest number of files of one form that are held, as a process may have few descriptors.
    static let limit = 64

    private let file: Descriptor

    /// Whether the system has names for open files.
    static let isSupported = access("/proc/self/fd", R_OK | X_OK) == 0

    /// The name of the open file.
    var path: String { "/proc/self/fd/\(file.number)" }

    /// - Throws: ``CurlewError/multipartEncodingFailed(reason:)`` if the file can't be opened, or has another length by now.
    init(_ url: URL, length: Int64) throws(CurlewError) {
        // Opened without blocking, in case the file has been replaced by a pipe; a regular file ignores the flag.
        guard let file = Descriptor.open(url.path, O_RDONLY | O_NONBLOCK) else {
            throw .multipartEncodingFailed(reason: .bodyPartInputStreamCreationFailed(for: url))
        }
        let actual = Int64(file.status?.st_size ?? 0)
        guard actual == length else { throw .lengthMismatch(announced: length, actual: actual) }
        self.file = file
    }
}

/// The body of a form, read part by part from where the parts lie.
final class FormBody: BodySource {
    /// A part of the body: bytes in memory, or a source of a length.
    fileprivate enum Part {
        case bytes([UInt8])
        case data(Data)
        case file(FileBody, URL, HeldFile?)
        case source(any BodySource, length: Int64)

        /// - Throws: ``CurlewError/multipartEncodingFailed(reason:)`` for a file that can't be read, or has another length by now.
        init(_ piece: UploadForm.Piece) throws(CurlewError) {
            switch piece {
            case .bytes(let bytes): self = .bytes(bytes)
            case .data(let data): self = .data(data)
            case .source(let source, let length): self = .source(source, length: length)
            case .file(let url, let length, let held):
                guard let body = try? FileBody(path: held?.path ?? url.path) else {
                    throw .multipartEncodingFailed(reason: .bodyPartInputStreamCreationFailed(for: url))
                }
                guard body.length == length else { throw .lengthMismatch(announced: length, actual: body.length ?? 0) }
                self = .file(body, url, held)
            }
        }

        var source: (any BodySource)? {
            switch self {
            case .bytes, .data: nil
            case .file(let body, _, _): body
            case .source(let body, _): body
            }
        }

        var length: Int64 {
            switch self {
            case .bytes(let bytes): Int64(bytes.count)
            case .data(let data): Int64(data.count)
            case .file(let body, _, _): body.length ?? 0
            case .source(_, let length): length
            }
        }
    }

    private struct State {
        /// The current part, and the number of its bytes that were read.
        var index = 0
        var offset: Int64 = 0
        /// The number of sources that were prepared.
        var preparedCount = 0
        var failure: (any Error)?
        var onReadable: @Sendable () -> Void = {}
    }

    private let parts: [Part]
    /// The indices of the parts that are sources.
    private let sources: [Int]
    private let state = Lock(State())

    /// The exact number of bytes.
    let length: Int64?

    fileprivate init(_ parts: [Part]) {
        self.parts = parts
        sources = parts.indices.filter { parts[$0].source != nil }
        length = parts.reduce(0) { sum, part in
            let (total, isTooLarge) = sum.addingReportingOverflow(part.length)
            return isTooLarge ? .max : total
        }
    }

    /// Prepares the first source.
    func prepare(onReadable: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state = State(onReadable: onReadable)
            prepareAhead(&state)
        }
    }

    /// Prepares the current source and the one after it, so that its file is open when it is needed.
    private func prepareAhead(_ state: inout State) {
        while state.preparedCount < sources.count, state.preparedCount == 0 || sources[state.preparedCount - 1] <= state.index {
            parts[sources[state.preparedCount]].source?.prepare(onReadable: state.onReadable)
            state.preparedCount += 1
        }
    }

    /// Reads the next bytes, of as many parts as fit.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        state.withLock { state in
            if let failure = state.failure { return .failed(failure) }
            // Rewound during the transfer.
            if state.preparedCount == 0 { prepareAhead(&state) }
            var count = 0
            while count < buffer.count, state.index < parts.count {
                let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
                switch read(parts[state.index], at: state.offset, into: rest) {
                case .bytes(let size):
                    count += size
                    state.offset += Int64(size)
                case .unavailable: return count > 0 ? .bytes(count) : .unavailable
                case .end:
                    state.index += 1
                    state.offset = 0
                    prepareAhead(&state)
                case .failed(let error):
                    state.failure = error
                    return .failed(error)
                }
            }
            return count > 0 ? .bytes(count) : .end
        }
    }

    private func read(_ part: Part, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        switch part {
        case .bytes(let bytes): return bytes.withUnsafeBytes { Self.copy($0, from: offset, into: buffer) }
        case .data(let data): return data.withUnsafeBytes { Self.copy($0, from: offset, into: buffer) }
        case .file(let body, _, _):
            let result = body.read(into: buffer)
            if case .failed(let error) = result { return .failed(failure(error, of: part)) }
            return result
        case .source(let body, let length):
            let result = body.read(into: buffer)
            switch result {
            case .unavailable: return result
            case .bytes(let size):
                let actual = offset + Int64(size)
                return actual <= length ? result : .failed(CurlewError.lengthMismatch(announced: length, actual: actual))
            case .end: return offset == length ? result : .failed(CurlewError.lengthMismatch(announced: length, actual: offset))
            case .failed(let error): return .failed(error)
            }
        }
    }

    private static func copy(
        _ bytes: UnsafeRawBufferPointer, from offset: Int64, into buffer: UnsafeMutableRawBufferPointer
    ) -> BodyRead {
        let start = Int(offset)
        let count = min(buffer.count, bytes.count - start)
        guard count > 0 else { return .end }
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[start..<(start + count)]))
        return .bytes(count)
    }

    /// The error of a file as that of a part.
    private func failure(_ error: any Error, of part: Part) -> CurlewError {
        if let changed = error as? BodyLengthMismatch {
            return .lengthMismatch(announced: part.length, actual: changed.actual ?? 0)
        }
        return .multipartEncodingFailed(reason: .inputStreamReadFailed(error: error))
    }

    /// Rewinds to the first byte; possible unless a stream was opened, or a part has failed.
    func rewind() -> Bool {
        state.withLock { state in
            guard state.failure == nil else { return false }
            // Files are opened again when they are needed.
            for index in sources[..<state.preparedCount] {
                if case .source(let source, _) = parts[index], !source.rewind() { return false }
            }
            state.index = 0
            state.offset = 0
            state.preparedCount = 0
            return true
        }
    }

    func transferDidComplete() {
        state.withLock { state in
            for index in sources[..<state.preparedCount] { parts[index].source?.transferDidComplete() }
        }
    }
}

extension CurlewError {
    /// A part of a form has fewer or more bytes than announced.
    fileprivate static func lengthMismatch(announced: Int64, actual: Int64) -> CurlewError {
        .multipartEncodingFailed(
            reason: .bodyPartLengthMismatch(announced: UInt64(clamping: announced), actual: UInt64(clamping: actual)))
    }
}
