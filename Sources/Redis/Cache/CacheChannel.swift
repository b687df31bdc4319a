// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// The channel on which the processes that share a store notify each other of what they have changed in it. Thread-safe.
final class CacheChannel: Sendable {
    /// A notification on the channel.
    enum Message: Sendable, Equatable {
        case changed(CacheKey)
        case all
        case leaseEnded(CacheKey)
        case tagRemoved(String)
    }

    private struct State {
        var isSubscribed = false
        var lastObserver = 0
        var observers: [Int: @Sendable (CacheKey?) -> Void] = [:]
        var tagObservers: [Int: @Sendable (String) -> Void] = [:]
        var lastWaiter = 0
        var waiters: [Int: (key: CacheKey, semaphore: DispatchSemaphore)] = [:]
        var subscription: RedisSubscription?
    }

    let name: String
    private let format: ValueFormat
    private let state = Lock(State())
    /// Marks this store's own messages, which it ignores.
    private let sender = (0..<16).map { _ in UInt8.random(in: .min ... .max) }

    init(_ client: RedisClient, name: String, format: ValueFormat) {
        self.name = name
        self.format = format
        let subscription = client.subscribe(to: name) { [weak self] event in self?.receive(event) }
        state.withLock { $0.subscription = subscription }
    }

    // MARK: Sending

    /// The bytes of a message: its kind, its sender, and a key or a tag.
    func message(_ message: Message) throws -> Data {
        let (kind, key): (UInt8, Data) =
            switch message {
            case .changed(let key): (UInt8(ascii: "C"), key.bytes)
            case .all: (UInt8(ascii: "A"), Data())
            case .leaseEnded(let key): (UInt8(ascii: "L"), key.bytes)
            case .tagRemoved(let tag): (UInt8(ascii: "T"), Data(tag.utf8))
            }
        return try format.encode(Data([kind] + sender) + key, for: name)
    }

    // MARK: Receiving

    private func receive(_ event: SubscriptionEvent) {
        switch event {
        case .began, .ended:
            // Changes may have been missed, or will be.
            let observers = state.withLock { state in
                if case .began = event { state.isSubscribed = true } else { state.isSubscribed = false }
                return Array(state.observers.values)
            }
            for report in observers { report(nil) }
        case .message(let data):
            // What is no message of this product may come from any program with access to the server.
            guard let bytes = try? format.decode(data, of: name), bytes.count >= 17 else { return }
            let key = CacheKey(bytes: Data(bytes.dropFirst(17)))
            let isOwn = bytes.dropFirst().prefix(16).elementsEqual(sender)
            switch bytes.first {
            case UInt8(ascii: "C")? where !isOwn: report(key)
            case UInt8(ascii: "A")? where !isOwn: report(nil)
            case UInt8(ascii: "L")?: wake(key)
            case UInt8(ascii: "T")? where !isOwn: reportRemoval(ofTag: String(decoding: key.bytes, as: UTF8.self))
            default: break
            }
        }
    }

    private func report(_ key: CacheKey?) {
        for report in state.withLock({ Array($0.observers.values) }) { report(key) }
    }

    private func reportRemoval(ofTag tag: String) {
        for report in state.withLock({ Array($0.tagObservers.values) }) { report(tag) }
    }

    private func wake(_ key: CacheKey) {
        for waiter in state.withLock({ $0.waiters.values.filter { $0.key == key } }) { waiter.semaphore.signal() }
    }

    /// Reports that anything may have changed, unless changes are received: copies of what was read must not be kept.
    func distrustUnlessSubscribed() {
        let observers = state.withLock { $0.isSubscribed ? [] : Array($0.observers.values) }
        for report in observers { report(nil) }
    }

    func observe(_ report: @escaping @Sendable (CacheKey?) -> Void) -> CacheObservation {
        let (id, isSubscribed) = state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = report
            return (state.lastObserver, state.isSubscribed)
        }
        // What has changed before is not known.
        if isSubscribed { report(nil) }
        return CacheObservation { [weak self] in self?.state.withLock { _ = $0.observers.removeValue(forKey: id) } }
    }

    func observeRemovedTags(_ report: @escaping @Sendable (String) -> Void) -> CacheObservation {
        let id = state.withLock { state in
            state.lastObserver += 1
            state.tagObservers[state.lastObserver] = report
            return state.lastObserver
        }
        return CacheObservation { [weak self] in self?.state.withLock { _ = $0.tagObservers.removeValue(forKey: id) } }
    }

    /// The number of threads that wait.
    var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// Whether changes are received.
    var isSubscribed: Bool { state.withLock { $0.isSubscribed } }
}

extension CacheChannel {
    /// Registers a thread that waits; messages count from now on.
    func waitForLeaseEnd(of key: CacheKey) -> LeaseWaiter {
        let semaphore = DispatchSemaphore(value: 0)
        let id = state.withLock { state in
            state.lastWaiter += 1
            state.waiters[state.lastWaiter] = (key, semaphore)
            return state.lastWaiter
        }
        return LeaseWaiter(semaphore) { [weak self] in self?.state.withLock { _ = $0.waiters.removeValue(forKey: id) } }
    }
}

/// A thread that waits for the end of a lease. Registered until it is released.
final class LeaseWaiter: Sendable {
    private let semaphore: DispatchSemaphore
    private let end: @Sendable () -> Void

    init(_ semaphore: DispatchSemaphore, _ end: @escaping @Sendable () -> Void) {
        self.semaphore = semaphore
        self.end = end
    }

    deinit { end() }

    /// Waits for the message, at most for a number of nanoseconds.
    func wait(_ time: Nanoseconds) { _ = semaphore.wait(timeout: .now() + .nanoseconds(Int(time))) }
}
#endif
