// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What happens to a subscription.
package enum SubscriptionEvent: Sendable {
    /// Messages arrive from now on. Those published before may have been missed.
    case began
    /// A message.
    case message(Data)
    /// The connection has ended: messages are missed until the subscription begins again.
    case ended
}

/// A subscription to a channel, by the client's thread. The closure must not block.
struct Subscription: Sendable {
    let id: Int
    let channel: String
    let receive: @Sendable (SubscriptionEvent) -> Void
}

/// The connection of the subscriptions, established with the first one. Confined to the client's thread.
final class SubscriptionChannel: ConnectionUser {
    let connection: RedisConnection
    private var subscriptions: [Int: Subscription] = [:]
    /// The channels that were subscribed to on this connection, and whether the server has confirmed that.
    private var channels: [String: Bool] = [:]
    private var lastReceived: Nanoseconds = 0
    private var pinged: Nanoseconds?
    private var now: Nanoseconds = 0

    init(_ connection: RedisConnection) {
        self.connection = connection
        connection.user = self
    }

    func add(_ subscription: Subscription, _ now: Nanoseconds) {
        self.now = now
        subscriptions[subscription.id] = subscription
        guard connection.isReady else { return connection.start(now) }
        switch channels[subscription.channel] {
        case true?: subscription.receive(.began)
        case false?: break
        case nil:
            subscribe(to: [subscription.channel])
            connection.flush(now)
        }
    }

    func remove(_ id: Int, _ now: Nanoseconds) {
        guard let channel = subscriptions.removeValue(forKey: id)?.channel, connection.isReady,
            !subscriptions.values.contains(where: { $0.channel == channel })
        else { return }
        channels[channel] = nil
        connection.append(["UNSUBSCRIBE", .text(channel)])
        connection.flush(now)
    }

    private func subscribe(to names: Set<String>) {
        for name in names { channels[name] = false }
        if !names.isEmpty { connection.append(["SUBSCRIBE"] + names.map { .text($0) }) }
    }

    private var silenceLimit: Nanoseconds { connection.configuration.silenceLimit.nanoseconds }

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

    /// The time at which ``advance(_:)`` has something to do.
    var nextTime: Nanoseconds? {
        guard connection.isReady else { return connection.nextTime }
        return (pinged ?? lastReceived) + silenceLimit
    }

    /// Checks a silent connection by PING, and ends one that does not respond to that.
    func advance(_ now: Nanoseconds) {
        self.now = now
        connection.advance(now)
        guard connection.isReady else { return }
        if let pinged {
            if pinged + silenceLimit <= now { connection.fail(.silent, now) }
        } else if lastReceived + silenceLimit <= now {
            pinged = now
            connection.append(["PING"])
            connection.flush(now)
        }
    }

    /// Ends for good.
    func stop() {
        connection.stop()
        lose()
        subscriptions = [:]
    }

    private func lose() {
        let confirmed = channels.filter(\.value)
        channels = [:]
        pinged = nil
        for subscription in subscriptions.values where confirmed[subscription.channel] == true { subscription.receive(.ended) }
    }

    // MARK: ConnectionUser

    var greeting: [[RedisArgument]] { connection.configuration.authentication }

    func receiveGreeting(_ value: RedisValue, at index: Int) -> RedisError.Reason? {
        switch value {
        case .status("OK"): nil
        case .error(let message): .rejected(message)
        default: .notRedis("an unexpected response to the first commands")
        }
    }

    func didBecomeReady() {
        lastReceived = now
        subscribe(to: Set(subscriptions.values.map(\.channel)))
        connection.flush(now)
    }

    func receive(_ value: RedisValue) -> RedisError.Reason? {
        (lastReceived, pinged) = (MonotonicTime.now(), nil)
        if case .error(let message) = value { return .rejected(message) }
        guard let parts = value.elements, let kind = parts.first?.text else { return .notRedis("a response that is no message") }
        switch (kind, parts.count) {
        case ("subscribe", 3):
            guard let channel = parts[1].text, channels[channel] != nil else { return nil }
            channels[channel] = true
            for subscription in subscriptions.values where subscription.channel == channel { subscription.receive(.began) }
        case ("message", 3):
            guard let channel = parts[1].text, let data = parts[2].data else { return .notRedis("a message without text") }
            for subscription in subscriptions.values where subscription.channel == channel { subscription.receive(.message(data)) }
        case ("unsubscribe", 3), ("pong", 2): break
        default: return .notRedis("a message of the kind \(kind.prefix(20))")
        }
        return nil
    }

    func didFail(_ reason: RedisError.Reason) { lose() }
}
#endif
