// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewWebSocket

/// The subscriptions of a connection, and their events that wait to be read.
///
/// What is sent is queued on the WebSocket inside of the changes, under the lock of the state, so that an operation's `complete` follows its
/// `subscribe`. Generic, so that it is tested without a network.
struct SubscriptionState<Socket: MessageQueue>: Sendable {
    private struct Subscription: Sendable {
        /// The parameters of the operation.
        let payload: Data
        /// Whether it was requested on the current connection.
        var isRequested = false
        /// Whether it ever was.
        var wasRequested = false
        var events: [Data] = []
        var size = 0
        var end: Result<Void, any Error>?
    }

    /// The overhead counted for each event, in bytes, so that empty ones count too.
    private static var eventOverhead: Int { 64 }

    private let bufferSize: Int
    private let overflow: GraphQLConfiguration.OverflowPolicy
    private var subscriptions: [Int: Subscription] = [:]
    private var lastNumber = 0
    /// The connection that the server has acknowledged; `nil` without one.
    private var socket: Socket?
    /// Whether no subscription needs the connection any more. From then on there are no new ones.
    private(set) var isOver = false

    init(bufferSize: Int, overflow: GraphQLConfiguration.OverflowPolicy) {
        self.bufferSize = bufferSize
        self.overflow = overflow
    }

    // MARK: Subscriptions

    /// Adds a subscription and returns its number; `nil` if the connection is over, or is being lost: what is left of it may wait for events
    /// to be read.
    mutating func begin(_ payload: Data) -> Int? {
        guard !isOver, socket?.isOpen != false else { return nil }
        lastNumber += 1
        subscriptions[lastNumber] = Subscription(payload: payload)
        request(lastNumber)
        return lastNumber
    }

    /// Removes a subscription, which ends it on the server.
    mutating func remove(_ number: Int) {
        end(number, with: .success(()), tellingServer: true)
        subscriptions[number] = nil
    }

    /// The next event, or `nil` in the result after the last one; `nil` while neither is known.
    mutating func next(of number: Int) -> Result<Data?, any Error>? {
        guard let subscription = subscriptions[number] else { return .success(nil) }
        guard let event = subscription.events.first else { return subscription.end?.map { nil } }
        subscriptions[number]?.events.removeFirst()
        subscriptions[number]?.size -= event.count + Self.eventOverhead
        return .success(event)
    }

    /// Whether a subscription was requested once, or has ended.
    func wasRequested(_ number: Int) -> Bool {
        subscriptions[number].map { $0.wasRequested || $0.end != nil } ?? true
    }

    private mutating func request(_ number: Int) {
        guard let socket, let subscription = subscriptions[number], subscription.end == nil, !subscription.isRequested else { return }
        socket.enqueue(ClientMessage.subscribe(id: "\(number)", subscription.payload))
        subscriptions[number]?.isRequested = true
        subscriptions[number]?.wasRequested = true
    }

    private mutating func end(_ number: Int, with end: Result<Void, any Error>, tellingServer: Bool) {
        guard let subscription = subscriptions[number], subscription.end == nil else { return }
        if tellingServer, subscription.isRequested { socket?.enqueue(ClientMessage.complete(id: "\(number)")) }
        subscriptions[number]?.end = end
        isOver = subscriptions.values.allSatisfy { $0.end != nil }
    }

    // MARK: The connection

    /// The server has acknowledged a connection: what was begun is requested.
    mutating func acknowledged(_ socket: Socket) {
        self.socket = socket
        for number in subscriptions.keys.sorted() { request(number) }
    }

    /// The connection has ended; subscriptions wait for another one.
    mutating func lost() {
        socket = nil
        for number in subscriptions.keys { subscriptions[number]?.isRequested = false }
    }

    /// There will be no other connection: ends all subscriptions, after the events that they have.
    mutating func fail(_ error: any Error) {
        lost()
        for number in subscriptions.keys { end(number, with: .failure(error), tellingServer: false) }
        isOver = true
    }

    /// Takes a server's message; returns `false` while there is no room for its event. Messages for other operations are those that have
    /// crossed the client's `complete`.
    mutating func receive(_ message: ServerMessage) -> Bool {
        switch message {
        case .next(let id, let event):
            guard let number = Int(id), let subscription = subscriptions[number], subscription.end == nil else { return true }
            if subscription.size > 0, subscription.size + event.count + Self.eventOverhead > bufferSize {
                guard overflow == .fail else { return false }
                end(number, with: .failure(GraphQLClientError.eventBufferOverflow(limit: bufferSize)), tellingServer: true)
                return true
            }
            subscriptions[number]?.events.append(event)
            subscriptions[number]?.size += event.count + Self.eventOverhead
        case .error(let id, let errors):
            if let number = Int(id) { end(number, with: .failure(GraphQLClientError.errors(errors)), tellingServer: false) }
        case .complete(let id):
            if let number = Int(id) { end(number, with: .success(()), tellingServer: false) }
        case .acknowledged, .ping, .pong: break
        }
        return true
    }
}

/// Where messages are queued to be sent, in order.
protocol MessageQueue: Sendable {
    /// Whether the peer may still receive what is queued.
    var isOpen: Bool { get }
    /// Queues a message. Does not block, and calls no users' code.
    func enqueue(_ message: WebSocketMessage)
}

extension WebSocket: MessageQueue {
    var isOpen: Bool { if case .open = state { true } else { false } }

    func enqueue(_ message: WebSocketMessage) { send(message) { _ in } }
}
