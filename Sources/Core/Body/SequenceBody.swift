// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A request body that is read from an asynchronous sequence of pieces, in a task that the request owns.
///
/// The sequence is read ahead by up to 256 KiB. A body of a sequence can be sent once; one that makes its sequences makes another for each
/// attempt and follow-up. All of them are read with the task-local values and the priority of the caller that created the body.
final class SequenceBody: SharedBody {
    fileprivate struct State {
        /// The current reading; `nil` if the next read has to start one.
        var pull: SequencePull?
        var isStarted = false
        /// Whether a transfer reads the body.
        var isInUse = false
        var isFinished = false
        var failure: CurlewError?
        var onReadable: (@Sendable () -> Void)?
    }

    /// The number of bytes; `nil` if it is unknown.
    let length: Int64?
    let hasTrailers: Bool
    private let makesSequences: Bool
    private let reader: any SequenceReader
    /// Starts readings in the task that has the caller's task-local values.
    private let starter: AsyncStream<SequencePull>.Continuation
    private let state = Lock(State())

    /// Creates a body of what a reader reads.
    ///
    /// - Parameters:
    ///   - reader: reads a sequence.
    ///   - length: the number of bytes; `nil` if it is unknown.
    ///   - makesSequences: whether the reader can read another sequence with the same bytes each time.
    init(_ reader: any SequenceReader, length: Int64? = nil, makesSequences: Bool) {
        self.reader = reader
        self.length = length.map { max($0, 0) }
        self.makesSequences = makesSequences
        hasTrailers = reader.hasTrailers
        let (pulls, starter) = AsyncStream.makeStream(of: SequencePull.self)
        self.starter = starter
        // Task-local values are inherited only by a task that is created under them, and the transport's thread has none.
        Task { for await pull in pulls { pull.start() } }
    }

    deinit {
        finish()
    }

    /// Whether another transfer can send the body from its first byte.
    var isRepeatable: Bool { state.withLock { $0.canRepeat(makesSequences) } }

    /// Starts reading the sequence.
    func prepare(onReadable: @escaping @Sendable () -> Void) {
        let (old, new) = state.withLock { state -> (SequencePull?, SequencePull?) in
            guard state.canRepeat(makesSequences) else {
                state.failure = .redirectFailed(reason: .bodyNotRepeatable)
                return (nil, nil)
            }
            state.isInUse = true
            state.onReadable = onReadable
            if !makesSequences, let pull = state.pull {
                pull.setReader(onReadable)
                return (nil, nil)
            }
            let old = state.pull
            return (old, newPull(&state))
        }
        old?.stop()
        if let new { starter.yield(new) }
    }

    /// Copies bytes that were read ahead.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let (pull, failure, new) = state.withLock { state -> (SequencePull?, CurlewError?, SequencePull?) in
            guard state.failure == nil, state.pull == nil, state.isInUse, !state.isFinished else { return (state.pull, state.failure, nil) }
            // Rewound during the transfer.
            let new = newPull(&state)
            return (new, nil, new)
        }
        if let failure { return .failed(failure) }
        if let new { starter.yield(new) }
        return pull?.read(into: buffer) ?? .unavailable
    }

    /// Rewinds to the first byte: with another sequence, or if nothing of the only one was sent.
    func rewind() -> Bool {
        let (canRepeat, old) = state.withLock { state -> (Bool, SequencePull?) in
            guard state.canRepeat(makesSequences) else { return (false, nil) }
            guard makesSequences else { return (true, nil) }
            defer { state.pull = nil }
            return (true, state.pull)
        }
        old?.stop()
        return canRepeat
    }

    /// Stops reading, unless the sequence may still be sent by another attempt.
    func transferDidComplete() {
        let old = state.withLock { state -> SequencePull? in
            state.isInUse = false
            state.onReadable = nil
            state.pull?.setReader(nil)
            guard makesSequences || state.pull?.isUnread == false else { return nil }
            defer { if makesSequences { state.pull = nil } }
            return state.pull
        }
        old?.stop()
    }

    var trailers: HTTPHeaders { state.withLock { $0.pull }?.trailers ?? HTTPHeaders() }

    /// The request has finished: cancels the tasks.
    func finish() {
        let old = state.withLock { state in
            state.isFinished = true
            return state.pull
        }
        old?.stop()
        starter.finish()
    }

    private func newPull(_ state: inout State) -> SequencePull {
        let pull = SequencePull(length: length, onReadable: state.onReadable, reader)
        state.pull = pull
        state.isStarted = true
        return pull
    }
}

extension SequenceBody.State {
    fileprivate func canRepeat(_ makesSequences: Bool) -> Bool {
        !isFinished && failure == nil && (makesSequences || !isStarted || pull?.isUnread == true)
    }
}

/// Reads asynchronous sequences of a type that only it knows.
protocol SequenceReader: Sendable {
    /// Whether fields follow the bytes.
    var hasTrailers: Bool { get }

    /// Appends all pieces of a sequence, and its end.
    func read(_ pull: SequencePull) async throws
}

/// Reads the sequence that a closure returns.
struct MadeSequenceReader<S: AsyncSequence>: SequenceReader where S.Element: Collection, S.Element.Element == UInt8 {
    let make: @Sendable () async throws -> S
    /// Called at the end of a sequence, in its task; `nil` for a body without trailers.
    var trailers: (@Sendable () -> HTTPHeaders)?

    var hasTrailers: Bool { trailers != nil }

    func read(_ pull: SequencePull) async throws {
        for try await piece in try await make() {
            guard await pull.append(piece) else { return }
        }
        pull.end(trailers?() ?? HTTPHeaders())
    }
}

/// One reading of a sequence: a task that appends, and a transfer that takes.
final class SequencePull: Sendable {
    fileprivate struct State {
        /// The bytes that were read ahead, in the order of the sequence, the first piece without its first `offset` bytes.
        var pieces: [[UInt8]] = []
        var firstPiece = 0
        var offset = 0
        var count = 0
        /// The number of bytes that the sequence has given so far.
        var total: Int64 = 0
        var isAtEnd = false
        var isStopped = false
        var failure: (any Error)?
        var trailers = HTTPHeaders()
        var task: Task<Void, Never>?
        /// The task, while it waits for room.
        var waiting: UnsafeContinuation<Void, Never>?
        /// Whether the reader waits for bytes.
        var isAwaited = false
        var onReadable: (@Sendable () -> Void)?

        /// Whether the sequence is read no further.
        var isOver: Bool { isAtEnd || isStopped || failure != nil }
        /// The number of bytes for which there is room, 0 if no more are needed; `nil` if there is none now.
        var room: Int? { isOver ? 0 : count < SequencePull.capacity ? SequencePull.capacity - count : nil }
    }

    /// The number of bytes that are read ahead.
    static let capacity = 256 * 1024
    /// Pieces below this size are joined, in bytes.
    private static let smallPiece = 16 * 1024

    private let length: Int64?
    private let reader: any SequenceReader
    private let state: Lock<State>

    init(length: Int64?, onReadable: (@Sendable () -> Void)?, _ reader: any SequenceReader) {
        self.length = length
        self.reader = reader
        state = Lock(State(onReadable: onReadable))
    }

    /// Whether no byte was taken.
    var isUnread: Bool { state.withLock { $0.total == Int64($0.count) && $0.failure == nil && !$0.isStopped } }

    var trailers: HTTPHeaders { state.withLock { $0.trailers } }

    func setReader(_ onReadable: (@Sendable () -> Void)?) {
        state.withLock { $0.onReadable = onReadable }
    }

    /// Starts the task, which inherits the values of the current one.
    func start() {
        let task = Task {
            do { try await reader.read(self) } catch { fail(error) }
        }
        let isOver = state.withLock { state in
            if !state.isOver { state.task = task }
            return state.isStopped
        }
        if isOver { task.cancel() }
    }

    /// Stops the task. Nothing is read any more.
    func stop() {
        let (waiting, task) = state.withLock { state -> (UnsafeContinuation<Void, Never>?, Task<Void, Never>?) in
            state.isStopped = true
            state.onReadable = nil
            state.pieces = []
            state.count = 0
            defer { (state.waiting, state.task) = (nil, nil) }
            return (state.waiting, state.task)
        }
        waiting?.resume()
        // Cancelling calls the sequence's cancellation handlers, which must not run on the event loop's thread.
        if let task { DispatchQueue.global(qos: .utility).async { task.cancel() } }
    }

    // MARK: For the task

    /// Appends bytes, as soon as there is room for them; returns `false` if no more are needed.
    func append(_ bytes: some Collection<UInt8>) async -> Bool {
        var start = bytes.startIndex
        while start != bytes.endIndex {
            let room = await room()
            guard room > 0 else { return false }
            let slice = bytes[start...].prefix(room)
            start = slice.endIndex
            add([UInt8](slice))
        }
        return state.withLock { !$0.isOver }
    }

    private func add(_ piece: [UInt8]) {
        report { state in
            guard !state.isOver, !piece.isEmpty else { return false }
            state.total += Int64(piece.count)
            if let length, state.total > length { state.failure = BodyLengthMismatch(.more) }
            state.count += piece.count
            let last = state.pieces.count - 1
            if last >= state.firstPiece, state.pieces[last].count + piece.count <= Self.smallPiece {
                state.pieces[last] += piece
            } else {
                state.pieces.append(piece)
            }
            return true
        }
    }

    /// The sequence has ended.
    func end(_ trailers: HTTPHeaders) {
        report { state in
            guard !state.isOver else { return false }
            state.trailers = trailers
            state.isAtEnd = true
            state.task = nil
            return true
        }
    }

    private func fail(_ error: any Error) {
        report { state in
            guard !state.isOver else { return false }
            state.failure = error
            state.task = nil
            return true
        }
    }

    /// Changes the state, and calls the reader if it waits for the change.
    private func report(_ change: (inout State) -> Bool) {
        let onReadable = state.withLock { state -> (@Sendable () -> Void)? in
            guard change(&state), state.isAwaited else { return nil }
            state.isAwaited = false
            return state.onReadable
        }
        onReadable?()
    }

    /// Waits until there is room for bytes; returns their number, 0 if no more are needed.
    private func room() async -> Int {
        while true {
            if let room = state.withLock({ $0.room }) { return room }
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                let mustWait = state.withLock { state in
                    guard state.room == nil else { return false }
                    state.waiting = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        }
    }

    // MARK: For the transfer

    /// Copies bytes that were read ahead.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let (result, waiting) = state.withLock { state -> (BodyRead, UnsafeContinuation<Void, Never>?) in
            if let failure = state.failure { return (.failed(failure), nil) }
            let count = state.take(min(buffer.count, available(in: state)), into: buffer)
            guard count > 0 else {
                if state.isAtEnd { return (.end, nil) }
                state.isAwaited = true
                return (.unavailable, nil)
            }
            guard state.count <= Self.capacity / 2 else { return (.bytes(count), nil) }
            defer { state.waiting = nil }
            return (.bytes(count), state.waiting)
        }
        waiting?.resume()
        return result
    }

    /// The number of bytes that may be sent. The last of the announced bytes is held back until the sequence has ended, so that a request is
    /// never complete whose sequence has more bytes.
    private func available(in state: State) -> Int {
        guard let length, !state.isAtEnd else { return state.count }
        let taken = state.total - Int64(state.count)
        return min(state.count, Int(clamping: max(length - 1 - taken, 0)))
    }
}

extension SequencePull.State {
    /// Moves bytes into the buffer.
    fileprivate mutating func take(_ wanted: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var taken = 0
        while taken < wanted {
            let piece = pieces[firstPiece]
            let size = min(piece.count - offset, wanted - taken)
            piece.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: buffer[taken...]).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: $0[offset..<(offset + size)]))
            }
            taken += size
            offset += size
            guard offset == piece.count else { continue }
            pieces[firstPiece] = []
            firstPiece += 1
            offset = 0
        }
        count -= taken
        // Sent pieces are removed in bulk, as moving the others each time would take long.
        if firstPiece == pieces.count || firstPiece > 64 {
            pieces.removeSubrange(..<firstPiece)
            firstPiece = 0
        }
        return taken
    }
}
