// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What a request knows about credentials; made when the user gives one, or a server asks.
final class RequestAuthentication: Sendable {
    private struct State {
        var credential: URLCredential?
        var answer: TaskAuthentication?
        /// A challenge that waits for somebody who wants the request's result: until then a credential may be chained to it.
        var waiting: (@Sendable () -> Void)?
        /// Counts the waits, so that the timer of one does not end the next.
        var number = 0
    }

    private let state = Lock(State())

    /// The user's credential.
    var credential: URLCredential? {
        get { state.withLock { $0.credential } }
        set { state.withLock { $0.credential = newValue } }
    }

    /// What the current attempt has answered to a challenge.
    var answer: TaskAuthentication? {
        get { state.withLock { $0.answer } }
        set { state.withLock { $0.answer = newValue } }
    }

    /// Stores a challenge that has to wait, and returns the number of its wait.
    func wait(_ challenge: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.waiting = challenge
            state.number += 1
            return state.number
        }
    }

    /// Ends a wait that has timed out; returns its challenge unless that has been resumed already.
    func waitEnded(_ number: Int) -> (@Sendable () -> Void)? {
        state.withLock { $0.number == number } ? waitEnded() : nil
    }

    /// Nothing more is to be waited for; the challenge that may go on, if one waits.
    func waitEnded() -> (@Sendable () -> Void)? {
        state.withLock { state in
            defer { state.waiting = nil }
            return state.waiting
        }
    }

    /// The server has answered with something else than a challenge; the answer that it thereby accepted for the first time.
    func accepted(_ head: ResponseHead, from url: String) -> TaskAuthentication? {
        state.withLock { $0.answer?.accepted(head, from: url) == true ? $0.answer : nil }
    }

    /// A request of the task with the credentials that belong to it.
    func authorize(_ request: TransferRequest) -> TransferRequest {
        state.withLock { $0.answer?.authorize(request) } ?? request
    }
}

extension TaskDelegate {
    /// Made when first asked for.
    var authentication: RequestAuthentication {
        state.withLock { state in
            if let authentication = state.authentication { return authentication }
            let authentication = RequestAuthentication()
            state.authentication = authentication
            return authentication
        }
    }

    /// Takes a credential, also for a challenge that is there already.
    func authenticate(with credential: URLCredential) {
        let authentication = authentication
        authentication.credential = credential
        if let goOn = authentication.waitEnded() { session.queue.async(execute: goOn) }
    }

    /// How long a challenge waits for somebody who wants the request's result, or gives it a credential. Longer than the request's own end
    /// does: a credential that comes too late can't be used, and whoever listens does not wait.
    private static let waitForListener = Duration.seconds(1)

    /// Calls `body` on the session's queue, where this is called, too: as soon as somebody wants the request's result or has given it a
    /// credential, or else in a moment.
    func whenListenedTo(_ body: @escaping @Sendable () -> Void) {
        let authentication = authentication
        let wait = state.withLock { state -> Int? in
            guard !state.lifecycle.hasHandler, authentication.credential == nil else { return nil }
            return authentication.wait(body)
        }
        guard let wait else { return body() }
        session.timers.start(after: Self.waitForListener) { authentication.waitEnded(wait)?() }
        // It may have come before there was anything to wake up.
        if authentication.credential != nil { authentication.waitEnded()?() }
    }

    /// Notes what a response says of the credentials that its request carried. On the session's queue.
    func noteAuthentication(_ head: ResponseHead, from url: String) {
        guard head.statusCode != 401, let authentication = state.withLock({ $0.authentication }) else { return }
        if let accepted = authentication.accepted(head, from: url) { session.store(accepted) }
    }

    /// A request of the task as it goes out: with credentials, if the server it goes to has asked for them.
    func authorizing(_ request: TransferRequest) -> TransferRequest {
        state.withLock { $0.authentication }?.authorize(request) ?? request
    }
}
