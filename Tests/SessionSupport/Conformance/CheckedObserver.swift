// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch

/// The observer of a transfer of the suite: performs its plan, and checks each event.
package final class CheckedObserver: TransferObserver {
    private struct State {
        var handle: (any TransferHandle)?
        /// The number that events have.
        var id: Int?
        var isStarted = false
        var isLate = false
        var isInside = false
        var events = 0
        var status: Int?
        var received = 0
        var sent: Int64 = 0
        var rewinds = 0
        var pauses = 0
        var resumptions = 0
        var isCancelled = false
        var isComplete = false
    }

    package let plan: TransferPlan
    private let round: RoundContext
    private let state = Lock(State())
    private let completion = Log<Void>()

    package init(_ plan: TransferPlan, _ round: RoundContext) {
        self.plan = plan
        self.round = round
    }

    package var isComplete: Bool { state.withLock { $0.isComplete } }

    /// Returns when the transfer has completed; `false` if it does not in time.
    package func completes(within limit: Duration) async -> Bool {
        await within(limit) { [completion] in await completion.wait(for: 1) }
    }

    /// Takes the handle, before the start.
    package func take(_ handle: any TransferHandle, id: Int) {
        state.withLock { state in
            state.handle = handle
            state.id = id
        }
    }

    /// Starts the transfer.
    package func start() {
        let isLate = round.isShutDown
        let handle = state.withLock { state in
            state.isStarted = true
            state.isLate = isLate
            return state.handle
        }
        handle?.start()
    }

    /// Releases the handle.
    package func release() { state.withLock { $0.handle = nil } }

    /// On any thread.
    package func perform(_ deed: Deed) {
        switch deed {
        case .shutDown: return round.shutDown()
        case .release: return release()
        case .cancel, .suspend, .resume, .resumeReceiving: break
        }
        // Noted before the call, whose effect may be seen before it returns. The end of the session was the reason if it came first.
        let isOver = round.isShutDown
        let handle = state.withLock { state -> (any TransferHandle)? in
            guard state.handle != nil else { return nil }
            if case .cancel = deed, !isOver || !state.isStarted { state.isCancelled = true }
            if case .resumeReceiving = deed { state.resumptions += 1 }
            return state.handle
        }
        switch deed {
        case .cancel: handle?.cancel()
        case .suspend: handle?.setSuspended(true)
        case .resume: handle?.setSuspended(false)
        default: handle?.resumeReceiving()
        }
    }

    // MARK: Events

    package func transfer(_ id: Int, didReceiveInterim head: ResponseHead) {
        _ = enter("an interim response", id) { [plan] state in
            guard state.status == nil else { return "after the head" }
            return plan.kind == .hinted && head.statusCode == 103 ? nil : "status \(head.statusCode)"
        }
        leave()
    }

    package func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        let index = enter("the head", id, isReceived: true) { state in
            defer { state.status = head.statusCode }
            return state.status == nil ? nil : "a second head"
        }
        return respond(to: index)
    }

    package func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        let index = enter("a piece", id, isReceived: true) { [plan] state in
            let offset = state.received
            state.received += bytes.count
            guard state.status != nil else { return "bytes before the head" }
            guard !bytes.isEmpty else { return "an empty piece" }
            guard state.received <= plan.kind.receivedLength else { return "\(state.received) bytes of \(plan.kind.receivedLength)" }
            return GeneratedBody(seed: plan.seed).matches(bytes, offset: Int64(offset)) ? nil : "other bytes at \(offset)"
        }
        return respond(to: index)
    }

    package func transfer(_ id: Int, didSend count: Int64) {
        _ = enter("a count of sent bytes", id) { [plan] state in
            // The request is sent again when its connection was stale.
            if count <= state.sent { state.rewinds += 1 }
            state.sent = count
            let isPossible = count > 0 && count <= Int64(plan.kind.sentLength) && state.rewinds < 4
            return isPossible ? nil : "\(count) bytes sent, begun again \(state.rewinds) times"
        }
        leave()
    }

    package func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        let isEnding = round.isEnding
        _ = enter("the completion", id) { state in
            state.isComplete = true
            return problem(of: completion, state, isEnding: isEnding)
        }
        leave()
        if !plan.afterEnd.isEmpty { round.caller.async { for deed in self.plan.afterEnd { self.perform(deed) } } }
        self.completion.append(())
    }

    /// Notes an event, and reports what is wrong with it; returns its number among heads and pieces.
    private func enter(_ event: String, _ id: Int, isReceived: Bool = false, _ check: (inout State) -> String?) -> Int {
        let (index, problems) = state.withLock { state -> (Int, [String]) in
            var problems: [String] = []
            if state.isInside { problems.append("while another event is delivered") }
            if state.isComplete { problems.append("after the completion") }
            if let expected = state.id, expected != id { problems.append("with the number \(id), not \(expected)") }
            if !state.isStarted, !state.isCancelled { problems.append("without a start") }
            if isReceived, state.pauses > state.resumptions { problems.append("while paused") }
            state.isInside = true
            if let problem = check(&state) { problems.append(problem) }
            defer { if isReceived { state.events += 1 } }
            return (state.events, problems)
        }
        for problem in problems { round.report("\(plan): \(event): \(problem)") }
        return index
    }

    private func leave() { state.withLock { $0.isInside = false } }

    private func problem(of completion: TransferCompletion, _ state: State, isEnding: Bool) -> String? {
        switch completion.error {
        case nil:
            if state.isLate { return "a response to a transfer that was started after the end" }
            guard plan.kind.outcome == .response, state.status == 200 else { return "success with status \(state.status ?? 0)" }
            if state.received != plan.kind.receivedLength { return "success after \(state.received) bytes" }
            // Of a second attempt it is not said how much it has sent.
            return round.maySendTwice || state.sent == Int64(plan.kind.sentLength) ? nil : "success after \(state.sent) sent bytes"
        case CurlewError.cancelled?: return state.isCancelled ? nil : "cancelled without a call"
        case CurlewError.sessionInvalidated?: return isEnding ? nil : "invalidated without a call"
        case CurlewError.transferFailed(let failure)? where round.mayRefuse && Self.refusals.contains(failure.kind): return nil
        case let error?: return plan.kind.outcome == .failure && !state.isLate ? nil : "failed with \(error)"
        }
    }

    private static let refusals: [TransferFailure.Kind] = [.circuitOpen, .rateLimited, .overloaded]

    // MARK: What follows from an event

    private func respond(to index: Int) -> ReceiveAction {
        if index == 0, !plan.inside.isEmpty { performInside(plan.inside) }
        let action = returned(for: index)
        leave()
        if let deeds = plan.between[index] { round.caller.async { for deed in deeds { self.perform(deed) } } }
        return action
    }

    private func returned(for index: Int) -> ReceiveAction {
        switch plan.actions[index] {
        case nil: return .proceed
        case .cancel?:
            state.withLock { $0.isCancelled = true }
            return .cancel
        case .pause(let deeds)?:
            state.withLock { $0.pauses += 1 }
            performOutside(deeds + [.resumeReceiving])
            return .pause
        case .pauseWithdrawn?:
            state.withLock { $0.pauses += 1 }
            onOtherThread { self.perform(.resumeReceiving) }
            return .pause
        case .pauseForGood?:
            state.withLock { $0.pauses += 1 }
            return .pause
        }
    }

    private func performInside(_ deeds: [Deed]) {
        guard plan.isInsideOnSameThread else { return onOtherThread { for deed in deeds { self.perform(deed) } } }
        for deed in deeds { perform(deed) }
    }

    /// Waits for another thread: calls must not wait for the end of an event.
    private func onOtherThread(_ body: @escaping @Sendable () -> Void) {
        let isDone = DispatchSemaphore(value: 0)
        round.caller.async {
            body()
            isDone.signal()
        }
        if isDone.wait(timeout: .now() + 10) == .timedOut { round.report("\(plan): a call waits for the end of an event") }
    }

    /// Performs deeds after the observer has returned from the event.
    private func performOutside(_ deeds: [Deed]) {
        round.caller.async { [self] in
            guard !state.withLock({ $0.isInside }) else { return performOutside(deeds) }
            for deed in deeds { perform(deed) }
        }
    }
}

/// Returns whether a body ends in time; it is cancelled if it does not.
func within(_ limit: Duration, _ body: @escaping @Sendable () async -> Void) async -> Bool {
    await withTaskGroup(of: Bool.self) { group in
        group.addTask {
            await body()
            return !Task.isCancelled
        }
        group.addTask {
            try? await Task.sleep(for: limit)
            return false
        }
        defer { group.cancelAll() }
        return await group.next() ?? false
    }
}
