// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A client of a Redis or Valkey server, which the stores of this product share.
///
/// ```swift
/// let redis = try RedisClient(RedisConfiguration(.unix(path: "/run/redis/redis.sock")))
/// ```
///
/// It has a thread of its own and two connections: one for commands, which are pipelined, one for messages of channels. Both establish
/// themselves again when they end, with backoff. While the server is away, or owes a response for longer than
/// ``RedisConfiguration/commandTimeout``, commands fail at once with ``RedisError/unavailable(_:_:)``; each store's documentation says what
/// that means.
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

    /// Ends the connections. Commands in flight, and later ones, fail with ``RedisError/closed``.
    public func close() { mailbox.close() }

    /// Checks whether the server responds; throws why not. For health checks.
    public func ping() async throws(RedisError) {
        guard try await run(["PING"]) == .status("PONG") else { throw .unexpectedResponse(command: "PING") }
    }

    // MARK: Commands

    /// Sends a command; `completion` is called once, on the client's thread or on the caller's, and must not block.
    package func submit(
        _ arguments: [RedisArgument], timeout: Duration? = nil,
        completion: @escaping @Sendable (Result<RedisValue, RedisError>) -> Void
    ) {
        let timeout = timeout ?? configuration.commandTimeout
        submit(arguments, timeout: timeout, deadline: MonotonicTime.now() + timeout.nanoseconds, completion)
    }

    func submit(
        _ arguments: [RedisArgument], timeout: Duration, deadline: Nanoseconds,
        _ completion: @escaping @Sendable (Result<RedisValue, RedisError>) -> Void
    ) {
        var bytes: [UInt8] = []
        bytes.appendCommand(arguments)
        let command = RedisCommand(name: arguments.name, bytes: bytes, timeout: timeout, deadline: deadline, completion: completion)
        if let refusal = mailbox.post([command]) { completion(.failure(refusal)) }
    }

    /// Sends a command, and waits for the response.
    package func run(_ arguments: [RedisArgument]) async throws(RedisError) -> RedisValue {
        try await withCheckedContinuation { continuation in
            submit(arguments) { continuation.resume(returning: $0) }
        }.get()
    }

    /// Sends a command, and blocks until the response has arrived, at most for the timeout.
    package func block(_ arguments: [RedisArgument]) throws(RedisError) -> RedisValue {
        try blocking(arguments.name) { submit(arguments, completion: $0) }
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
    package func subscribe(
        to channel: String, _ receive: @escaping @Sendable (SubscriptionEvent) -> Void
    ) -> RedisSubscription {
        RedisSubscription(mailbox, mailbox.subscribe(to: channel, receive))
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
}

extension RedisConfiguration {
    /// Throws for settings that can't work.
    fileprivate func check() throws(RedisError) {
        func require(_ condition: Bool, _ message: String) throws(RedisError) { if !condition { throw .invalidSetting(message) } }
        switch address {
        case .unix(let path):
            try require(SocketAddress(path: path) != nil, "The path of a Unix socket has 1 to 103 bytes: \(path)")
        case .tcp(let host, let port), .tls(let host, let port):
            try require(!host.isEmpty && (1...65_535).contains(port), "A host and a port from 1 to 65,535 are needed: \(address)")
        }
        try require(password != nil || username == nil, "A user without a password can't be authenticated.")
        try require(database >= 0, "The number of a database is not negative: \(database)")
        try require(!prefix.isEmpty, "The prefix of the keys is empty.")
        for time in [commandTimeout, connectTimeout, longestBackoff, silenceLimit] {
            try require(time >= .milliseconds(1), "A time limit of \(time) is below 1 millisecond.")
        }
        try require(maximumPending > 0 && largestResponse > 0, "The limits of commands and responses have to be above 0.")
    }
}
#endif
