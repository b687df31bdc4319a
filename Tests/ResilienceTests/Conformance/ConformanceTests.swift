// SPDX-License-Identifier: Apache-2.0
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// The rules of `Transport`, for every transport and decorator: exactly one completion and nothing after it, no event of another transfer,
/// no call that waits for an event, and nothing retained.
///
/// `CURLEW_TEST_SEED=7` runs the scenarios of one seed, which a failure names.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ConformanceTests {
    private static var seeds: ClosedRange<UInt64> {
        if let seed = ProcessInfo.processInfo.environment["CURLEW_TEST_SEED"].flatMap({ UInt64($0) }) { return seed...seed }
        return 1...TestLength.value(8, short: 4, long: 40)
    }

    @Test("transfers in random courses follow the rules, and leave nothing behind", arguments: ConformanceStacks.all)
    func random(_ stack: ConformanceStack) async throws {
        let descriptors = ProcessProbe.openDescriptorCount
        for seed in Self.seeds {
            let problems = try await ConformanceRound(stack, seed: seed).run()
            try #require(problems.isEmpty, "\(problems.joined(separator: "\n"))")
        }
        // Other suites run in parallel: theirs are closed as well, but a leak of each round would persist.
        guard let descriptors else { return }
        #expect(ProcessProbe.settles(timeout: .seconds(40)) { ProcessProbe.openDescriptorCount.map { $0 < descriptors + 30 } ?? true })
    }

    @Test("each point of a transfer's course", arguments: ConformanceStacks.all)
    func points(_ stack: ConformanceStack) async throws {
        // Protocol classes load those with even seeds.
        let all: [(ExchangeKind, seed: UInt64)] = [
            (.headOnly, 2), (.large, 1), (.upload, 1), (.hinted, 1), (.small, 2), (.headOnly, 1), (.large, 2),
        ]
        for (kind, seed) in all.prefix(TestLength.value(2, short: 1, long: all.count)) where stack.kinds.contains(kind) {
            let problems = try await ConformanceRound(stack, seed: 0).run(Self.points(kind, seed: seed))
            try #require(problems.isEmpty, "\(problems.joined(separator: "\n"))")
        }
    }

    @Test("a response of which the last piece was paused completes nevertheless", arguments: ConformanceStacks.all)
    func lastPiece(_ stack: ConformanceStack) async throws {
        var piece = TransferPlan(.small, seed: 1)
        piece.actions[1] = .pauseForGood
        var head = TransferPlan(.empty, seed: 1)
        head.actions[0] = .pauseForGood
        let problems = try await ConformanceRound(stack, seed: 0).run([Scenario([piece, piece]), Scenario([head])])
        #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))")
    }

    @Test("a stored response of which the last piece was paused completes nevertheless", arguments: ConformanceStacks.caches)
    func lastStoredPiece(_ stack: ConformanceStack) async throws {
        for kind in [ExchangeKind.fresh, .validated] {
            var second = TransferPlan(kind, seed: 1)
            second.actions[1] = .pauseForGood
            let problems = try await ConformanceRound(stack, seed: 0).run([Scenario([TransferPlan(kind, seed: 1)]), Scenario([second])])
            #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))")
        }
    }

    @Test("a session's end reaches transfers in each state, and later ones", arguments: ConformanceStacks.all)
    func sessionEnd(_ stack: ConformanceStack) async throws {
        for (turns, cancels) in [(0, false), (0, true), (300, true), (3_000, false), (3_000, true)] {
            var scenario = Scenario(stack.kinds.map { TransferPlan($0, seed: 1) })
            scenario.plans.append(Self.plan(.small) { $0.isStarted = false })
            scenario.plans.append(Self.plan(.large) { $0.before = [.suspend] })
            scenario.plans.append(Self.plan(.large) { $0.actions[0] = .pause([.release]) })
            scenario.plans.append(Self.plan(.large) { $0.actions[1] = .pause([.release]) })
            scenario.plans.append(Self.plan(.upload) { $0.after = [.yield(100), .perform(.suspend)] })
            scenario.shutDown = turns
            scenario.cancelsAtEnd = cancels
            scenario.late = [
                TransferPlan(.small, seed: 1), Self.plan(.fresh) { $0.before = [.suspend, .resume] },
                Self.plan(.large) { $0.after = [.perform(.cancel)] }, Self.plan(.empty) { $0.after = [.perform(.cancel)] },
            ]
            let problems = try await ConformanceRound(stack, seed: 0).run([scenario])
            try #require(problems.isEmpty, "\(problems.joined(separator: "\n"))")
        }
    }

    @Test("the end of a session from within its first event", arguments: ConformanceStacks.all)
    func endInside(_ stack: ConformanceStack) async throws {
        for isOnSameThread in [true, false] {
            let plan = Self.plan(.large) { plan in
                plan.inside = [.shutDown]
                plan.isInsideOnSameThread = isOnSameThread
            }
            var scenario = Scenario([plan, TransferPlan(.slow, seed: 2), TransferPlan(.small, seed: 3)])
            scenario.shutDown = 5_000
            let problems = try await ConformanceRound(stack, seed: 0).run([scenario])
            try #require(problems.isEmpty, "\(problems.joined(separator: "\n"))")
        }
    }

    @Test("raw streams in random courses follow the rules, and leave nothing behind", arguments: ConformanceStacks.withStreams)
    func streams(_ stack: ConformanceStack) async throws {
        for seed in Self.seeds {
            let problems = try await StreamRound(stack, seed: seed).run()
            try #require(problems.isEmpty, "\(problems.joined(separator: "\n"))")
        }
    }

    // MARK: - Plans

    private static func plan(_ kind: ExchangeKind, seed: UInt64 = 1, _ change: (inout TransferPlan) -> Void) -> TransferPlan {
        var plan = TransferPlan(kind, seed: seed)
        // Usually after the head.
        plan.cancellation = 3_000
        change(&plan)
        return plan
    }

    /// Scenarios that act at one point each.
    private static func points(_ kind: ExchangeKind, seed: UInt64) -> [Scenario] {
        func plan(_ change: (inout TransferPlan) -> Void) -> TransferPlan { Self.plan(kind, seed: seed, change) }
        let suspension: [Deed] = [.suspend, .resume]
        let ends = kind.outcome != .none
        var plans = [
            plan { $0.isStarted = false },
            plan { plan in
                plan.before = [.suspend, .resumeReceiving, .release]
                plan.isStarted = false
            },
            plan { plan in
                plan.before = [.cancel, .cancel]
                plan.isStarted = false
            },
            plan { $0.before = [.suspend, .cancel] },
            plan { plan in
                plan.before = [.suspend]
                plan.after = [.yield(500), .perform(.resume)]
            },
            plan { $0.after = [.perform(.cancel), .perform(.cancel)] },
            plan { $0.after = [.perform(.resumeReceiving)] },
            plan { $0.actions[0] = .cancel },
            plan { $0.actions[0] = .pauseWithdrawn },
            plan { $0.actions = [0: .pause([]), 1: .pauseWithdrawn, 2: .pause(suspension)] },
            plan { $0.actions[0] = .pause([.cancel]) },
            plan { $0.actions[0] = .pause([.suspend, .cancel]) },
            plan { $0.afterEnd = [.cancel, .cancel] + suspension + [.resumeReceiving, .release] },
        ]
        for deeds in [[Deed.cancel], [.cancel, .cancel], suspension, [.resumeReceiving]] + (ends ? [[.release]] : []) {
            plans.append(plan { $0.inside = deeds })
            plans.append(
                plan { plan in
                    plan.inside = deeds
                    plan.isInsideOnSameThread = true
                })
            plans.append(plan { $0.between[0] = deeds })
        }
        if ends { plans.append(plan { $0.after = [.perform(.release)] }) }
        // Two of them at a time, which meet where equal requests do.
        return plans.map { Scenario([$0, $0]) }
    }
}
