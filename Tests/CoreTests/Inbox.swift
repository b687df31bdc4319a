// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

/// The transport, its transfers and its streams, by the names of the tests.
typealias MockTransport = ScriptedTransport
typealias Exchange = ScriptedExchange
typealias MockStream = ScriptedStream
typealias Inbox = CurlewTesting.Inbox

/// A transfer that calls a closure at its start, and takes no notice of the other calls.
final class UnawareTransfer: StreamHandle {
    private let didStart: @Sendable () -> Void

    init(didStart: @escaping @Sendable () -> Void) { self.didStart = didStart }

    func start() { didStart() }
    func cancel() {}
    func setSuspended(_ suspended: Bool) {}
    func resumeReceiving() {}
    func send(_ bytes: Data, endOfStream: Bool) {}
}

extension ScriptedTransport {
    /// A transport that gives the same response to everything.
    static func answering(_ status: Int = 200, _ headers: HTTPHeaders = [:], _ body: String = "", isSynchronous: Bool = false)
        -> MockTransport
    {
        MockTransport(isSynchronous: isSynchronous) { _ in .response(status, headers, body) }
    }

    /// A transport that gives the responses one after the other, and repeats the last one.
    static func answering(inTurn answers: [[Step]]) -> MockTransport {
        let rest = Lock(answers)
        return MockTransport { _ in rest.withLock { $0.count > 1 ? $0.removeFirst() : $0.first ?? [] } }
    }
}

extension [ScriptedTransport.Step] {
    /// A failure before any response.
    static func failure(_ kind: TransferFailure.Kind = .connect, readsBody: Bool = false) -> Self {
        (readsBody ? [.sendBody] : []) + [.complete(CurlewError.failure(kind))]
    }
}

extension CurlewError {
    static func failure(_ kind: TransferFailure.Kind = .connect) -> CurlewError {
        .transferFailed(TransferFailure(kind: kind, url: "http://mock/", phase: .connecting, message: "It failed"))
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
