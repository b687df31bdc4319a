// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What waits to be read and to be sent, and how far the closing is: the state of a WebSocket, over all of its connections.
///
/// A value that knows no connection: what happens goes in, what is to be done comes out.
struct SocketState: Sendable {
    /// Why no more messages are sent.
    enum Closing: Sendable {
        /// The user wants it: behind what was sent before.
        case byUser(WebSocketClosure)
        /// The server has said so.
        case byPeer(WebSocketClosure)
        /// The server broke a rule.
        case failed(WebSocketClosure)

        /// What our close frame says.
        var closure: WebSocketClosure {
            switch self {
            case .byUser(let closure), .failed(let closure): closure
            // A close frame is answered with its own code.
            case .byPeer(let closure): WebSocketClosure(code: closure.code)
            }
        }
    }

    /// What is sent next.
    struct Batch: Sendable {
        var controls: [Control] = []
        var messages: [WebSocketMessage] = []
        /// The last frame of all.
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

    /// What each waiting message counts beside its bytes, so that empty ones count too.
    static let messageOverhead = 64
    /// How many bytes of messages are taken to be sent at once.
    static let batchSize = 64 << 10
    /// How many pongs wait; of more, those for the last pings count (RFC 6455, section 5.5.3).
    static let mostPongs = 64

    private let receiveBufferSize: Int
    private let sendBufferSize: Int

    private(set) var status = WebSocketState.connecting(attempt: 1)
    /// Counts the changes of `status`.
    private(set) var statusNumber = 1
    /// How the connection is being closed.
    private(set) var closing: Closing?
    /// The user's wish to close, after which no other connection is made.
    private(set) var userClosure: WebSocketClosure?
    private(set) var end: Result<WebSocketClosure, any Error>?
    /// Whether our close frame has left, or can't any more.
    private(set) var isSendingOver = false
    /// Whether the connection was cut, as its closing took too long.
    private(set) var isClosingTooLate = false
    /// Whether the server is not listened to, as nobody takes what it has sent.
    private(set) var isReceivingHeld = false

    private var inbox = Queue<WebSocketMessage>()
    private var inboxSize = 0
    /// Whether whoever reads has come for more than there is: what was read is done with.
    private var isReaderWaiting = false
    private var outbox = Queue<WebSocketMessage>()
    private var outboxSize = 0
    /// Of `outboxSize`, what was taken and has not left.
    private var sizeUnderWay = 0
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
        set(.connecting(attempt: attempt))
    }

    mutating func opened(_ handshake: WebSocketHandshake) {
        set(closing == nil ? .open(handshake) : .closing)
    }

    /// The connection is over; what was under way with it may be lost.
    mutating func connectionEnded() {
        outboxSize -= sizeUnderWay
        sizeUnderWay = 0
        controls = []
        isCloseTaken = false
        isSendingOver = false
        isReceivingHeld = false
        lastLostPing = lastPing
        pings = []
        closing = userClosure.map { .byUser($0) }
    }

    mutating func wait(_ delay: Duration, after error: any Error) {
        set(.waiting(delay: delay, error: error))
    }

    /// The last change of all.
    mutating func finish(_ end: Result<WebSocketClosure, any Error>) {
        guard self.end == nil else { return }
        connectionEnded()
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

    /// Why nothing is sent any more.
    var refusal: (any Error)? {
        switch end {
        case .success(let closure): WebSocketError.closed(closure)
        case .failure(let error): error
        // While the server closes, or is closed upon: there may be another connection.
        case nil: userClosure.map { WebSocketError.closed($0) }
        }
    }

    /// Puts a message behind the others; whether there is room for more.
    mutating func send(_ message: WebSocketMessage) throws -> Bool {
        if let refusal { throw refusal }
        outbox.append(message)
        outboxSize += Self.size(of: message)
        return hasRoomToSend
    }

    private var hasRoomToSend: Bool { outboxSize <= sendBufferSize }

    /// Whether somebody whose message was taken may go on; an error if it will never leave.
    func mayGoOnSending() -> Result<Void, any Error>? {
        if hasRoomToSend, end == nil { return .success(()) }
        return end == nil ? nil : refusal.map { .failure($0) }
    }

    /// What is to be sent now; `nil` when there is nothing.
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

    /// The pings and pongs that are to be sent now.
    mutating func takeControls() -> [Control] {
        defer { controls = [] }
        return controls
    }

    private mutating func takeMessages(into batch: inout Batch) {
        while sizeUnderWay < Self.batchSize, let message = outbox.popFirst() {
            sizeUnderWay += Self.size(of: message)
            batch.messages.append(message)
        }
    }

    /// What was taken has left.
    mutating func batchLeft(_ batch: Batch) {
        outboxSize -= sizeUnderWay
        sizeUnderWay = 0
        if batch.close != nil { isSendingOver = true }
    }

    /// Nothing more can be sent on this connection.
    mutating func sendingFailed() {
        isSendingOver = true
    }

    // MARK: Receiving

    /// Takes a message for whoever reads; `false` when there is no room. What comes after the user has closed is let go.
    mutating func receive(_ message: WebSocketMessage) -> Bool {
        guard userClosure == nil, end == nil else { return true }
        isReceivingHeld = inboxSize > 0 && inboxSize >= receiveBufferSize
        guard !isReceivingHeld else { return false }
        inbox.append(message)
        inboxSize += Self.size(of: message)
        return true
    }

    /// What is read next: a message, or the end of all, which is an error unless it is a proper one; `nil` when that has to be waited for.
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

    /// Whether everything that came was read, and done with as far as can be seen.
    var isAllRead: Bool { inbox.isEmpty && isReaderWaiting }

    /// Nobody will read what waits.
    mutating func dropInbox() {
        inbox.removeAll()
        inboxSize = 0
    }

    private static func size(of message: WebSocketMessage) -> Int { message.byteCount + messageOverhead }

    // MARK: Pings

    /// Sends a ping; its number.
    mutating func ping(_ payload: Data) throws -> Int {
        if let refusal { throw refusal }
        controls.append(Control(opcode: .ping, payload: payload))
        lastPing += 1
        pings.append(Ping(number: lastPing, payload: payload))
        return lastPing
    }

    /// Whether a ping was answered; an error if it will not be.
    func answer(toPing number: Int) -> Result<Void, any Error>? {
        if number <= lastAnsweredPing { return .success(()) }
        guard number <= lastLostPing else { return nil }
        return .failure(refusal ?? WebSocketError.closed(WebSocketClosure(code: .abnormalClosure)))
    }

    mutating func receivedPing(_ payload: Data) {
        let pongs = controls.count { $0.opcode == .pong }
        if pongs >= Self.mostPongs, let oldest = controls.firstIndex(where: { $0.opcode == .pong }) { controls.remove(at: oldest) }
        controls.append(Control(opcode: .pong, payload: payload))
    }

    /// A pong answers the first ping with its payload, and those before it (RFC 6455, section 5.5.3); others mean nothing.
    mutating func receivedPong(_ payload: Data) {
        guard let index = pings.firstIndex(where: { $0.payload == payload }) else { return }
        lastAnsweredPing = pings[index].number
        pings.removeFirst(index + 1)
    }

    // MARK: Closing

    /// The user closes; the first time counts.
    mutating func close(_ closure: WebSocketClosure) {
        guard end == nil, userClosure == nil else { return }
        userClosure = closure
        if closing == nil { begin(.byUser(closure)) }
    }

    private mutating func begin(_ closing: Closing) {
        self.closing = closing
        if case .open = status { set(.closing) }
    }

    /// The server's close frame came.
    mutating func receivedClose(_ closure: WebSocketClosure) {
        guard closing != nil else { return begin(.byPeer(closure)) }
        // Both at once: what waits can't be sent any more.
        outbox.removeAll()
        outboxSize = sizeUnderWay
    }

    /// The connection is cut.
    mutating func closingTakesTooLong() {
        isClosingTooLate = true
        isSendingOver = true
    }

    /// The server broke a rule.
    mutating func failed(_ violation: FrameViolation) {
        guard !isCloseTaken else { return }
        begin(.failed(WebSocketClosure(code: violation.code, reason: violation.message.prefix(utf8Count: CloseFrame.largestReason))))
    }
}

extension String {
    /// The beginning, as long as it has that many bytes at most.
    fileprivate func prefix(utf8Count limit: Int) -> String {
        var result = self
        while result.utf8.count > limit { result.removeLast() }
        return result
    }
}
