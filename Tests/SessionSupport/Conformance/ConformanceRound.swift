// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch

/// A transport under test, made for one round.
package struct BuiltStack: Sendable {
    package let transport: any Transport
    /// Returns the URL of an exchange.
    package let url: @Sendable (ExchangeKind, _ seed: UInt64) -> String
    /// Completes a request.
    package var prepare: @Sendable (inout TransferRequest) -> Void = { _ in }
    /// Called after the transport has ended; returns what is wrong.
    package var problems: @Sendable () async -> [String] = { [] }
    /// What has to be released with the transport, by name.
    package var parts: [(name: String, object: any Sendable)] = []

    package init(_ transport: any Transport, url: @escaping @Sendable (ExchangeKind, _ seed: UInt64) -> String) {
        self.transport = transport
        self.url = url
    }
}

/// A kind of transport, or of several in front of one another, to which the suite applies.
package struct ConformanceStack: Sendable, CustomStringConvertible {
    package let name: String
    package var kinds = ExchangeKind.allCases
    /// How many different bodies there are: few for stacks in which equal requests meet; `nil` for another one each time.
    package var seeds: Int?
    /// Whether a policy may refuse transfers.
    package var mayRefuse = false
    /// Whether a request may be sent twice at the same time.
    package var maySendTwice = false
    /// Whether raw streams are opened over the network.
    package var opensStreams = false
    package let make: @Sendable () async throws -> BuiltStack

    package init(_ name: String, make: @escaping @Sendable () async throws -> BuiltStack) {
        self.name = name
        self.make = make
    }

    package var description: String { name }

    /// Changes a copy.
    package func with(_ change: (inout ConformanceStack) -> Void) -> ConformanceStack {
        var copy = self
        change(&copy)
        return copy
    }
}

/// What the observers of a round share.
package final class RoundContext: Sendable {
    /// The thread that makes calls while events are delivered.
    package let caller = DispatchQueue(label: "conformance.caller")
    package let mayRefuse: Bool
    package let maySendTwice: Bool
    private let transport: any Transport
    /// Those of a session begin with 1, and one may have a few requests of its own.
    private let lastID = Lock(1_000)
    private let end = Lock((isCalled: false, isOver: false))
    private let problems: Log<String>

    init(_ stack: ConformanceStack, _ transport: any Transport, _ problems: Log<String>) {
        mayRefuse = stack.mayRefuse
        maySendTwice = stack.maySendTwice
        self.transport = transport
        self.problems = problems
    }

    /// Whether ``shutDown()`` was called.
    package var isEnding: Bool { end.withLock { $0.isCalled } }
    /// Whether it has returned.
    package var isShutDown: Bool { end.withLock { $0.isOver } }

    package func report(_ problem: String) { problems.append(problem) }

    package func shutDown() {
        // Before the call, whose effect may be seen before it returns.
        end.withLock { $0.isCalled = true }
        transport.shutDown()
        end.withLock { $0.isOver = true }
    }

    /// Makes the transfer of an observer's plan.
    func makeTransfer(_ request: TransferRequest, observer: CheckedObserver) -> any TransferHandle {
        let id = lastID.withLock { id in
            id += 1
            return id
        }
        let handle = transport.makeTransfer(request, id: id, observer: observer)
        observer.take(handle, id: id)
        return handle
    }
}

/// Runs scenarios, one after the other, on one transport.
package struct ConformanceRound: Sendable {
    /// How long anything may take.
    private static let limit = Duration.seconds(20)

    private let stack: ConformanceStack
    private let seed: UInt64
    private let problems = Log<String>()
    private let references = WeakReferences()

    package init(_ stack: ConformanceStack, seed: UInt64) {
        self.stack = stack
        self.seed = seed
    }

    /// Runs the scenarios of the seed, of which the last one ends the transport; returns what is wrong.
    package func run() async throws -> [String] {
        var maker = PlanMaker(seed: seed, kinds: stack.kinds, seeds: stack.seeds)
        let count = maker.number(1...4)
        let scenarios = (1...count).map { Scenario(by: &maker, endsSession: $0 == count) }
        return try await run(scenarios)
    }

    /// Runs given scenarios; returns what is wrong.
    package func run(_ scenarios: [Scenario]) async throws -> [String] {
        try await runAll(scenarios)
        await expectRelease("after the transport")
        return problems.count == 0 ? [] : ["\(stack), seed \(seed)"] + problems.elements
    }

    /// In a function of its own, which retains the transport.
    private func runAll(_ scenarios: [Scenario]) async throws {
        let built = try await stack.make()
        references.add("the transport", built.transport as AnyObject)
        for part in built.parts { references.add(part.name, part.object as AnyObject) }
        let round = RoundContext(stack, built.transport, problems)
        for (index, scenario) in scenarios.enumerated() where problems.count == 0 {
            await run(scenario, built, round)
            if scenario.shutDown == nil { await expectRelease("while the transport is in use", "transfer") }
            if problems.count > 0 { report(scenario, index) }
        }
        if !round.isShutDown { round.shutDown() }
        if !(await ends(built.transport)) { problems.append("the transport does not end") }
        for problem in await built.problems() { problems.append(problem) }
    }

    private func report(_ scenario: Scenario, _ index: Int) {
        problems.append("in scenario \(index):\n\(scenario)")
    }

    private func expectRelease(_ time: String, _ prefix: String = "") async {
        guard problems.count == 0 else { return }
        if await eventually({ references.names(prefix).isEmpty }) { return }
        problems.append("retained \(time): \(references.names(prefix).joined(separator: "; "))")
    }

    // MARK: A scenario

    private func run(_ scenario: Scenario, _ built: BuiltStack, _ round: RoundContext) async {
        var observers: [CheckedObserver] = []
        for plan in scenario.plans {
            if plan.waitsForOthers {
                for observer in observers { await cancelUnending(observer) }
                await expectCompletions(observers)
            }
            observers.append(await start(plan, built, round))
        }
        if let turns = scenario.shutDown {
            await yieldTurns(turns)
            // Waiting may begin before the end does.
            let incomplete = Log<[String]>()
            Task { [observers] in
                await built.transport.waitUntilShutDown()
                incomplete.append(Self.incomplete(observers))
            }
            round.shutDown()
            if scenario.cancelsAtEnd { for observer in observers { observer.perform(.cancel) } }
            for plan in scenario.late { observers.append(await start(plan, built, round)) }
            await expectEnd(built.transport, observers)
            if !(await within(Self.limit) { await incomplete.wait(for: 1) }) { problems.append("the end is not reported twice") }
            for problem in incomplete.elements.joined() { problems.append(problem) }
        } else {
            for observer in observers { await cancelUnending(observer) }
        }
        await expectCompletions(observers)
        // What they do after their ends comes before this.
        await withCheckedContinuation { continuation in round.caller.async { continuation.resume() } }
        for observer in observers { observer.release() }
    }

    private func start(_ plan: TransferPlan, _ built: BuiltStack, _ round: RoundContext) async -> CheckedObserver {
        let observer = CheckedObserver(plan, round)
        var request = plan.kind.request(url: built.url(plan.kind, plan.seed), seed: plan.seed)
        built.prepare(&request)
        let handle = round.makeTransfer(request, observer: observer)
        references.add("transfer \(plan), its observer", observer)
        references.add("transfer \(plan), its handle", handle)
        if let body = request.body { references.add("transfer \(plan), its body", body) }
        for deed in plan.before { observer.perform(deed) }
        guard plan.isStarted else { return observer }
        observer.start()
        for step in plan.after {
            switch step {
            case .perform(let deed): observer.perform(deed)
            case .yield(let turns): await yieldTurns(turns)
            }
        }
        return observer
    }

    private func cancelUnending(_ observer: CheckedObserver) async {
        guard observer.plan.kind.outcome == .none, observer.plan.isStarted, !observer.isComplete else { return }
        await yieldTurns(observer.plan.cancellation)
        observer.perform(.cancel)
    }

    private func expectCompletions(_ observers: [CheckedObserver]) async {
        for observer in observers where observer.plan.completes {
            if !(await observer.completes(within: Self.limit)) { problems.append("\(observer.plan): no completion") }
        }
    }

    /// All transfers have completed when the end of the transport is reported.
    private func expectEnd(_ transport: any Transport, _ observers: [CheckedObserver]) async {
        guard await ends(transport) else { return problems.append("the transport does not end") }
        for problem in Self.incomplete(observers) { problems.append(problem) }
    }

    private static func incomplete(_ observers: [CheckedObserver]) -> [String] {
        observers.filter { $0.plan.isStarted && $0.plan.before.isEmpty && !$0.isComplete }
            .map { "\($0.plan): not complete at the end of the transport" }
    }

    private func ends(_ transport: any Transport) async -> Bool { await transport.ends(within: Self.limit) }
}

extension Transport {
    /// Waits for the end of a transport that was shut down; `false` if that is not reported in time.
    func ends(within limit: Duration) async -> Bool {
        let end = Log<Void>()
        // The wait is not cancelled with its task.
        Task {
            await waitUntilShutDown()
            end.append(())
        }
        return await CurlewSessionTestSupport.within(limit) { await end.wait(for: 1) }
    }
}

/// Lets other tasks run so many times; less often if their turns take long.
func yieldTurns(_ turns: Int) async {
    let start = ContinuousClock.now
    for _ in 0..<turns where start.duration(to: .now) < .milliseconds(4) { await Task.yield() }
}

/// Weak references by names.
final class WeakReferences: Sendable {
    private struct Reference: @unchecked Sendable {  // the weak reference is thread-safe
        let name: String
        weak var object: AnyObject?
    }

    private let references = Lock<[Reference]>([])

    func add(_ name: String, _ object: AnyObject) {
        references.withLock { $0.append(Reference(name: name, object: object)) }
    }

    /// The names that begin with a text, of objects that are still retained.
    func names(_ prefix: String) -> [String] {
        references.withLock { references in
            references.removeAll { $0.object == nil }
            return references.map(\.name).filter { $0.hasPrefix(prefix) }
        }
    }
}
