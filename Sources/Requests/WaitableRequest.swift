// SPDX-License-Identifier: Apache-2.0

/// A request or group whose end can be awaited.
protocol WaitableRequest: RunnableRequest {
    /// Starts it and calls `waiter` when it ends, after all callbacks. If it is already running, `waiter` is called at the end of that run.
    func start(_ waiter: @escaping @Sendable (RequestEnding) -> Void)
    /// Starts it in the same way for a group. If it is already running by a start without the group's options, `other` is called at the end
    /// of that run instead.
    func start(_ waiter: @escaping @Sendable (RequestEnding) -> Void, other: @escaping @Sendable (RequestEnding) -> Void)
    /// The error it failed with, if it has failed.
    var endingError: (any Error)? { get }
    var agent: RequestAgent { get }
    /// The accessories that were set and added, without those returned by a subclass's override.
    var addedAccessories: [any RequestAccessory] { get }
}

extension WaitableRequest {
    func start(_ waiter: @escaping @Sendable (RequestEnding) -> Void) {
        start(waiter, other: waiter)
    }

    /// Starts it and awaits its end; cancelling the awaiting task stops it.
    func ending() async -> RequestEnding {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<RequestEnding, Never>) in
                start { continuation.resume(returning: $0) }
                // The cancellation handler may have run before the start.
                if Task.isCancelled { stop() }
            }
        } onCancel: {
            stop()
        }
    }

    /// Starts it and awaits its end; throws the error it failed with, or `CancellationError` if it was stopped.
    func successfulEnding() async throws {
        try Task.checkCancellation()
        switch await ending() {
        case .succeeded: return
        case .stopped: throw CancellationError()
        case .failed: throw endingError ?? CancellationError()
        }
    }
}

extension WaitableRequest {
    /// The accessories that a subclass returns, followed by those that were added.
    var accessories: [any RequestAccessory] {
        let named = requestAccessories ?? []
        return named + addedAccessories.filter { added in !named.contains { $0 === added } }
    }
}
