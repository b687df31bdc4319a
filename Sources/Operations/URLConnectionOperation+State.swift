// SPDX-License-Identifier: Apache-2.0
import Dispatch

extension URLConnectionOperation {
    /// Applies an event, schedules the action that it leads to, and notifies the observers of the state.
    ///
    /// The state and the actions it leads to change in one order, whichever threads pause and resume: the action is scheduled on the
    /// operation's queue under the lock under which the state changes. Otherwise a pause could be overtaken by the resumption after it.
    func perform(_ event: (inout OperationLifecycle) -> OperationLifecycle.Action) {
        let (predicted, notifies) = predictKeys(of: event)
        for key in predicted { willChangeValue(forKey: key) }
        storage.withLock { storage in
            let old = storage.lifecycle.state
            schedule(event(&storage.lifecycle))
            let new = storage.lifecycle.state
            guard old != new else { return }
            Self.notifyObservers(of: new, storage: &storage)
            for key in [old.key, new.key] where !predicted.contains(key) && !storage.pendingKeys.contains(key) {
                storage.pendingKeys.append(key)
            }
        }
        for key in predicted { didChangeValue(forKey: key) }
        notifyPending(isNotifying: notifies)
    }

    /// The keys that an event will change, for observers that have to be notified beforehand; no lock may be held during notifications.
    ///
    /// One thread notifies at a time, on behalf of all: an operation queue that received an older state after a newer one would miss that
    /// an operation is ready. So nothing is predicted while another thread notifies.
    private func predictKeys(of event: (inout OperationLifecycle) -> OperationLifecycle.Action) -> (keys: [String], notifies: Bool) {
        storage.withLock { storage in
            guard !storage.isNotifying else { return ([], false) }
            storage.isNotifying = true
            var preview = storage.lifecycle
            _ = event(&preview)
            return (storage.lifecycle.state == preview.state ? [] : [storage.lifecycle.state.key, preview.state.key], true)
        }
    }

    /// Notifies observers of the pending keys until there are none; does nothing if another thread is doing so.
    private func notifyPending(isNotifying: Bool) {
        var isNotifying = isNotifying
        while true {
            let keys = storage.withLock { storage in
                guard isNotifying || !storage.isNotifying else { return [String]() }
                defer { storage.pendingKeys = [] }
                storage.isNotifying = !storage.pendingKeys.isEmpty
                return storage.pendingKeys
            }
            guard !keys.isEmpty else { return }
            isNotifying = true
            for key in keys {
                willChangeValue(forKey: key)
                didChangeValue(forKey: key)
            }
        }
    }

    static func notifyObservers(of state: OperationState, storage: inout Storage) {
        for stream in storage.stateStreams { stream.yield(state) }
        if state == .finished {
            for stream in storage.stateStreams { stream.finish() }
            storage.stateStreams = []
        }
        guard let closure = storage.onStateChange else { return }
        storage.settings.session.configuration.callbackQueue.async { closure(state) }
    }

    private func schedule(_ action: OperationLifecycle.Action) {
        switch action {
        case .none: break
        case .begin: queue.async { self.begin() }
        case .stop: queue.async { self.stop() }
        case .finishCancelled: queue.async { self.finishCancelled() }
        }
    }

    /// Runs `body` on the operation's queue, after the actions scheduled so far, and waits for it.
    func onQueue<Value>(_ body: () -> Value) -> Value {
        DispatchQueue.getSpecific(key: Self.queueKey) == ObjectIdentifier(self) ? body() : queue.sync(execute: body)
    }
}

extension OperationState {
    /// The key of the property that is `true` in this state.
    fileprivate var key: String {
        switch self {
        case .paused: "isPaused"
        case .ready: "isReady"
        case .executing: "isExecuting"
        case .finished: "isFinished"
        }
    }
}
