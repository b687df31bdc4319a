// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// What a server says in `Retry-After`, `RateLimit` and `RateLimit-Policy`.
///
/// `RateLimit: "default";r=0;t=30` and `RateLimit-Policy: "default";q=100;w=60` are lists of items with parameters
/// (draft-ietf-httpapi-ratelimit-headers-11); of several, the strictest counts, of quotas those of requests. The single fields of earlier
/// drafts are not read.
struct ServerLimits: Equatable {
    /// How long not to send; `nil` if the server did not say so.
    var hold: Duration?
    /// The slowest quota.
    var quota: (count: Int, window: Duration)?

    /// Whether a response may have limits: nearly all have none, which is cheap to see.
    static func mayBe(in head: ResponseHead) -> Bool {
        head.statusCode == 429 || head.statusCode == 503 || head.hasLine(beginningWith: "ratelimit")
    }

    init(_ head: ResponseHead) {
        let isRefusal = head.statusCode == 429 || head.statusCode == 503
        if isRefusal, head.contains("retry-after"), let delay = RetryAfter(head)?.delay, delay > .zero {
            hold = min(delay, .seconds(86_400))
        }
        guard head.hasLine(beginningWith: "ratelimit") else { return }
        for limit in head.headers.structuredRateLimits { read(limit) }
    }

    static func == (lhs: ServerLimits, rhs: ServerLimits) -> Bool {
        lhs.hold == rhs.hold && lhs.quota?.count == rhs.quota?.count && lhs.quota?.window == rhs.quota?.window
    }

    private mutating func read(_ limit: ServerRateLimit) {
        if limit.remaining == 0, let reset = limit.reset, reset > .zero { hold = max(hold ?? .zero, min(reset, .seconds(86_400))) }
        guard limit.unit.hasSameBytes(as: "requests"), let count = limit.quota, count > 0, let window = limit.window else { return }
        let other = (count: count, window: min(window, .seconds(31_536_000)))
        if let quota, quota.window / quota.count >= other.window / other.count { return }
        quota = other
    }
}
