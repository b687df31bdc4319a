// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import Dispatch

/// A request's closure handlers: operations in a serial queue that is suspended until the request has finished.
///
/// The queue is created with the first handler, or when a user reads it. A request that is only awaited has none.
struct HandlerQueue {
    /// Runs the operations of all requests; the queue of each request runs one at a time. An underlying queue for each would
    /// add two objects of libdispatch to a request.
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

    /// Suspends the queue until the next ``release()``. Called while it has no handlers.
    func hold() {
        operations?.isSuspended = true
    }

    /// Returns the queue, created if there is none.
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

/// Runs one handler. Not a `BlockOperation`, whose list of closures has more overhead than the rest of an operation.
private final class HandlerOperation: Operation, @unchecked Sendable {  // the closure is set once, before the operation is queued
    private let handler: @Sendable () -> Void

    init(_ handler: @escaping @Sendable () -> Void) {
        self.handler = handler
    }

    override func main() {
        handler()
    }
}
