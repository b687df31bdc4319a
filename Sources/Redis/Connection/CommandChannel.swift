// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A command, and what receives its response.
struct RedisCommand: Sendable {
    let name: String
    let bytes: [UInt8]
    let timeout: Duration
    let deadline: Nanoseconds
    /// Called once, on the client's thread or on that of the caller, and must not block.
    let completion: @Sendable (Result<RedisValue, RedisError>) -> Void
}

/// The connection of the commands: pipelines them, and ends their waits at their deadlines. Confined to the client's thread.
final class CommandChannel: ConnectionUser {
    /// A command that was sent, in the order of the responses. Without a command its deadline has passed, and its response is dropped.
    private struct Sent {
        var command: RedisCommand?
    }

    let connection: RedisConnection
    private let mailbox: RedisMailbox
    /// Commands that wait for the first connection.
    private var held: [RedisCommand] = []
    private var sent: [Sent] = []
    private var head = 0
    /// No command's deadline is before this time.
    private var earliest = Nanoseconds.max
    /// Since when the server owes a response whose deadline has passed.
    private var silentSince: Nanoseconds?
    private var now: Nanoseconds = 0

    init(_ connection: RedisConnection, mailbox: RedisMailbox) {
        self.connection = connection
        self.mailbox = mailbox
        connection.user = self
    }

    // MARK: Commands

    /// Sends commands.
    func submit(_ commands: [RedisCommand], _ now: Nanoseconds) {
        self.now = now
        for command in commands { earliest = min(earliest, command.deadline) }
        guard connection.isReady else {
            if connection.isFirstAttempt { return held += commands }
            let error = mailbox.refusal ?? .unavailable(connection.configuration.address, .connecting)
            for command in commands { complete(command, .failure(error)) }
            return
        }
        for command in commands {
            sent.append(Sent(command: command))
            connection.append(command.bytes)
        }
        connection.flush(now)
    }

    private func complete(_ command: RedisCommand, _ result: Result<RedisValue, RedisError>) {
        mailbox.completed()
        command.completion(result)
    }

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
        let silence = silentSince.map { $0 + connection.configuration.silenceLimit.nanoseconds }
        return [connection.nextTime, silence, earliest].compactMap { $0 }.min()
    }

    /// Ends the waits whose deadlines have passed, and does what else is due.
    func advance(_ now: Nanoseconds) {
        self.now = now
        if earliest <= now { endLate(now) }
        if let since = silentSince, since + connection.configuration.silenceLimit.nanoseconds <= now { connection.fail(.silent, now) }
        connection.advance(now)
    }

    private func endLate(_ now: Nanoseconds) {
        for index in sent.indices[head...] {
            guard let command = sent[index].command, command.deadline <= now else { continue }
            sent[index].command = nil
            if silentSince == nil {
                silentSince = now
                mailbox.refuse(.unavailable(connection.configuration.address, .silent))
            }
            complete(command, .failure(.timedOut(command: command.name, after: command.timeout)))
        }
        let late = held.filter { $0.deadline <= now }
        held.removeAll { $0.deadline <= now }
        for command in late { complete(command, .failure(.unavailable(connection.configuration.address, .connecting))) }
        let deadlines = held.map(\.deadline) + sent[head...].compactMap { $0.command?.deadline }
        earliest = deadlines.min() ?? .max
    }

    /// Fails everything, for good.
    func stop() {
        connection.stop()
        let commands = held + sent[head...].compactMap(\.command)
        (held, sent, head) = ([], [], 0)
        for command in commands { complete(command, .failure(.closed)) }
    }

    // MARK: ConnectionUser

    var greeting: [[RedisArgument]] { connection.configuration.authentication + [["INFO", "server"]] }

    func receiveGreeting(_ value: RedisValue, at index: Int) -> RedisError.Reason? {
        let isLast = index == connection.configuration.authentication.count
        if case .error(let message) = value {
            // A user whom the server's rules don't allow INFO may use it all the same.
            // A server repeats the arguments of a command that it does not know, and those of AUTH are secret.
            let shown = message.firstScalarRange(of: ", with args").map { String(message[..<$0.lowerBound]) } ?? message
            return isLast && message.hasBytePrefix("NOPERM") ? nil : .rejected(shown)
        }
        guard isLast else { return value == .status("OK") ? nil : .notRedis("an unexpected response to the first commands") }
        guard let text = value.text, let line = text.split(whereSeparator: \.isNewline).first(where: { $0.hasBytePrefix("redis_version:") })
        else { return .notRedis("no version in the response to INFO") }
        let version = String(line.dropFirstScalars("redis_version:".count))
        guard let major = version.splitScalars(separator: ".").first.flatMap({ Int($0) }) else {
            return .notRedis("the version \(version)")
        }
        return major < 5 ? .unsupportedVersion(version) : nil
    }

    func didBecomeReady() {
        silentSince = nil
        mailbox.admit()
        let commands = held
        held = []
        submit(commands, now)
    }

    func receive(_ value: RedisValue) -> RedisError.Reason? {
        guard head < sent.count else { return .notRedis("a response without a command") }
        let command = sent[head].command
        head += 1
        if head == sent.count {
            sent.removeAll(keepingCapacity: head < 4_096)
            head = 0
        } else if head >= 4_096 {
            sent.removeFirst(head)
            head = 0
        }
        if silentSince != nil {
            silentSince = nil
            mailbox.admit()
        }
        if let command { complete(command, command.outcome(of: value)) }
        return nil
    }

    func didFail(_ reason: RedisError.Reason) {
        silentSince = nil
        mailbox.refuse(.unavailable(connection.configuration.address, reason))
        let (lost, refused) = (sent[head...].compactMap(\.command), held)
        (held, sent, head) = ([], [], 0)
        for command in lost { complete(command, .failure(.connectionLost(command: command.name, reason))) }
        for command in refused { complete(command, .failure(.unavailable(connection.configuration.address, reason))) }
    }
}

extension RedisCommand {
    /// Returns the response, or the error that it is.
    fileprivate func outcome(of value: RedisValue) -> Result<RedisValue, RedisError> {
        guard case .error(let text) = value else { return .success(value) }
        let code = String(text.prefixScalars { $0 != " " })
        let message = String(text.dropFirstScalars(code.unicodeScalars.count + 1))
        // A script's error has the code of the command in it only since 7.0; before, its text.
        if code == "OOM" || text.contains("OOM command not allowed") { return .failure(.serverFull(command: name, message: message)) }
        return .failure(.refused(command: name, code: code, message: message))
    }
}
#endif
