// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Receives the body of a data or upload request: into memory, for a reader of its pieces, or to a file that the session's delegate takes.
///
/// The destination may change while the body comes, as a reader may be attached late.
final class DataReceiver: BodyReceiver {
    private enum Destination {
        case memory(Data)
        case reader(BodyBuffer)
        /// The session's delegate has asked for a download.
        case file(PartFile)
    }

    private struct State {
        var destination = Destination.memory(Data())
        var count: Int64 = 0
        /// The announced number of bytes; −1 if none is.
        var total: Int64 = -1
        /// Created when it is first asked for.
        var progress: ProgressReporter?
        /// Whether the session's delegate gets the body instead of the request.
        var isTaken = false
        /// How much is kept of bodies that are refused at their head.
        var refusal = RefusedBody.Policy.none
        /// What came of this one.
        var refused: RefusedBody?

        var isInMemory: Bool { if case .memory = destination { true } else { false } }
    }

    /// Whether the body is not received before it is asked for, and its head is validated before its first piece.
    let waitsForReader: Bool
    /// The largest body that is kept in memory, in bytes.
    private let limit: Int
    private let state = Lock(State())

    init(limit: Int, waitsForReader: Bool = false) {
        self.limit = limit
        self.waitsForReader = waitsForReader
    }

    // MARK: What has come

    var data: Data? {
        state.withLock { state in
            if case .memory(let data) = state.destination { return data }
            return state.isTaken ? Data() : nil
        }
    }

    var receivedCount: Int64 { state.withLock { $0.count } }

    /// Reports how much of the body has come.
    var downloadProgress: ProgressReporter {
        state.withLock { state in
            let progress = state.progress ?? ProgressReporter(completed: state.count, total: state.total)
            state.progress = progress
            return progress
        }
    }

    private var buffer: BodyBuffer? {
        state.withLock { if case .reader(let buffer) = $0.destination { buffer } else { nil } }
    }

    private var file: PartFile? {
        state.withLock { if case .file(let file) = $0.destination { file } else { nil } }
    }

    // MARK: While the transfer runs

    func receive(_ head: ResponseHead, _ exchange: Exchange) throws -> HeadAction {
        // A body that is written to a file is not handed out.
        if let listeners = exchange.listeners, let take = listeners.takePiece, file == nil {
            setReader(on: listeners.queue, take, resume: listeners.resume)
            state.withLock { $0.isTaken = true }
        }
        // No body comes in response to HEAD, in spite of the length announced (RFC 9110, section 9.3.2).
        let length = exchange.isHead ? head.expectedBodyLength.map { min($0, 0) } : head.expectedBodyLength
        let (progress, isInMemory) = state.withLock { state in
            state.total = length ?? -1
            return (state.progress, state.isInMemory)
        }
        progress?.setTotal(length ?? -1)
        if waitsForReader { return .waitForReader }
        guard isInMemory, !exchange.isHead, head.statusCode != 204, head.statusCode != 304, let length = head.announcedLength(over: limit) else {
            return .proceed
        }
        let message = "The body's announced length of \(length) bytes exceeds the limit of \(limit) bytes"
        return .refuse(BodyFailure(kind: .tooLarge, message: message, bytesReceived: 0))
    }

    func receive(_ bytes: UnsafeRawBufferPointer) throws -> ReceiveAction {
        let (result, count, progress) = state.withLock { state -> (Result<ReceiveAction, any Error>, Int64, ProgressReporter?) in
            state.count += Int64(bytes.count)
            guard state.refused == nil else {
                return (.success(state.refused?.append(bytes, limit: state.refusal.limit) ?? .proceed), state.count, nil)
            }
            return (Result { try append(bytes, &state) }, state.count, state.progress)
        }
        progress?.update(completed: count)
        return try result.get()
    }

    private func append(_ bytes: UnsafeRawBufferPointer, _ state: inout State) throws -> ReceiveAction {
        switch state.destination {
        case .reader(let buffer): return buffer.append(bytes) ? .proceed : .pause
        case .file(let file): try file.write(bytes)
        case .memory(var data):
            guard state.count <= Int64(limit) else {
                let message = "The body exceeds the limit of \(limit) bytes"
                throw BodyFailure(kind: .tooLarge, message: message, bytesReceived: state.count)
            }
            // Taken out of the enumeration while it grows: a second reference would copy it.
            state.destination = .memory(Data())
            data.append(bytes, of: state.total)
            state.destination = .memory(data)
        }
        return .proceed
    }

    // MARK: Refused bodies

    /// What came of a body that was refused at its head; `nil` where none was, or nothing is kept.
    var refusedBody: Data? { state.withLock { $0.refused?.bytes } }

    /// Sets how much is kept of bodies that are refused at their head.
    func keepRefusedBodies(_ policy: RefusedBody.Policy) {
        state.withLock { $0.refusal = policy }
    }

    /// Keeps the body, which was refused at its head, as far as the policy says.
    ///
    /// - Returns: whether any of it is kept; how long it is awaited from now on, if that was not asked before.
    func keepRefusedBody() -> (isKept: Bool, timeout: Duration?) {
        state.withLock { state in
            guard state.refusal.limit > 0 else { return (false, nil) }
            guard state.refused == nil else { return (true, nil) }
            state.refused = RefusedBody()
            return (true, state.refusal.timeout)
        }
    }

    // MARK: Readers

    /// Whether the body has a reader, or goes to a file: then nothing has to be waited for.
    var isRead: Bool { state.withLock { !$0.isInMemory } }

    /// Hands the body to a closure from now on, what has come first; drops it without one.
    func setReader(on queue: DispatchQueue, _ closure: (@Sendable (Data) -> Void)?, resume: @escaping @Sendable () -> Void) {
        let buffer = makeBuffer(resume: resume)
        if let closure { buffer.drain(on: queue, to: closure) } else { buffer.drop() }
    }

    /// A buffer that gets the body from now on, what has come first. What another one has got stays there.
    ///
    /// A body that goes to a file stays there: the buffer gets nothing.
    ///
    /// - Parameter resume: resumes the transfer after a pause.
    func makeBuffer(resume: @escaping @Sendable () -> Void) -> BodyBuffer {
        let buffer = BodyBuffer(resume: resume)
        state.withLock { state in
            if case .file = state.destination { return }
            if case .memory(let data) = state.destination, !data.isEmpty { _ = data.withUnsafeBytes { buffer.append($0) } }
            state.destination = .reader(buffer)
        }
        return buffer
    }

    /// Has the body written to a file in a directory, instead of to memory. Before it comes; on the session's queue.
    func becomeDownload(in directory: URL) throws {
        let file = try PartFile(in: directory)
        state.withLock { $0.destination = .file(file) }
    }

    // MARK: When the attempt is concluded

    /// A reader's closure gets everything before the request finishes.
    var concludesOnQueue: Bool {
        state.withLock { state in
            switch state.destination {
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

    /// A closure can be called again.
    func holdForRetry() -> Bool { buffer?.holdForRetry() ?? true }

    func reset() {
        state.withLock { state in
            let destination = state.destination
            state.progress?.reset()
            state = State(progress: state.progress, refusal: state.refusal)
            switch destination {
            case .memory: break
            case .file(let file): file.discard()
            case .reader(let buffer):
                buffer.restart()
                state.destination = destination
            }
        }
    }
}

extension ResponseHead {
    /// How much longer than decoded a coded body may be: what can't be compressed grows a little.
    private static let largestCodingOverhead: Int64 = 64 * 1024

    /// The announced length of the body, if it exceeds a limit; `nil` if the body may fit.
    fileprivate func announcedLength(over limit: Int) -> Int64? {
        if let expectedBodyLength { return expectedBodyLength > limit ? expectedBodyLength : nil }
        guard contains("content-encoding"), let length = value(for: "Content-Length").flatMap({ Int64($0) }), length > 0,
            length - Self.largestCodingOverhead > limit
        else { return nil }
        return length
    }
}

extension Data {
    /// The most memory that an announced length reserves, so that a false one costs no memory.
    private static let largestReservation: Int64 = 1 << 20

    /// Adds a piece of a body of which `announced` bytes were announced; the first piece reserves memory for all of it.
    fileprivate mutating func append(_ piece: UnsafeRawBufferPointer, of announced: Int64) {
        guard isEmpty, let start = piece.baseAddress else { return append(contentsOf: piece) }
        guard piece.count < announced else {
            self = Data(bytes: start, count: piece.count)
            return
        }
        reserveCapacity(Int(Swift.min(announced, Self.largestReservation)))
        append(contentsOf: piece)
    }
}
