// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Which failures `--retry` repeats, and when.
enum Retry {
    /// What follows a failure that may be repeated.
    enum Next: Equatable {
        case after(Duration)
        /// Not repeated, and why.
        case never(String)
    }

    private static let longestDelay = Duration.seconds(3600)

    /// The methods that may be repeated (RFC 9110, section 9.2.2), and the bodies that can be.
    private static func isRepeatable(_ plan: RequestPlan) -> Bool {
        if case .stream = plan.body { return false }
        return plan.body != .standardInput && RetryPolicy.defaultRetryableHTTPMethods.contains(plan.method)
    }

    static func isTransient(_ response: HTTPURLResponse, _ plan: RequestPlan) -> Bool {
        isRepeatable(plan) && RetryPolicy.defaultRetryableHTTPStatusCodes.contains(response.statusCode)
    }

    static func isTransient(_ error: any Error, _ plan: RequestPlan) -> Bool {
        guard case CurlewError.transferFailed(let failure) = error else { return false }
        return isRepeatable(plan) && RetryPolicy.defaultRetryableFailureKinds.contains(failure.kind)
    }

    /// Decides by the delay.
    ///
    /// - Parameter end: the end of `--deadline`.
    static func next(attempt: UInt, response: HTTPURLResponse?, end: ContinuousClock.Instant?, now: Date = Date()) -> Next {
        // Without it there is an exponential backoff with jitter.
        let asked = response.flatMap { RetryAfter($0, now: now)?.delay }
        if let asked, asked > longestDelay { return .never("the server asks to wait \(text(asked)) (Retry-After), more than an hour") }
        let delay = asked ?? .seconds(min(0.5 * Double(1 << min(attempt, 7)), 60) * .random(in: 0.5...1))
        if let end, .now + delay >= end { return .never("a wait of \(text(delay)) would not end before --deadline") }
        return .after(delay)
    }

    static func text(_ delay: Duration) -> String {
        let tenths = Int((delay / .milliseconds(100)).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }

    /// Prints that a request is sent again.
    static func note(_ outcome: Outcome, _ number: UInt, _ delay: Duration) {
        Output.error.note("curlew: \(outcome.message ?? "failed"); retry \(number) in \(text(delay))")
    }
}

/// The retries of a download to a file, each of which is printed.
final class PrintedRetries: RetryPolicy, @unchecked Sendable {  // has constants only
    private let plan: RequestPlan
    private let end: ContinuousClock.Instant?

    init(limit: UInt, _ plan: RequestPlan, end: ContinuousClock.Instant?) {
        self.plan = plan
        self.end = end
        super.init(retryLimit: limit)
    }

    override func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        guard request.retryCount < retryLimit, shouldRetry(request, dueTo: error) else { return completion(false, 0) }
        switch Retry.next(attempt: request.retryCount, response: request.response, end: end) {
        case .after(let delay):
            Retry.note(Outcome(error), request.retryCount + 1, delay)
            completion(true, delay / .seconds(1))
        case .never(let reason):
            Output.error.note("curlew: not retried: \(reason)")
            completion(false, 0)
        }
    }
}
