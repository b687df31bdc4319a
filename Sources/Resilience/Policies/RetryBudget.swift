// SPDX-License-Identifier: Apache-2.0

/// Lets retriers retry only a part of the requests, so that retries do not multiply the load of a service that fails.
///
/// ```swift
/// configuration.use(Resilience(retryBudget: RetryBudget()))
/// ```
///
/// One budget for all retriers of the session: it is asked after a retrier has decided to retry, whichever that is. A request whose retry is
/// refused fails with the error of its last attempt. The refusals are counted and reported as events.
public struct RetryBudget: Sendable {
    /// How the budget is counted.
    public enum Rule: Sendable, Hashable {
        /// Finagle's: retries are at most `ratio` of the requests in the last `window`, plus `minimum` a second.
        case share(ratio: Double, minimum: Double, window: Duration)
        /// gRPC's (gRFC A6): a failed attempt takes a token of at most `maximum`, a successful one gives back `ratio` of a token; there are
        /// retries while more than half of the tokens are left.
        case tokens(maximum: Double, ratio: Double)

        /// Finagle's defaults: 20 % over 10 seconds, plus 10 a second.
        public static let finagle = Rule.share(ratio: 0.2, minimum: 10, window: .seconds(10))
        /// The example of gRPC's proposal: 10 tokens, 0.1 a success.
        public static let grpc = Rule.tokens(maximum: 10, ratio: 0.1)
    }

    /// The budget's name, which events have; empty by default.
    public var name = ""
    /// What is counted together: all requests of the session by default.
    public var group = PolicyGroup.session
    /// How the budget is counted; ``Rule/finagle`` by default.
    public var rule = Rule.finagle
    /// Publishes to other processes when the budget is spent, and delivers when theirs are: then it has no minimum for a window. `nil`, the
    /// default, for neither. Needs a ``name``.
    public var shared: (any SharedPolicyState)?

    /// Creates a budget.
    ///
    /// - Parameters:
    ///   - rule: how it is counted; ``Rule/finagle`` by default.
    ///   - name: its name; empty by default.
    public init(_ rule: Rule = .finagle, name: String = "") {
        self.rule = rule
        self.name = name
    }
}

/// The state of a ``RetryBudget``, or of the requests that ``Hedging`` may add: a pure value, whose time is that since an arbitrary start.
public struct RetryBudgetState: Sendable {
    private static let steps = 10

    private let rule: RetryBudget.Rule
    private let step: Duration
    private var requests: [Int32]
    private var retries: [Int32]
    private var requestCount = 0
    private var retryCount = 0
    private var lastStep = 0
    /// When the last step ends: comparing is cheaper than dividing.
    private var stepEnd: Duration
    private var tokens: Double
    private var leanUntil = Duration.zero
    /// The retries that were refused.
    public private(set) var refusedCount = 0

    /// Creates a state without requests, or with all tokens.
    public init(_ rule: RetryBudget.Rule) {
        self.rule = rule
        switch rule {
        case .share(_, _, let window):
            step = max(window, .milliseconds(1)) / Self.steps
            stepEnd = step
            tokens = 0
            requests = Array(repeating: 0, count: Self.steps)
            retries = requests
        case .tokens(let maximum, _):
            step = .zero
            stepEnd = .zero
            tokens = max(maximum, 0)
            requests = []
            retries = []
        }
    }

    /// A request is sent that is no retry.
    public mutating func noteRequest(at now: Duration) {
        guard case .share = rule else { return }
        advance(to: now)
        requests[lastStep % Self.steps] += 1
        requestCount += 1
    }

    /// An attempt has ended: counts for tokens.
    public mutating func noteResult(isFailure: Bool) {
        guard case .tokens(let maximum, let ratio) = rule else { return }
        tokens = isFailure ? max(tokens - 1, 0) : min(tokens + ratio, maximum)
    }

    /// The retries that are left now.
    public mutating func balance(at now: Duration) -> Double {
        switch rule {
        case .tokens(let maximum, _): return tokens - maximum / 2
        case .share(let ratio, let minimum, let window):
            advance(to: now)
            let reserve = now < leanUntil ? 0 : minimum * window.seconds
            return Double(requestCount) * ratio + reserve - Double(retryCount)
        }
    }

    /// Takes a retry from the budget; returns `false`, and counts that, if none is left.
    public mutating func withdraw(at now: Duration) -> Bool {
        let balance = balance(at: now)
        switch rule {
        case .tokens: if balance > 0 { return true }
        case .share:
            if balance >= 1 {
                retries[lastStep % Self.steps] += 1
                retryCount += 1
                return true
            }
        }
        refusedCount += 1
        return false
    }

    /// Does without the minimum for a window, because another process has spent its budget.
    public mutating func becomeLean(at now: Duration) {
        if case .share(_, _, let window) = rule { leanUntil = now + window }
    }

    private mutating func advance(to now: Duration) {
        guard now >= stepEnd else { return }
        let current = Int(now / step)
        guard current > lastStep else { return }
        for passed in (lastStep + 1)...(min(current, lastStep + Self.steps)) {
            let index = passed % Self.steps
            requestCount -= Int(requests[index])
            retryCount -= Int(retries[index])
            requests[index] = 0
            retries[index] = 0
        }
        lastStep = current
        stepEnd = step * (current + 1)
    }
}
