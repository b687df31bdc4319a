// SPDX-License-Identifier: Apache-2.0

/// A thread-safe list of recorded elements.
public final class Log<Element: Sendable>: Sendable {
    private struct Waiter {
        let id: Int
        let count: Int
        let continuation: TrackedContinuation<Void>
    }

    private struct State {
        var elements: [Element] = []
        var waiters: [Waiter] = []
        var lastWaiter = 0
    }

    private let state = Monitor(State())

    /// The elements so far.
    public var elements: [Element] { state.read { $0.elements } }
    /// The number of elements so far.
    public var count: Int { state.read { $0.elements.count } }

    /// Creates an empty list.
    public init() {}

    /// Adds an element, and resumes the tasks that wait for it.
    public func append(_ element: Element) {
        let ready = state.update { state -> [Waiter] in
            state.elements.append(element)
            let ready = state.waiters.filter { $0.count <= state.elements.count }
            state.waiters.removeAll { $0.count <= state.elements.count }
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    /// Waits until there are `count` elements, or the test's time limit is reached.
    public func wait(for count: Int) async {
        let id = state.update { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withTrackedContinuation { continuation in
                let isReady = state.update { state in
                    guard state.elements.count < count, !Task.isCancelled else { return true }
                    state.waiters.append(Waiter(id: id, count: count, continuation: continuation))
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.update { state in
                state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
            }
            waiter?.continuation.resume()
        }
    }

    /// Waits for the first element; `nil` if the test's time limit is reached.
    public func first() async -> Element? {
        await wait(for: 1)
        return elements.first
    }
}
