// SPDX-License-Identifier: Apache-2.0
import CurlewResilience
import Foundation

/// The policies of each client.
struct Arm: Sendable {
    let name: String
    var retries = 3
    var jitter = true
    var budget: RetryBudget.Rule?
    var breaker: CircuitBreaker?
    var limit: RateLimit?
    var hedging: Hedging?
}

/// A run: clients, what they ask for, and the service.
struct Scenario: Sendable {
    let name: String
    let phases: [ServicePhase]
    let seconds: Int
    var clients = 10_000
    /// Requests a second of each client.
    var rate = 0.5
    /// In seconds.
    var patience = 1.0
    /// Requests that begin at these times count as those of the trouble.
    var trouble = 0.0..<0.0
}

/// What was counted, by second where it is a list.
struct Tally: Sendable {
    var requests: [Int]
    var served: [Int]
    var attempts: [Int]
    /// Attempts and requests of requests that began in the trouble.
    var troubledAttempts = 0
    var troubledRequests = 0
    var refusedByBreaker = 0
    var refusedByBudget = 0
    var hedges = 0
    var servedByClient: [Int]
    /// In milliseconds, of served requests.
    var latencies: [Int32] = []
}

/// Runs a scenario with an arm: the same on each run with the same seed.
struct Simulation {
    private struct Client {
        var budget: RetryBudgetState?
        var breaker: CircuitBreakerState?
        var limiter: RateLimiterState?
        var hedging: HedgingState?
    }

    private struct Call {
        let began: Int64
        var sent: Int64
        var tries = 0
        var ticket: CircuitBreakerState.Ticket?
        var isGood = false
        var isDone = false
        var isHedged = false
        /// When the attempt in flight ends.
        var end: Int64 = 0
    }

    private let scenario: Scenario
    private let arm: Arm
    private var random: SeededGenerator
    private var service: Service
    private var queue = EventQueue()
    private var clients: [Client]
    private var calls: [Call] = []
    private var free: [Int] = []
    private(set) var tally: Tally

    init(_ scenario: Scenario, _ arm: Arm, seed: UInt64) {
        self.scenario = scenario
        self.arm = arm
        random = SeededGenerator(seed)
        service = Service(scenario.phases)
        let client = Client(
            budget: arm.budget.map { RetryBudgetState($0) }, breaker: arm.breaker.map { CircuitBreakerState($0) },
            limiter: arm.limit.map { RateLimiterState($0) }, hedging: arm.hedging.map { HedgingState($0) })
        clients = Array(repeating: client, count: scenario.clients)
        let zeros = Array(repeating: 0, count: scenario.seconds + 60)
        tally = Tally(requests: zeros, served: zeros, attempts: zeros, servedByClient: Array(repeating: 0, count: scenario.clients))
    }

    mutating func run() -> Tally {
        for client in clients.indices { queue.add(.request, of: client, at: pause()) }
        while let event = queue.popFirst() {
            switch event.kind {
            case .request: request(of: event.client, at: event.time)
            case .attempt(let call): attempt(call, of: event.client, at: event.time)
            case .end(let call): if calls[call].end == event.time { ended(call, of: event.client, at: event.time) }
            case .hedge(let call): hedge(call, of: event.client, at: event.time)
            }
        }
        return tally
    }

    /// The time between two requests of a client: exponential.
    private mutating func pause() -> Int64 {
        Int64(-log(1 - random.unit()) / scenario.rate * 1e9)
    }

    private func second(_ time: Int64) -> Int { min(Int(time / 1_000_000_000), tally.requests.count - 1) }

    private mutating func request(of client: Int, at time: Int64) {
        let next = time + pause()
        if next < Int64(scenario.seconds) * 1_000_000_000 { queue.add(.request, of: client, at: next) }
        tally.requests[second(time)] += 1
        if scenario.trouble.contains(Double(time) / 1e9) { tally.troubledRequests += 1 }
        let call = Call(began: time, sent: time)
        let index: Int
        if let last = free.popLast() {
            index = last
            calls[index] = call
        } else {
            index = calls.count
            calls.append(call)
        }
        clients[client].budget?.noteRequest(at: .nanoseconds(time))
        attempt(index, of: client, at: time)
    }

    private mutating func attempt(_ index: Int, of client: Int, at time: Int64) {
        let now = Duration.nanoseconds(time)
        calls[index].tries += 1
        calls[index].isHedged = false
        if let admission = clients[client].breaker?.admit(at: now).admission {
            guard case .admitted(let ticket) = admission else {
                tally.refusedByBreaker += 1
                return finish(index, of: client, isGood: false, at: time)
            }
            calls[index].ticket = ticket
        }
        if let decision = clients[client].limiter?.acquire(at: now, maximumWait: .zero), decision != .granted {
            return finish(index, of: client, isGood: false, at: time)
        }
        let delay = clients[client].hedging?.requestBegins(at: now)
        calls[index].sent = time
        send(index, of: client, at: time)
        if let delay { queue.add(.hedge(index), of: client, at: time + Int64(delay / .nanoseconds(1))) }
    }

    /// Sends an attempt; of two the one that ends first counts.
    private mutating func send(_ index: Int, of client: Int, at time: Int64, isSecond: Bool = false) {
        tally.attempts[second(time)] += 1
        if scenario.trouble.contains(Double(calls[index].began) / 1e9) { tally.troubledAttempts += 1 }
        let answer = service.answer(at: time, &random)
        let patience = Int64(scenario.patience * 1e9)
        let end = time + min(answer.latency, patience)
        guard !isSecond || end < calls[index].end else { return }
        calls[index].isGood = answer.isGood && answer.latency <= patience
        calls[index].end = end
        queue.add(.end(index), of: client, at: end)
    }

    private mutating func hedge(_ index: Int, of client: Int, at time: Int64) {
        let call = calls[index]
        guard !call.isDone, !call.isHedged, call.end > time, clients[client].hedging?.hedge(at: .nanoseconds(time)) == true else { return }
        calls[index].isHedged = true
        tally.hedges += 1
        send(index, of: client, at: time, isSecond: true)
    }

    private mutating func ended(_ index: Int, of client: Int, at time: Int64) {
        let call = calls[index]
        let now = Duration.nanoseconds(time)
        let took = Duration.nanoseconds(time - call.sent)
        if let ticket = call.ticket {
            let jitter = call.isGood ? 0 : random.unit()
            _ = clients[client].breaker?.record(call.isGood ? .success : .failure, ticket, took: took, at: now, random: jitter)
        }
        clients[client].budget?.noteResult(isFailure: !call.isGood)
        if call.isGood { clients[client].hedging?.responded(after: took) }
        guard !call.isGood, call.tries <= arm.retries else { return finish(index, of: client, isGood: call.isGood, at: time) }
        if clients[client].budget?.withdraw(at: now) == false {
            tally.refusedByBudget += 1
            return finish(index, of: client, isGood: false, at: time)
        }
        // RetryPolicy's backoff: half a second, doubled with each retry, with full jitter.
        let longest = 0.5 * Double(1 << (call.tries - 1))
        queue.add(.attempt(index), of: client, at: time + Int64(longest * (arm.jitter ? random.unit() : 1) * 1e9))
    }

    private mutating func finish(_ index: Int, of client: Int, isGood: Bool, at time: Int64) {
        let began = calls[index].began
        if isGood {
            tally.served[second(began)] += 1
            tally.servedByClient[client] += 1
            tally.latencies.append(Int32((time - began) / 1_000_000))
        }
        calls[index].isDone = true
        // A call with a timer of a second attempt may still be named by that.
        if arm.hedging == nil { free.append(index) }
    }
}
