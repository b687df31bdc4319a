// SPDX-License-Identifier: Apache-2.0
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
        for parameters in values.flatMap({ Self.items($0) }) {
            guard let remaining = parameters["r"], remaining <= 0, let reset = parameters["t"], reset > 0 else { continue }
            hold = max(hold ?? .zero, .seconds(min(reset, 86_400)))
        }
    }

    private mutating func readPolicies(_ values: [String]) {
        for parameters in values.flatMap({ Self.items($0) }) {
            guard let count = parameters["q"], count > 0, let window = parameters["w"], window > 0 else { continue }
            let other = (count: count, window: Duration.seconds(min(window, 31_536_000)))
            if let quota, quota.window / quota.count >= other.window / other.count { continue }
            quota = other
        }
    }

    /// The integer parameters of each item of a list (RFC 9651, section 3.1.2); strings may contain separators.
    private static func items(_ value: String) -> [[String: Int]] {
        split(value, at: ",").map { item in
            var parameters: [String: Int] = [:]
            for parameter in split(item, at: ";").dropFirst() {
                let parts = parameter.splitScalars(separator: "=", maxSplits: 1)
                guard parts.count == 2, let number = Int(parts[1].trimmed) else { continue }
                parameters[parts[0].trimmed] = number
            }
            return parameters
        }
    }

    private static func split(_ text: some StringProtocol, at separator: Unicode.Scalar) -> [Substring] {
        var parts: [Substring] = []
        let text = Substring(text)
        let scalars = text.unicodeScalars
        var start = text.startIndex
        var isQuoted = false
        for index in scalars.indices {
            if scalars[index] == "\"" { isQuoted.toggle() }
            guard scalars[index] == separator, !isQuoted else { continue }
            parts.append(text[start..<index])
            start = scalars.index(after: index)
        }
        return parts + [text[start...]]
    }
}

extension Substring {
    fileprivate var trimmed: String { String(trimmingScalars { $0 == " " || $0 == "\t" }) }
}
