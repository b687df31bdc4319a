// SPDX-License-Identifier: Apache-2.0

/// What a service does at a time.
enum Health: Sendable {
    case well
    /// That part of the responses are a 503.
    case degraded(Double)
    /// No connection.
    case dead
    /// That part of the responses takes a second longer.
    case slowTail(Double)
}

/// A phase of a service.
struct ServicePhase: Sendable {
    let until: Double
    let health: Health
    /// Requests a second.
    let capacity: Double
}

/// A service with one line of requests: what waits for longer than a client's patience is done all the same.
struct Service {
    struct Answer {
        let isGood: Bool
        /// In nanoseconds, from the request's arrival.
        let latency: Int64
    }

    private static let latency: Int64 = 20_000_000
    /// The most seconds of work that wait; more is refused at once.
    private static let longestLine = 2.0

    private let phases: [ServicePhase]
    private var index = 0
    private var busyUntil: Int64 = 0

    init(_ phases: [ServicePhase]) { self.phases = phases }

    mutating func answer(at time: Int64, _ random: inout SeededGenerator) -> Answer {
        while index + 1 < phases.count, Double(time) >= phases[index].until * 1e9 { index += 1 }
        let phase = phases[index]
        if case .dead = phase.health {
            busyUntil = time
            return Answer(isGood: false, latency: Self.latency)
        }
        let line = max(busyUntil - time, 0)
        guard Double(line) < Self.longestLine * 1e9 else { return Answer(isGood: false, latency: Self.latency) }
        busyUntil = max(busyUntil, time) + Int64(1e9 / phase.capacity)
        switch phase.health {
        case .degraded(let part): return Answer(isGood: random.unit() >= part, latency: line + Self.latency)
        case .slowTail(let part):
            return Answer(isGood: true, latency: line + Self.latency + (random.unit() < part ? 1_000_000_000 : 0))
        case .well, .dead: return Answer(isGood: true, latency: line + Self.latency)
        }
    }
}
