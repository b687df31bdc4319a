// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// What a policy counts for one group.
final class GroupSlot<State: Sendable>: Sendable {
    let name: String
    let state: Lock<State>

    init(_ name: String, _ state: State) {
        self.name = name
        self.state = Lock(state)
    }
}

/// The groups of a policy. Bounded: the half that was not used for longest is forgotten when there are too many. Thread-safe.
final class GroupTable<State: Sendable>: Sendable {
    /// The most groups.
    static var capacity: Int { 4_096 }

    private struct Entry {
        let slot: GroupSlot<State>
        var lastUse: UInt64
    }

    private struct Groups {
        var entries: [String: Entry] = [:]
        var uses: UInt64 = 0
        /// The last URL's scheme and authority with the slash after them, and its slot: reading an origin costs more than comparing.
        var lastPrefix: [UInt8] = []
        var lastSlot: GroupSlot<State>?
    }

    private let group: PolicyGroup
    private let make: @Sendable () -> State
    private let whole: GroupSlot<State>
    private let groups = Lock(Groups())

    init(_ group: PolicyGroup, _ make: @escaping @Sendable () -> State) {
        self.group = group
        self.make = make
        whole = GroupSlot("", make())
    }

    /// The slot of a request's group; `nil` if it has none.
    func slot(for request: TransferRequest) -> GroupSlot<State>? {
        switch group {
        case .session: return whole
        case .named(let name): return name(PolicyRequest(request)).map { slot(named: $0) }
        case .origin:
            let url = request.url
            return groups.withLock { url.begins(with: $0.lastPrefix) ? $0.lastSlot : nil } ?? slot(ofURL: url)
        }
    }

    private func slot(ofURL url: String) -> GroupSlot<State>? {
        guard let origin = HTTPOrigin(url: url) else { return nil }
        let host = origin.host.contains(":") ? "[\(origin.host)]" : origin.host
        let found = slot(named: "\(origin.scheme)://\(host):\(origin.port)")
        // Not a URL whose authority ends without a slash: a longer host may begin with it.
        if let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")) {
            let authority = url.utf8[colon...].dropFirst(3)
            if let slash = authority.firstIndex(where: { "/?#".utf8.contains($0) }), url.utf8[slash] == UInt8(ascii: "/") {
                groups.withLock { groups in
                    groups.lastPrefix = Array(url.utf8[...slash])
                    groups.lastSlot = found
                }
            }
        }
        return found
    }

    /// The slot of a group.
    func slot(named name: String) -> GroupSlot<State> {
        groups.withLock { groups in
            groups.uses += 1
            if let entry = groups.entries[name] {
                groups.entries[name]?.lastUse = groups.uses
                return entry.slot
            }
            if groups.entries.count >= Self.capacity {
                let middle = groups.entries.values.map(\.lastUse).sorted()[groups.entries.count / 2]
                groups.entries = groups.entries.filter { $0.value.lastUse > middle }
            }
            let slot = GroupSlot(name, make())
            groups.entries[name] = Entry(slot: slot, lastUse: groups.uses)
            return slot
        }
    }

    /// The slot of a group that another process has named: that of all requests for the empty name.
    func slot(told name: String) -> GroupSlot<State> {
        if case .session = group { whole } else { slot(named: name) }
    }
}

extension String {
    /// Whether the string begins with bytes; compared all at once.
    fileprivate func begins(with prefix: [UInt8]) -> Bool {
        var copy = self
        return copy.withUTF8 { bytes in
            guard bytes.count >= prefix.count, let start = bytes.baseAddress else { return false }
            return memcmp(start, prefix, prefix.count) == 0
        }
    }
}
