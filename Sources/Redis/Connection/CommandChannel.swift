// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A command, and what receives its response.
struct RedisCommand: Sendable {
    /// The server that a command is for.
    enum Target: Sendable, Hashable {
        /// Any, of a cluster.
        case any
        /// The one that owns a slot.
        case slot(Int)
        /// This one: of a cluster, or the master or a sentinel.
        case node(RedisConfiguration.Address)
    }

    let name: String
    let bytes: [UInt8]
    let target: Target
    let timeout: Duration
    let deadline: Nanoseconds
    /// Whether it may be executed twice.
    let isRepeatable: Bool
    /// Whether it asks for the slots of the cluster, for the client's own use.
    var isQuestion = false
    /// Called once, on the client's thread or on that of the caller, and must not block.
    let completion: @Sendable (Result<RedisValue, RedisError>) -> Void
    /// The number of attempts that were refused or lost.
    var attempts = 0
    /// The error of the last of them.
    var error: RedisError?
    /// The node that has got the keys already while their slot is being migrated.
    var migratedTo: RedisConfiguration.Address?
}

/// Knows the servers: decides what becomes of a command that one of them could not execute. Confined to the client's thread.
protocol CommandChannelOwner: AnyObject {
    /// Takes a command that was refused; `false` to complete it with the error.
    func takes(_ command: RedisCommand, refusedWith error: RedisError, _ message: String, by channel: CommandChannel) -> Bool
    /// Takes a command whose connection has ended; `false` to complete it with the error.
    func takes(_ command: RedisCommand, lostWith error: RedisError, wasSent: Bool) -> Bool
    /// A question for the slots was answered.
    func answered(_ result: Result<RedisValue, RedisError>, by channel: CommandChannel)
    /// The connection was established.
    func didConnect(_ channel: CommandChannel)
    /// The connection has ended, or could not be established.
    func didDisconnect(_ channel: CommandChannel)
    /// Commands are refused, or accepted again.
    func didChangeRefusal(of channel: CommandChannel)
}

/// The connection of the commands for a server: pipelines them, and ends their waits at their deadlines. Confined to the client's thread.
final class CommandChannel: RedisChannel {
    /// What the server has to be.
    enum Role { case any, master, sentinel }

    /// A command that was sent, in the order of the responses. Without a command its deadline has passed, and its response is dropped.
    private struct Sent {
        var command: RedisCommand?
    }

    let connection: RedisConnection
    private let mailbox: RedisMailbox
    private let role: Role
    private weak var owner: (any CommandChannelOwner)?
    /// Commands that wait for the first connection.
    private var held: [RedisCommand] = []
    private var sent: [Sent] = []
    private var head = 0
    /// No command's deadline is before this time.
    private var earliest = Nanoseconds.max
    /// Since when the server owes a response whose deadline has passed.
    private var silentSince: Nanoseconds?
    /// Whether the connection ends with the last response, because the server is the master no longer.
    private var isLeaving = false
    var now: Nanoseconds = 0
    /// Why commands are refused at once; `nil` while they are not.
    private(set) var refusal: RedisError? {
        didSet { if refusal != oldValue { owner?.didChangeRefusal(of: self) } }
    }

    init(_ connection: RedisConnection, mailbox: RedisMailbox, role: Role, owner: any CommandChannelOwner) {
        self.connection = connection
        self.mailbox = mailbox
        self.role = role
        self.owner = owner
        connection.user = self
    }

    private func unavailable(_ reason: RedisError.Reason) -> RedisError { .unavailable(connection.address, reason) }

    /// Whether commands would be sent, now or when the connection is established.
    var accepts: Bool { refusal == nil && (connection.isReady || connection.isFirstAttempt) }
    /// Whether no command waits for a response or for the connection.
    var isIdle: Bool { held.isEmpty && head == sent.count }

    // MARK: Commands

    /// Sends commands.
    func submit(_ commands: [RedisCommand], _ now: Nanoseconds) {
        self.now = now
        guard accepts else {
            for command in commands { complete(command, .failure(refusal ?? unavailable(.connecting))) }
            return
        }
        for command in commands { earliest = min(earliest, command.deadline) }
        guard connection.isReady else { return held += commands }
        for command in commands {
            if command.migratedTo != nil {
                // Its response says nothing: without effect, the command is refused.
                sent.append(Sent())
                connection.append(["ASKING"])
            }
            sent.append(Sent(command: command))
            connection.append(command.bytes)
        }
        connection.flush(now)
    }

    private func complete(_ command: RedisCommand, _ result: Result<RedisValue, RedisError>) {
        if command.isQuestion { owner?.answered(result, by: self) } else { mailbox.complete(command, result) }
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
                refusal = unavailable(.silent)
            }
            complete(command, .failure(.timedOut(command: command.name, after: command.timeout)))
        }
        let late = held.filter { $0.deadline <= now }
        held.removeAll { $0.deadline <= now }
        for command in late { complete(command, .failure(command.error ?? unavailable(.connecting))) }
        let deadlines = held.map(\.deadline) + sent[head...].compactMap { $0.command?.deadline }
        earliest = deadlines.min() ?? .max
    }

    /// Ends the connection after the responses that are due: one of them has said that the server is no master.
    func leave() {
        isLeaving = true
        refusal = unavailable(.notMaster)
    }

    /// Ends for good, as another server is the master. Commands are lost as with a lost connection.
    func abandon() {
        connection.stop()
        lose(.notMaster)
    }

    /// Fails everything, for good.
    func stop() {
        connection.stop()
        let commands = held + sent[head...].compactMap(\.command)
        (held, sent, head) = ([], [], 0)
        for command in commands { complete(command, .failure(.closed)) }
    }

    // MARK: ConnectionUser

    private var opening: [[RedisArgument]] {
        let database = role == .sentinel ? 0 : connection.configuration.database
        return connection.authentication + (database == 0 ? [] : [["SELECT", .number(database)]])
    }

    var greeting: [[RedisArgument]] { opening + (role == .master ? [["ROLE"]] : []) + [["INFO", "server"]] }

    func receiveGreeting(_ value: RedisValue, at index: Int) -> RedisError.Reason? {
        let isRole = role == .master && index == opening.count
        let isLast = index == greeting.count - 1
        if case .error(let message) = value {
            // A user whom the server's rules don't allow INFO may use it all the same.
            return isLast && message.hasBytePrefix("NOPERM") ? nil : .rejection(message)
        }
        if isRole { return value.elements?.first?.text == "master" ? nil : .notMaster }
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
        connection.succeeded()
        silentSince = nil
        refusal = nil
        owner?.didConnect(self)
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
            if !isLeaving { refusal = nil }
        }
        if let command { finish(command, value) }
        return isLeaving && head == sent.count ? .notMaster : nil
    }

    private func finish(_ command: RedisCommand, _ value: RedisValue) {
        let result = command.outcome(of: value)
        if case .error(let message) = value, case .failure(let error) = result, !command.isQuestion,
            owner?.takes(command, refusedWith: error, message, by: self) == true
        {
            return
        }
        complete(command, result)
    }

    func didFail(_ reason: RedisError.Reason) {
        refusal = unavailable(reason)
        lose(reason)
        owner?.didDisconnect(self)
    }

    private func lose(_ reason: RedisError.Reason) {
        silentSince = nil
        isLeaving = false
        let (lost, refused) = (sent[head...].compactMap(\.command), held)
        (held, sent, head) = ([], [], 0)
        for command in lost { lose(command, .connectionLost(command: command.name, reason), wasSent: true) }
        for command in refused { lose(command, unavailable(reason), wasSent: false) }
    }

    private func lose(_ command: RedisCommand, _ error: RedisError, wasSent: Bool) {
        if command.isQuestion || owner?.takes(command, lostWith: error, wasSent: wasSent) != true { complete(command, .failure(error)) }
    }
}

extension RedisCommand {
    /// The client's own question for the slots of a cluster.
    static func question(for node: RedisConfiguration.Address, _ timeout: Duration, _ now: Nanoseconds) -> Self {
        var bytes: [UInt8] = []
        bytes.appendCommand(["CLUSTER", "SLOTS"])
        return RedisCommand(
            name: "CLUSTER", bytes: bytes, target: .node(node), timeout: timeout, deadline: now + timeout.nanoseconds, isRepeatable: false,
            isQuestion: true, completion: { _ in })
    }

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
