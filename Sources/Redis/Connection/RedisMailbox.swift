// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What callers hand to the client's thread, and whether it takes it. Thread-safe.
final class RedisMailbox: Sendable {
    /// What the thread is to do.
    struct Work: Sendable {
        var commands: [RedisCommand] = []
        var added: [Subscription] = []
        var removed: [Int] = []
        var prepared: [Prepared] = []
        var hasSecureStreamChanged = false
        var isClosed = false
    }

    /// What an attempt of a connection has waited for.
    struct Prepared: Sendable {
        let connection: Int
        let attempt: Int
        let preparation: RedisConnection.Preparation
    }

    private struct State {
        var work = Work()
        var pending = 0
        var refusal: RedisError?
        /// The nodes of a cluster that own slots, or the master that sentinels have named; `nil` before one is known.
        var masters: [RedisConfiguration.Address]?
        var lastSubscription = 0
        var isSignalled = false

        /// Whether the thread has to be woken up: once, until it takes the work.
        var signals: Bool {
            mutating get {
                defer { isSignalled = true }
                return !isSignalled
            }
        }
    }

    private let state = Lock(State())
    private let wakeUp: WakeUp
    private let limit: Int

    init(_ wakeUp: WakeUp, limit: Int) {
        self.wakeUp = wakeUp
        self.limit = limit
    }

    /// Why commands are refused at once; `nil` while they are not.
    var refusal: RedisError? { state.withLock { $0.refusal } }

    /// Refuses commands at once from now on, or accepts them again.
    func setRefusal(_ error: RedisError?) { state.withLock { $0.refusal = error } }

    /// The nodes of a cluster that own slots, or the master that sentinels have named; `nil` before one is known.
    var masters: [RedisConfiguration.Address]? { state.withLock { $0.masters } }

    /// Sets the nodes that own slots, or the master.
    func setMasters(_ masters: [RedisConfiguration.Address]) { state.withLock { $0.masters = masters } }

    /// Completes a command that was handed over.
    func complete(_ command: RedisCommand, _ result: Result<RedisValue, RedisError>) {
        state.withLock { $0.pending -= 1 }
        command.completion(result)
    }

    /// Hands commands over, all or none; returns why not.
    func post(_ commands: [RedisCommand]) -> RedisError? {
        let (refusal, signals) = state.withLock { state -> (RedisError?, Bool) in
            if state.work.isClosed { return (.closed, false) }
            if let refusal = state.refusal { return (refusal, false) }
            guard state.pending + commands.count <= limit else { return (.overloaded(limit: limit), false) }
            state.pending += commands.count
            state.work.commands += commands
            return (nil, state.signals)
        }
        if signals { wakeUp.signal() }
        return refusal
    }

    /// Adds a subscription; returns its number.
    func subscribe(to channel: String, bySlot: Bool, _ receive: @escaping @Sendable (SubscriptionEvent) -> Void) -> Int {
        post { work, last in
            last += 1
            work.added.append(Subscription(id: last, channel: channel, isBySlot: bySlot, receive: receive))
            return last
        }
    }

    /// Ends a subscription.
    func unsubscribe(_ id: Int) { post { work, _ in work.removed.append(id) } }

    /// Brings what an attempt of a connection has waited for.
    func prepared(_ connection: Int, _ attempt: Int, _ preparation: RedisConnection.Preparation) {
        post { work, _ in work.prepared.append(Prepared(connection: connection, attempt: attempt, preparation: preparation)) }
    }

    /// A TLS connection has something for the thread.
    func secureStreamChanged() { post { work, _ in work.hasSecureStreamChanged = true } }

    /// Ends the thread.
    func close() { post { work, _ in work.isClosed = true } }

    private func post<Value>(_ change: (inout Work, inout Int) -> Value) -> Value {
        let (value, signals) = state.withLock { state in
            let value = change(&state.work, &state.lastSubscription)
            return (value, state.signals)
        }
        if signals { wakeUp.signal() }
        return value
    }

    /// Takes what there is to do. Later work wakes the thread up again.
    func take() -> Work {
        state.withLock { state in
            state.isSignalled = false
            defer { state.work = Work(isClosed: state.work.isClosed) }
            return state.work
        }
    }
}
#endif
