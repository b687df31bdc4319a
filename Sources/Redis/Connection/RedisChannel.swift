// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What a connection is for: the commands, or the messages of channels.
protocol ConnectionUser: AnyObject {
    /// The first commands, after which the connection is ready.
    var greeting: [[RedisArgument]] { get }
    /// Accepts a response to one of them; what is wrong with it, or `nil`.
    func receiveGreeting(_ value: RedisValue, at index: Int) -> RedisError.Reason?
    /// The greeting is complete.
    func didBecomeReady()
    /// Receives what follows; returns what is wrong with it.
    func receive(_ value: RedisValue) -> RedisError.Reason?
    /// The connection ended, or could not be established.
    func didFail(_ reason: RedisError.Reason)
}

/// A connection with what it is for. Confined to the client's thread.
protocol RedisChannel: ConnectionUser {
    var connection: RedisConnection { get }
    /// The time of the event that is handled.
    var now: Nanoseconds { get set }
    /// The time at which ``advance(_:)`` has something to do.
    var nextTime: Nanoseconds? { get }
    /// Does what is due.
    func advance(_ now: Nanoseconds)
    /// Ends for good.
    func stop()
}

extension RedisChannel {
    /// Handles what the poller has reported.
    func handle(_ events: SocketEvents, _ now: Nanoseconds) {
        self.now = now
        connection.handle(events, now)
    }

    /// Handles what has happened on a TLS connection, if anything has.
    func handleSecureStream(_ now: Nanoseconds) {
        self.now = now
        connection.handleSecureStream(now)
    }

    /// Handles what an attempt to connect has waited for.
    func handle(_ preparation: RedisConnection.Preparation, attempt: Int, _ now: Nanoseconds) {
        self.now = now
        connection.prepared(preparation, attempt: attempt, now)
    }
}

/// A connection on which the server sends by itself, and which is lost if nothing arrives.
protocol ListeningChannel: RedisChannel {
    var liveness: Liveness { get set }
}

extension ListeningChannel {
    var nextTime: Nanoseconds? { connection.isReady ? liveness.nextTime : connection.nextTime }

    /// Checks a silent connection by PING, and ends one that does not respond to that.
    func advance(_ now: Nanoseconds) {
        self.now = now
        connection.advance(now)
        guard connection.isReady else { return }
        switch liveness.advance(now) {
        case .none: break
        case .fail: connection.fail(.silent, now)
        case .ping:
            connection.append(["PING"])
            connection.flush(now)
        }
    }
}

extension RedisError.Reason {
    /// What a server has responded to one of the first commands. It repeats the arguments of a command that it does not know, and those of
    /// `AUTH` are secret.
    static func rejection(_ message: String) -> Self {
        .rejected(message.firstScalarRange(of: ", with args").map { String(message[..<$0.lowerBound]) } ?? message)
    }
}

extension RedisError {
    /// Why a question could not be answered.
    var reason: Reason {
        switch self {
        case .unavailable(_, let reason), .connectionLost(_, let reason): reason
        case .timedOut: .silent
        case .refused(_, let code, let message): .rejected("\(code) \(message)")
        default: .closed
        }
    }
}

/// Notices by PING that nothing arrives on a connection any more on which only the server sends by itself.
struct Liveness {
    enum Action { case none, ping, fail }

    let limit: Nanoseconds
    private var lastReceived: Nanoseconds = 0
    private var pinged: Nanoseconds?

    init(limit: Nanoseconds) { self.limit = limit }

    /// Something was received.
    mutating func received(_ now: Nanoseconds) { (lastReceived, pinged) = (now, nil) }

    /// The time at which ``advance(_:)`` has something to do.
    var nextTime: Nanoseconds { (pinged ?? lastReceived) + limit }

    /// What is to be done now.
    mutating func advance(_ now: Nanoseconds) -> Action {
        guard nextTime <= now else { return .none }
        guard pinged == nil else { return .fail }
        pinged = now
        return .ping
    }
}
#endif
