// SPDX-License-Identifier: Apache-2.0
import Dispatch

extension URLConnectionOperation {
    /// Combines operations into a batch. Add the returned operations to a queue: the given ones, and one more that depends on them.
    ///
    /// After each operation's completion closure, `progress` runs on that operation's ``completionQueue``, with the number of finished
    /// operations and the total, one call after the other: if several queues, or a concurrent one, run the closures of two operations at
    /// once, on that of the other. After all closures, `completion` runs once. Without operations, the one returned calls `completion` with
    /// an empty array. Sets the operations' ``completionGroup`` and completion closures. The additional operation can't be cancelled, so that
    /// a batch ends with `completion` also if its queue cancels all operations.
    ///
    /// - Parameters:
    ///   - operations: the operations to combine.
    ///   - callbackQueue: the queue on which `completion` runs; `nil`, the default, for the callback queue of the first operation's
    ///     session, or of ``OperationSession/shared`` if there are no operations.
    ///   - progress: called after each operation; `nil`, the default, for none.
    ///   - completion: called once, after all of them; `nil`, the default, for none.
    public static func batchOfRequestOperations(
        _ operations: [URLConnectionOperation], callbackQueue: DispatchQueue? = nil,
        progress: (@Sendable (_ finished: Int, _ total: Int) -> Void)? = nil,
        completion: (@Sendable ([URLConnectionOperation]) -> Void)? = nil
    ) -> [Operation] {
        let callbacks = callbackQueue ?? (operations.first?.session ?? .shared).configuration.callbackQueue
        let group = DispatchGroup()
        // Only the count is captured: capturing the operations would make each retain all of them until it has run.
        let (finished, total) = (Lock(Finished()), operations.count)
        let last = BatchEnd {
            // Closures may still be queued when their operations have finished; they entered the group before that.
            group.notify(queue: callbacks) { completion?(operations) }
        }
        for operation in operations {
            operation.completionGroup = group
            let original = operation.completionBlock
            operation.completionBlock = {
                original?()
                guard let progress else { return }
                finished.withLock { finished in
                    finished.count += 1
                    finished.calls.add { [count = finished.count] in progress(count, total) }
                }
                OrderedCalls.make { isCalling in finished.withLock { $0.calls.take(isCalling) } }
            }
            last.addDependency(operation)
        }
        return operations + [last]
    }
}

/// The operations of a batch that have finished.
private struct Finished {
    var count = 0
    /// Those of `progress`. The thread that makes them is in a completion closure, for which the end of the batch waits.
    var calls = OrderedCalls()
}

/// The end of a batch. Cancelled, it would neither wait for the batch's operations nor run its closure.
private final class BatchEnd: BlockOperation, @unchecked Sendable {  // adds no state
    override func cancel() {}
}
