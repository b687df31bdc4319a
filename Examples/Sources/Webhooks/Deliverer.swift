// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewResilience
import CurlewSigning
import Foundation

/// Delivers what a journal has: each webhook until its receiver has accepted it, or it is given up.
struct Deliverer: Sendable {
    /// What has become of an attempt.
    enum Outcome: Equatable {
        case delivered
        /// The receiver did not accept it, and may have asked for a delay.
        case failed(String, retryAfter: Duration?)
        /// A policy has refused it for a time, so that nothing was sent.
        case refused(Duration)
        /// Another attempt would fail in the same way.
        case hopeless(String)
    }

    let journal: Journal
    let webhooks: StandardWebhook
    let manager: SessionManager
    /// The delays after failed attempts; one more failure ends in the dead letters. By default those that the specification of Standard
    /// Webhooks gives as an example: seconds at first, then hours, three days together.
    var delays: [Duration] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400].map { .seconds($0) }
    /// The age at which a webhook is given up, however many attempts it had.
    var maximumAge: Duration = .seconds(5 * 86_400)
    var clock: any Clock<Duration> = ContinuousClock()
    var now: @Sendable () -> Date = { Date() }
    /// The factor of a delay, so that what failed together is not sent together.
    var jitter: @Sendable () -> Double = { .random(in: 1...1.2) }
    var report: @Sendable (String) -> Void = { _ in }

    // snippet: run
    /// Ends when the journal is finished and empty, or the task is cancelled: attempts that were begun are completed and noted then.
    func run() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            for try await pending in journal.pending { group.addTask { try await deliver(pending) } }
        }
    }

    private func deliver(_ first: Pending) async throws {
        var pending = first
        while (try? await clock.sleep(for: .seconds(max(pending.due.timeIntervalSince(now()), 0)))) != nil {
            // In a task of its own, which is not cancelled with this one.
            let attempt = Task { [pending] in try await note(await send(pending.webhook), of: pending) }
            guard let next = try await attempt.value else { return }
            pending = next
        }
    }

    /// Notes the outcome of an attempt. Returns the webhook with the time of its next one; `nil` if there is none.
    private func note(_ outcome: Outcome, of pending: Pending) async throws -> Pending? {
        var next = pending
        var reason = "a policy refuses its host"
        switch outcome {
        case .delivered:
            try await journal.remove(pending)
            report("delivered \(pending.webhook.id)")
            return nil
        case .hopeless(let reason): return try await bury(pending, because: reason)
        case .refused(let delay): next.due = now() + delay * jitter()
        case .failed(let failure, let asked):
            guard pending.attempts < delays.count else { return try await bury(pending, because: failure) }
            next.due = now() + max(delays[pending.attempts] * jitter(), asked ?? .zero)
            next.attempts += 1
            reason = failure
        }
        guard next.due <= pending.accepted + maximumAge else { return try await bury(pending, because: "too old; \(reason)") }
        // A refusal is no attempt, and nothing that the next process has to know.
        if next.attempts > pending.attempts { try await journal.postpone(next) }
        return next
    }
    // end

    private func bury(_ pending: Pending, because reason: String) async throws -> Pending? {
        try await journal.bury(pending, because: reason)
        report("dead \(pending.webhook.id): \(reason)")
        return nil
    }

    // snippet: attempt
    /// Sends a webhook once.
    func send(_ webhook: Webhook) async -> Outcome {
        let body = Data(webhook.body.utf8)
        let headers: HTTPHeaders = [.contentType("application/json"), HTTPHeader(name: "Idempotency-Key", value: "\"\(webhook.id)\"")]
        let options = RequestOptions(signer: webhooks.signer(id: webhook.id, body: body), name: "webhook")
        let response = await manager.upload(body, to: webhook.url, headers: headers, options: options)
            .validate(statusCode: 200..<300).serializingData().response
        return Self.outcome(of: response.responseHead, response.error)
    }

    static func outcome(of head: ResponseHead?, _ error: (any Error)?) -> Outcome {
        // Also if the rest of the response was lost: the receiver has accepted it.
        if let head, 200..<300 ~= head.statusCode { return .delivered }
        if head?.statusCode == 410 { return .hopeless("the receiver is gone: status 410") }
        switch error {
        case CurlewError.transferFailed(let failure)? where [.circuitOpen, .rateLimited, .overloaded].contains(failure.kind):
            return .refused(failure.retryAfter ?? .seconds(5))
        case CurlewError.sessionShutDown?, CurlewError.sessionInvalidated?, CurlewError.cancelled?: return .refused(.seconds(5))
        case CurlewError.invalidURL?: return .hopeless("the URL is invalid")
        case let error as WebhookError: return .hopeless("\(error)")
        default:
            let asked = head.flatMap { RetryAfter($0) }.map { min($0.delay, .seconds(86_400)) }
            return .failed(error?.localizedDescription ?? "no response", retryAfter: asked)
        }
    }
    // end
}

extension SessionConfiguration {
    // snippet: policies
    /// For webhooks, whose URLs are those of customers.
    static func forWebhooks(to addresses: AddressPolicy = .publicOnly, pause: Duration = .seconds(60)) -> SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.addresses = addresses  // not the servers in our own network
        configuration.redirects.limit = 0  // a redirect is a failure
        configuration.totalTimeout = .seconds(30)
        configuration.maximumBodySize = 64 << 10
        configuration.use(
            Resilience(
                breaker: CircuitBreaker(minimumCalls: 5, window: .count(10), openDuration: pause, trialCalls: 1),
                bulkhead: Bulkhead(concurrent: 4, queueLimit: 1_000) { $0.origin?.host },
                concurrency: ConcurrencyLimiter(.fixed(64), group: .session)))
        return configuration
    }
    // end
}

extension Date {
    static func + (date: Date, duration: Duration) -> Date { date.addingTimeInterval(duration / .seconds(1)) }
}
