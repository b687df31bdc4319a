// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// What a policy counts for one group.
final class GroupSlot<State: Sendable>: @unchecked Sendable {  // the state is used inside of the mutex only
    let name: String
    /// The table's.
    private let mutex: Lock<Void>
    @exclusivity(unchecked) fileprivate var state: State
    /// Of changes of the state.
    @exclusivity(unchecked) private var reports = OrderedCalls()

    fileprivate init(_ name: String, _ state: State, _ mutex: Lock<Void>) {
        self.name = name
        self.state = state
        self.mutex = mutex
    }

    /// Runs `body` with exclusive access to the state, under the rules of `Lock`.
    @inline(__always)
    func withLock<R>(_ body: (inout State) -> R) -> R {
        mutex.withLock { _ in body(&state) }
    }

    /// Adds a report of a change of the state, which ``makeReports()`` makes after unlocking. Inside of the lock.
    func addReport(_ report: @escaping OrderedCalls.Call) { reports.add(report) }

    /// Makes the reports of changes in the order of the changes, unless another thread does. Not inside of the lock.
    func makeReports() {
        OrderedCalls.make { isCalling in mutex.withLock { _ in reports.take(isCalling) } }
    }
}

/// The groups of a policy. Bounded: the half that was not used for longest is forgotten when there are too many. Thread-safe.
///
/// One lock for the groups and for what is counted: each request looks up a group, and then counts, so that a lock of each group's own
/// would cost a second one, and is needed no less.
final class GroupTable<State: Sendable>: @unchecked Sendable {  // what changes does so inside of the mutex
    /// The most groups.
    static var capacity: Int { 4_096 }

    private struct Entry {
        let slot: GroupSlot<State>
        var lastUse: UInt64
    }

    private let group: PolicyGroup
    private let make: @Sendable () -> State
    private let whole: GroupSlot<State>
    /// Of the groups, and of what is counted.
    private let mutex = Lock(())
    @exclusivity(unchecked) private var entries: [String: Entry] = [:]
    @exclusivity(unchecked) private var uses: UInt64 = 0
    /// The last URL's scheme and authority with the slash after them, and its slot: reading an origin costs more than comparing.
    @exclusivity(unchecked) private var lastPrefix = UnsafeRawBufferPointer(start: nil, count: 0)
    @exclusivity(unchecked) private var lastSlot: GroupSlot<State>?

    init(_ group: PolicyGroup, _ make: @escaping @Sendable () -> State) {
        self.group = group
        self.make = make
        whole = GroupSlot("", make(), mutex)
    }

    deinit {
        lastPrefix.deallocate()
    }

    /// The slot of a request's group; `nil` if it has none.
    func slot(for request: TransferRequest) -> GroupSlot<State>? { withState(for: request) { _, _ in }?.slot }

    /// Runs `body` with exclusive access to the state of a request's group, under the rules of `Lock`; `nil` if the request has none. One
    /// lock for both, if the last request was to the same origin.
    @inline(__always)
    func withState<R>(
        for request: TransferRequest, _ body: (GroupSlot<State>, inout State) -> R
    ) -> (slot: GroupSlot<State>, result: R)? {
        let slot: GroupSlot<State>?
        switch group {
        case .session: slot = whole
        case .named(let name): slot = name(PolicyRequest(request)).map { self.slot(named: $0) }
        case .origin:
            let last = mutex.withLock { _ -> (slot: GroupSlot<State>, result: R)? in
                guard let lastSlot, request.urlBegins(with: lastPrefix) else { return nil }
                return (lastSlot, body(lastSlot, &lastSlot.state))
            }
            if let last { return last }
            slot = self.slot(ofURL: request.url)
        }
        return slot.map { slot in (slot, slot.withLock { body(slot, &$0) }) }
    }

    private func slot(ofURL url: String) -> GroupSlot<State>? {
        guard let origin = HTTPOrigin(url: url) else { return nil }
        let found = slot(named: "\(origin.scheme)://\(origin.host.bracketed):\(origin.port)")
        // Not a URL whose authority ends without a slash: a longer host may begin with it.
        if let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")) {
            let authority = url.utf8[colon...].dropFirst(3)
            if let slash = authority.firstIndex(where: { "/?#".utf8.contains($0) }), url.utf8[slash] == UInt8(ascii: "/") {
                let prefix = UnsafeMutableRawBufferPointer.allocate(byteCount: url.utf8[...slash].count, alignment: 1)
                prefix.copyBytes(from: url.utf8[...slash])
                mutex.withLock { _ in
                    lastPrefix.deallocate()
                    lastPrefix = UnsafeRawBufferPointer(prefix)
                    lastSlot = found
                }
            }
        }
        return found
    }

    /// The slot of a group.
    func slot(named name: String) -> GroupSlot<State> {
        mutex.withLock { _ in
            uses += 1
            if let entry = entries[name] {
                entries[name]?.lastUse = uses
                return entry.slot
            }
            if entries.count >= Self.capacity {
                let middle = entries.values.map(\.lastUse).sorted()[entries.count / 2]
                entries = entries.filter { $0.value.lastUse > middle }
            }
            let slot = GroupSlot(name, make(), mutex)
            entries[name] = Entry(slot: slot, lastUse: uses)
            return slot
        }
    }

    /// The slot of a group that another process has named: the only one if the policy counts all requests together.
    func slot(reported name: String) -> GroupSlot<State> {
        if case .session = group { whole } else { slot(named: name) }
    }
}
