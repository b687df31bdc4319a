// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Answers a server that asks for credentials: as users say, else with the request's credential, the URL's, or one from the storage.
///
/// On the session's queue, while the transfer waits at the head of the 401 (RFC 9110, section 15.5.2).
struct ChallengeHandling: Sendable {
    /// What comes of it.
    enum Outcome: Sendable {
        /// The response is the answer.
        case deliver
        /// The same request again, now with credentials.
        case repetition
        /// The user wants no more of the request.
        case cancel
    }

    let head: ResponseHead
    let transfer: TransferRequest
    let task: SessionTask
    let request: Request
    let origin: Origin
    let challenges: [AnswerableChallenge]
    let isAwaited: @Sendable () -> Bool
    let done: @Sendable (Outcome) -> Void

    private var session: Session { request.session }
    private var closures: SessionClosures { request.sessionDelegate.closures.withLock { $0 } }
    private var previous: TaskAuthentication? { request.delegate.authentication.answer }

    /// `nil` when there is nothing to answer.
    init?(
        _ head: ResponseHead, to transfer: TransferRequest, of task: SessionTask, _ request: Request,
        isAwaited: @escaping @Sendable () -> Bool, done: @escaping @Sendable (Outcome) -> Void
    ) {
        guard head.statusCode == 401, let origin = Origin(transfer.url) else { return nil }
        challenges = AnswerableChallenge.ranked(AuthenticationChallenge.challenges(in: head.headers.values(for: "WWW-Authenticate")))
        guard !challenges.isEmpty else { return nil }
        (self.head, self.transfer, self.task, self.request, self.origin) = (head, transfer, task, request, origin)
        (self.isAwaited, self.done) = (isAwaited, done)
    }

    /// Begins as soon as it is clear what the user has chained to the request: the server may have been faster.
    func begin() {
        request.delegate.whenListenedTo {
            consider(challenges[...])
        }
    }

    /// Whether the decision is still pending: the request may have been cancelled, the transfer failed or a retry started in the meantime.
    private var isWanted: Bool {
        isAwaited() && (task.state == .running || task.state == .suspended)
    }

    /// Takes up the first of the challenges that are left.
    private func consider(_ rest: ArraySlice<AnswerableChallenge>) {
        guard isWanted, let challenge = rest.first, previous?.mayGoOn ?? true else { return done(.deliver) }
        if let previous, previous.mayRenew(challenge, of: origin) {
            return answer(challenge, with: previous.credential, renewing: true, otherwise: rest.dropFirst())
        }
        guard ask(about: challenge, rest) else { return handleByDefault(challenge, rest) }
    }

    // MARK: What users say

    /// Asks the user; `false` if there is nobody to ask.
    private func ask(about challenge: AnswerableChallenge, _ rest: ArraySlice<AnswerableChallenge>) -> Bool {
        let closures = closures
        if challenge.concernsConnection {
            if let later = closures.sessionDidReceiveChallengeWithCompletion {
                later(session, foundationChallenge(challenge), completion(challenge, rest))
                return true
            }
            if let now = closures.sessionDidReceiveChallenge {
                let (disposition, credential) = now(session, foundationChallenge(challenge))
                apply(disposition, credential, challenge, rest)
                return true
            }
        }
        if let later = closures.taskDidReceiveChallengeWithCompletion {
            later(session, task, foundationChallenge(challenge), completion(challenge, rest))
            return true
        }
        guard let now = closures.taskDidReceiveChallenge else { return false }
        let (disposition, credential) = now(session, task, foundationChallenge(challenge))
        apply(disposition, credential, challenge, rest)
        return true
    }

    private func foundationChallenge(_ challenge: AnswerableChallenge) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            protectionSpace: origin.space(of: challenge), proposedCredential: proposedCredential(for: challenge),
            previousFailureCount: failures(for: challenge),
            failureResponse: ResponseContext(transfer: transfer, head: head).response, error: nil, sender: ChallengeSender())
    }

    /// Takes an answer that comes later: once, from any thread.
    private func completion(_ challenge: AnswerableChallenge, _ rest: ArraySlice<AnswerableChallenge>)
        -> @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    {
        let isAnswered = Lock(false)
        return { disposition, credential in
            let isFirst = isAnswered.withLock { isAnswered in
                defer { isAnswered = true }
                return !isAnswered
            }
            if isFirst { session.queue.async { apply(disposition, credential, challenge, rest) } }
        }
    }

    private func apply(
        _ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?, _ challenge: AnswerableChallenge,
        _ rest: ArraySlice<AnswerableChallenge>
    ) {
        guard isWanted else { return done(.deliver) }
        switch disposition {
        case .useCredential:
            guard let credential else { return done(.deliver) }
            answer(challenge, with: credential, otherwise: [])
        case .cancelAuthenticationChallenge: done(.cancel)
        case .rejectProtectionSpace: consider(rest.dropFirst())
        case .performDefaultHandling: handleByDefault(challenge, rest)
        @unknown default: handleByDefault(challenge, rest)
        }
    }

    // MARK: By default

    private func handleByDefault(_ challenge: AnswerableChallenge, _ rest: ArraySlice<AnswerableChallenge>) {
        // What was refused once is refused again.
        guard failures(for: challenge) == 0 else { return done(.deliver) }
        guard let credential = proposedCredential(for: challenge) else { return consider(rest.dropFirst()) }
        answer(challenge, with: credential, otherwise: rest.dropFirst())
    }

    private func failures(for challenge: AnswerableChallenge) -> Int {
        if let previous { return previous.failures(for: challenge, of: origin) }
        // The URL's name and password were sent already, as Basic.
        let wasSent = challenge.scheme == .basic && transfer.urlCredential != nil && transfer.headers["Authorization"] == nil
        return wasSent && ownCredential == nil ? 1 : 0
    }

    private func proposedCredential(for challenge: AnswerableChallenge) -> URLCredential? {
        ownCredential ?? transfer.urlCredential ?? session.storedCredential(for: challenge, of: origin)
    }

    /// The request's credential, which is not for whoever the request was redirected to.
    private var ownCredential: URLCredential? {
        guard let url = task.originalRequest?.url, Origin(url) == origin else { return nil }
        return request.credential
    }

    /// Sends the request again with a credential, if it is one for the challenge and there is a body to send; else goes on with the rest.
    private func answer(
        _ challenge: AnswerableChallenge, with credential: URLCredential, renewing: Bool = false,
        otherwise rest: ArraySlice<AnswerableChallenge>
    ) {
        let authentication = TaskAuthentication(challenge, of: origin, with: credential, after: previous, renewing: renewing)
        guard let authentication else { return consider(rest) }
        request.sessionDelegate.renewBody(of: transfer, task, in: session) { isRenewed in
            guard isRenewed else { return done(.deliver) }
            request.delegate.authentication.answer = authentication
            done(.repetition)
        }
    }
}

// MARK: - Storage

extension Session {
    /// The session's own credential for a challenge.
    fileprivate func storedCredential(for challenge: AnswerableChallenge, of origin: Origin) -> URLCredential? {
        configuration.credentialStorage?.credential(forAnyOf: origin.spaces(of: challenge))
    }

    /// Keeps a credential that a server took, for requests that have none. Posts Foundation's notification: not on the transport's thread.
    func store(_ authentication: TaskAuthentication) {
        guard let storage = configuration.credentialStorage, authentication.credential.persistence != .none else { return }
        storage.setDefaultCredential(authentication.credential, forAnyLike: authentication.origin.space(of: authentication.challenge))
    }
}
