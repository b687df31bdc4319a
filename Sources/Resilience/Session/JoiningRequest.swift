// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// A request that joins the transfer of equal ones: one of several gets its events in order, one at a time, and not while it is paused or
/// suspended.
final class JoiningRequest: TransferHandle, @unchecked Sendable {  // the state is used inside of the transport's lock only
    fileprivate enum Event {
        case interim(ResponseHead)
        case head(ResponseHead)
        case bytes(Data)
        case complete(TransferCompletion)
    }

    fileprivate enum Stage {
        case made
        case started
        case complete
    }

    fileprivate struct State {
        var stage = Stage.made
        var isSuspended = false
        var isDelivering = false
        var isPaused = false
        /// That of the request, from its start to its completion.
        var transfer: SharedTransfer?
        // What one of several has.
        var events: [Event] = []
        var buffered = 0
        /// The number of calls of `resumeReceiving`: one may come before the observer has returned `.pause`.
        var resumeCount = 0
        var failure: (any Error)?

        var mayDeliver: Bool { stage != .complete && !isDelivering && !isPaused && !isSuspended && failure == nil }

        mutating func complete() {
            stage = .complete
            transfer = nil
            events = []
            buffered = 0
        }
    }

    let request: TransferRequest
    let id: Int
    let observer: any TransferObserver
    let transport: CoalescingTransport
    @exclusivity(unchecked) private var state = State()

    init(_ transport: CoalescingTransport, _ request: TransferRequest, id: Int, _ observer: any TransferObserver) {
        self.transport = transport
        self.request = request
        self.id = id
        self.observer = observer
    }

    private func withState<R>(_ body: (inout State) -> R) -> R { transport.withState { _ in body(&state) } }

    /// The bytes that wait for the request. Inside of the transport's lock.
    var buffered: Int { state.buffered }
    /// Inside of the transport's lock.
    var isSuspended: Bool { state.isSuspended }

    // MARK: Calls of the user

    func start() {
        let hash = transport.hash(of: request)
        let found = transport.withState { transport -> (transfer: SharedTransfer, isNew: Bool, isLate: Bool)? in
            guard state.stage == .made else { return nil }
            state.stage = .started
            let (transfer, isNew) = transport.transfer(for: self, hash: hash)
            state.transfer = transfer
            return (transfer, isNew, !state.events.isEmpty)
        }
        guard let (transfer, isNew, isLate) = found else { return }
        if isNew { return transfer.begin() }
        // The first one may have been suspended.
        transfer.suspensionChanged()
        transport.reportJoin(request)
        if isLate { deliverLater() }
    }

    func cancel() {
        let (stage, transfer) = withState { state in
            defer { if state.stage == .made { state.stage = .complete } }
            return (state.stage, state.transfer)
        }
        if stage == .made { return observer.completeUnstarted(id) }
        // What was started ends with the session then, though its start may be on its way.
        guard let transfer, !transport.shared.isShutDown else { return }
        if !transfer.cancelIfSole() { fail(with: CurlewError.cancelled) }
    }

    func setSuspended(_ suspended: Bool) {
        let transfer = withState { state in
            state.isSuspended = suspended
            return state.transfer
        }
        transfer?.suspensionChanged()
        if !suspended { deliverLater() }
    }

    func resumeReceiving() {
        let transfer = withState { state in
            state.isPaused = false
            state.resumeCount += 1
            return state.transfer
        }
        if let transfer, !transfer.resumeIfSole() { deliverLater() }
    }

    /// Ends the request, whose completion does not come from the transfer.
    func fail(with error: any Error) {
        withState { if $0.failure == nil { $0.failure = error } }
        deliverLater()
    }

    // MARK: Events of a transfer of several

    /// The interim responses that the transfer has received before the request joins it. Inside of the transport's lock.
    func begin(with interim: [ResponseHead]) { state.events = interim.map { .interim($0) } }

    /// An interim response to the only request, at once as all of its events. Others may join meanwhile, and this one be cancelled.
    func receiveAlone(_ interim: ResponseHead) {
        withState { $0.isDelivering = true }
        observer.transfer(id, didReceiveInterim: interim)
        withState { $0.isDelivering = false }
        deliver()
    }

    func receive(interim: ResponseHead) {
        guard let before = beginDirectly() else { return add(.interim(interim)) }
        observer.transfer(id, didReceiveInterim: interim)
        ended(.proceed, since: before)
        deliver()
    }

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

    func receive(_ completion: TransferCompletion) { add(.complete(completion)) }

    /// The only request of a transfer completes with it. Inside of the transport's lock.
    func complete() { state.complete() }

    /// Begins to deliver an event that none waits before; returns the number of resumptions so far, `nil` if it has to wait.
    private func beginDirectly() -> Int? {
        withState { state in
            guard state.mayDeliver, state.events.isEmpty else { return nil }
            state.isDelivering = true
            return state.resumeCount
        }
    }

    private func add(_ event: Event) {
        withState { state in
            guard state.stage != .complete else { return }
            if case .bytes(let data) = event { state.buffered += data.count }
            // As one piece: a body may come in pieces of single bytes.
            if case .bytes(let data) = event, case .bytes(var last)? = state.events.last {
                state.events.removeLast()
                last.append(data)
                state.events.append(.bytes(last))
            } else {
                state.events.append(event)
            }
        }
        deliver()
    }

    // MARK: Delivery

    private func deliverLater() { transport.reporter.context.queue.async { self.deliver() } }

    private func deliver() {
        while let (event, before, transfer) = next() {
            switch event {
            case .interim(let head):
                observer.transfer(id, didReceiveInterim: head)
                ended(.proceed, since: before)
            case .head(let head): ended(observer.transfer(id, didReceive: head), since: before)
            case .bytes(let data):
                ended(data.isEmpty ? .proceed : data.withUnsafeBytes { observer.transfer(id, didReceive: $0) }, since: before)
                transfer?.resumeIfEmptied()
            case .complete(let completion):
                transfer?.remove(self)
                return observer.transfer(id, didComplete: completion)
            }
        }
    }

    private func next() -> (Event, Int, SharedTransfer?)? {
        withState { state in
            guard state.stage != .complete, !state.isDelivering else { return nil }
            let transfer = state.transfer
            if let failure = state.failure {
                state.complete()
                return (.complete(TransferCompletion(error: failure, metrics: TransferMetrics())), 0, transfer)
            }
            // A response that was received completely completes even while it is paused: not so while it has bytes to deliver.
            guard let first = state.events.first, state.mayDeliver || state.isOnlyCompletion else { return nil }
            state.events.removeFirst()
            if case .bytes(let data) = first { state.buffered -= data.count }
            if case .complete = first { state.complete() } else { state.isDelivering = true }
            return (first, state.resumeCount, transfer)
        }
    }

    private func ended(_ action: ReceiveAction, since before: Int) {
        withState { state in
            state.isDelivering = false
            switch action {
            case .proceed: break
            case .pause: if state.resumeCount == before { state.isPaused = true }
            case .cancel: if state.failure == nil { state.failure = CurlewError.cancelled }
            }
        }
    }
}

extension JoiningRequest.State {
    fileprivate var isOnlyCompletion: Bool {
        guard !isSuspended, case .complete? = events.first else { return false }
        return true
    }
}
