// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Receives the body of a data or upload request: into memory, for a reader of its pieces, or to a file for the session's delegate.
///
/// The sink may change while the body is received, as a reader may be attached late.
final class DataReceiver: BodyReceiver {
    private enum Sink {
        case memory(Data)
        case reader(BodyBuffer)
        /// The session's delegate has turned the request into a download.
        case file(PartFile)
    }

    private struct State {
        var sink = Sink.memory(Data())
        var count: Int64 = 0
        /// The announced number of bytes; −1 if it is unknown.
        var total: Int64 = -1
        /// Created when it is first read.
        var progress: ProgressReporter?
        /// Whether the session's delegate gets the body instead of the request.
        var isTaken = false
        /// The beginning of a body that was refused at its head.
        var refused: RefusedBody?
        /// The head of a response that may be read, for a reader that is attached later.
        var head: ResponseHead?

        var isInMemory: Bool { if case .memory = sink { true } else { false } }

        var buffer: BodyBuffer? { if case .reader(let buffer) = sink { buffer } else { nil } }
    }

    /// The most bytes of a file that are read at once, as others wait meanwhile.
    private static let largestRead: Int64 = 64 << 10

    /// Whether the body is received only once it has a reader or the request a handler.
    let waitsForReader: Bool
    /// The largest body that is kept in memory, in bytes.
    private let limit: Int
    private let state = Lock(State())

    init(limit: Int, waitsForReader: Bool = false) {
        self.limit = limit
        self.waitsForReader = waitsForReader
    }

    // MARK: The received bytes

    var data: Data? {
        state.withLock { state in
            if case .memory(let data) = state.sink { return data }
            return state.isTaken ? Data() : nil
        }
    }

    /// The beginning of the body in memory, or of one that was refused at its head.
    func beginning(_ count: Int) -> Data? {
        state.withLock { state in
            if let refused = state.refused { return refused.bytes.prefix(count) }
            // A response without a body may be complete before it is validated, with a reader that gets nothing.
            guard case .memory(let data) = state.sink else { return state.count == 0 ? Data() : nil }
            return data.prefix(count)
        }
    }

    var receivedCount: Int64 { state.withLock { $0.count } }

    /// Reports the number of received bytes.
    var downloadProgress: ProgressReporter {
        state.withLock { state in
            let progress = state.progress ?? ProgressReporter(completed: state.count, total: state.total)
            state.progress = progress
            return progress
        }
    }

    private var buffer: BodyBuffer? { state.withLock { $0.buffer } }

    private var file: PartFile? {
        state.withLock { if case .file(let file) = $0.sink { file } else { nil } }
    }

    // MARK: While the transfer runs

    func receive(_ head: ResponseHead, _ exchange: Exchange) throws -> HeadAction {
        // A body that is written to a file is not handed out.
        if let listeners = exchange.listeners, let take = listeners.takePiece, file == nil {
            // A class's pieces are of a size that it has chosen.
            let keepsPieces = exchange.task?.protocolResponse != nil
            setReader(on: listeners.queue, take, keepsPieces: keepsPieces, resume: listeners.resume)
            state.withLock { $0.isTaken = true }
        }
        let length = head.bodyLength(toHead: exchange.isHead)
        let (progress, buffer, isInMemory) = state.withLock { state in
            state.total = length ?? -1
            if !waitsForReader { state.head = head }
            return (state.progress, state.buffer, state.isInMemory)
        }
        progress?.setTotal(length ?? -1)
        if waitsForReader { return .waitForReader }
        buffer?.receive(head)
        guard isInMemory, !exchange.isHead, head.statusCode != 204, head.statusCode != 304, let length = head.announcedLength(over: limit)
        else {
            return .proceed
        }
        let message = "The body's announced length of \(length) bytes exceeds the limit of \(limit) bytes"
        return .refuse(BodyFailure(kind: .tooLarge, message: message, bytesReceived: 0))
    }

    /// Gives the reader the head of a response whose body has waited for one.
    func handOut(_ head: ResponseHead) {
        let buffer = state.withLock { state -> BodyBuffer? in
            state.head = head
            return state.buffer
        }
        buffer?.receive(head)
    }

    func receive(_ bytes: UnsafeRawBufferPointer) throws -> ReceiveAction {
        let (result, count, progress) = state.withLock { state -> (Result<ReceiveAction, any Error>, Int64, ProgressReporter?) in
            state.count += Int64(bytes.count)
            guard state.refused == nil else {
                return (.success(state.refused?.append(bytes) ?? .proceed), state.count, nil)
            }
            return (Result { try append(bytes, &state) }, state.count, state.progress)
        }
        progress?.update(completed: count)
        return try result.get()
    }

    private func append(_ bytes: UnsafeRawBufferPointer, _ state: inout State) throws -> ReceiveAction {
        switch state.sink {
        case .reader(let buffer): return buffer.append(bytes) ? .proceed : .pause
        case .file(let file): try file.write(bytes)
        case .memory(var data):
            guard state.count <= Int64(limit) else {
                let message = "The body exceeds the limit of \(limit) bytes"
                throw BodyFailure(kind: .tooLarge, message: message, bytesReceived: state.count)
            }
            // Taken out of the enumeration while it grows: a second reference would copy it.
            state.sink = .memory(Data())
            data.append(bytes, of: state.total)
            state.sink = .memory(data)
        }
        return .proceed
    }

    /// Reads a piece of a body that stays in memory to where it stays. `nil` also if that fails: the error is then that of reading it as bytes.
    func receive(_ range: FileRange) throws -> Int64? {
        // Where the first piece is validated, it has to come as bytes.
        guard !waitsForReader else { return nil }
        let count = min(range.count, Self.largestRead)
        let received = state.withLock { state -> (count: Int64, progress: ProgressReporter?)? in
            guard case .memory(var data) = state.sink, state.refused == nil, state.count + range.count <= Int64(limit) else { return nil }
            // As in `append`.
            state.sink = .memory(Data())
            defer { state.sink = .memory(data) }
            guard data.append(range, count: Int(count), of: state.total) else { return nil }
            state.count += count
            return (state.count, state.progress)
        }
        guard let received else { return nil }
        received.progress?.update(completed: received.count)
        return count
    }

    // MARK: Refused bodies

    /// The beginning of a body that was refused at its head; `nil` if none was.
    var refusedBody: RefusedBody? { state.withLock { $0.refused } }

    /// Receives no more than the beginning of the body, which was refused at its head. Returns `false` if that was done before.
    func keepRefusedBody(upTo limit: Int) -> Bool {
        state.withLock { state in
            guard state.refused == nil else { return false }
            state.refused = RefusedBody(upTo: limit)
            return true
        }
    }

    func complete(_ outcome: TransferCompletion) { state.withLock { $0.refused?.complete(outcome) } }

    // MARK: Readers

    /// Whether the body has a reader, or is written to a file: then it need not wait for a reader.
    var isRead: Bool { state.withLock { !$0.isInMemory } }

    /// Hands the body to a closure from now on, beginning with the received bytes; drops it without a closure.
    func setReader(
        on queue: DispatchQueue, _ closure: BodyBuffer.Taker?, keepsPieces: Bool = false, resume: @escaping @Sendable () -> Void
    ) {
        let buffer = makeBuffer(keepsPieces: keepsPieces, resume: resume)
        if let closure { buffer.drain(on: queue, to: closure) } else { buffer.drop() }
    }

    /// Returns a buffer that receives the body from now on, beginning with the bytes in memory. Those in an earlier buffer stay there.
    ///
    /// A body that is written to a file still is: the buffer stays empty.
    ///
    /// - Parameter resume: resumes the transfer after a pause.
    func makeBuffer(keepsPieces: Bool = false, resume: @escaping @Sendable () -> Void) -> BodyBuffer {
        let buffer = BodyBuffer(keepsPieces: keepsPieces, resume: resume)
        state.withLock { state in
            if case .file = state.sink { return }
            if case .memory(let data) = state.sink, !data.isEmpty { _ = data.withUnsafeBytes { buffer.append($0) } }
            if let head = state.head { buffer.receive(head) }
            state.sink = .reader(buffer)
        }
        return buffer
    }

    /// Writes the body to a file in a directory instead of to memory. Before the first piece; on the session's queue.
    func becomeDownload(in directory: URL) throws {
        let file = try PartFile(in: directory)
        state.withLock { $0.sink = .file(file) }
    }

    // MARK: When the attempt is concluded

    /// `true` for a reader's closure, which is called with all pieces before the request finishes.
    var concludesOnQueue: Bool {
        state.withLock { state in
            switch state.sink {
            case .memory: false
            case .reader(let buffer): buffer.hasDrain
            case .file: true
            }
        }
    }

    func settle(_ attempt: CompletedAttempt) throws {
        buffer?.drainNow()
        guard let file else { return }
        // Removed unless the session's delegate takes it.
        defer { file.discard() }
        try file.close()
        try file.giveName()
        if attempt.error == nil { attempt.listeners?.takeFile?(file.url) }
    }

    func commit(_ attempt: CompletedAttempt) throws {}

    /// `true` for a closure, which can be called again.
    func holdForRetry() -> Bool { buffer?.holdForRetry() ?? true }

    func reset() {
        state.withLock { state in
            let sink = state.sink
            state.progress?.reset()
            state = State(progress: state.progress)
            switch sink {
            case .memory: break
            case .file(let file): file.discard()
            case .reader(let buffer):
                buffer.restart()
                state.sink = sink
            }
        }
    }
}

extension ResponseHead {
    /// How much longer a coded body may be than the decoded one, in bytes: incompressible data grows a little.
    private static let largestCodingOverhead: Int64 = 64 * 1024

    /// Returns the announced length of the body if it exceeds a limit; `nil` if the body may fit.
    fileprivate func announcedLength(over limit: Int) -> Int64? {
        if let expectedBodyLength { return expectedBodyLength > limit ? expectedBodyLength : nil }
        guard contains("content-encoding"), let length = value(for: "Content-Length").flatMap({ Int64($0) }), length > 0,
            length - Self.largestCodingOverhead > limit
        else { return nil }
        return length
    }
}

extension Data {
    /// The most memory that is reserved for an announced length, in bytes, so that a false one costs none.
    private static let largestReservation: Int64 = 1 << 20

    /// Appends a piece of a body with an announced length; the first piece reserves memory for all of it.
    fileprivate mutating func append(_ piece: UnsafeRawBufferPointer, of announced: Int64) {
        guard isEmpty, let start = piece.baseAddress else { return append(contentsOf: piece) }
        guard piece.count < announced else {
            self = Data(bytes: start, count: piece.count)
            return
        }
        reserve(announced)
        append(contentsOf: piece)
    }

    /// Appends the first bytes of a range of a file, of a body with an announced length. Returns `false`, and appends none, if they can't be
    /// read.
    fileprivate mutating func append(_ range: FileRange, count added: Int, of announced: Int64) -> Bool {
        if isEmpty { reserve(announced) }
        let start = count
        count += added
        let read = withUnsafeMutableBytes { memory in
            try? Descriptor.read(
                into: UnsafeMutableRawBufferPointer(rebasing: memory[start...]), at: range.offset, from: range.descriptor)
        }
        guard read != added else { return true }
        count = start
        return false
    }

    private mutating func reserve(_ announced: Int64) {
        reserveCapacity(Int(Swift.min(Swift.max(announced, 0), Self.largestReservation)))
    }
}
