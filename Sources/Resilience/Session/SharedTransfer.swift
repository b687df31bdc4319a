// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// The transfer of a request, which equal ones may join until its head was received. It ends with the last of them; those that are slower
/// than it have a buffer.
///
/// Most are joined by none: calls and events pass it as they come.
final class SharedTransfer: TransferObserver, @unchecked Sendable {  // each variable says what guards it
    fileprivate enum Requests {
        case one(JoiningRequest)
        case several([JoiningRequest])
        /// All have ended.
        case none
    }

    fileprivate struct State {
        var requests: Requests
        /// That of the base transport, while it has the transfer.
        var handle: (any TransferHandle)?
        var isSuspended = false
        var isPaused = false
        /// The interim responses so far, for requests that join later.
        var interim: [ResponseHead] = []
    }

    let request: TransferRequest
    /// Where the transport has the transfer, while it may be joined.
    let place: Int
    /// The next one of the place. Inside of the transport's lock.
    @exclusivity(unchecked) var next: SharedTransfer?
    /// Whether it may be joined. Inside of the transport's lock.
    @exclusivity(unchecked) var isOpen = true
    private let transport: CoalescingTransport
    private let id: Int
    private let state: Lock<State>
    /// The request, from the head on if it is the only one. On the thread of the events.
    @exclusivity(unchecked) private var sole: JoiningRequest?

    init(_ transport: CoalescingTransport, _ first: JoiningRequest, at place: Int) {
        self.transport = transport
        self.place = place
        request = first.request
        id = first.id
        state = Lock(State(requests: .one(first)))
    }

    /// A request joins the transfer, while it is open; returns whether it is the first to do so.
    func add(_ request: JoiningRequest) -> Bool {
        state.withLock { state in
            request.begin(with: state.interim)
            let all = state.all + [request]
            state.requests = .several(all)
            return all.count == 2
        }
    }

    func begin() {
        let handle = transport.base.makeTransfer(request, id: id, observer: self)
        let isWanted = state.withLock { state in
            if case .none = state.requests { return false }
            state.handle = handle
            state.updateSuspension()
            return true
        }
        if isWanted { handle.start() }
    }

    // MARK: Events of the base transport

    func transfer(_ id: Int, didReceiveInterim head: ResponseHead) {
        let requests = state.withLock { state in
            state.interim.append(head)
            return state.requests
        }
        switch requests {
        case .one(let request): request.receiveAlone(head)
        case .several(let requests): for request in requests { request.receive(interim: head) }
        case .none: break
        }
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        sole = transport.withState { transport in
            transport.close(self)
            return state.withLock { state in if case .one(let request) = state.requests { request } else { nil } }
        }
        if let sole { return sole.observer.transfer(id, didReceive: head) }
        return deliver { $0.receive(head) }
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        if let sole { return sole.observer.transfer(id, didReceive: bytes) }
        return deliver { $0.receive(bytes) }
    }

    /// Never called, as the request has no body.
    func transfer(_ id: Int, didSend count: Int64) {}

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        sole = nil
        let requests = transport.withState { transport in
            transport.close(self)
            return state.withLock { state in
                // It retains this.
                state.handle = nil
                defer { if case .one = state.requests { state.requests = .none } }
                return state.requests
            }
        }
        switch requests {
        case .one(let request): request.complete(completion)
        case .several(let requests): for request in requests { request.receive(completion) }
        case .none: break
        }
    }

    private func deliver(_ event: (JoiningRequest) -> Void) -> ReceiveAction {
        let requests = state.withLock { $0.all }
        for request in requests { event(request) }
        guard requests.contains(where: { $0.buffered > transport.policy.bufferSize }) else { return .proceed }
        state.withLock { $0.isPaused = true }
        // One may have been emptied in between.
        resumeIfEmptied()
        return .pause
    }

    // MARK: What requests do

    /// Cancels the transfer if it has one request only, for which its completion is; `false` if others share it.
    func cancelIfSole() -> Bool {
        let request = transport.withState { transport -> (sole: JoiningRequest, isBegun: Bool)? in
            state.withLock { state in
                guard case .one(let request) = state.requests else { return nil }
                // None may join what is cancelled.
                transport.close(self)
                state.handle?.cancel()
                if state.handle == nil { state.requests = .none }
                return (request, state.handle != nil)
            }
        }
        if let request, !request.isBegun { request.sole.fail(with: CurlewError.cancelled) }
        return request != nil
    }

    /// Resumes the transfer if it has one request only.
    func resumeIfSole() -> Bool {
        state.withLock { state in
            guard case .one = state.requests else { return false }
            state.handle?.resumeReceiving()
            return true
        }
    }

    /// The transfer is suspended while all of its requests are.
    func suspensionChanged() { state.withLock { $0.updateSuspension() } }

    /// A request has read from its buffer, or has ended.
    func resumeIfEmptied() {
        state.withLock { state in
            guard state.isPaused, !state.all.contains(where: { $0.buffered > transport.policy.bufferSize / 2 }) else { return }
            state.isPaused = false
            state.handle?.resumeReceiving()
        }
    }

    /// One of several requests has ended.
    func remove(_ request: JoiningRequest) {
        transport.withState { transport in
            state.withLock { state in
                let others = state.all.filter { $0 !== request }
                state.requests = others.isEmpty ? .none : .several(others)
                guard others.isEmpty else { return state.updateSuspension() }
                transport.forget(self)
                state.handle?.cancel()
            }
        }
        resumeIfEmptied()
    }

    /// Ends all requests, of which there are several.
    func fail(with error: any Error) {
        for request in state.withLock({ $0.all }) { request.fail(with: error) }
    }
}

extension SharedTransfer.State {
    fileprivate var all: [JoiningRequest] {
        switch requests {
        case .one(let request): [request]
        case .several(let requests): requests
        case .none: []
        }
    }

    fileprivate mutating func updateSuspension() {
        let wanted =
            switch requests {
            case .one(let request): request.isSuspended
            case .several(let requests): requests.allSatisfy(\.isSuspended)
            case .none: false
            }
        guard let handle, wanted != isSuspended else { return }
        isSuspended = wanted
        handle.setSuspended(wanted)
    }
}
