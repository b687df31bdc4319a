// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// Makes one transfer of equal requests in flight, in front of the cache.
///
/// Nearly all are joined by none: a request begins as a ``SoleTransfer``, whose number follows from the request's, and which is forgotten
/// with the response's head. What several requests need exists from the second one on.
final class CoalescingTransport: ForwardingTransport {
    let base: any Transport
    let policy: Coalescing
    let teller: PolicyTeller
    private let isSelective: Bool
    private let hash: TextHash
    private let derived = DerivedNumbers()
    private let state = Lock(CoalescedTransfers())

    init(_ base: any Transport, _ policy: Coalescing, _ teller: PolicyTeller, hash: TextHash = TextHash()) {
        self.base = base
        self.policy = policy
        self.teller = teller
        self.hash = hash
        isSelective = policy.isSelective
    }

    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        guard request.isForDocument, !isSelective || policy.includes(PolicyRequest(request)) else {
            return base.start(request, id: id, observer: observer)
        }
        let place = request.withURLBytes { hash.number(of: $0) }
        let sole = SoleTransfer(self, request, id: derived.number(for: id) ?? 0, at: place, member: id, observer)
        let joined = state.withLock { state -> SharedTransfer? in
            if let other = state.open.first(at: place, where: { state.mayJoin($0, request) }) { return join(other, id, observer, &state) }
            state.add(sole)
            return nil
        }
        guard let joined else {
            base.start(request, id: sole.id, observer: sole)
            // All requests may have ended before the base transport knew the transfer.
            if let shared = state.withLock({ _ in sole.shared }), shared.isUnwanted { base.cancel(sole.id) }
            return
        }
        // The first one may have been suspended.
        joined.suspensionChanged()
        let origin = HTTPOrigin(url: request.url)
        teller.tell(.coalescing, policy.name, origin.map { "\($0.scheme)://\($0.host):\($0.port)" } ?? "", .coalesced, request)
    }

    /// Adds a request to a transfer; inside the lock, so that the transfer is not closed in between.
    private func join(
        _ sole: SoleTransfer, _ id: Int, _ observer: any TransferObserver, _ state: inout CoalescedTransfers
    ) -> SharedTransfer {
        let shared = sole.shared ?? share(sole, &state)
        let member = SharedMember(id: id, observer: observer, transfer: shared)
        state.members[id] = .shared(member)
        shared.add(member)
        return shared
    }

    private func share(_ sole: SoleTransfer, _ state: inout CoalescedTransfers) -> SharedTransfer {
        let isSuspended = state.isSuspended(sole)
        let shared = SharedTransfer(self, sole, isSuspended: isSuspended)
        let member = SharedMember(id: sole.member, observer: sole.observer, transfer: shared, isSuspended: isSuspended)
        shared.add(member)
        state.members[sole.member] = .shared(member)
        state.shared[sole.id] = shared
        sole.shared = shared
        return shared
    }

    /// Lets no more requests join a transfer; returns what it has become if some have.
    func close(_ transfer: SoleTransfer) -> SharedTransfer? {
        state.withLock { state in
            state.close(transfer)
            return transfer.shared
        }
    }

    /// A transfer has ended; returns what it has become if requests have joined it.
    func end(_ transfer: SoleTransfer) -> SharedTransfer? {
        state.withLock { state in
            state.end(transfer)
            return transfer.shared
        }
    }

    func remove(_ member: SharedMember) {
        state.withLock { state in
            // A follow-up may have its number already.
            if case .shared(let known)? = state.members[member.id], known === member { state.members[member.id] = nil }
        }
    }

    /// Closes a transfer if it has no members, so that none can join it; returns whether it has none, and has to be cancelled.
    func closeIfEmpty(_ transfer: SharedTransfer) -> Bool {
        state.withLock { state in
            guard transfer.endIfEmpty() else { return false }
            if let open = state.open.first(at: transfer.place, where: { $0.shared === transfer }) { state.close(open) }
            return true
        }
    }

    // MARK: Transport

    func cancel(_ id: Int) {
        // None may join what is cancelled.
        switch state.withLock({ $0.member(id, becomes: .cancelled) }) {
        case .shared(let member)?: member.fail(with: CurlewError.cancelled)
        case let known: forEachNumber(of: id, known) { base.cancel($0) }
        }
    }

    func setSuspended(_ suspended: Bool, of id: Int) {
        switch state.withLock({ $0.member(id, becomes: suspended ? .suspended : .resumed) }) {
        case .shared(let member)?: member.setSuspended(suspended)
        case let known:
            forEachNumber(of: id, known) { base.setSuspended(suspended, of: $0) }
            // If it was joined meanwhile, the base transport has to hear last what counts for all.
            if case .shared(let member)? = state.withLock({ $0.members[id] }) { member.transfer.repeatSuspension() }
        }
    }

    func resumeReceiving(_ id: Int) {
        switch state.withLock({ $0.members[id] }) {
        case .shared(let member)?: member.resumeReceiving()
        case let known: forEachNumber(of: id, known) { base.resumeReceiving($0) }
        }
    }

    /// The numbers that the transfer of a request which has one of its own may have at the base transport, which ignores others.
    private func forEachNumber(of id: Int, _ known: CoalescedTransfers.Member?, _ body: (Int) -> Void) {
        if case .sole(let transfer)? = known { return body(transfer.id) }
        body(id)
        if let number = derived.number(for: id) { body(number) }
    }

    func shutDown() {
        base.shutDown()
        // One that is suspended would hear of its end only when it is resumed.
        for case .shared(let member) in state.withLock({ $0.members.values }) { member.fail(with: CurlewError.sessionInvalidated) }
    }

    func waitUntilShutDown() async {
        await base.waitUntilShutDown()
        await withCheckedContinuation { continuation in teller.context.queue.async { continuation.resume() } }
    }
}

/// The transfers of a session that may be joined, and the requests that have joined some.
struct CoalescedTransfers: Sendable {
    /// A request, as the calls of its session find it.
    enum Member: Sendable {
        case sole(SoleTransfer)
        case shared(SharedMember)
    }

    /// What a user's call makes of a transfer.
    enum Mark: Sendable {
        case cancelled
        case suspended
        case resumed
    }

    /// The transfers that may still be joined.
    private(set) var open = OpenTransfers()
    /// The requests that have joined a transfer, and those whose transfer has a number that does not follow from theirs.
    var members = NumberMap<Member>()
    /// The transfers of several requests, by their numbers at the base transport.
    var shared = NumberMap<SharedTransfer>()
    /// Few calls concern a transfer, and most transfers are open: so it is not looked up, but marked when it is called for. By the numbers of
    /// requests, of which some have no open transfer.
    private var marks = NumberMap<Mark>()
    private var numbers = TransferNumbers()

    /// Whether a request may join a transfer: that of an equal request, which was not cancelled.
    func mayJoin(_ transfer: SoleTransfer, _ request: TransferRequest) -> Bool {
        transfer.request.isEquivalent(to: request) && (marks.count == 0 || marks[transfer.member] != .cancelled)
    }

    /// Adds a transfer. It keeps the number that follows from its request's, unless a transfer has that which the request shared before, and
    /// which others still have.
    @inline(__always)
    mutating func add(_ sole: SoleTransfer) {
        if sole.id == 0 || shared.count > 0 && shared[sole.id] != nil { giveNumber(to: sole) }
        // A mark is of an earlier transfer.
        if marks.count > 0 { marks[sole.member] = nil }
        open.insert(sole)
    }

    private mutating func giveNumber(to sole: SoleTransfer) {
        sole.id = numbers.next()
        sole.hasOwnNumber = true
        members[sole.member] = .sole(sole)
    }

    @inline(__always)
    mutating func close(_ transfer: SoleTransfer) {
        guard open.remove(transfer), marks.count > 0 else { return }
        forgetMark(of: transfer.member)
    }

    private mutating func forgetMark(of id: Int) {
        if open.count == 0 { marks = NumberMap() } else { marks[id] = nil }
    }

    mutating func end(_ transfer: SoleTransfer) {
        close(transfer)
        if transfer.shared != nil { shared[transfer.id] = nil }
        // A follow-up may have its number already.
        if case .sole(let known)? = members[transfer.member], known === transfer { members[transfer.member] = nil }
    }

    func isSuspended(_ transfer: SoleTransfer) -> Bool { marks.count > 0 && marks[transfer.member] == .suspended }

    /// Notes what a call makes of a request's transfer, unless others share it; returns what is known of the request.
    mutating func member(_ id: Int, becomes mark: Mark) -> Member? {
        let member = members[id]
        if case .shared? = member { return member }
        if mark == .resumed {
            if marks.count > 0, marks[id] == .suspended { marks[id] = nil }
        } else if open.count > 0, marks[id] != .cancelled {
            marks[id] = mark
            // Half of them at the most are of no open transfer then, so that each mark has paid for its part of this.
            if marks.count > 2 * open.count + 16 { forgetOtherMarks() }
        }
        return member
    }

    private mutating func forgetOtherMarks() {
        var needed = NumberMap<Mark>()
        open.forEach { transfer in
            if let mark = marks[transfer.member] { needed[transfer.member] = mark }
        }
        marks = needed
    }
}

/// The transfers that may be joined, by the hash of their requests' URL, which is computed once: lists that run through the transfers
/// themselves. Retains them by hand, as a `NumberMap` of them takes a request four times the instructions.
struct OpenTransfers: Sendable {
    private(set) var count = 0
    /// The first ones of the lists; a power of two, at least as many as transfers.
    private var firsts = [Unmanaged<SoleTransfer>?](repeating: nil, count: 16)

    private func index(_ place: Int) -> Int { place & (firsts.count &- 1) }

    /// The first transfer of a place for which a closure returns `true`.
    @inline(__always)
    func first(at place: Int, where matches: (SoleTransfer) -> Bool) -> SoleTransfer? {
        var present = firsts[index(place)]
        while let transfer = present {
            if transfer._withUnsafeGuaranteedRef({ $0.place == place && matches($0) }) { return transfer.takeUnretainedValue() }
            present = transfer._withUnsafeGuaranteedRef { $0.next }
        }
        return nil
    }

    func forEach(_ body: (SoleTransfer) -> Void) {
        for first in firsts {
            var present = first
            while let transfer = present {
                present = transfer._withUnsafeGuaranteedRef { $0.next }
                transfer._withUnsafeGuaranteedRef(body)
            }
        }
    }

    @inline(__always)
    mutating func insert(_ transfer: SoleTransfer) {
        if count == firsts.count { grow() }
        count &+= 1
        let index = index(transfer.place)
        transfer.next = firsts[index]
        transfer.isOpen = true
        firsts[index] = Unmanaged.passRetained(transfer)
    }

    /// Returns whether the transfer could be joined until now.
    @inline(__always)
    mutating func remove(_ transfer: SoleTransfer) -> Bool {
        guard transfer.isOpen else { return false }
        transfer.isOpen = false
        count &-= 1
        let place = Unmanaged.passUnretained(transfer)
        let index = index(transfer.place)
        if firsts[index]?.toOpaque() == place.toOpaque() {
            firsts[index] = transfer.next
        } else if var other = firsts[index] {
            while let next = other._withUnsafeGuaranteedRef({ $0.next }), next.toOpaque() != place.toOpaque() { other = next }
            other._withUnsafeGuaranteedRef { $0.next = transfer.next }
        }
        transfer.next = nil
        place.release()
        return true
    }

    private mutating func grow() {
        let before = self
        firsts = Array(repeating: nil, count: 2 * firsts.count)
        before.forEach { transfer in
            let index = index(transfer.place)
            transfer.next = firsts[index]
            firsts[index] = Unmanaged.passUnretained(transfer)
        }
    }
}

/// The transfer of one request, which others may join until the response's head was received.
final class SoleTransfer: TransferObserver, @unchecked Sendable {  // changed with the transport's lock held, read after it by its events
    /// The number at the base transport.
    @exclusivity(unchecked) fileprivate(set) var id: Int
    /// The number of the request.
    let member: Int
    let request: TransferRequest
    let observer: any TransferObserver
    /// Where the transport has the transfer, while it may be joined.
    let place: Int
    private let transport: CoalescingTransport
    @exclusivity(unchecked) fileprivate var isOpen = false
    /// Whether the transport knows the number of the request.
    @exclusivity(unchecked) fileprivate var hasOwnNumber = false
    /// The next one of the list it is in while it may be joined.
    @exclusivity(unchecked) fileprivate var next: Unmanaged<SoleTransfer>?
    /// What several requests have in common; not set any more once the transfer is closed.
    @exclusivity(unchecked) var shared: SharedTransfer?
    /// Whether it is closed, for the thread of the events.
    @exclusivity(unchecked) private var isClosed = false

    init(
        _ transport: CoalescingTransport, _ request: TransferRequest, id: Int, at place: Int, member: Int,
        _ observer: any TransferObserver
    ) {
        self.transport = transport
        self.request = request
        self.id = id
        self.place = place
        self.member = member
        self.observer = observer
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        isClosed = true
        if let shared = transport.close(self) { return shared.receive(head) }
        return observer.transfer(member, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        if let shared { return shared.receive(bytes) }
        return observer.transfer(member, didReceive: bytes)
    }

    /// Never called, as the request has no body.
    func transfer(_ id: Int, didSend count: Int64) {}

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        // The transport has forgotten one that is closed, and that was joined by none.
        let isForgotten = isClosed && shared == nil && !hasOwnNumber
        if !isForgotten, let shared = transport.end(self) { return shared.complete(completion) }
        observer.transfer(member, didComplete: completion)
    }
}
