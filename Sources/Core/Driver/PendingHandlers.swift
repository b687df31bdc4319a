// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import Dispatch

/// A request's closure handlers: operations of a suspended queue of width one, which `finish()` releases.
///
/// The queue is created with the first handler, or when a user asks for it. A request that is awaited has none.
struct PendingHandlers {
    /// Runs the operations of all requests; each request's own queue lets one run at a time. A queue of its own for each would cost a
    /// request two more objects of libdispatch.
    private static let sharedQueue = DispatchQueue(label: "curlew.handlers", qos: .utility, attributes: .concurrent)

    private var operations: OperationQueue?

    /// Adds a handler, which runs after those before it and after ``release()``.
    mutating func add(_ handler: @escaping @Sendable () -> Void, isReleased: Bool) {
        operations(isSuspended: !isReleased).addOperation(HandlerOperation(handler))
    }

    /// Releases the handlers.
    func release() {
        operations?.isSuspended = false
    }

    /// Suspends the queue until the next ``release()``. It has no handlers yet.
    func hold() {
        operations?.isSuspended = true
    }

    /// The queue, created if there is none.
    mutating func operations(isSuspended: Bool) -> OperationQueue {
        if let operations { return operations }
        let operations = OperationQueue()
        operations.isSuspended = isSuspended
        operations.maxConcurrentOperationCount = 1
        operations.underlyingQueue = Self.sharedQueue
        self.operations = operations
        return operations
    }
}

/// Runs one handler. A `BlockOperation` has a list of closures, which costs more than the rest of an operation.
private final class HandlerOperation: Operation, @unchecked Sendable {  // the closure is set once, before the operation is queued
    private let handler: @Sendable () -> Void

    init(_ handler: @escaping @Sendable () -> Void) {
        self.handler = handler
    }

    override func main() {
        handler()
    }
}
