// SPDX-License-Identifier: Apache-2.0

/// A limit of requests in flight that adapts to how they end, as those of Netflix's concurrency-limits.
struct AdaptiveLimit: Sendable {
    /// The part of a new limit that is taken over at once, and the responses in the long-term latency: Gradient2Limit's.
    private static let smoothing = 0.2
    private static let longWindow = 600.0
    /// The requests that may wait at the server.
    private static let serverQueue = 4.0
    /// A limit that no number of requests reaches, as `.max` is meant; a `Double` of `.max` is no `Int` any more.
    private static let unlimited = 1 << 53

    private(set) var limit: Double
    private let rule: ConcurrencyLimiter.Limit
    private var longLatency = 0.0
    private var responses = 0.0

    init(_ rule: ConcurrencyLimiter.Limit) {
        self.rule = rule
        switch rule {
        case .fixed(let limit):
            self.limit = Double(min(max(limit, 1), Self.unlimited))
        case .additive(let initial, _, _, _, _), .gradient(let initial, _, _, _):
            limit = Double(min(max(initial, 1), Self.unlimited))
        }
    }

    mutating func update(_ result: ConcurrencyLimiterState.Result, latency: Duration, inFlight: Int) {
        switch rule {
        case .fixed: break
        case .additive(_, let minimum, let maximum, let backoff, let timeout):
            guard result != .ignored else { return }
            if result == .dropped || latency > timeout {
                // Unlike `max` and `min`, these do not pass a NaN on: it counts as the least.
                limit = (limit * Double.minimum(Double.maximum(backoff, 0.1), 1)).rounded(.down)
            } else if Double(inFlight * 2) >= limit {
                limit += 1
            }
            clamp(minimum, maximum)
        case .gradient(_, let minimum, let maximum, let tolerance):
            guard result == .success else {
                if result == .dropped { limit *= 0.9 }
                return clamp(minimum, maximum)
            }
            follow(latency.seconds, tolerance: tolerance, inFlight: inFlight)
            clamp(minimum, maximum)
        }
    }

    private mutating func follow(_ latency: Double, tolerance: Double, inFlight: Int) {
        guard latency > 0 else { return }
        // A plain mean at first, so that the first response does not count for long.
        responses = min(responses + 1, Self.longWindow)
        longLatency += (latency - longLatency) * 2 / (responses + 1)
        if longLatency / latency > 2 { longLatency *= 0.95 }
        // Requests that do not use the limit say nothing about it.
        guard Double(inFlight) >= limit / 2 else { return }
        let gradient = Double.minimum(Double.maximum(tolerance * longLatency / latency, 0.5), 1)
        limit = limit * (1 - Self.smoothing) + (limit * gradient + Self.serverQueue) * Self.smoothing
    }

    private mutating func clamp(_ minimum: Int, _ maximum: Int) {
        let minimum = Double(min(max(minimum, 1), Self.unlimited))
        limit = min(max(limit, minimum), max(Double(maximum), minimum))
    }
}
