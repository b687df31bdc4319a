// SPDX-License-Identifier: Apache-2.0

package typealias Lock = _Lock

/// A value protected by a lock. Not part of the interface: it is public because generic code is specialized across modules only if it is,
/// and costs ten times as much otherwise; `@inlinable package` does not specialize (seen with Swift 6.3.1).
///
/// A plain `pthread_mutex_t` in one allocation with the value: as fast as `Synchronization.Mutex` without contention. For that one the
/// thread sanitizer reports races on Linux that don't exist, and macOS has it only from version 15 on. Copies share the value.
public struct _Lock<State>: @unchecked Sendable {  // every access to the state is inside the mutex
    @usableFromInline let storage: LockStorage<State>

    /// Creates a lock with an initial value.
    @inlinable
    public init(_ state: State) {
        storage = LockStorage(state)
    }

    /// Runs `body` with exclusive access to the state. Not recursive; never call users' code from `body`.
    @inlinable @inline(__always)
    public func withLock<R, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
        pthread_mutex_lock(&storage.mutex)
        defer { pthread_mutex_unlock(&storage.mutex) }
        return try body(&storage.state)
    }
}

// MARK: - Reflection

/// Reflection would read the state without the lock, and reveal secrets in it.
extension _Lock: RedactedReflectable {}

/// State and mutex in one allocation.
///
/// Swift checks each access to a class's stored properties for exclusivity, which the mutex ensures already; so the checks are disabled.
@usableFromInline
final class LockStorage<State> {
    /// Guards the state.
    @usableFromInline @exclusivity(unchecked) var mutex: pthread_mutex_t
    /// Accessed only with the mutex locked.
    @usableFromInline @exclusivity(unchecked) var state: State

    /// Creates the state and the mutex.
    @inlinable
    init(_ state: State) {
        mutex = pthread_mutex_t()
        self.state = state
        let status = pthread_mutex_init(&mutex, nil)
        // Fails only for lack of memory or other system resources, from which the process can't recover.
        precondition(status == 0, "pthread_mutex_init failed with \(status)")
    }

    deinit {
        pthread_mutex_destroy(&mutex)
    }
}
