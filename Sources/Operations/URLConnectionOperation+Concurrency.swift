// SPDX-License-Identifier: Apache-2.0

extension URLConnectionOperation {
    /// The body, when the operation is over; empty where it went elsewhere. Waits, and does not start the operation: a queue does that, or
    /// ``start()``. Cancelling the task that waits cancels the operation.
    ///
    /// - Throws: the operation's ``error``.
    public var value: Data {
        get async throws {
            await waitForEnd()
            if let error { throw error }
            return responseData ?? Data()
        }
    }

    /// Starts the operation and waits for its end, as ``value`` does: for operations that are on no queue.
    @discardableResult
    public func run() async throws -> Data {
        start()
        return try await value
    }

    /// Waits until the operation is over. Cancelling the task that waits cancels the operation.
    public func waitForEnd() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = storage.withLock { storage in
                    guard storage.lifecycle.state != .finished else { return true }
                    storage.waiters.append { continuation.resume() }
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            cancel()
            // One that was not started ends only when it is.
            start()
        }
    }
}

extension HTTPRequestOperation {
    /// What the serializer made, when the operation is over, as ``URLConnectionOperation/value`` waits for it.
    ///
    /// - Throws: the operation's error; `URLError.cannotParseResponse` where the object is of another type, or there is none.
    public func object<Value: Sendable>(as type: Value.Type = Value.self) async throws -> Value {
        await waitForEnd()
        if let error { throw error }
        guard let value = responseObject as? Value else { throw URLError(.cannotParseResponse) }
        return value
    }
}

extension OperationQueue {
    /// Adds an operation, and waits for its body as ``URLConnectionOperation/value`` does.
    public func value(of operation: URLConnectionOperation) async throws -> Data {
        addOperation(operation)
        return try await operation.value
    }
}
