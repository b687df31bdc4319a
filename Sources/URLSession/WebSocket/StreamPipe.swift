// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

/// The calls of a stream task, and the bytes that were received and not read. A value: methods return what is to be done without the lock.
struct StreamPipe {
    typealias ReadResult = Result<(Data?, Bool), any Error>

    /// A call, in its order.
    enum Call {
        case read(Read)
        case write(Write)
        case closeRead
        case closeWrite
        case capture
    }

    struct Read {
        let number: Int
        let least: Int
        let most: Int
        let timer: Task<Void, Never>?
        let done: @Sendable (ReadResult) -> Void
    }

    struct Write {
        let number: Int
        let data: Data
        let timer: Task<Void, Never>?
        let done: @Sendable (Result<Void, any Error>) -> Void
    }

    /// What is to be done next.
    enum Step {
        case connect(isSecure: Bool)
        /// Bytes have to be received.
        case receive(StreamRequest)
        /// The wait for bytes that no read wants any more is in the way of what comes next.
        case stopReceiving(Task<Void, Never>)
        case deliver(Read, ReadResult)
        case send(StreamRequest, Write)
        case refuse(Write, any Error)
        case closeRead(StreamRequest?)
        case reportReadClosed
        case closeWrite(StreamRequest?)
        /// The program has closed both sides.
        case endBoth(StreamRequest)
        case capture(StreamRequest, rest: Data)
        case end(Result<Void, any Error>)
    }

    /// Whether the task was resumed, and is due.
    var mayConnect = false
    var isSecure = false
    /// Whether there was a call that needs the connection.
    private(set) var hasBegun = false
    private var isConnecting = false
    private(set) var request: StreamRequest?
    /// How the connection has ended, or why there is none.
    private(set) var end: Result<Void, any Error>?
    private var hasReportedEnd = false
    private var lastNumber = 0
    /// Whether steps are being done.
    var isServing = false

    private var reads: [Call] = []
    private var received = Data()
    private var isReceiving = false
    /// Waits for bytes.
    private var receiver: Task<Void, Never>?
    private var isStopping = false
    /// How receiving has ended.
    private var readEnd: Result<Void, any Error>?
    /// Whether the program has closed the reading side.
    private var isReadClosed = false
    /// Whether the delegate knows that the reading side is closed.
    private var hasReportedReadClosed = false

    private var writes: [Call] = []
    /// The write whose bytes are being sent.
    private var sending: Write?
    private var isSending = false
    private var isWriteClosed = false

    private var mustCapture = false
    private var isCaptured = false
    private var hasEndedBoth = false

    // MARK: Calls

    mutating func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    mutating func add(_ call: Call) {
        hasBegun = true
        switch call {
        case .read, .closeRead: reads.append(call)
        case .write, .closeWrite: writes.append(call)
        case .capture: mustCapture = true
        }
    }

    /// Removes a read that waits; `nil` if it was served.
    mutating func takeRead(_ number: Int) -> Read? {
        for (index, call) in reads.enumerated() {
            guard case .read(let read) = call, read.number == number else { continue }
            reads.remove(at: index)
            return read
        }
        return nil
    }

    /// Removes a write whose bytes are not sent yet; `nil` if it has ended.
    mutating func takeWrite(_ number: Int) -> Write? {
        if let write = sending, write.number == number {
            sending = nil
            return write
        }
        for (index, call) in writes.enumerated() {
            guard case .write(let write) = call, write.number == number else { continue }
            writes.remove(at: index)
            return write
        }
        return nil
    }

    // MARK: Events

    mutating func connected(_ request: StreamRequest) { self.request = request }

    mutating func began(_ receiver: Task<Void, Never>) {
        if isReceiving { self.receiver = receiver }
    }

    mutating func receivedPiece(_ result: Result<Data?, any Error>) {
        defer { isStopping = false }
        isReceiving = false
        receiver = nil
        guard !isReadClosed else { return }
        switch result {
        case .success(let piece?): received.append(piece)
        case .success(nil): readEnd = .success(())
        case .failure(is CancellationError) where isStopping: break
        case .failure(let error): readEnd = .failure(error)
        }
    }

    /// The bytes of the current write were sent, or can't be. Returns it, unless it has timed out.
    mutating func sent() -> Write? {
        isSending = false
        defer { sending = nil }
        return sending
    }

    /// The connection has ended; the first call counts.
    mutating func ended(_ result: Result<Void, any Error>) {
        if end == nil { end = result }
    }

    // MARK: Steps

    /// Returns what is to be done; `nil` for nothing now.
    ///
    /// - Parameter isRunning: whether the task is neither suspended nor cancelled.
    mutating func nextStep(isRunning: Bool) -> Step? {
        if isCaptured { return refusal() }
        if request == nil, end == nil {
            guard hasBegun, mayConnect, isRunning, !isConnecting else { return nil }
            isConnecting = true
            return .connect(isSecure: isSecure)
        }
        if case .success? = readEnd, !hasReportedReadClosed {
            hasReportedReadClosed = true
            return .reportReadClosed
        }
        return readStep() ?? writeStep() ?? lastStep()
    }

    private mutating func readStep() -> Step? {
        guard let first = reads.first else { return nil }
        switch first {
        case .read(let read):
            if isReadClosed { return deliver(read, .failure(URLError(.networkConnectionLost))) }
            if received.count >= read.least { return deliver(read, nil) }
            // Without a connection nothing was received.
            switch readEnd ?? (request == nil ? end : nil) {
            case .success?: return deliver(read, nil)
            // Why the task has failed, rather than that its connection was cancelled for it.
            case .failure(let error)?: return deliver(read, .failure(end?.failure ?? error))
            case nil: break
            }
            guard !isReceiving, let request else { return nil }
            isReceiving = true
            return .receive(request)
        case .closeRead, .write, .closeWrite, .capture:
            reads.removeFirst()
            isReadClosed = true
            received = Data()
            // For the delegate that is the same as the peer's end.
            if !hasReportedReadClosed { readEnd = .success(()) }
            return .closeRead(request)
        }
    }

    private mutating func deliver(_ read: Read, _ failure: ReadResult?) -> Step {
        reads.removeFirst()
        if let failure { return .deliver(read, failure) }
        let bytes = Data(received.prefix(read.most))
        // A slice, as small reads would copy the rest each time.
        received = received.count == bytes.count ? Data() : received.dropFirst(bytes.count)
        var isAtEnd = false
        if case .success? = readEnd { isAtEnd = received.isEmpty }
        return .deliver(read, .success((bytes.isEmpty ? nil : bytes, isAtEnd)))
    }

    private mutating func writeStep() -> Step? {
        guard !isSending, let first = writes.first else { return nil }
        writes.removeFirst()
        guard case .write(let write) = first else {
            guard !isWriteClosed else { return writeStep() }
            isWriteClosed = true
            return .closeWrite(request)
        }
        if isWriteClosed { return .refuse(write, URLError(.networkConnectionLost)) }
        switch end {
        case .failure(let error)?: return .refuse(write, error)
        case .success?: return .refuse(write, URLError(.networkConnectionLost))
        case nil: break
        }
        guard let request else { return .refuse(write, URLError(.networkConnectionLost)) }
        isSending = true
        sending = write
        return .send(request, write)
    }

    private mutating func lastStep() -> Step? {
        guard reads.isEmpty, writes.isEmpty, !isSending else { return nil }
        if isReceiving {
            guard mustCapture, end == nil, !isStopping, let receiver else { return nil }
            isStopping = true
            return .stopReceiving(receiver)
        }
        if let end {
            guard !hasReportedEnd else { return nil }
            // The peer has closed its side, which no read has noticed.
            if case .success = end, request != nil, !hasReportedReadClosed {
                hasReportedReadClosed = true
                return .reportReadClosed
            }
            hasReportedEnd = true
            return .end(hasEndedBoth ? .success(()) : end)
        }
        guard let request else { return nil }
        if mustCapture {
            isCaptured = true
            defer { received = Data() }
            return .capture(request, rest: received)
        }
        guard isReadClosed, isWriteClosed, !hasEndedBoth else { return nil }
        hasEndedBoth = true
        return .endBoth(request)
    }

    /// Ends calls that come after the streams were captured.
    private mutating func refusal() -> Step? {
        if case .read(let read)? = reads.first { return deliver(read, .failure(URLError(.networkConnectionLost))) }
        reads = []
        guard let first = writes.first else { return nil }
        writes.removeFirst()
        guard case .write(let write) = first else { return refusal() }
        return .refuse(write, URLError(.networkConnectionLost))
    }
}
