// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Spreads the transfers of a transport over its loops, and counts those to each host over all of them.
///
/// Only for transports with several loops. A transfer that may share an HTTP/2 connection runs on the loop of its host, where libcurl
/// counts the connections. The others get a place on the loop with an idle connection to the host, or with the least load; beyond the
/// host's limit they wait here, by urgency, then first come first served. A waiting transfer is already on a loop, for its time limits; if
/// its place turns out to be on another, it is moved there.
///
/// A place stays on its loop when its transfer completes, because the connection does: the host's connections are never more than its
/// limit, idle ones included. Thread-safe; the lock is taken before that of a mailbox.
final class LoopDispatcher: Sendable {
    /// The number of hosts remembered; those without transfers are forgotten beyond it.
    private static let largestMemory = 1_024

    let mailboxes: [Mailbox]
    private let state: Lock<State>

    init(_ mailboxes: [Mailbox], configuration: TransportConfiguration) {
        self.mailboxes = mailboxes
        let isSharing = configuration.multiplexes ?? CurlInfo.current.hasReliableHTTP2
        state = Lock(
            State(
                limit: configuration.maximumConnectionsPerHost.map { max(1, $0) }, sharing: ConnectionSharing(isEnabled: isSharing),
                loads: Array(repeating: 0, count: mailboxes.count)))
        for mailbox in mailboxes { mailbox.setDispatcher(self) }
    }

    // MARK: Starting

    /// Queues a transfer for one of the loops.
    func put(_ transfer: CurlTransfer) -> QueuedCommand {
        let slot = LoopSlot(transfer.number, request: transfer.request, dispatcher: self)
        transfer.take(slot)
        return put(.start(transfer), for: slot) { $0.enter(slot, transfer.request, from: ownLoop) }
    }

    /// Queues a stream for the loop with the least load.
    func put(_ stream: CurlStream) -> QueuedCommand {
        let slot = LoopSlot(stream.number, dispatcher: self)
        stream.take(slot)
        return put(.openStream(stream), for: slot) { $0.enterUncounted(slot, from: ownLoop) }
    }

    /// Chooses a slot's loop and queues the command there, so that no command for the same transfer overtakes it.
    private func put(_ command: CurlTransport.Command, for slot: LoopSlot, _ enter: (inout State) -> Void) -> QueuedCommand {
        state.withLock { state in
            enter(&state)
            state.slots[slot.number] = slot
            return QueuedCommand(mailboxes[slot.loop], mailboxes[slot.loop].put(command))
        }
    }

    /// Queues a command for the loop of its transfer or stream; `nil` if there is none.
    func put(_ command: CurlTransport.Command, for number: Int) -> QueuedCommand? {
        state.withLock { state in
            guard let slot = state.slots[number] else { return nil }
            if case .setSuspended(let suspended, _) = command { slot.isSuspended = suspended }
            return QueuedCommand(mailboxes[slot.loop], mailboxes[slot.loop].put(command))
        }
    }

    /// The loop that is calling; `nil` on other threads.
    private var ownLoop: Int? {
        guard let mailbox = ResumptionBatch.current?.mailbox, mailboxes[min(mailbox.index, mailboxes.count - 1)] === mailbox else {
            return nil
        }
        return mailbox.index
    }

    // MARK: Places

    /// The loop on which a transfer has its place; `nil` while it waits for one.
    func place(of slot: LoopSlot) -> Int? {
        state.withLock { _ in slot.place }
    }

    /// Moves a transfer that has got its place on another loop.
    func move(_ transfer: CurlTransfer, to place: Int, isSuspended: Bool) {
        guard let slot = transfer.slot else { return }
        let commands: [CurlTransport.Command] = [.start(transfer)] + (isSuspended ? [.setSuspended(true, transfer.number)] : [])
        let queued = state.withLock { _ in
            slot.loop = place
            return commands.map { QueuedCommand(mailboxes[place], mailboxes[place].put($0)) }
        }
        for command in queued { command.finish() }
    }

    /// Passes on the place of a transfer that has completed, or never began. Called before its observer is notified, which may start
    /// another transfer of the same number.
    fileprivate func release(_ slot: LoopSlot, wasShared: Bool?) {
        let next = state.withLock { $0.release(slot, wasShared: wasShared) }
        for slot in next { put(.launch(slot.number), for: slot.number)?.finish() }
    }

    // MARK: Forwarding

    /// Sends a command that has missed its transfer on the loop it was sent to: the transfer has moved.
    func forward(_ command: CurlTransport.Command, for number: Int, from loop: Int) {
        var command = command
        let queued = state.withLock { state -> QueuedCommand? in
            guard let slot = state.slots[number], slot.loop != loop else { return nil }
            // A later one may have gone to the other loop at once.
            if case .setSuspended = command { command = .setSuspended(slot.isSuspended, number) }
            return QueuedCommand(mailboxes[slot.loop], mailboxes[slot.loop].put(command))
        }
        queued?.finish()
    }
}

/// The place of a transfer or stream among those of its host and on a loop.
final class LoopSlot: @unchecked Sendable {  // its variables are guarded by the dispatcher's lock
    let number: Int
    /// A hash of the host; 0 for a stream.
    let host: UInt64
    /// Whether the transfer opens a connection even if one is idle.
    let isFresh: Bool
    private let dispatcher: LoopDispatcher
    /// Evaluated only for slots that wait.
    fileprivate var urgency = 3
    /// Whether the transfer may share its connection: libcurl counts it then.
    fileprivate(set) var isShared = false
    /// The loop that has the transfer.
    fileprivate(set) var loop = 0
    /// The loop on which its place is; `nil` while it waits.
    fileprivate(set) var place: Int?
    fileprivate var isReleased = false
    /// What the last call for the transfer said.
    fileprivate var isSuspended = false
    fileprivate var isCounted = false

    fileprivate init(_ number: Int, request: TransferRequest, dispatcher: LoopDispatcher) {
        self.number = number
        host = Transfer.hostKey(of: request.url)
        isFresh = request.opensConnectionOnly
        self.dispatcher = dispatcher
    }

    fileprivate init(_ number: Int, dispatcher: LoopDispatcher) {
        self.number = number
        host = 0
        isFresh = false
        self.dispatcher = dispatcher
    }

    /// The loop on which the transfer has its place; `nil` while it waits for one.
    var currentPlace: Int? { dispatcher.place(of: self) }

    /// Moves the transfer to the loop with its place.
    func move(_ transfer: CurlTransfer, to place: Int, isSuspended: Bool) {
        dispatcher.move(transfer, to: place, isSuspended: isSuspended)
    }

    /// Passes the place on; only the first call counts.
    ///
    /// - Parameter wasShared: whether a connection that might have been shared could be; `nil` if that is unknown.
    func release(wasShared: Bool? = nil) {
        dispatcher.release(self, wasShared: wasShared)
    }
}

// MARK: - State

extension LoopDispatcher {
    /// The transfers that wait for a place: the most urgent first, among equals the one that has waited longest.
    fileprivate struct Waiting {
        private var slots: [LoopSlot] = []
        private var head = 0

        var isEmpty: Bool { head == slots.count }
        var first: LoopSlot? { isEmpty ? nil : slots[head] }

        mutating func insert(_ slot: LoopSlot) {
            // Searched from the end, because most have the same urgency.
            var index = slots.count
            while index > head, slots[index - 1].urgency > slot.urgency { index -= 1 }
            slots.insert(slot, at: index)
        }

        mutating func removeFirst() {
            head += 1
            guard head > 64, head * 2 > slots.count else { return }
            slots.removeFirst(head)
            head = 0
        }

        mutating func remove(_ slot: LoopSlot) {
            if let index = slots[head...].firstIndex(where: { $0 === slot }) { slots.remove(at: index) }
        }
    }

    fileprivate struct Host {
        /// The places on each loop: of transfers, or left by them.
        var places: [Int]
        /// Those of them that are taken.
        var taken: [Int]
        /// The transfers that may share connections, and their loop.
        var shared = 0
        var home: Int?
        var waiting = Waiting()

        init(loops: Int) {
            places = Array(repeating: 0, count: loops)
            taken = places
        }

        var isUnused: Bool { shared == 0 && waiting.isEmpty && !taken.contains { $0 > 0 } }
    }

    fileprivate struct State {
        let limit: Int?
        var sharing: ConnectionSharing
        /// The transfers and streams in flight on each loop.
        var loads: [Int]
        var slots = NumberMap<LoopSlot>()
        var hosts: [UInt64: Host] = [:]
        /// The loop that the next host begins with, all else being equal.
        var turn = 0
    }
}

extension LoopDispatcher.State {
    /// Gives a transfer its place, or lets it wait.
    fileprivate mutating func enter(_ slot: LoopSlot, _ request: TransferRequest, from own: Int?) {
        var host = hosts.removeValue(forKey: slot.host) ?? LoopDispatcher.Host(loops: loads.count)
        defer { hosts[slot.host] = host }
        slot.isShared = sharing.isPossible(for: request, isSecure: request.isSecure, host: slot.host)
        if slot.isShared {
            let home = host.home ?? leastLoaded(own)
            host.home = home
            host.shared += 1
            grant(slot, home)
            slot.loop = home
            return
        }
        slot.isCounted = true
        if let place = place(in: &host, isFresh: slot.isFresh, isKnownAlone: !sharing.mayShare(slot.host), from: own) {
            grant(slot, place)
            slot.loop = place
            return
        }
        slot.urgency = request.urgency
        slot.loop = own ?? leastLoaded(nil)
        host.waiting.insert(slot)
    }

    /// Gives a stream its loop.
    fileprivate mutating func enterUncounted(_ slot: LoopSlot, from own: Int?) {
        grant(slot, leastLoaded(own))
        slot.loop = slot.place ?? 0
    }

    private mutating func grant(_ slot: LoopSlot, _ place: Int) {
        slot.place = place
        loads[place] += 1
    }

    /// Takes a place of the host; `nil` if all are taken.
    private mutating func place(in host: inout LoopDispatcher.Host, isFresh: Bool, isKnownAlone: Bool, from own: Int?) -> Int? {
        // Connections that were to be shared and are not count like others.
        let count = host.places.reduce(isKnownAlone ? host.shared : 0, +)
        let mayAdd = limit.map { count < $0 } ?? true
        let idle = isFresh && mayAdd ? nil : leastLoaded(own) { host.places[$0] > host.taken[$0] }
        let least = leastLoaded(own)
        let chosen: Int
        if let idle, !mayAdd || loads[idle] <= loads[least] + loads[least] / 8 + 1 {
            chosen = idle
        } else if mayAdd {
            chosen = least
        } else {
            return nil
        }
        host.taken[chosen] += 1
        let isNew = isFresh && mayAdd || host.taken[chosen] > host.places[chosen]
        if isNew { host.places[chosen] += 1 }
        return chosen
    }

    /// The loop with the least load; among equals the caller's own, then in turn.
    private mutating func leastLoaded(_ own: Int?) -> Int {
        let least = loads.min() ?? 0
        if let own, loads[own] <= least + least / 8 + 1 { return own }
        repeat { turn = (turn + 1) % loads.count } while loads[turn] > least
        return turn
    }

    /// The loop with the least load of those that qualify; `nil` if none does.
    private func leastLoaded(_ own: Int?, _ qualifies: (Int) -> Bool) -> Int? {
        if let own, qualifies(own) { return own }
        var best: Int?
        for loop in loads.indices where qualifies(loop) && (best.map { loads[loop] < loads[$0] } ?? true) { best = loop }
        return best
    }

    /// Takes back a slot's place. Returns the slots that have got one.
    fileprivate mutating func release(_ slot: LoopSlot, wasShared: Bool?) -> [LoopSlot] {
        guard !slot.isReleased else { return [] }
        slot.isReleased = true
        if slots[slot.number] === slot { slots[slot.number] = nil }
        if let place = slot.place { loads[place] -= 1 }
        guard slot.isCounted || slot.isShared, var host = hosts.removeValue(forKey: slot.host) else { return [] }
        if wasShared == false { sharing.failed(slot.host) }
        if slot.isShared {
            host.shared -= 1
        } else if let place = slot.place {
            host.taken[place] -= 1
        } else {
            host.waiting.remove(slot)
        }
        let next = grantWaiting(of: &host, isKnownAlone: !sharing.mayShare(slot.host))
        if !host.isUnused || hosts.count < LoopDispatcher.largestMemory { hosts[slot.host] = host }
        return next
    }

    /// Gives the waiting slots of a host the places there are, in their order.
    private mutating func grantWaiting(of host: inout LoopDispatcher.Host, isKnownAlone: Bool) -> [LoopSlot] {
        var granted: [LoopSlot] = []
        while let next = host.waiting.first, let place = place(in: &host, isFresh: false, isKnownAlone: isKnownAlone, from: nil) {
            host.waiting.removeFirst()
            grant(next, place)
            granted.append(next)
        }
        return granted
    }
}
