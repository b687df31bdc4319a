// SPDX-License-Identifier: Apache-2.0

extension URLConnectionOperation {
    /// The body, once the operation has finished; empty if it was written elsewhere. Waits without starting the operation: a queue or
    /// ``start()`` does that. Cancelling the waiting task cancels the operation, as with ``waitForEnd()``.
    ///
    /// - Throws: `CancellationError` if the task was cancelled before the operation has ended; else the operation's ``error``, which is
    ///   `URLError.cancelled` after ``cancel()``.
    public var value: Data {
        get async throws {
            try await waitForResult()
            return responseData ?? Data()
        }
    }

    func waitForResult() async throws {
        await waitForEnd()
        // An operation that was not started finishes later.
        guard isFinished else { throw CancellationError() }
        guard let error else { return }
        throw Task.isCancelled && (error as? URLError)?.code == .cancelled ? CancellationError() : error
    }

    /// Starts the operation and waits until it has finished, as ``value`` does: for operations that are not on a queue.
    @discardableResult
    public func run() async throws -> Data {
        start()
        return try await value
    }

    /// Waits until the operation has finished. Cancelling the waiting task cancels the operation; one that was not started finishes only
    /// when its queue starts it, so the wait then ends at once.
    public func waitForEnd() async {
        let waiter = Waiter()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiter.attach(continuation)
                let isFinished = storage.withLock { storage in
                    guard storage.lifecycle.state != .finished else { return true }
                    storage.waiters.append { waiter.resume() }
                    return false
                }
                if isFinished { waiter.resume() }
            }
        } onCancel: {
            cancel()
            // Started here, without its queue's knowledge, it would be miscounted by the queue.
            if !storage.withLock({ $0.lifecycle.wasStarted }) { waiter.resume() }
        }
    }
}

/// Resumes a continuation once, whether it is attached before or after the event.
private final class Waiter: Sendable {
    private let state = Lock<(continuation: CheckedContinuation<Void, Never>?, isResumed: Bool)>((nil, false))

    func attach(_ continuation: CheckedContinuation<Void, Never>) {
        let isResumed = state.withLock { state in
            if !state.isResumed { state.continuation = continuation }
            return state.isResumed
        }
        if isResumed { continuation.resume() }
    }

    func resume() {
        let continuation = state.withLock { state in
            defer { state = (nil, true) }
            return state.continuation
        }
        continuation?.resume()
    }
}

extension HTTPRequestOperation {
    /// The serializer's object, once the operation has finished; waits for it as ``URLConnectionOperation/value`` does.
    ///
    /// - Throws: what ``URLConnectionOperation/value`` throws; `URLError.cannotParseResponse` if the object is of another type or missing.
    public func object<Value: Sendable>(as type: Value.Type = Value.self) async throws -> Value {
        try await waitForResult()
        guard let value = responseObject as? Value else { throw URLError(.cannotParseResponse) }
        return value
    }
}

extension OperationQueue {
    /// Adds an operation and waits for its body, as ``URLConnectionOperation/value`` does.
    public func value(of operation: URLConnectionOperation) async throws -> Data {
        addOperation(operation)
        return try await operation.value
    }
}
