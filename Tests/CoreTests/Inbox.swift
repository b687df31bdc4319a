// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewCore

/// Collects what callbacks bring, and lets a test wait for it.
final class Inbox<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var waiting: [(count: Int, continuation: TrackedContinuation<Void>)] = []
    }

    private let state = Lock(State())

    var all: [Element] { state.withLock { $0.elements } }
    var count: Int { all.count }

    func put(_ element: Element) {
        let ready = state.withLock { state in
            state.elements.append(element)
            let ready = state.waiting.filter { $0.count <= state.elements.count }
            state.waiting.removeAll { $0.count <= state.elements.count }
            return ready
        }
        for waiting in ready { waiting.continuation.resume() }
    }

    /// Forgets all that has come: callbacks kept here hold what they call back.
    func empty() { state.withLock { $0.elements = [] } }

    /// All that has come, as soon as there are that many.
    func first(_ count: Int, file: StaticString = #file, line: UInt = #line) async -> [Element] {
        await withTrackedContinuation(file: file, line: line) { continuation in
            let isThere = state.withLock { state in
                if state.elements.count < count { state.waiting.append((count, continuation)) }
                return state.elements.count >= count
            }
            if isThere { continuation.resume() }
        }
        return all
    }

    /// The element at a position, as soon as it is there.
    subscript(index: Int) -> Element {
        get async { await first(index + 1)[index] }
    }
}

/// Holds nothing, so that a test sees an object go.
final class WeakBox<Object: AnyObject & Sendable>: Sendable {
    private let object: Lock<Weak>

    private struct Weak {
        weak var object: Object?
    }

    init(_ object: Object) { self.object = Lock(Weak(object: object)) }

    var isEmpty: Bool { object.withLock { $0.object == nil } }
}

extension SessionManager {
    /// A manager on a mock, whose callbacks run on a queue of their own.
    convenience init(mock: MockTransport, _ change: (inout SessionConfiguration) -> Void = { _ in }) {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "callbacks")
        change(&configuration)
        self.init(configuration: configuration, transport: mock)
    }

    /// Waits until all that the session's queue has to do is done.
    func settle() { session.queue.sync {} }
}

/// An error of the user's.
struct UserError: Error, Equatable {
    var number = 0
}

/// An adapter out of a closure.
struct Adapting: RequestAdapter {
    let body: @Sendable (URLRequest) throws -> URLRequest
    func adapt(_ urlRequest: URLRequest) throws -> URLRequest { try body(urlRequest) }
}

/// A retrier out of a closure.
struct Retrying: RequestRetrier {
    let body: @Sendable (Request, any Error, @escaping RequestRetryCompletion) -> Void
    func should(_ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion) {
        body(request, error, completion)
    }
}

func isCancelled(_ error: (any Error)?) -> Bool {
    if case CurlewError.cancelled? = error { true } else { false }
}

func isInvalidated(_ error: (any Error)?) -> Bool {
    if case CurlewError.sessionInvalidated? = error { true } else { false }
}

func statusOf(_ error: (any Error)?) -> Int? {
    if case CurlewError.responseValidationFailed(.unacceptableStatusCode(let code), _)? = error { code } else { nil }
}

func kindOf(_ error: (any Error)?) -> TransferFailure.Kind? {
    if case CurlewError.transferFailed(let failure)? = error { failure.kind } else { nil }
}
