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
        if let answer = authentication.answer, answer.origin == Origin(transfer.url), let nonce = answer.nonce {
            session.digestMemory().keep(nonce, for: transfer)
        }
    }

    /// The last step before each exchange is sent: the first of an attempt, a redirect, an authenticated retry, a restart. Adds
    /// credentials for a challenge, cookies, the host's trust policy, and what instruments need to know of it, none of which is kept in the
    /// task's request: a redirect would take them to the next origin.
    func outgoing(_ request: TransferRequest, as followUp: FollowUp.Kind?, _ digests: DigestMemory? = nil) -> TransferRequest {
        if let digests { useNonce(of: digests, for: request, as: followUp) }
        let (authentication, deadline) = state.withLock { ($0.authentication, $0.deadline) }
        var outgoing = session.outgoing(authentication?.authorize(request) ?? request, ownedTask)
        if outgoing.hasUnboundCertificate, !mayPresentCertificate(to: outgoing.url, as: followUp) {
            outgoing.options.tls.clientCertificate = nil
        }
        if let deadline { add(deadline, to: &outgoing) }
        if recordsExchanges { recordExchange(outgoing) }
        if session.reportsExchanges { noteExchange(outgoing, reason(of: followUp)) }
        if session.isInstrumented || session.offersToClasses {
            outgoing.source = ExchangeSource(self, reason(of: followUp))
        } else if session.marksRetries, reason(of: followUp) == .retry {
            outgoing.source = ExchangeSource(self, .retry)
        }
        return outgoing
    }

    /// The same for a raw stream: adds the host's trust policy, and leaves out a client certificate that names no origins where the handshake
    /// was redirected to another one.
    func outgoing(_ request: StreamTransferRequest) -> StreamTransferRequest {
        var outgoing = session.outgoing(request, ownedTask)
        guard let first = settings?.options.certificateURL, let certificate = outgoing.options.tls.clientCertificate,
            certificate.origins == nil
        else { return outgoing }
        if !isSameOrigin("https://\(request.host.bracketed):\(request.port)", as: first) { outgoing.options.tls.clientCertificate = nil }
        return outgoing
    }

    /// Adds the header field with the time that remains, to the origin of the request.
    private func add(_ deadline: RequestDeadline, to outgoing: inout TransferRequest) {
        guard let name = settings?.options.deadlineHeader, let original = task?.originalTransfer,
            isSameOrigin(outgoing.url, as: original.url)
        else { return }
        outgoing.setDeadline(deadline.deadline.headerValue, inField: name)
    }

    /// Whether an exchange may present a client certificate that names no origins: to the origin of the URL that the program has given.
    private func mayPresentCertificate(to url: String, as followUp: FollowUp.Kind?) -> Bool {
        let first = settings?.options.certificateURL
        guard followUp != nil || first != nil else { return true }
        guard let given = first ?? task?.originalTransfer?.url else { return false }
        return isSameOrigin(url, as: given)
    }

    private func isSameOrigin(_ url: String, as original: String) -> Bool {
        original == url || Origin(session.hsts?.upgraded(original) ?? original) == Origin(url)
    }
}

/// Notes whether a response has accepted the credentials of its request. Decides nothing.
enum CredentialRule: ResponseRule {
    static func decision(on head: ResponseHead, of task: SessionTask, in driver: RequestDriver) -> RuleResult {
        driver.state.withLock { $0.authentication?.answer != nil } ? .ask : .pass
    }

    static func decide(_ response: PendingResponse, _ done: @escaping @Sendable (ResponseDecision?) -> Void) {
        response.driver.noteAuthentication(response.head, of: response.transfer)
        done(nil)
    }
}
