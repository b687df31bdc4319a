// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What a request knows about credentials; made when the user gives one, or a server asks.
final class RequestAuthentication: Sendable {
    private struct State {
        var credential: URLCredential?
        var answer: TaskAuthentication?
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

    /// The server has answered with something else than a challenge; the answer that it thereby accepted for the first time.
    func accepted(_ head: ResponseHead, from url: String) -> TaskAuthentication? {
        state.withLock { $0.answer?.accepted(head, from: url) == true ? $0.answer : nil }
    }

    /// A request of the task with the credentials that belong to it.
    func authorize(_ request: TransferRequest) -> TransferRequest {
        state.withLock { $0.answer?.authorize(request) } ?? request
    }
}

extension RequestDriver {
    /// Created when first asked for.
    var authentication: RequestAuthentication {
        state.withLock { state in
            if let authentication = state.authentication { return authentication }
            let authentication = RequestAuthentication()
            state.authentication = authentication
            return authentication
        }
    }

    /// Takes a credential, also for a challenge that has come already.
    func authenticate(with credential: URLCredential) {
        authentication.credential = credential
        attached(.credential)
    }

    /// Notes what a response says of the credentials that its request carried. On the session's queue.
    func noteAuthentication(_ head: ResponseHead, from url: String) {
        guard head.statusCode != 401, let authentication = state.withLock({ $0.authentication }) else { return }
        if let accepted = authentication.accepted(head, from: url) { session.store(accepted) }
    }

    /// The last step before each exchange is sent: the first of an attempt, a redirect, an authenticated retry, a restart. Adds what must
    /// not be part of the request that follow-ups are made of: credentials the server has asked for, cookies, and the host's trust policy.
    func outgoing(_ request: TransferRequest) -> TransferRequest {
        session.outgoing(state.withLock { $0.authentication }?.authorize(request) ?? request)
    }
}
