// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A client of a Redis or Valkey server, of the master that sentinels know, or of a cluster, which the stores of this product share.
///
/// ```swift
/// let redis = try RedisClient(RedisConfiguration(.unix(path: "/run/redis/redis.sock")))
/// ```
///
/// It has a thread of its own and two connections: one for commands, which are pipelined, one for messages of channels; to each node of a
/// cluster that is used, and one more to each sentinel. They establish themselves again when they end, with backoff. While the server is
/// away, or owes a response for longer than ``RedisConfiguration/commandTimeout``, commands fail at once with
/// ``RedisError/unavailable(_:_:)``; each store's documentation says what that means.
///
/// With sentinels or a cluster, the client learns of a fail-over by what these announce, by a lost connection, and by what servers respond, and
/// sends commands to the new master. A command that a server has refused because it is no master or does not own the slot is sent again, within
/// the time of the command. One that was in flight when its connection ended fails with ``RedisError/connectionLost(command:_:)``, unless it
/// may be executed twice: then it is sent again, too.
///
/// Thread-safe. Ends with ``close()``, or its last reference.
public final class RedisClient: Sendable {
    /// The configuration.
    public let configuration: RedisConfiguration
    private let mailbox: RedisMailbox

    /// Creates a client, which begins to connect. A server that is away is no error: it may come back.
    ///
    /// - Throws: ``RedisError/invalidSetting(_:)``, or the system's `POSIXError` if the process has no descriptors left.
    public init(_ configuration: RedisConfiguration) throws {
        try configuration.check()
        self.configuration = configuration
        mailbox = try RedisThread.start(configuration)
    }

    deinit { mailbox.close() }

    /// Why commands are refused at once; `nil` while they are not.
    var refusal: RedisError? { mailbox.refusal }
    /// The nodes of a cluster that own slots, or the master that sentinels have named; `nil` before one is known.
    var masters: [RedisConfiguration.Address]? { mailbox.masters }

    /// Ends the connections. Commands in flight, and later ones, fail with ``RedisError/closed``.
    public func close() { mailbox.close() }

    /// Checks whether the server responds; throws why not. For health checks.
    public func ping() async throws(RedisError) {
        guard try await run(["PING"]) == .status("PONG") else { throw .unexpectedResponse(command: "PING") }
    }

    // MARK: Commands

    /// Sends a command; `completion` is called once, on the client's thread or on the caller's, and must not block.
    ///
    /// - Parameter node: the node of a cluster, or the sentinel, that executes it; `nil` for the one that owns its key, or the master.
    package func submit(
        _ arguments: [RedisArgument], to node: RedisConfiguration.Address? = nil, timeout: Duration? = nil,
        completion: @escaping @Sendable (Result<RedisValue, RedisError>) -> Void
    ) {
        let timeout = timeout ?? configuration.commandTimeout
        let deadline = MonotonicTime.now() + timeout.nanoseconds
        submit(arguments, timeout, deadline, to: node, isRepeatable: arguments.isRead, completion)
    }

    func submit(
        _ arguments: [RedisArgument], _ timeout: Duration, _ deadline: Nanoseconds, to node: RedisConfiguration.Address? = nil,
        slot: Int? = nil, isRepeatable: Bool, _ completion: @escaping @Sendable (Result<RedisValue, RedisError>) -> Void
    ) {
        var bytes: [UInt8] = []
        bytes.appendCommand(arguments)
        // The slots of other servers are not asked for.
        let slot: Int? = if case .cluster = configuration.address { slot ?? arguments.slot } else { nil }
        let command = RedisCommand(
            name: arguments.name, bytes: bytes, target: node.map { .node($0) } ?? slot.map { .slot($0) } ?? .any, timeout: timeout,
            deadline: deadline, isRepeatable: isRepeatable, completion: completion)
        if let refusal = mailbox.post([command]) { completion(.failure(refusal)) }
    }

    /// Sends a command, and waits for the response.
    package func run(_ arguments: [RedisArgument]) async throws(RedisError) -> RedisValue {
        try await withCheckedContinuation { continuation in
            submit(arguments) { continuation.resume(returning: $0) }
        }.get()
    }

    /// Sends a command, and blocks until the response has arrived, at most for the timeout.
    package func block(_ arguments: [RedisArgument], to node: RedisConfiguration.Address? = nil) throws(RedisError) -> RedisValue {
        try blocking(arguments.name) { submit(arguments, to: node, completion: $0) }
    }

    /// The nodes that have all keys together: those of a cluster, or `nil` alone for the only server.
    func nodes() throws(RedisError) -> [RedisConfiguration.Address?] {
        guard case .cluster = configuration.address else { return [nil] }
        // Once anything was answered, they are known.
        if mailbox.masters == nil { _ = try block(["PING"]) }
        guard let masters = mailbox.masters else { throw .unavailable(configuration.address, .connecting) }
        return masters
    }

    /// Sends commands, and blocks until all have responded, at most for the timeout.
    package func blockAll(_ commands: [[RedisArgument]]) throws(RedisError) -> [RedisValue] {
        let results = Lock([Int: Result<RedisValue, RedisError>]())
        let group = DispatchGroup()
        for (index, command) in commands.enumerated() {
            group.enter()
            submit(command) { result in
                results.withLock { $0[index] = result }
                group.leave()
            }
        }
        _ = group.wait(timeout: .now() + .nanoseconds(Int(configuration.commandTimeout.nanoseconds) + 10_000_000))
        let found = results.withLock { $0 }
        var values: [RedisValue] = []
        for (index, command) in commands.enumerated() {
            guard let result = found[index] else { throw .timedOut(command: command.name, after: configuration.commandTimeout) }
            values.append(try result.get())
        }
        return values
    }

    func blocking(
        _ name: String, _ start: (@escaping @Sendable (Result<RedisValue, RedisError>) -> Void) -> Void
    ) throws(RedisError) -> RedisValue {
        let result = Lock<Result<RedisValue, RedisError>?>(nil)
        let isDone = DispatchSemaphore(value: 0)
        start { value in
            result.withLock { $0 = value }
            isDone.signal()
        }
        // The thread observes the deadline itself; this one is for a thread that the system does not run.
        _ = isDone.wait(timeout: .now() + .nanoseconds(Int(configuration.commandTimeout.nanoseconds) + 10_000_000))
        if let value = result.withLock({ $0 }) { return try value.get() }
        throw .timedOut(command: name, after: configuration.commandTimeout)
    }

    // MARK: Channels

    /// Receives the messages of a channel for as long as the result is retained. The closure is called on the client's thread, and must not
    /// block.
    ///
    /// - Parameter bySlot: whether the messages are published with ``publishCommand``.
    package func subscribe(
        to channel: String, bySlot: Bool = false, _ receive: @escaping @Sendable (SubscriptionEvent) -> Void
    ) -> RedisSubscription {
        RedisSubscription(mailbox, mailbox.subscribe(to: channel, bySlot: bySlot, receive))
    }
}

/// A subscription, which ends with its last reference.
package final class RedisSubscription: Sendable {
    private let mailbox: RedisMailbox
    private let id: Int

    init(_ mailbox: RedisMailbox, _ id: Int) {
        self.mailbox = mailbox
        self.id = id
    }

    deinit { mailbox.unsubscribe(id) }
}

extension [RedisArgument] {
    /// The name of the command.
    fileprivate var name: String { if case .text(let name)? = first { name } else { "" } }

    /// The commands in use that change nothing. `SCAN` is none of them, as its cursor is one server's.
    private static let reads: Set = ["GET", "HGET", "HMGET", "HSTRLEN", "SISMEMBER", "PING", "INFO"]

    /// Whether the command changes nothing.
    fileprivate var isRead: Bool { Self.reads.contains(name) }
}
#endif
