// SPDX-License-Identifier: Apache-2.0

/// A value behind a lock.
///
/// A plain `pthread_mutex_t` in an allocation of its own: as fast as `Synchronization.Mutex` when nobody waits, and, unlike
/// that one on Linux, understood by the thread sanitizer. Copies share the value.
///
/// Inlinable, since a generic function that is called across modules costs ten times as much; the value is reached by a pointer, since
/// stored properties of classes are checked for exclusive access at each use, which the mutex makes sure of.
package struct Lock<State>: @unchecked Sendable {  // every access to the state is inside the mutex
    @usableFromInline package let storage: LockStorage<State>

    @inlinable
    package init(_ state: State) {
        storage = LockStorage.make(state)
    }

    /// Runs `body` with the state, alone. Not recursive; never call user code from inside.
    @inlinable @inline(__always)
    package func withLock<R, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
        let (state, mutex) = storage.withUnsafeMutablePointers { ($0, $1) }
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&state.pointee)
    }
}

/// State and mutex in one allocation.
@usableFromInline
package final class LockStorage<State>: ManagedBuffer<State, pthread_mutex_t> {
    @inlinable
    package static func make(_ state: State) -> LockStorage<State> {
        let storage = create(minimumCapacity: 1) { storage in
            storage.withUnsafeMutablePointerToElements { mutex in
                mutex.initialize(to: pthread_mutex_t())
                let status = pthread_mutex_init(mutex, nil)
                // Fails only for want of memory or of other resources at process level; nothing could go on from there.
                precondition(status == 0, "pthread_mutex_init failed with \(status)")
            }
            return state
        }
        return unsafeDowncast(storage, to: LockStorage<State>.self)
    }

    deinit {
        _ = withUnsafeMutablePointerToElements { pthread_mutex_destroy($0) }
    }
}
