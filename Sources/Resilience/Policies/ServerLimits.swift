// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// What a server says in `Retry-After`, `RateLimit` and `RateLimit-Policy`.
///
/// `RateLimit: "default";r=0;t=30` and `RateLimit-Policy: "default";q=100;w=60` are lists of items with parameters
/// (draft-ietf-httpapi-ratelimit-headers-10); of several, the strictest counts. The single fields of earlier drafts are not read.
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
        if isRefusal, head.contains("retry-after"), let delay = RetryAfter(head)?.delay, delay > 0 {
            hold = .seconds(min(delay, 86_400))
        }
        if head.contains("ratelimit") { readRemaining(head.validValues(for: "RateLimit")) }
        if head.contains("ratelimit-policy") { readPolicies(head.validValues(for: "RateLimit-Policy")) }
    }

    static func == (lhs: ServerLimits, rhs: ServerLimits) -> Bool {
        lhs.hold == rhs.hold && lhs.quota?.count == rhs.quota?.count && lhs.quota?.window == rhs.quota?.window
    }

    private mutating func readRemaining(_ values: [String]) {
        for parameters in values.flatMap({ Self.parameters($0) }) {
            guard case .integer(let remaining)? = parameters["r"], remaining <= 0, case .integer(let reset)? = parameters["t"], reset > 0
            else { continue }
            hold = max(hold ?? .zero, .seconds(min(reset, 86_400)))
        }
    }

    private mutating func readPolicies(_ values: [String]) {
        for parameters in values.flatMap({ Self.parameters($0) }) {
            guard case .integer(let count)? = parameters["q"], count > 0, case .integer(let window)? = parameters["w"], window > 0 else {
                continue
            }
            let other = (count: count, window: Duration.seconds(min(window, 31_536_000)))
            if let quota, quota.window / quota.count >= other.window / other.count { continue }
            quota = other
        }
    }

    /// The parameters of each item of a list; none of one that is invalid, which has to be ignored (RFC 9651, section 4.2).
    private static func parameters(_ value: String) -> [StructuredFields.Parameters] {
        let list = (try? StructuredFields.list(from: value)) ?? []
        return list.compactMap { member in
            guard case .item(let item) = member else { return nil }
            return item.parameters
        }
    }
}
