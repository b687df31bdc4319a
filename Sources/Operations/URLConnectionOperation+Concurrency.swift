// SPDX-License-Identifier: Apache-2.0

extension URLConnectionOperation {
    /// The body, when the operation is over; empty where it went elsewhere. Waits, and does not start the operation: a queue does that, or
    /// ``start()``. Cancelling the task that waits cancels the operation, as ``waitForEnd()`` says.
    ///
    /// - Throws: the operation's ``error``; `URLError.cancelled` when the task was cancelled before the operation was started.
    public var value: Data {
        get async throws {
            try await waitForResult()
            return responseData ?? Data()
        }
    }

    func waitForResult() async throws {
        await waitForEnd()
        if let error { throw error }
        guard isFinished else { throw URLError.operationError(.cancelled, request) }
    }

    /// Starts the operation and waits for its end, as ``value`` does: for operations that are on no queue.
    @discardableResult
    public func run() async throws -> Data {
        start()
        return try await value
    }

    /// Waits until the operation is over. Cancelling the task that waits cancels the operation; one that was not started ends only when its
    /// queue starts it, and is not waited for then.
    public func waitForEnd() async {
        let waiter = Waiter()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiter.wait(continuation)
                let isOver = storage.withLock { storage in
                    guard storage.lifecycle.state != .finished else { return true }
                    storage.waiters.append { waiter.end() }
                    return false
                }
                if isOver { waiter.end() }
            }
        } onCancel: {
            cancel()
            // Starting it here, behind the back of its queue, would have that count wrongly.
            if !storage.withLock({ $0.lifecycle.wasStarted }) { waiter.end() }
        }
    }
}

/// Resumes a continuation once, be it there before or after the event.
private final class Waiter: Sendable {
    private let state = Lock<(continuation: CheckedContinuation<Void, Never>?, isOver: Bool)>((nil, false))

    func wait(_ continuation: CheckedContinuation<Void, Never>) {
        let isOver = state.withLock { state in
            if !state.isOver { state.continuation = continuation }
            return state.isOver
        }
        if isOver { continuation.resume() }
    }

    func end() {
        let continuation = state.withLock { state in
            defer { state = (nil, true) }
            return state.continuation
        }
        continuation?.resume()
    }
}

extension HTTPRequestOperation {
    /// What the serializer made, when the operation is over, as ``URLConnectionOperation/value`` waits for it.
    ///
    /// - Throws: the operation's error; `URLError.cannotParseResponse` where the object is of another type, or there is none.
    public func object<Value: Sendable>(as type: Value.Type = Value.self) async throws -> Value {
        try await waitForResult()
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
