// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The credentials of a request, created when the user sets one or a server sends a challenge. Thread-safe.
final class RequestAuthentication: Sendable {
    private struct State {
        var credential: URLCredential?
        var answer: TaskAuthentication?
    }

    private let state = Lock(State())

    /// The credential that the user has set on the request.
    var credential: URLCredential? {
        get { state.withLock { $0.credential } }
        set { state.withLock { $0.credential = newValue } }
    }

    /// The current attempt's answer to a challenge; `nil` before the first.
    var answer: TaskAuthentication? {
        get { state.withLock { $0.answer } }
        set { state.withLock { $0.answer = newValue } }
    }

    /// Notes a response that is no challenge; returns the answer if the server has thereby accepted it for the first time.
    func accepted(_ head: ResponseHead, from url: String) -> TaskAuthentication? {
        state.withLock { $0.answer?.accepted(head, from: url) == true ? $0.answer : nil }
    }

    /// Returns a request of the task with the credentials for its origin.
    func authorize(_ request: TransferRequest) -> TransferRequest {
        state.withLock { $0.answer?.authorize(request) } ?? request
    }
}

extension RequestDriver {
    /// Created when it is first read.
    var authentication: RequestAuthentication {
        state.withLock { state in
            if let authentication = state.authentication { return authentication }
            let authentication = RequestAuthentication()
            state.authentication = authentication
            return authentication
        }
    }

    /// Sets a credential, also for a challenge that has been received already and waits for one.
    func authenticate(with credential: URLCredential) {
        authentication.credential = credential
        attached(.credential)
    }

    /// Notes whether a response has accepted the credentials of its request, and stores them. On the session's queue.
    func noteAuthentication(_ head: ResponseHead, of transfer: TransferRequest) {
        guard head.statusCode != 401, let authentication = state.withLock({ $0.authentication }) else { return }
        if let accepted = authentication.accepted(head, from: transfer.url) { session.store(accepted) }
        if let answer = authentication.answer, answer.origin == HTTPOrigin(url: transfer.url), let nonce = answer.nonce {
            session.digestMemory().keep(nonce, for: transfer)
        }
    }
}
