// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// A request's handlers until the request is over, and what runs them then: one at a time, in the order in which they were added.
///
/// That is an `OperationQueue`'s work, and one is made for users who ask for it. For those who don't, a list and a serial queue do the same
/// for a fifth of the price: an `OperationQueue` with one operation costs half as much as a small request.
struct PendingHandlers {
    private var waiting: [@Sendable () -> Void] = []
    /// Runs them; made when there is something to run.
    private var serialQueue: DispatchQueue?
    /// What users see: from the moment on at which they ask for it, everything goes through it.
    private var operations: OperationQueue?

    /// Adds a handler, which runs behind those before it; after ``release()``, if that was not.
    mutating func add(_ handler: @escaping @Sendable () -> Void, isReleased: Bool) {
        if let operations {
            operations.addOperation(handler)
        } else if isReleased {
            queue().async(execute: handler)
        } else {
            waiting.append(handler)
        }
    }

    /// Lets the handlers run.
    mutating func release() {
        operations?.isSuspended = false
        guard !waiting.isEmpty else { return }
        let handlers = waiting
        waiting = []
        queue().async { for handler in handlers { handler() } }
    }

    /// Keeps those that are added from now on until the next ``release()``. None was added before.
    func hold() {
        operations?.isSuspended = true
    }

    /// The handlers as a queue of operations, among which others can be put.
    mutating func operations(isSuspended: Bool) -> OperationQueue {
        if let operations { return operations }
        let operations = OperationQueue()
        operations.maxConcurrentOperationCount = 1
        // Behind what runs already.
        operations.underlyingQueue = queue()
        operations.isSuspended = isSuspended
        for handler in waiting { operations.addOperation(handler) }
        waiting = []
        self.operations = operations
        return operations
    }

    private mutating func queue() -> DispatchQueue {
        if let serialQueue { return serialQueue }
        let queue = DispatchQueue(label: "curlew.handlers", target: .global(qos: .utility))
        serialQueue = queue
        return queue
    }
}
