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
    /// Whether its messages are published to the slot of the channel's name, where the server can do that.
    let isBySlot: Bool
    let receive: @Sendable (SubscriptionEvent) -> Void
}

/// The connection of the subscriptions to a server, established with the first one. Confined to the client's thread.
final class SubscriptionChannel: ListeningChannel {
    let connection: RedisConnection
    private let isInCluster: Bool
    private var subscriptions: [Int: Subscription] = [:]
    /// The channels that were subscribed to on this connection, and whether the server has confirmed that.
    private var channels: [String: Bool] = [:]
    var liveness: Liveness
    /// Whether the server has messages by slot (`SPUBLISH`, from 7.0 on): known by the variable of scripts by which they choose it too.
    private var hasSlots = false
    var now: Nanoseconds = 0
    /// The server is away, or has refused a subscription or ended it: the slots may be another server's.
    var isInDoubt = false
    /// How many responses to `SUNSUBSCRIBE` are due, for each channel.
    private var ending: [String: Int] = [:]

    init(_ connection: RedisConnection, isInCluster: Bool) {
        self.connection = connection
        self.isInCluster = isInCluster
        liveness = Liveness(limit: connection.configuration.silenceLimit.nanoseconds)
        connection.user = self
    }

    var isEmpty: Bool { subscriptions.isEmpty }

    func add(_ subscription: Subscription, _ now: Nanoseconds) {
        self.now = now
        subscriptions[subscription.id] = subscription
        guard connection.isReady else { return connection.start(now) }
        switch channels[subscription.channel] {
        case true?: subscription.receive(.began)
        case false?: break
        case nil:
            subscribe([subscription])
            connection.flush(now)
        }
    }

    func remove(_ id: Int, _ now: Nanoseconds) {
        guard let removed = subscriptions.removeValue(forKey: id), connection.isReady,
            !subscriptions.values.contains(where: { $0.channel == removed.channel })
        else { return }
        channels[removed.channel] = nil
        if isBySlot(removed) { ending[removed.channel, default: 0] += 1 }
        connection.append([isBySlot(removed) ? "SUNSUBSCRIBE" : "UNSUBSCRIBE", .text(removed.channel)])
        connection.flush(now)
    }

    /// Removes a subscription that another server gets.
    func withdraw(_ id: Int, _ now: Nanoseconds) {
        let subscription = subscriptions[id]
        let isConfirmed = subscription.map { channels[$0.channel] == true } ?? false
        remove(id, now)
        if isConfirmed { subscription?.receive(.ended) }
    }

    private func isBySlot(_ subscription: Subscription) -> Bool { hasSlots && subscription.isBySlot }

    private func subscribe(_ subscriptions: some Collection<Subscription>) {
        let plain = Set(subscriptions.filter { !isBySlot($0) }.map(\.channel))
        if !plain.isEmpty { connection.append(["SUBSCRIBE"] + plain.map { .text($0) }) }
        // One at a time, as those of a command have to be in one slot.
        let sharded = Set(subscriptions.filter { isBySlot($0) }.map(\.channel))
        for name in sharded { connection.append(["SSUBSCRIBE", .text(name)]) }
        for name in plain.union(sharded) { channels[name] = false }
    }

    /// Ends for good.
    func stop() {
        connection.stop()
        lose()
        subscriptions = [:]
    }

    private func lose() {
        let confirmed = channels.filter(\.value)
        (channels, ending) = ([:], [:])
        for subscription in subscriptions.values where confirmed[subscription.channel] == true { subscription.receive(.ended) }
    }

    // MARK: ConnectionUser

    var greeting: [[RedisArgument]] {
        connection.authentication + (isInCluster ? [["EVAL", "return redis.REDIS_VERSION_NUM and 1 or 0", 0]] : [])
    }

    func receiveGreeting(_ value: RedisValue, at index: Int) -> RedisError.Reason? {
        switch value {
        case .integer(let number) where isInCluster && index == connection.authentication.count:
            hasSlots = number == 1
            return nil
        case .status("OK"): return nil
        case .error(let message): return .rejection(message)
        default: return .notRedis("an unexpected response to the first commands")
        }
    }

    func didBecomeReady() {
        liveness.received(now)
        subscribe(subscriptions.values)
        connection.flush(now)
    }

    func receive(_ value: RedisValue) -> RedisError.Reason? {
        liveness.received(MonotonicTime.now())
        if case .error(let message) = value { return .rejection(message) }
        // The response to PING without subscriptions, after the last one has ended.
        if value == .status("PONG") { return nil }
        guard let parts = value.elements, let kind = parts.first?.text else { return .notRedis("a response that is no message") }
        switch (kind, parts.count) {
        case ("subscribe", 3), ("ssubscribe", 3):
            guard let channel = parts[1].text, channels[channel] != nil else { return nil }
            channels[channel] = true
            connection.succeeded()
            for subscription in subscriptions.values where subscription.channel == channel { subscription.receive(.began) }
        case ("message", 3), ("smessage", 3):
            guard let channel = parts[1].text, let data = parts[2].data else { return .notRedis("a message without text") }
            for subscription in subscriptions.values where subscription.channel == channel { subscription.receive(.message(data)) }
        case ("sunsubscribe", 3):
            guard let channel = parts[1].text else { return nil }
            if let count = ending[channel] {
                ending[channel] = count == 1 ? nil : count - 1
                return nil
            }
            // Without a request: the slot is another server's now.
            return channels[channel] == nil ? nil : .notMaster
        case ("unsubscribe", 3), ("pong", 2): break
        default: return .notRedis("a message of the kind \(kind.prefix(20))")
        }
        return nil
    }

    func didFail(_ reason: RedisError.Reason) {
        isInDoubt = true
        lose()
    }
}
#endif
