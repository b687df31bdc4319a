// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The state of a WebSocket, across all its connections: queued messages in both directions, and the progress of closing.
///
/// A value type without a connection: methods record events, and return what to do.
struct SocketState: Sendable {
    /// Why no further messages are sent.
    enum Closing: Sendable {
        /// The user has closed the WebSocket; messages already queued are sent first.
        case byUser(WebSocketClosure)
        /// The server has sent a close frame.
        case byPeer(WebSocketClosure)
        /// The server has violated the protocol or a limit.
        case failed(WebSocketClosure)

        /// The contents of the close frame to send.
        var closure: WebSocketClosure {
            switch self {
            case .byUser(let closure), .failed(let closure): closure
            // A close frame is answered with its own code.
            case .byPeer(let closure): WebSocketClosure(code: closure.code)
            }
        }
    }

    /// What to send next.
    struct Batch: Sendable {
        var controls: [Control] = []
        var messages: [WebSocketMessage] = []
        /// The close frame, after which nothing is sent.
        var close: WebSocketClosure?
    }

    /// A ping or a pong.
    struct Control: Sendable, Hashable {
        let opcode: Opcode
        let payload: Data
    }

    private struct Ping: Sendable {
        let number: Int
        let payload: Data
    }

    /// The overhead counted for each queued message, in bytes, so that empty ones count too.
    static let messageOverhead = 64
    /// The number of message bytes taken for sending at a time.
    static let batchSize = 64 << 10
    /// The maximum number of queued pongs; beyond it, the oldest are dropped, as RFC 6455, section 5.5.3, allows.
    static let maximumPongs = 64

    private let receiveBufferSize: Int
    private let sendBufferSize: Int

    private(set) var status = WebSocketState.connecting(attempt: 1)
    /// Counts the changes of `status`.
    private(set) var statusNumber = 1
    /// The handshake of the last connection that was open.
    private(set) var handshake: WebSocketHandshake?
    /// Why the connection is being closed.
    private(set) var closing: Closing?
    /// The user's closure, after which there is no reconnection.
    private(set) var userClosure: WebSocketClosure?
    private(set) var end: Result<WebSocketClosure, any Error>?
    /// The server's close frame on this connection, also where it answers the user's.
    private(set) var peerClosure: WebSocketClosure?
    /// Whether the close frame has been sent, or can't be any more.
    private(set) var isSendingFinished = false
    /// Whether the connection was aborted because closing timed out.
    private(set) var hasClosingTimedOut = false
    /// Whether receiving is suspended because the receive buffer is full.
    private(set) var isReceivingSuspended = false
    /// The payload of the messages that were written, and of those that were queued for reading.
    private(set) var bytesSent: Int64 = 0
    private(set) var bytesReceived: Int64 = 0

    private var inbox = Queue<WebSocketMessage>()
    private var inboxSize = 0
    /// Whether the reader has asked for more than was available, and so has processed what it read.
    private var isReaderWaiting = false
    private var outbox = Queue<WebSocketMessage>()
    private var outboxSize = 0
    /// The part of `outboxSize` that was taken and is not sent yet.
    private var sizeInFlight = 0
    /// The numbers of the last message that was queued, and of the last one that was written or lost.
    private(set) var lastQueued = 0
    private(set) var lastWritten = 0
    /// The number of messages that were taken and are not sent yet.
    private(set) var countInFlight = 0
    /// The messages that were in flight when the last connection ended.
    private(set) var lost = 0..<0
    private var controls: [Control] = []
    private var isCloseTaken = false
    private var pings: [Ping] = []
    private var lastPing = 0
    private var lastAnsweredPing = 0
    private var lastLostPing = 0

    init(_ configuration: WebSocketConfiguration = WebSocketConfiguration()) {
        receiveBufferSize = configuration.receiveBufferSize
        sendBufferSize = max(configuration.sendBufferSize, 0)
    }

    // MARK: Connections

    mutating func connect(attempt: Int) {
        // A reader may have seen that already: it is the state from the start.
        if case .connecting(attempt) = status { return }
        set(.connecting(attempt: attempt))
    }

    mutating func opened(_ handshake: WebSocketHandshake) {
        self.handshake = handshake
        set(closing == nil ? .open(handshake) : .closing)
    }

    /// Resets what belongs to a connection after its end; messages in flight may be lost.
    mutating func connectionEnded() {
        outboxSize -= sizeInFlight
        sizeInFlight = 0
        lost = lastWritten + 1..<lastWritten + 1 + countInFlight
        lastWritten += countInFlight
        countInFlight = 0
        peerClosure = nil
        controls = []
        isCloseTaken = false
        isSendingFinished = false
        hasClosingTimedOut = false
        isReceivingSuspended = false
        lastLostPing = lastPing
        pings = []
        closing = userClosure.map { .byUser($0) }
    }

    mutating func wait(_ delay: Duration, after error: any Error) {
        set(.waiting(delay: delay, error: error))
    }

    /// Records the final result; later events change nothing.
    mutating func finish(_ end: Result<WebSocketClosure, any Error>) {
        guard self.end == nil else { return }
        // Users may ask for the server's close frame afterwards.
        let closure = peerClosure
        connectionEnded()
        peerClosure = closure
        self.end = end
        outbox.removeAll()
        outboxSize = 0
        set(.closed(end))
    }

    private mutating func set(_ status: WebSocketState) {
        guard end == nil || status.isClosed else { return }
        self.status = status
        statusNumber += 1
    }

    // MARK: Sending

    /// The error that prevents all further sending.
    var terminalError: (any Error)? {
        switch end {
        case .success(let closure): WebSocketError.closed(closure)
        case .failure(let error): error
        // While the server closes, or is closed after a violation, a reconnection may still send messages.
        case nil: userClosure.map { WebSocketError.closed($0) }
        }
    }

    /// Queues a message, and returns whether there is room for more.
    mutating func send(_ message: WebSocketMessage) throws -> Bool {
        if let terminalError { throw terminalError }
        outbox.append(message)
        outboxSize += Self.size(of: message)
        lastQueued += 1
        return hasRoomToSend
    }

    private var hasRoomToSend: Bool { outboxSize <= sendBufferSize }

    /// The result of a queued `send`: success if it may return, the error if the message will never be sent, `nil` while the buffer is
    /// full.
    func sendOutcome() -> Result<Void, any Error>? {
        if hasRoomToSend, end == nil { return .success(()) }
        return end == nil ? nil : terminalError.map { .failure($0) }
    }

    /// Removes and returns what to send now; `nil` if there is nothing.
    mutating func takeBatch() -> Batch? {
        guard !isCloseTaken else { return nil }
        var batch = Batch(controls: takeControls())
        switch closing {
        case .byPeer(let closure): batch.close = WebSocketClosure(code: closure.code)
        case .byUser, .failed, nil:
            takeMessages(into: &batch)
            if outbox.isEmpty { batch.close = closing?.closure }
        }
        isCloseTaken = batch.close != nil
        return batch.controls.isEmpty && batch.messages.isEmpty && batch.close == nil ? nil : batch
    }

    /// Removes and returns the queued pings and pongs.
    mutating func takeControls() -> [Control] {
        defer { controls = [] }
        return controls
    }

    private mutating func takeMessages(into batch: inout Batch) {
        while sizeInFlight < Self.batchSize, let message = outbox.popFirst() {
            sizeInFlight += Self.size(of: message)
            countInFlight += 1
            batch.messages.append(message)
        }
    }

    /// Records that the batch was sent.
    mutating func batchSent(_ batch: Batch) {
        bytesSent += Int64(sizeInFlight - countInFlight * Self.messageOverhead)
        outboxSize -= sizeInFlight
        sizeInFlight = 0
        lastWritten += countInFlight
        countInFlight = 0
        if batch.close != nil { isSendingFinished = true }
    }

    /// Records that nothing more can be sent on this connection.
    mutating func sendingFailed() {
        isSendingFinished = true
    }

    // MARK: Receiving

    /// Queues a received message; returns `false` if the buffer is full. Messages received after the user has closed are discarded.
    mutating func receive(_ message: WebSocketMessage) -> Bool {
        guard userClosure == nil, end == nil else { return true }
        isReceivingSuspended = inboxSize > 0 && inboxSize >= receiveBufferSize
        guard !isReceivingSuspended else { return false }
        inbox.append(message)
        inboxSize += Self.size(of: message)
        bytesReceived += Int64(message.byteCount)
        return true
    }

    /// Returns the next message to read, or how the WebSocket ended: `nil` for a normal closure, otherwise the error; `nil` if there is
    /// neither yet.
    mutating func nextMessage() -> Result<WebSocketMessage?, any Error>? {
        isReaderWaiting = inbox.isEmpty
        if let message = inbox.popFirst() {
            inboxSize -= Self.size(of: message)
            return .success(message)
        }
        switch end {
        case .success(let closure):
            return closure.isNormal || userClosure != nil ? .success(nil) : .failure(WebSocketError.closed(closure))
        case .failure(let error): return .failure(error)
        case nil: return nil
        }
    }

    /// Whether all received messages are read and, as far as can be seen, processed.
    var isAllRead: Bool { inbox.isEmpty && isReaderWaiting }

    /// Discards the queued messages, which will not be read.
    mutating func discardInbox() {
        inbox.removeAll()
        inboxSize = 0
    }

    private static func size(of message: WebSocketMessage) -> Int { message.byteCount + messageOverhead }

    // MARK: Pings

    /// Queues a ping and returns its number.
    mutating func ping(_ payload: Data) throws -> Int {
        if let terminalError { throw terminalError }
        controls.append(Control(opcode: .ping, payload: payload))
        lastPing += 1
        pings.append(Ping(number: lastPing, payload: payload))
        return lastPing
    }

    /// The result of a ping: success if it was answered, an error if it can't be any more, `nil` while it is outstanding.
    func pongOutcome(forPing number: Int) -> Result<Void, any Error>? {
        if number <= lastAnsweredPing { return .success(()) }
        guard number <= lastLostPing else { return nil }
        return .failure(terminalError ?? WebSocketError.closed(WebSocketClosure(code: .abnormalClosure)))
    }

    mutating func receivedPing(_ payload: Data) {
        let pongs = controls.count { $0.opcode == .pong }
        if pongs >= Self.maximumPongs, let oldest = controls.firstIndex(where: { $0.opcode == .pong }) { controls.remove(at: oldest) }
        controls.append(Control(opcode: .pong, payload: payload))
    }

    /// Records a pong, which answers the first ping with its payload and those before it (RFC 6455, section 5.5.3); unsolicited pongs are
    /// ignored.
    mutating func receivedPong(_ payload: Data) {
        guard let index = pings.firstIndex(where: { $0.payload == payload }) else { return }
        lastAnsweredPing = pings[index].number
        pings.removeFirst(index + 1)
    }

    // MARK: Closing

    /// Records that the user closes the WebSocket; only the first call counts.
    mutating func close(_ closure: WebSocketClosure) {
        guard end == nil, userClosure == nil else { return }
        userClosure = closure
        if closing == nil { begin(.byUser(closure)) }
    }

    private mutating func begin(_ closing: Closing) {
        self.closing = closing
        if case .open = status { set(.closing) }
    }

    /// Records the server's close frame.
    mutating func receivedClose(_ closure: WebSocketClosure) {
        peerClosure = closure
        guard closing != nil else { return begin(.byPeer(closure)) }
        // Both sides close at once: queued messages can't be sent any more.
        outbox.removeAll()
        outboxSize = sizeInFlight
    }

    /// Records that the connection was aborted because closing timed out.
    mutating func closingTimedOut() {
        hasClosingTimedOut = true
        isSendingFinished = true
    }

    /// Records a violation by the server.
    mutating func failed(_ violation: FrameViolation) {
        guard !isCloseTaken else { return }
        begin(.failed(WebSocketClosure(code: violation.code, reason: violation.message.prefix(utf8Count: CloseFrame.largestReason))))
    }
}

extension String {
    /// Returns the longest prefix that has at most the given number of bytes.
    fileprivate func prefix(utf8Count limit: Int) -> String {
        var result = self
        while result.utf8.count > limit { result.removeLast() }
        return result
    }
}
