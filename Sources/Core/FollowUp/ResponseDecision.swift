// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What a request does about a response, decided at its head.
enum ResponseDecision: Sendable {
    /// The response is the result: its body is received.
    case accept
    /// The response is the result; its body is written to a file for the session's delegate.
    case becomeDownload
    /// Another exchange follows in the same task; the body is received and dropped.
    indirect case followUp(FollowUp)
    /// The request fails.
    case fail(any Error)
}

/// Another exchange of the same task.
struct FollowUp: Sendable {
    enum Kind: Sendable, Hashable {
        /// The request to which the response redirects.
        case redirect
        /// The same request with credentials.
        case authenticated
        /// The same request for the whole of a file instead of a range.
        case restart

        /// Why the follow-up is sent, for instruments.
        var reason: OutgoingExchange.Reason {
            switch self {
            case .redirect: .redirect
            case .authenticated: .authentication
            case .restart: .restart
            }
        }
    }

    var request: TransferRequest
    let kind: Kind
}

/// Decides about responses of one kind: redirects, challenges, cookies.
///
/// Rules have no state and are types, because a list of values would copy each one for each response.
protocol ResponseRule: Sendable {
    /// Decides about a response on the event loop's thread, unless that takes users' code or may block.
    ///
    /// Called for every response, so it must be cheap where the rule does not apply.
    static func decision(on head: ResponseHead, of task: SessionTask, in driver: RequestDriver) -> RuleResult

    /// Decides on the session's queue, while the transfer waits; calls `done` there, at most once: with `nil` to leave the response to the
    /// next rule.
    static func decide(_ response: PendingResponse, _ done: @escaping @Sendable (ResponseDecision?) -> Void)
}

/// What a rule decides on the event loop's thread.
enum RuleResult {
    /// The rule does not apply: the next one decides.
    case pass
    case decide(ResponseDecision)
    /// The rule decides on the session's queue, while the transfer is paused.
    case ask
}

enum ResponseRules {
    /// The rules in the order in which they are evaluated, until one decides. A response that passes all of them is accepted. Cookies come
    /// first, so that those of a redirect or a 401 are stored before the follow-up is sent.
    static let all: [any ResponseRule.Type] = [
        HostStateRule.self, CredentialRule.self, RedirectRule.self, ChallengeRule.self, DispositionRule.self,
    ]

    /// Evaluates the rules on the event loop's thread.
    ///
    /// - Returns: the decision, or the rules that remain to be evaluated on the session's queue, beginning with one that requires it.
    static func decide(about head: ResponseHead, of task: SessionTask, in driver: RequestDriver) -> Outcome {
        for (index, rule) in all.enumerated() {
            switch rule.decision(on: head, of: task, in: driver) {
            case .pass: continue
            case .decide(let decision): return .decided(decision)
            case .ask: return .pending(all[index...])
            }
        }
        return .decided(.accept)
    }

    enum Outcome {
        case decided(ResponseDecision)
        case pending(ArraySlice<any ResponseRule.Type>)
    }

    /// Evaluates the remaining rules, on the session's queue.
    static func ask(
        _ rules: ArraySlice<any ResponseRule.Type>, about response: PendingResponse, _ done: @escaping @Sendable (ResponseDecision) -> Void
    ) {
        response.session.assertOnQueue()
        guard let rule = rules.first else { return done(.accept) }
        rule.decide(response) { decision in
            if let decision { done(decision) } else { ask(rules.dropFirst(), about: response, done) }
        }
    }
}

/// A response whose decision is pending, with what the rules need for it.
struct PendingResponse: Sendable {
    let head: ResponseHead
    let transfer: TransferRequest
    let task: SessionTask
    let request: Request
    let driver: RequestDriver
    /// Identifies the decision.
    let number: Int

    var session: Session { driver.session }
    var closures: SessionClosures { driver.closures { $0 } }

    /// The response as Foundation's type: that of the class which has loaded it, if there is one.
    var response: HTTPURLResponse? {
        driver.state.withLock { $0.attempt.protocolResponse }?.response as? HTTPURLResponse
            ?? ResponseContext(transfer: transfer, head: head).response
    }

    /// Whether the decision is still needed: the request may have been cancelled, or the transfer failed.
    var isPending: Bool { driver.state.withLock { $0.pendingDecision.isPending(number) } }

    /// Waits for a closure's answer; continues with it on the session's queue, unless the decision is no longer needed.
    func wait<Answer: Sendable>(_ next: @escaping @Sendable (Answer) -> Void) -> StepContinuation<Answer> {
        driver.wait(while: number) { answer in session.queue.async { if isPending { next(answer) } } }
    }
}
