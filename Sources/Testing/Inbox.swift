// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewLoopback

/// Collects the values of callbacks, and lets tasks wait for them. Thread-safe.
package final class Inbox<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var waiting: [Waiter] = []
        var lastWaiter = 0
    }

    private struct Waiter {
        let id: Int
        let count: Int
        let continuation: TrackedContinuation<Void>
    }

    private let state = Lock(State())

    package init() {}

    package var all: [Element] { state.withLock { $0.elements } }
    /// Without a copy of the elements, which would have to be made when the next one is put.
    package var count: Int { state.withLock { $0.elements.count } }

    package func put(_ element: Element) {
        let ready = state.withLock { state in
            state.elements.append(element)
            let ready = state.waiting.filter { $0.count <= state.elements.count }
            state.waiting.removeAll { $0.count <= state.elements.count }
            return ready
        }
        for waiting in ready { waiting.continuation.resume() }
    }

    /// Releases all elements: callbacks kept here retain what they call.
    package func empty() { state.withLock { $0.elements = [] } }

    /// Returns all elements as soon as there are that many, or fewer once the task is cancelled.
    package func first(_ count: Int) async -> [Element] {
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withTrackedContinuation { continuation in
                let mustWait = state.withLock { state in
                    // Checked under the lock, so that a concurrent cancellation is seen here or finds the waiter.
                    guard state.elements.count < count, !Task.isCancelled else { return false }
                    state.waiting.append(Waiter(id: id, count: count, continuation: continuation))
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiting.firstIndex { $0.id == id }.map { state.waiting.remove(at: $0) }
            }
            waiter?.continuation.resume()
        }
        return all
    }

    /// The element at a position, as soon as it is there; a cancelled wait ends the process.
    package subscript(index: Int) -> Element {
        get async {
            let elements = await first(index + 1)
            // There is no element to return, and the test has failed by its time limit.
            precondition(elements.count > index, "the wait for element \(index) was cancelled")
            return elements[index]
        }
    }
}
