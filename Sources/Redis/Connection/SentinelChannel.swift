// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Knows the sentinels. Confined to the client's thread.
protocol SentinelChannelOwner: AnyObject {
    /// A sentinel has said which server is the master, or why it can't.
    func answered(_ answer: SentinelTopology.Answer?, _ failure: RedisError.Reason?, by channel: SentinelChannel)
    /// A sentinel has announced another master.
    func didSwitch(_ channel: SentinelChannel)
}

/// The connection to a sentinel: receives what it announces, and asks it for the master. Confined to the client's thread.
final class SentinelChannel: ListeningChannel {
    private static let announcements = "+switch-master"

    let connection: RedisConnection
    let index: Int
    private let master: String
    private let isMasterSecure: Bool
    private weak var owner: (any SentinelChannelOwner)?
    var liveness: Liveness
    /// Whether a question has no answer yet.
    private var isAsking = false
    /// The first part of the answer.
    private var address: RedisValue?
    var now: Nanoseconds = 0

    init(_ connection: RedisConnection, _ index: Int, master: String, isMasterSecure: Bool, owner: any SentinelChannelOwner) {
        self.connection = connection
        self.index = index
        self.master = master
        self.isMasterSecure = isMasterSecure
        self.owner = owner
        liveness = Liveness(limit: connection.configuration.silenceLimit.nanoseconds)
        connection.user = self
    }

    private var question: [[RedisArgument]] {
        [
            ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", .text(master)], ["SENTINEL", "MASTER", .text(master)],
            ["SUBSCRIBE", .text(Self.announcements)],
        ]
    }

    /// Asks for the master, unless that has no answer yet, or there is no connection, which begins with the question.
    func ask(_ now: Nanoseconds) {
        guard connection.isReady, !isAsking else { return }
        isAsking = true
        // A connection with subscriptions takes no other commands in RESP2. What is announced in between is in the answer.
        for command in [["UNSUBSCRIBE"]] + question { connection.append(command) }
        connection.flush(now)
    }

    func stop() { connection.stop() }

    // MARK: ConnectionUser

    var greeting: [[RedisArgument]] { connection.authentication + question }

    func receiveGreeting(_ value: RedisValue, at index: Int) -> RedisError.Reason? {
        switch index - connection.authentication.count {
        case 0, 1: return receiveAnswer(value)
        case 2:
            if case .error(let message) = value { return .rejection(message) }
            return value.elements?.first?.text == "subscribe" ? nil : .notRedis("an unexpected response to SUBSCRIBE")
        default:
            if case .error(let message) = value { return .rejection(message) }
            return value == .status("OK") ? nil : .notRedis("an unexpected response to AUTH")
        }
    }

    /// Receives both parts of an answer, one after the other.
    private func receiveAnswer(_ value: RedisValue) -> RedisError.Reason? {
        guard let address else {
            if case .error(let message) = value { return .rejection(message) }
            address = value
            return nil
        }
        (isAsking, self.address) = (false, nil)
        if address == .null {
            owner?.answered(nil, .noMaster, by: self)
        } else if let answer = SentinelTopology.Answer(address: address, details: value, isSecure: isMasterSecure) {
            owner?.answered(answer, nil, by: self)
        } else {
            return .notRedis("no address of a master in the response of a sentinel")
        }
        return nil
    }

    func didBecomeReady() {
        connection.succeeded()
        liveness.received(now)
    }

    func receive(_ value: RedisValue) -> RedisError.Reason? {
        liveness.received(MonotonicTime.now())
        let parts = value.elements ?? []
        switch (parts.first?.text, parts.count) {
        case ("message"?, 3):
            // The name, and the old and the new address. The question has the epoch too.
            let name = parts[2].text?.splitScalars(separator: " ").first
            if parts[1].text == Self.announcements, name.map({ $0.utf8.elementsEqual(master.utf8) }) == true { owner?.didSwitch(self) }
            return nil
        case ("subscribe"?, 3), ("unsubscribe"?, 3), ("pong"?, 2): return nil
        default: return isAsking ? receiveAnswer(value) : .notRedis("a message that is none of a sentinel")
        }
    }

    func didFail(_ reason: RedisError.Reason) {
        (isAsking, address) = (false, nil)
        owner?.answered(nil, reason, by: self)
    }
}
#endif
