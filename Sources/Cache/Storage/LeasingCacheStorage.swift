// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The right to load what is missing in a shared store, for a limited time.
public struct CacheLease: Sendable, Hashable {
    /// The key of the missing entry.
    public let key: CacheKey
    /// Orders the leases of a key: a later one has a greater number (a fencing number), also after the store has forgotten the key's lease.
    public let number: UInt64

    /// Creates a lease.
    public init(key: CacheKey, number: UInt64) {
        self.key = key
        self.number = number
    }
}

/// A store shared by processes that can agree on which of them loads a missing entry, so that equal misses in all of them become one request.
///
/// A ``ResponseCache`` with ``ResponseCache/coalescesMisses`` uses the leases: the process that gets the lease loads and stores the
/// response, the others wait and then look it up. The end of a lease is the safety net for a process that dies or hangs: another one gets the
/// next lease, with a greater number, and the store refuses what the first one stores later.
///
/// All members may block; they are called on threads that may. Failures count in the statistics, and the request is sent without a lease.
public protocol LeasingCacheStorage: CacheStorage {
    /// Claims a key.
    ///
    /// - Parameter duration: after which the lease ends by itself.
    /// - Returns: `nil` if another lease of the key has not ended.
    func acquireLease(for key: CacheKey, duration: Duration) throws -> CacheLease?
    /// Ends a lease and wakes those that wait for that. Has no effect after the lease has ended.
    func releaseLease(_ lease: CacheLease) throws
    /// Waits until the key has no lease; returns at once if it has none, so that the end of a lease can't be missed.
    ///
    /// - Parameter timeout: how long to wait at most. Stores that poll may return later by their interval.
    /// - Returns: `false` if the key still has a lease.
    func waitForLeaseEnd(of key: CacheKey, timeout: Duration) throws -> Bool
    /// Stores an entry for the key of a lease as ``CacheStorage/store(_:for:)`` does, atomically with a check of the lease.
    ///
    /// - Throws: ``CacheStorageError/leaseEnded`` if the key has a lease with a greater number, or has had one; the entry is then not stored.
    func store(_ entry: CacheEntry, under lease: CacheLease) throws
}

/// Keeps an observation of a store's changes alive; it ends when the last reference is released.
public final class CacheObservation: Sendable {
    private let end: @Sendable () -> Void

    /// Creates an observation.
    ///
    /// - Parameter end: called once, when the last reference is released; on any thread.
    public init(onEnd end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}

/// A store that reports what others have changed in it, for copies of its entries: see ``TieredCacheStorage``.
public protocol ObservableCacheStorage: CacheStorage {
    /// Reports the keys of entries that were stored or removed by others than this object.
    ///
    /// - Parameter report: called on any thread, soon after the change; with `nil` if any entry may have changed, after a lost connection
    ///   to the store for example. Must not call the store.
    /// - Returns: what keeps the observation alive.
    func observeChanges(_ report: @escaping @Sendable (_ key: CacheKey?) -> Void) -> CacheObservation

    /// Notifies the other objects of the store, in this process and in others, that any entry may have changed: they drop all copies, also
    /// those of entries that the store itself has lost already, because it evicts. Does nothing by default.
    func announceChanges() throws
}

extension ObservableCacheStorage {
    /// Does nothing.
    public func announceChanges() throws {}
}
