// SPDX-License-Identifier: Apache-2.0

package typealias Lock = _Lock

/// A value behind a lock. Not part of the interface: public because generic code is specialised across modules only if it is, and costs ten
/// times as much if it is not.
///
/// A plain `pthread_mutex_t` in one allocation with the value: as fast as `Synchronization.Mutex` when nobody waits, and, unlike that one on
/// Linux, understood by the thread sanitizer. Copies share the value.
public struct _Lock<State>: @unchecked Sendable {  // every access to the state is inside the mutex
    /// The state with its mutex.
    public let storage: _LockStorage<State>

    /// Puts a value behind a lock.
    @inlinable
    public init(_ state: State) {
        storage = _LockStorage(state)
    }

    /// Runs `body` with the state, alone. Not recursive; never call user code from inside.
    @inlinable @inline(__always)
    public func withLock<R, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
        pthread_mutex_lock(&storage.mutex)
        defer { pthread_mutex_unlock(&storage.mutex) }
        return try body(&storage.state)
    }
}

// MARK: - CustomReflectable

extension _Lock: CustomReflectable {
    /// Nothing to look into: reflection would read the state without the lock, and secrets out of it.
    public var customMirror: Mirror { .redacted(self) }
}

/// State and mutex in one allocation.
///
/// Stored properties of classes are checked for exclusive access at each use, which the mutex makes sure of; so they are exempt.
public final class _LockStorage<State> {
    /// Guards the state.
    @exclusivity(unchecked) public var mutex: pthread_mutex_t
    /// Touched with the mutex locked only.
    @exclusivity(unchecked) public var state: State

    /// Makes both.
    @inlinable
    public init(_ state: State) {
        mutex = pthread_mutex_t()
        self.state = state
        let status = pthread_mutex_init(&mutex, nil)
        // Fails only for want of memory or of other resources at process level; nothing could go on from there.
        precondition(status == 0, "pthread_mutex_init failed with \(status)")
    }

    deinit {
        pthread_mutex_destroy(&mutex)
    }
}
