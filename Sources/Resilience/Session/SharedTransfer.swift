// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
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

    let request: TransferRequest
    /// That of the URL.
    let hash: Int
    private let transport: CoalescingTransport
    private let id: Int
    // Inside of the transport's lock.
    /// The next one with the same place.
    @exclusivity(unchecked) var next: SharedTransfer?
    /// Whether it may be joined.
    @exclusivity(unchecked) var isOpen = true
    @exclusivity(unchecked) private var isSuspended = false
    @exclusivity(unchecked) private var isPaused = false
    @exclusivity(unchecked) private var requests: Requests
    /// That of the base transport, while it has the transfer.
    @exclusivity(unchecked) private var handle: (any TransferHandle)?
    /// The interim responses so far, for requests that join later.
    @exclusivity(unchecked) private var interim: [ResponseHead] = []
    /// The request, from the head on if it is the only one. On the thread of the events.
    @exclusivity(unchecked) private var sole: JoiningRequest?

    init(_ first: JoiningRequest, hash: Int) {
        transport = first.transport
        self.hash = hash
        request = first.request
        id = first.id
        requests = .one(first)
    }

    /// A request joins the transfer, while it is open. Inside of the transport's lock.
    func add(_ request: JoiningRequest) {
        request.begin(with: interim)
        requests = .several(all + [request])
    }

    func begin() {
        let handle = transport.makeBaseTransfer(request, id: id, observer: self)
        let isWanted = transport.withState { _ in
            if case .none = requests { return false }
            self.handle = handle
            updateSuspension()
            return true
        }
        if isWanted { handle.start() }
    }

    // MARK: Events of the base transport

    func transfer(_ id: Int, didReceiveInterim head: ResponseHead) {
        let hearing = transport.withState { _ in
            interim.append(head)
            return requests
        }
        switch hearing {
        case .one(let request): request.receiveAlone(head)
        case .several(let requests): for request in requests { request.receive(interim: head) }
        case .none: break
        }
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        sole = transport.withState { transport in
            transport.close(self)
            return if case .one(let request) = requests { request } else { nil }
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
        let ended = transport.withState { transport in
            transport.close(self)
            // It retains this.
            handle = nil
            let ended = requests
            if case .one(let request) = ended {
                request.complete()
                requests = .none
            }
            return ended
        }
        switch ended {
        case .one(let request): request.observer.transfer(request.id, didComplete: completion)
        case .several(let requests): for request in requests { request.receive(completion) }
        case .none: break
        }
    }

    private func deliver(_ event: (JoiningRequest) -> Void) -> ReceiveAction {
        let requests = transport.withState { _ in all }
        for request in requests { event(request) }
        return transport.withState { _ in
            guard requests.contains(where: { $0.buffered > transport.policy.bufferSize }) else { return .proceed }
            isPaused = true
            return .pause
        }
    }

    // MARK: What requests do

    /// Cancels the transfer if it has one request only, for which its completion is; `false` if others share it.
    func cancelIfSole() -> Bool {
        let request = transport.withState { transport -> (sole: JoiningRequest, isBegun: Bool)? in
            guard case .one(let request) = requests else { return nil }
            // None may join what is cancelled.
            transport.close(self)
            handle?.cancel()
            if handle == nil { requests = .none }
            return (request, handle != nil)
        }
        if let request, !request.isBegun { request.sole.fail(with: CurlewError.cancelled) }
        return request != nil
    }

    /// Resumes the transfer if it has one request only.
    func resumeIfSole() -> Bool {
        transport.withState { _ in
            guard case .one = requests else { return false }
            handle?.resumeReceiving()
            return true
        }
    }

    /// The transfer is suspended while all of its requests are.
    func suspensionChanged() { transport.withState { _ in updateSuspension() } }

    /// A request has read from its buffer, or has ended.
    func resumeIfEmptied() {
        transport.withState { _ in
            guard isPaused, !all.contains(where: { $0.buffered > transport.policy.bufferSize / 2 }) else { return }
            isPaused = false
            handle?.resumeReceiving()
        }
    }

    /// One of several requests has ended.
    func remove(_ request: JoiningRequest) {
        transport.withState { state in
            let others = all.filter { $0 !== request }
            requests = others.isEmpty ? .none : .several(others)
            guard others.isEmpty else { return updateSuspension() }
            state.close(self)
            transport.shared.remove(self)
            handle?.cancel()
        }
        resumeIfEmptied()
    }

    /// Ends all requests, of which there are several.
    func fail(with error: any Error) {
        for request in transport.withState({ _ in all }) { request.fail(with: error) }
    }

    private var all: [JoiningRequest] {
        switch requests {
        case .one(let request): [request]
        case .several(let requests): requests
        case .none: []
        }
    }

    private func updateSuspension() {
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

// MARK: - What is stored

extension SharedTransfer: CacheDecider {
    /// Whether one of the requests decides; also if all have ended, as nothing is stored then.
    var decidesAboutCaching: Bool {
        let requests = transport.withState { _ in all }
        return requests.isEmpty || requests.contains { ($0.observer as? any CacheDecider)?.decidesAboutCaching ?? false }
    }

    /// Asks the requests one after the other: what all of them agree to is stored, and nothing if all have ended.
    func decide(aboutCaching proposed: CachedURLResponse, decided: @escaping @Sendable (CachedURLResponse?) -> Void) {
        let requests = transport.withState { _ in all }
        guard !requests.isEmpty else { return decided(nil) }
        Self.ask(requests.compactMap { $0.observer as? any CacheDecider }[...], proposed, decided)
    }

    private static func ask(
        _ deciders: ArraySlice<any CacheDecider>, _ proposed: CachedURLResponse, _ decided: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard let first = deciders.first else { return decided(proposed) }
        first.decide(aboutCaching: proposed) { chosen in
            guard let chosen, chosen.storagePolicy != .notAllowed else { return decided(nil) }
            Self.ask(deciders.dropFirst(), chosen, decided)
        }
    }
}
