// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch

/// What is done with one stream to a server that echoes.
package struct StreamPlan: Sendable {
    /// How many bytes are sent, and in how many pieces.
    var length = 0
    var pieces = 1
    /// Pieces that are sent before the start.
    var early = 0
    /// The numbers of events, the opening included, in which another thread cancels, or ends the session, while the observer waits.
    var cancelsInside: Int?
    var shutsDownInside: Int?
    /// The numbers of events after which the stream is paused for a moment.
    var pauses: Set<Int> = []
    /// Withdraws pauses before they are returned.
    var withdrawsEarly = false
    var returnsCancel: Int?
    /// Cancels after that many turns of other tasks.
    var cancellation: Int?
    var isRefused = false
}

extension StreamPlan {
    init(by random: inout SplitMix, endsSession: Bool) {
        func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        pieces = number(1...8)
        length = pieces * number(0...20_000)
        early = number(0...pieces)
        isRefused = number(0...9) == 0
        switch number(0...6) {
        case 0: cancelsInside = number(0...2)
        case 1: if endsSession { shutsDownInside = number(0...2) }
        case 2: pauses = [number(1...3), number(1...3)]
        case 3:
            pauses = [number(1...3)]
            withdrawsEarly = true
        case 4: returnsCancel = number(1...3)
        case 5: cancellation = number(0...2_000)
        default: break
        }
    }
}

/// The observer of a stream of the suite: performs its plan, and checks each event.
package final class CheckedStreamObserver: StreamTransferObserver {
    private struct State {
        var stream: (any StreamHandle)?
        var isInside = false
        var isOpen = false
        var hasEnded = false
        var events = 0
        var received = 0
        var sent: Int64 = 0
        var pauses = 0
        var resumptions = 0
        var isCancelled = false
        var isComplete = false
    }

    let plan: StreamPlan
    /// The number that events have.
    let number: Int
    private let round: RoundContext
    private let state = Lock(State())
    private let completion = Log<Void>()

    init(_ plan: StreamPlan, id: Int, _ round: RoundContext) {
        self.plan = plan
        number = id
        self.round = round
    }

    var isComplete: Bool { state.withLock { $0.isComplete } }

    func completes(within limit: Duration) async -> Bool { await within(limit) { [completion] in await completion.wait(for: 1) } }

    /// Starts the stream, and sends everything.
    func run(_ stream: any StreamHandle) {
        state.withLock { $0.stream = stream }
        let body = GeneratedBody()
        let size = plan.length / plan.pieces
        for piece in 0..<plan.pieces {
            if piece == plan.early { stream.start() }
            stream.send(body.data(offset: Int64(piece * size), count: size), endOfStream: piece == plan.pieces - 1)
        }
        if plan.early == plan.pieces { stream.start() }
    }

    func request(to port: Int) -> StreamTransferRequest {
        var request = StreamTransferRequest(host: "127.0.0.1", port: plan.isRefused ? 1 : port, isSecure: false)
        request.options.proxy = .none
        return request
    }

    func release() { state.withLock { $0.stream = nil } }

    func cancel() {
        let stream = state.withLock { state in
            state.isCancelled = true
            return state.stream
        }
        stream?.cancel()
    }

    private func resumeReceiving() {
        let stream = state.withLock { state in
            state.resumptions += 1
            return state.stream
        }
        stream?.resumeReceiving()
    }

    // MARK: Events

    package func stream(_ id: Int, didOpen metrics: TransferMetrics) {
        let index = enter("the opening", id) { state in
            defer { state.isOpen = true }
            return state.isOpen ? "a second one" : nil
        }
        act(at: index)
        leave()
    }

    package func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        let index = enter("a piece", id) { [plan] state in
            let offset = state.received
            state.received += bytes.count
            guard state.isOpen, !state.hasEnded, !bytes.isEmpty else { return "out of order" }
            if state.pauses > state.resumptions { return "while paused" }
            guard state.received <= plan.length else { return "\(state.received) bytes" }
            return GeneratedBody().matches(bytes, offset: Int64(offset)) ? nil : "other bytes at \(offset)"
        }
        act(at: index)
        let action = returned(for: index)
        leave()
        return action
    }

    package func streamDidEndReceiving(_ id: Int) {
        _ = enter("the end of receiving", id) { state in
            defer { state.hasEnded = true }
            return state.isOpen && !state.hasEnded ? nil : "out of order"
        }
        leave()
    }

    package func stream(_ id: Int, didSend count: Int64) {
        _ = enter("a count of sent bytes", id) { [plan] state in
            defer { state.sent = count }
            return count > state.sent && count <= Int64(plan.length) ? nil : "\(count) after \(state.sent)"
        }
        leave()
    }

    package func stream(_ id: Int, didComplete completion: TransferCompletion) {
        let isEnding = round.isEnding
        _ = enter("the completion", id) { state in
            state.isComplete = true
            return problem(of: completion, state, isEnding: isEnding)
        }
        leave()
        self.completion.append(())
    }

    private func problem(of completion: TransferCompletion, _ state: State, isEnding: Bool) -> String? {
        switch completion.error {
        case nil:
            let isWhole = state.isOpen && state.hasEnded && state.received == plan.length && state.sent == Int64(plan.length)
            return isWhole ? nil : "success after \(state.sent) bytes sent and \(state.received) received"
        case CurlewError.cancelled?: return state.isCancelled ? nil : "cancelled without a call"
        case CurlewError.sessionInvalidated?: return isEnding ? nil : "invalidated without a call"
        case let error?: return plan.isRefused ? nil : "failed with \(error)"
        }
    }

    private func enter(_ event: String, _ id: Int, _ check: (inout State) -> String?) -> Int {
        let (index, problems) = state.withLock { state -> (Int, [String]) in
            var problems: [String] = []
            if state.isInside { problems.append("while another event is delivered") }
            if state.isComplete { problems.append("after the completion") }
            if number != id { problems.append("with the number \(id), not \(number)") }
            state.isInside = true
            if let problem = check(&state) { problems.append(problem) }
            defer { state.events += 1 }
            return (state.events, problems)
        }
        for problem in problems { round.report("\(plan): \(event): \(problem)") }
        return index
    }

    private func leave() { state.withLock { $0.isInside = false } }

    private func act(at index: Int) {
        if plan.cancelsInside == index { onOtherThread { self.cancel() } }
        if plan.shutsDownInside == index { onOtherThread { self.round.shutDown() } }
    }

    private func returned(for index: Int) -> ReceiveAction {
        if plan.returnsCancel == index {
            state.withLock { $0.isCancelled = true }
            return .cancel
        }
        guard plan.pauses.contains(index) else { return .proceed }
        state.withLock { $0.pauses += 1 }
        if plan.withdrawsEarly {
            onOtherThread { self.resumeReceiving() }
        } else {
            round.caller.async { self.resumeReceiving() }
        }
        return .pause
    }

    private func onOtherThread(_ body: @escaping @Sendable () -> Void) {
        let isDone = DispatchSemaphore(value: 0)
        round.caller.async {
            body()
            isDone.signal()
        }
        if isDone.wait(timeout: .now() + 10) == .timedOut { round.report("\(plan): a call waits for the end of an event") }
    }
}

/// Opens streams on one transport, which then ends.
package struct StreamRound: Sendable {
    private static let limit = Duration.seconds(20)

    private let stack: ConformanceStack
    private let seed: UInt64
    private let problems = Log<String>()
    private let references = WeakReferences()

    package init(_ stack: ConformanceStack, seed: UInt64) {
        self.stack = stack
        self.seed = seed
    }

    /// Runs the streams of the seed; returns what is wrong.
    package func run() async throws -> [String] {
        try await open()
        if problems.count == 0, !(await eventually { references.names("").isEmpty }) {
            problems.append("retained: \(references.names("").joined(separator: "; "))")
        }
        return problems.count == 0 ? [] : ["\(stack), seed \(seed)"] + problems.elements
    }

    private func open() async throws {
        let server = try TCPEchoServer()
        let built = try await stack.make()
        references.add("the transport", built.transport as AnyObject)
        let round = RoundContext(stack, built.transport, problems)
        var random = SplitMix(state: seed)
        let endsSession = Bool.random(using: &random)
        let plans = (0...Int.random(in: 0...5, using: &random)).map { _ in StreamPlan(by: &random, endsSession: endsSession) }
        var observers: [CheckedStreamObserver] = []
        for (index, plan) in plans.enumerated() {
            let observer = CheckedStreamObserver(plan, id: 2_000 + index, round)
            let stream = built.transport.makeStream(observer.request(to: server.port), id: observer.number, observer: observer)
            references.add("stream \(plan), its observer", observer)
            references.add("stream \(plan), its handle", stream)
            observer.run(stream)
            observers.append(observer)
            guard let turns = plan.cancellation else { continue }
            await yieldTurns(turns)
            observer.cancel()
        }
        if endsSession {
            await yieldTurns(Int.random(in: 0...3_000, using: &random))
            round.shutDown()
        }
        for observer in observers where !(await observer.completes(within: Self.limit)) {
            problems.append("\(observer.plan): no completion")
        }
        await withCheckedContinuation { continuation in round.caller.async { continuation.resume() } }
        for observer in observers { observer.release() }
        round.shutDown()
        if !(await built.transport.ends(within: Self.limit)) { problems.append("the transport does not end") }
        for problem in await built.problems() { problems.append(problem) }
        if !(await server.waitForConnectionsToClose()) { problems.append("\(server.openConnections) open connections of streams") }
        server.stop()
    }
}
