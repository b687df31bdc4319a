// SPDX-License-Identifier: Apache-2.0
import Foundation

/// What the counts of a run say.
struct Outcome {
    let name: String
    let scenario: Scenario
    let tally: Tally

    init(_ name: String, _ scenario: Scenario, _ tally: Tally) {
        self.name = name
        self.scenario = scenario
        self.tally = tally
    }

    /// Attempts for each request in the trouble.
    var amplification: Double { Double(tally.troubledAttempts) / Double(max(tally.troubledRequests, 1)) }

    func servedShare(_ seconds: Range<Int>) -> Double {
        Double(seconds.reduce(0) { $0 + tally.served[$1] }) / Double(max(seconds.reduce(0) { $0 + tally.requests[$1] }, 1))
    }

    /// The seconds from the end of the trouble until 99 of 100 requests are served, for five seconds.
    var recovery: Int? {
        let end = Int(scenario.trouble.upperBound)
        return (end..<(scenario.seconds - 5)).first { servedShare($0..<($0 + 5)) >= 0.99 }.map { $0 - end }
    }

    /// The busiest second after the trouble, in multiples of the requests a second.
    var wave: Double {
        let seconds = Int(scenario.trouble.upperBound)..<scenario.seconds
        let mean = Double(scenario.clients) * scenario.rate
        return Double(seconds.map { tally.attempts[$0] }.max() ?? 0) / mean
    }

    /// The largest distance from a tenth that a tenth of the clients has in the served requests.
    var unfairness: Double {
        let size = tally.servedByClient.count / 10
        let total = Double(max(tally.servedByClient.reduce(0, +), 1))
        return (0..<10).map { group in
            let served = tally.servedByClient[(group * size)..<((group + 1) * size)].reduce(0, +)
            return abs(Double(served) / total * 10 - 1)
        }.max() ?? 0
    }

    func latency(_ part: Double) -> Int {
        let sorted = tally.latencies.sorted()
        return sorted.isEmpty ? 0 : Int(sorted[min(Int(Double(sorted.count) * part), sorted.count - 1)])
    }

    var attempts: Int { tally.attempts.reduce(0, +) }
    var requests: Int { tally.requests.reduce(0, +) }
}

enum Report {
    static func text(_ outages: [Outcome], _ overloads: [Outcome], _ tails: [Outcome], _ seed: UInt64) -> String {
        var lines = [
            "Outage: 10,000 clients, 5,000 requests a second; half of the responses fail from 60 s, none comes from 120 s to 180 s. Seed \(seed).",
            "", "| policies | attempts a request | served, degraded | served, dead | recovery, s | busiest second after | fair within |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for outcome in outages {
            let cells = [
                outcome.name, number(outcome.amplification), percent(outcome.servedShare(60..<120)),
                percent(outcome.servedShare(120..<180)),
                outcome.recovery.map { "\($0)" } ?? "never", "\(number(outcome.wave)) x", percent(outcome.unfairness),
            ]
            lines.append("| \(cells.joined(separator: " | ")) |")
        }
        lines += ["", "Overload: the same clients, and a service that can do 2,500 requests a second.", ""]
        lines += ["| policies | attempts a request | served | fair within |", "| --- | --- | --- | --- |"]
        for outcome in overloads {
            let cells = [
                outcome.name, number(outcome.amplification), percent(outcome.servedShare(20..<120)), percent(outcome.unfairness),
            ]
            lines.append("| \(cells.joined(separator: " | ")) |")
        }
        lines += ["", "Slow tail: 100 clients with 20 requests a second each; one response in fifty takes a second longer.", ""]
        lines += ["| policies | 50 % | 95 % | 99 % | extra attempts |", "| --- | --- | --- | --- | --- |"]
        for outcome in tails {
            let extra = Double(outcome.attempts) / Double(max(outcome.requests, 1)) - 1
            let cells = [0.5, 0.95, 0.99].map { "\(outcome.latency($0)) ms" }
            lines.append("| \(outcome.name) | \(cells.joined(separator: " | ")) | \(percent(extra)) |")
        }
        return lines.joined(separator: "\n")
    }

    /// The goals that were missed.
    static func failures(_ outages: [Outcome], _ overloads: [Outcome], _ tails: [Outcome]) -> [String] {
        var failures: [String] = []
        func demand(_ isMet: Bool, _ text: String) { if !isMet { failures.append(text) } }
        for outcome in outages {
            let name = outcome.name
            if name.contains("budget") {
                demand(outcome.amplification <= 1.2, "\(name): \(number(outcome.amplification)) attempts a request")
            }
            if name == "nothing" { demand(outcome.amplification >= 2.5, "\(name): \(number(outcome.amplification)) attempts a request") }
            guard name == "breaker" || name == "breaker, budget" else { continue }
            demand((outcome.recovery ?? .max) <= Int(2 * Program.breakerPause), "\(name): recovery after \(outcome.recovery ?? -1) s")
            demand(outcome.wave <= 1.3, "\(name): a wave of \(number(outcome.wave))")
            demand(outcome.unfairness <= 0.1, "\(name): shares differ by \(percent(outcome.unfairness))")
        }
        if let limiter = overloads.last { demand(limiter.unfairness <= 0.1, "limiter: shares differ by \(percent(limiter.unfairness))") }
        if let hedged = tails.last {
            demand(Double(hedged.attempts) <= Double(hedged.requests) * 1.051, "hedging: more than 5 % extra")
            demand(hedged.latency(0.99) < (tails.first?.latency(0.99) ?? 0) / 2, "hedging: the 99th percentile is no better")
        }
        return failures
    }

    private static func number(_ value: Double) -> String { String(format: "%.2f", value) }
    private static func percent(_ value: Double) -> String { String(format: "%.1f %%", value * 100) }
}
