// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// What several requests of one transfer have in common. The transfer ends with the last of them; those that are slower than it have a
/// buffer.
final class SharedTransfer: Sendable {
    fileprivate struct State {
        var members: [SharedMember] = []
        /// Whether the base transport has completed the transfer, or is to cancel it.
        var hasEnded = false
        /// Whether all requests have ended before the transfer.
        var isUnwanted = false
        var isSuspended = false
        var isPaused = false
    }

    let id: Int
    /// Where the transport has the transfer, while it may be joined.
    let place: Int
    let transport: CoalescingTransport
    private let state: Lock<State>

    /// With the transport's lock held.
    init(_ transport: CoalescingTransport, _ sole: SoleTransfer, isSuspended: Bool) {
        self.transport = transport
        id = sole.id
        place = sole.place
        state = Lock(State(isSuspended: isSuspended))
    }

    func add(_ member: SharedMember) { state.withLock { $0.members.append(member) } }

    /// With the transport's lock held.
    func endIfEmpty() -> Bool {
        state.withLock { state in
            guard state.members.isEmpty, !state.hasEnded else { return false }
            state.hasEnded = true
            state.isUnwanted = true
            return true
        }
    }

    var isUnwanted: Bool { state.withLock { $0.isUnwanted } }

    // MARK: Events of the transfer

    func receive(_ head: ResponseHead) -> ReceiveAction { deliver { $0.receive(head) } }

    func receive(_ bytes: UnsafeRawBufferPointer) -> ReceiveAction { deliver { $0.receive(bytes) } }

    func complete(_ completion: TransferCompletion) {
        let members = state.withLock { state in
            state.hasEnded = true
            return state.members
        }
        for member in members { member.receive(completion) }
    }

    private func deliver(_ event: (SharedMember) -> Void) -> ReceiveAction {
        let members = state.withLock { $0.members }
        for member in members { event(member) }
        let isFull = members.contains { $0.buffered > transport.policy.bufferSize }
        guard isFull else { return .proceed }
        state.withLock { $0.isPaused = true }
        // One may have been emptied in between.
        resumeIfEmptied()
        return .pause
    }

    // MARK: What members do

    /// A member has read from its buffer, or has ended.
    func resumeIfEmptied() {
        let mayResume = state.withLock { state in
            guard state.isPaused, !state.members.contains(where: { $0.buffered > transport.policy.bufferSize / 2 }) else { return false }
            state.isPaused = false
            return true
        }
        if mayResume { transport.base.resumeReceiving(id) }
    }

    /// A member has ended.
    func remove(_ member: SharedMember) {
        state.withLock { $0.members.removeAll { $0 === member } }
        transport.remove(member)
        guard transport.closeIfEmpty(self) else {
            suspensionChanged()
            return resumeIfEmptied()
        }
        transport.base.cancel(id)
    }

    /// Suspends the transfer while all members are suspended. That is told again, as the base transport ignores what it is told of a transfer
    /// that it does not know yet, and the tasks repeat their calls.
    func suspensionChanged() {
        let mustTell = state.withLock { state in
            let isSuspended = !state.members.isEmpty && state.members.allSatisfy(\.isSuspended)
            defer { state.isSuspended = isSuspended }
            return isSuspended || state.isSuspended
        }
        if mustTell { repeatSuspension() }
    }

    /// Tells the base transport whether the transfer is suspended, again if that was changed concurrently.
    func repeatSuspension() {
        let told = state.withLock { $0.isSuspended }
        transport.base.setSuspended(told, of: id)
        if state.withLock({ $0.isSuspended != told }) { repeatSuspension() }
    }
}

/// A request that shares a transfer: delivers its events in order, one at a time, and not while it is paused or suspended.
final class SharedMember: Sendable {
    fileprivate enum Event {
        case head(ResponseHead)
        case bytes(Data)
        case complete(TransferCompletion)
    }

    fileprivate struct State {
        var events: [Event] = []
        var buffered = 0
        var isDelivering = false
        var isPaused = false
        var isSuspended = false
        /// The number of calls of `resumeReceiving`: one may come before the observer has returned `.pause`.
        var resumeCount = 0
        var failure: (any Error)?
        var isComplete = false

        var mayDeliver: Bool { !isComplete && !isDelivering && !isPaused && !isSuspended && failure == nil }
    }

    let id: Int
    let observer: any TransferObserver
    let transfer: SharedTransfer
    private let state: Lock<State>

    init(id: Int, observer: any TransferObserver, transfer: SharedTransfer, isSuspended: Bool = false) {
        state = Lock(State(isSuspended: isSuspended))
        self.id = id
        self.observer = observer
        self.transfer = transfer
    }

    /// The bytes that wait for the request.
    var buffered: Int { state.withLock { $0.buffered } }
    var isSuspended: Bool { state.withLock { $0.isSuspended } }

    // MARK: Events of the transfer

    func receive(_ head: ResponseHead) {
        guard let before = beginDirectly() else { return add(.head(head)) }
        ended(observer.transfer(id, didReceive: head), since: before)
        deliver()
    }

    func receive(_ bytes: UnsafeRawBufferPointer) {
        guard let before = beginDirectly() else { return add(.bytes(Data(bytes))) }
        ended(observer.transfer(id, didReceive: bytes), since: before)
        deliver()
    }

    func receive(_ completion: TransferCompletion) {
        let isDirect = state.withLock { state in
            let isDirect = state.mayDeliver && state.events.isEmpty
            if isDirect { state.isComplete = true }
            return isDirect
        }
        guard isDirect else { return add(.complete(completion)) }
        transfer.remove(self)
        observer.transfer(id, didComplete: completion)
    }

    /// Begins to deliver an event that none waits before; returns the number of resumptions so far, `nil` if it has to wait.
    private func beginDirectly() -> Int? {
        state.withLock { state in
            guard state.mayDeliver, state.events.isEmpty else { return nil }
            state.isDelivering = true
            return state.resumeCount
        }
    }

    private func add(_ event: Event) {
        state.withLock { state in
            state.events.append(event)
            if case .bytes(let data) = event { state.buffered += data.count }
        }
        deliver()
    }

    // MARK: Calls of the user

    func fail(with error: any Error) {
        state.withLock { if $0.failure == nil { $0.failure = error } }
        deliverLater()
    }

    func setSuspended(_ suspended: Bool) {
        state.withLock { $0.isSuspended = suspended }
        transfer.suspensionChanged()
        if !suspended { deliverLater() }
    }

    func resumeReceiving() {
        state.withLock { state in
            state.isPaused = false
            state.resumeCount += 1
        }
        deliverLater()
    }

    // MARK: Delivery

    private func deliverLater() {
        transfer.transport.teller.context.queue.async { self.deliver() }
    }

    private func deliver() {
        while let (event, before) = next() {
            switch event {
            case .head(let head): ended(observer.transfer(id, didReceive: head), since: before)
            case .bytes(let data):
                ended(data.isEmpty ? .proceed : data.withUnsafeBytes { observer.transfer(id, didReceive: $0) }, since: before)
                transfer.resumeIfEmptied()
            case .complete(let completion):
                transfer.remove(self)
                return observer.transfer(id, didComplete: completion)
            }
        }
    }

    private func next() -> (Event, Int)? {
        state.withLock { state in
            guard !state.isComplete, !state.isDelivering else { return nil }
            if let failure = state.failure {
                state.isComplete = true
                state.events = []
                state.buffered = 0
                return (.complete(TransferCompletion(error: failure, metrics: TransferMetrics())), 0)
            }
            // A response that was received completely completes even while it is paused: not so while it has bytes to deliver.
            guard let first = state.events.first, state.mayDeliver || state.isOnlyCompletion else { return nil }
            state.events.removeFirst()
            if case .bytes(let data) = first { state.buffered -= data.count }
            if case .complete = first { state.isComplete = true } else { state.isDelivering = true }
            return (first, state.resumeCount)
        }
    }

    private func ended(_ action: ReceiveAction, since before: Int) {
        state.withLock { state in
            state.isDelivering = false
            switch action {
            case .proceed: break
            case .pause: if state.resumeCount == before { state.isPaused = true }
            case .cancel: if state.failure == nil { state.failure = CurlewError.cancelled }
            }
        }
    }
}

extension SharedMember.State {
    fileprivate var isOnlyCompletion: Bool {
        guard !isSuspended, case .complete? = events.first else { return false }
        return true
    }
}
