// SPDX-License-Identifier: Apache-2.0
import CurlewResilience
import Foundation

/// Simulates a fleet of clients with the policies of CurlewResilience: `Fleet [--seed N] [--svg FILE] [--check]`.
@main
enum Program {
    static let breakerPause = 10.0

    static func main() throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let seed = value(of: "--seed", in: arguments).flatMap { UInt64($0) } ?? 26
        let outages = arms.map { Outcome($0.name, outage, run(outage, $0, seed)) }
        let overloads = [Arm(name: "nothing"), limited].map { Outcome($0.name, overload, run(overload, $0, seed)) }
        let tails = [Arm(name: "nothing"), Arm(name: "hedging", hedging: Hedging())].map { Outcome($0.name, tail, run(tail, $0, seed)) }
        print(Report.text(outages, overloads, tails, seed))
        if let file = value(of: "--svg", in: arguments) {
            try Chart.svg(outages).write(toFile: file, atomically: true, encoding: .utf8)
        }
        guard arguments.contains("--check") else { return }
        let failures = Report.failures(outages, overloads, tails)
        for failure in failures { print("fleet: \(failure)") }
        if !failures.isEmpty { exit(1) }
    }

    private static func value(of option: String, in arguments: [String]) -> String? {
        arguments.firstIndex(of: option).flatMap { $0 + 1 < arguments.count ? arguments[$0 + 1] : nil }
    }

    private static func run(_ scenario: Scenario, _ arm: Arm, _ seed: UInt64) -> Tally {
        var simulation = Simulation(scenario, arm, seed: seed)
        return simulation.run()
    }

    /// 5,000 requests a second for a service that can do 8,000: it degrades after a minute, dies after two, and comes back after three.
    static let outage = Scenario(
        name: "outage",
        phases: [
            ServicePhase(until: 60, health: .well, capacity: 8_000), ServicePhase(until: 120, health: .degraded(0.5), capacity: 8_000),
            ServicePhase(until: 180, health: .dead, capacity: 8_000), ServicePhase(until: 300, health: .well, capacity: 8_000),
        ], seconds: 300, trouble: 60..<180)

    /// 5,000 requests a second for a service that can do 2,500.
    static let overload = Scenario(
        name: "overload", phases: [ServicePhase(until: 120, health: .well, capacity: 2_500)], seconds: 120, trouble: 0..<120)

    /// One response in fifty takes a second longer.
    static let tail = Scenario(
        name: "slow tail", phases: [ServicePhase(until: 120, health: .slowTail(0.02), capacity: 8_000)], seconds: 120, clients: 100,
        rate: 20,
        patience: 5)

    /// For clients that make a request every two seconds: the defaults count more calls than those make.
    private static var breaker: CircuitBreaker {
        CircuitBreaker(minimumCalls: 5, window: .time(.seconds(30)), openDuration: .seconds(breakerPause), trialCalls: 1)
    }

    private static var breakerWithoutJitter: CircuitBreaker {
        var breaker = breaker
        breaker.jitter = 0
        return breaker
    }

    private static let share = RetryBudget.Rule.share(ratio: 0.2, minimum: 0, window: .seconds(10))

    static let arms = [
        Arm(name: "no jitter", jitter: false), Arm(name: "nothing"), Arm(name: "budget, share", budget: share),
        Arm(name: "budget, tokens", budget: .grpc), Arm(name: "breaker", breaker: breaker),
        Arm(name: "breaker, no jitter", jitter: false, breaker: breakerWithoutJitter),
        Arm(name: "breaker, budget", budget: share, breaker: breaker),
    ]

    /// A quarter of a request a second for each client, which is what the service can do.
    static let limited = Arm(name: "limiter", retries: 0, limit: RateLimit(1, per: .milliseconds(4_200), burst: 2))
}
