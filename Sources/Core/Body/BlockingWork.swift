// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// Runs blocking work, such as reading a large file, on a queue, as the threads of tasks are few.
///
/// - Parameter body: is passed a function that says whether the task was cancelled.
package func onBlockingQueue<Value: Sendable>(
    _ body: @escaping @Sendable (_ isCancelled: @escaping () -> Bool) throws -> Value
) async throws -> Value {
    let isCancelled = Lock(false)
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global(qos: .utility).async {
                continuation.resume(with: Result { try body { isCancelled.withLock { $0 } } })
            }
        }
    } onCancel: {
        isCancelled.withLock { $0 = true }
    }
}
