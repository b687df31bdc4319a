// SPDX-License-Identifier: Apache-2.0

/// A request or group whose end can be awaited.
protocol WaitableRequest: RunnableRequest {
    /// Starts it and calls `waiter` when it ends, after all callbacks. If it is already running, `waiter` is called at the end of that run.
    func start(_ waiter: @escaping @Sendable (RequestEnding) -> Void)
    /// The error it failed with, if it has failed.
    var endingError: (any Error)? { get }
    var agent: RequestAgent { get }
    /// The accessories that were set and added, without those returned by a subclass's override.
    var addedAccessories: [any RequestAccessory] { get }
}

extension WaitableRequest {
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
    private var accessories: [any RequestAccessory] {
        let named = requestAccessories ?? []
        return named + addedAccessories.filter { added in !named.contains { $0 === added } }
    }

    /// Notifies the accessories before the start.
    func toggleAccessoriesWillStart() {
        for accessory in accessories { accessory.requestWillStart(self) }
    }

    /// Notifies the accessories of the end, before the callbacks run.
    func toggleAccessoriesWillStop() {
        for accessory in accessories { accessory.requestWillStop(self) }
    }

    /// Notifies the accessories of the end, after the callbacks have run.
    func toggleAccessoriesDidStop() {
        for accessory in accessories { accessory.requestDidStop(self) }
    }
}
