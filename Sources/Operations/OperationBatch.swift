// SPDX-License-Identifier: Apache-2.0
import Dispatch

extension URLConnectionOperation {
    /// Ties operations together: the returned ones are to be put on a queue, those given and behind them one more, which depends on them.
    ///
    /// Behind the completion closure of each operation `progress` runs on that operation's ``completionQueue``, with the number of those
    /// that are over and of all; behind all closures `completion` runs, once. Without
    /// operations there is one that calls `completion` with none. Sets the operations' ``completionGroup`` and completion closures.
    ///
    /// - Parameter callbackQueue: where `completion` runs; `nil`, the default, for the callback queue of the first operation's session, or of
    ///   ``OperationSession/shared`` without one.
    public static func batchOfRequestOperations(
        _ operations: [URLConnectionOperation], callbackQueue: DispatchQueue? = nil,
        progress: (@Sendable (_ finished: Int, _ total: Int) -> Void)? = nil,
        completion: (@Sendable ([URLConnectionOperation]) -> Void)? = nil
    ) -> [Operation] {
        let callbacks = callbackQueue ?? (operations.first?.session ?? .shared).configuration.callbackQueue
        let group = DispatchGroup()
        // Not the operations: each would keep all of them as long as it has not run.
        let (finished, total) = (Lock(0), operations.count)
        let last = BlockOperation {
            // The closures may still be on their way when the operations are over; those entered the group before they ended.
            group.notify(queue: callbacks) { completion?(operations) }
        }
        for operation in operations {
            operation.completionGroup = group
            let original = operation.completionBlock
            operation.completionBlock = {
                original?()
                let count = finished.withLock { count in
                    count += 1
                    return count
                }
                progress?(count, total)
            }
            last.addDependency(operation)
        }
        return operations + [last]
    }
}
