// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Runs asynchronous operations one at a time, in the order of the calls. Thread-safe.
struct AsyncQueue: Sendable {
    private let last = Lock<Task<Void, Never>?>(nil)

    /// Runs an operation once those before have ended: as work of all that wait for it, so without the caller's deadline, and not cancelled
    /// with it.
    func run<Value: Sendable>(_ operation: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let task = last.withLock { last in
            SharedWork.begin {
                let task = Task { [last] in
                    await last?.value
                    return try await operation()
                }
                last = Task { _ = await task.result }
                return task
            }
        }
        return try await task.value
    }
}
