// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What becomes of a request after a response's head.
enum ResponseDecision: Sendable {
    /// The response is the request's: its body is received.
    case accept
    /// The response is the request's; its body goes to a file that the session's delegate takes.
    case becomeDownload
    /// Another exchange follows in the same task; the body is read and dropped.
    indirect case followUp(FollowUp)
    /// The request fails.
    case fail(any Error)
}

/// Another exchange of the same task.
struct FollowUp: Sendable {
    enum Kind: Sendable, Hashable {
        /// To where the response leads.
        case redirect
        /// The same request with credentials.
        case authenticated
        /// The same request for the whole of a file.
        case restart
    }

    var request: TransferRequest
    let kind: Kind
}

/// One of the things that a response may lead to.
protocol ResponseRule: Sendable {
    /// Decides about a response on the event loop's thread, where that takes neither users' code nor anything that blocks.
    ///
    /// Called for every response: cheap where the rule has nothing to say.
    func verdict(on head: ResponseHead, of task: SessionTask, in driver: RequestDriver) -> RuleResult

    /// Decides on the session's queue, while the transfer waits; calls `done` there, at most once: with `nil` to leave the response to the
    /// next rule.
    func decide(_ response: PendingResponse, _ done: @escaping @Sendable (ResponseDecision?) -> Void)
}

/// What a rule says about a response at once.
enum RuleResult {
    /// It is left to the next rule.
    case pass
    case decide(ResponseDecision)
    /// The rule has to be asked on the session's queue.
    case ask
}

enum ResponseRules {
    /// What a response leads to: the rules are asked in this order until one decides. A response that passes all of them is accepted.
    static let all: [any ResponseRule] = [CookieRule(), CredentialRule(), RedirectRule(), ChallengeRule(), DispositionRule()]

    /// Asks the rules about a response, on the event loop's thread.
    ///
    /// - Returns: the decision, or the rules that have to be asked on the session's queue, of which the first has to.
    static func decide(about head: ResponseHead, of task: SessionTask, in driver: RequestDriver) -> Outcome {
        for (index, rule) in all.enumerated() {
            switch rule.verdict(on: head, of: task, in: driver) {
            case .pass: continue
            case .decide(let decision): return .decided(decision)
            case .ask: return .pending(all[index...])
            }
        }
        return .decided(.accept)
    }

    enum Outcome {
        case decided(ResponseDecision)
        case pending(ArraySlice<any ResponseRule>)
    }

    /// Asks the rules that are left, on the session's queue.
    static func ask(
        _ rules: ArraySlice<any ResponseRule>, about response: PendingResponse, _ done: @escaping @Sendable (ResponseDecision) -> Void
    ) {
        guard let rule = rules.first else { return done(.accept) }
        rule.decide(response) { decision in
            if let decision { done(decision) } else { ask(rules.dropFirst(), about: response, done) }
        }
    }
}

/// A response that waits for a decision, with what the rules need for it.
struct PendingResponse: Sendable {
    let head: ResponseHead
    let transfer: TransferRequest
    let task: SessionTask
    let request: Request
    let driver: RequestDriver
    /// Identifies the decision.
    let number: Int

    var session: Session { driver.session }
    var closures: SessionClosures { driver.sessionDelegate.closures.withLock { $0 } }

    /// The response as Foundation's users know it.
    var response: HTTPURLResponse? { ResponseContext(transfer: transfer, head: head).response }

    /// Whether the decision is still needed: the request may have been cancelled, or the transfer failed.
    var isPending: Bool { driver.state.withLock { $0.pendingDecision.isPending(number) } }

    /// Waits for an answer of the user's; continues with it on the session's queue, unless the decision is not needed any more.
    func wait<Answer: Sendable>(_ next: @escaping @Sendable (Answer) -> Void) -> StepContinuation<Answer> {
        driver.wait(while: number) { answer in session.queue.async { if isPending { next(answer) } } }
    }
}
