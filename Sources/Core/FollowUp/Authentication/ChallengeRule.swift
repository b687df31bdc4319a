// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

/// Answers the challenges of a 401 (RFC 9110, section 15.5.2): as the delegate's closures decide, otherwise with the request's credential,
/// the URL's, or a stored one.
///
/// No credential is sent before the server has sent a challenge, so that it is sent only to an origin that requires it, in the strongest
/// scheme that both support; only a URL's user name and password are sent at once as Basic, by libcurl, and the answer to a challenge that
/// an earlier request of the session was sent (``DigestMemory``). A 401 waits for the first handler
/// or a credential, at most a second: so a credential chained to the request counts, however fast the server was.
enum ChallengeRule: ResponseRule {
    static func decision(on head: ResponseHead, of task: SessionTask, in driver: RequestDriver) -> RuleResult {
        head.statusCode == 401 ? .ask : .pass
    }

    static func decide(_ response: PendingResponse, _ done: @escaping @Sendable (ResponseDecision?) -> Void) {
        guard let challenge = PendingChallenge(response, done: done) else { return done(nil) }
        challenge.begin()
    }
}

/// A 401 whose challenges are being answered, on the session's queue.
private struct PendingChallenge: Sendable {
    let response: PendingResponse
    let origin: HTTPOrigin
    let challenges: [AnswerableChallenge]
    let done: @Sendable (ResponseDecision?) -> Void

    private var transfer: TransferRequest { response.transfer }
    private var task: SessionTask { response.task }
    private var session: Session { response.session }
    private var authentication: RequestAuthentication { response.driver.authentication }
    private var previous: TaskAuthentication? { authentication.answer }

    /// `nil` if the response has no challenge that can be answered.
    init?(_ response: PendingResponse, done: @escaping @Sendable (ResponseDecision?) -> Void) {
        guard response.head.statusCode == 401, let origin = HTTPOrigin(url: response.transfer.url) else { return nil }
        let fields = response.head.headers.values(for: "WWW-Authenticate")
        challenges = Array(AnswerableChallenge.ranked(AuthenticationChallenge.challenges(in: fields)).prefix(Self.limit))
        guard !challenges.isEmpty else { return nil }
        (self.response, self.origin, self.done) = (response, origin, done)
    }

    /// The largest number of challenges of a response that are considered, the strongest ones. A server offers a few schemes, for a realm or
    /// two each; each further one would cost a search of the stored credentials, and a call of the delegate's closure.
    static let limit = 16

    /// How long a 401 waits for a handler or a credential. Longer than ``RequestDriver/handlerWait``, because a credential that is set too
    /// late can't be used, and because an awaited request does not wait at all.
    private static let attachmentWait = Duration.seconds(1)

    /// Answers the challenges once everything is chained to the request: a handler or a credential is attached, or the wait has timed out.
    /// The server may have been faster than the code that chains a credential.
    func begin() {
        if let refused = previous?.reusedNonce { task.digests?.forget(like: refused, for: transfer) }
        let mustWait = response.driver.wait(for: [.handler, .credential], atMost: Self.attachmentWait, while: response.number) { _ in
            session.queue.async { consider(challenges[...]) }
        }
        if !mustWait { consider(challenges[...]) }
    }

    /// Whether the decision is still needed: the request may have been cancelled, the transfer failed or a retry started in the meantime.
    private var isWanted: Bool {
        response.isPending && (task.state == .running || task.state == .suspended)
    }

    /// What has become of a challenge.
    private enum Step {
        /// It can't be answered: the next one is considered.
        case next
        /// The decision was made, or a closure makes it.
        case done
    }

    /// Answers the first of the remaining challenges that can be answered.
    ///
    /// A loop, because the server chooses how many there are. Closures of the delegate continue it from the session's queue, also those that
    /// answer within their call, so that the stack does not grow with the challenges.
    private func consider(_ rest: ArraySlice<AnswerableChallenge>) {
        var rest = rest
        while let challenge = rest.popFirst() {
            guard isWanted, previous?.mayAnswer ?? true else { break }
            if take(challenge, rest) == .done { return }
        }
        done(nil)
    }

    private func take(_ challenge: AnswerableChallenge, _ rest: ArraySlice<AnswerableChallenge>) -> Step {
        if let previous, previous.mayRenew(challenge, of: origin) { return answer(challenge, with: previous.credential, renewing: true) }
        return ask(about: challenge, rest) ? .done : handleByDefault(challenge)
    }

    // MARK: Closures of the delegate

    /// Calls the closure for the challenge; returns `false` if there is none.
    private func ask(about challenge: AnswerableChallenge, _ rest: ArraySlice<AnswerableChallenge>) -> Bool {
        let closures = response.closures
        if challenge.concernsConnection, let closure = closures.sessionDidReceiveChallenge {
            response.driver.inContext { closure(session, foundationChallenge(challenge), completion(challenge, rest)) }
            return true
        }
        guard let closure = closures.taskDidReceiveChallenge else { return false }
        response.driver.inContext { closure(session, task, foundationChallenge(challenge), completion(challenge, rest)) }
        return true
    }

    private struct ChallengeAnswer: @unchecked Sendable {  // credentials are immutable
        let disposition: URLSession.AuthChallengeDisposition
        let credential: URLCredential?
    }

    private func completion(_ challenge: AnswerableChallenge, _ rest: ArraySlice<AnswerableChallenge>) -> ChallengeCompletion {
        let answer = response.wait { (answer: ChallengeAnswer) in apply(answer.disposition, answer.credential, challenge, rest) }
        return { answer(ChallengeAnswer(disposition: $0, credential: $1)) }
    }

    private func foundationChallenge(_ challenge: AnswerableChallenge) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            protectionSpace: origin.space(of: challenge), proposedCredential: proposedCredential(for: challenge),
            previousFailureCount: failures(for: challenge), failureResponse: response.response, error: nil, sender: ChallengeSender())
    }

    private func apply(
        _ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?, _ challenge: AnswerableChallenge,
        _ rest: ArraySlice<AnswerableChallenge>
    ) {
        guard isWanted else { return done(nil) }
        switch disposition {
        case .useCredential:
            guard let credential, answer(challenge, with: credential) == .done else { return done(nil) }
        case .cancelAuthenticationChallenge: done(.fail(CurlewError.cancelled))
        case .rejectProtectionSpace: consider(rest)
        case .performDefaultHandling: if handleByDefault(challenge) == .next { consider(rest) }
        @unknown default: if handleByDefault(challenge) == .next { consider(rest) }
        }
    }

    // MARK: By default

    private func handleByDefault(_ challenge: AnswerableChallenge) -> Step {
        // A credential that was refused would be refused again.
        guard failures(for: challenge) == 0 else {
            done(nil)
            return .done
        }
        guard let credential = proposedCredential(for: challenge) else { return .next }
        return answer(challenge, with: credential)
    }

    private func failures(for challenge: AnswerableChallenge) -> Int {
        if let previous { return previous.failures(for: challenge, of: origin) }
        // libcurl has sent the URL's user name and password already, as Basic.
        let wasSent = challenge.scheme == .basic && transfer.urlCredential != nil && transfer.headers["Authorization"] == nil
        return wasSent && ownCredential == nil ? 1 : 0
    }

    private func proposedCredential(for challenge: AnswerableChallenge) -> URLCredential? {
        ownCredential ?? transfer.urlCredential ?? session.storedCredential(for: challenge, of: origin)
    }

    private var ownCredential: URLCredential? { response.driver.ownCredential(for: origin) }

    /// Sends the request again with a credential, unless the credential does not fit this challenge. The 401 is the response if the body
    /// can't be sent again.
    private func answer(_ challenge: AnswerableChallenge, with credential: URLCredential, renewing: Bool = false) -> Step {
        let authentication = TaskAuthentication(challenge, of: origin, with: credential, after: previous, renewing: renewing)
        guard let authentication else { return .next }
        response.renewBody(of: transfer) { isRenewed in
            guard isRenewed else { return done(nil) }
            self.authentication.answer = authentication
            done(.followUp(FollowUp(request: transfer, kind: .authenticated)))
        }
        return .done
    }
}
