// SPDX-License-Identifier: Apache-2.0

/// The sockets of an event loop, by descriptor: the events that libcurl wants of each, and those that the poller watches.
///
/// libcurl changes the events twice per request. Changes are only recorded, and applied to the poller once before each wait, so that the
/// cost of a turn depends on what happens in it. Idle connections stay armed, so that a request on a pooled connection needs no syscall:
/// not even for a check of the connection, if the last wait reported nothing for it, no task has run on the thread since, and the request
/// may be repeated.
///
/// That is safe only for sockets whose opening and closing are reported to this table. libcurl has others, through which resolver threads
/// signal: the only sign of their closing is that no events are wanted of them any more.
struct SocketTable {
    /// The receiver of a socket's events.
    enum Owner {
        case none
        case multi(MultiHandle)
        case stream(StreamTransfer)
    }

    /// A socket that the poller could not watch.
    struct Unwatched {
        let socket: Int32
        let owner: Owner
        /// The easy handle on whose behalf libcurl asked last; for comparison only.
        let handle: UnsafeMutableRawPointer?
        /// The system's error number.
        let reason: Int32
    }

    private struct Entry {
        var owner: Owner = .none
        var handle: UnsafeMutableRawPointer?
        var wanted: SocketEvents = []
        var armed: SocketEvents = []
        var isDirty = false
        /// Whether it was opened for a connection, so that its closing is reported.
        var isConnection = false
        /// The number of the wait after which it was last used.
        var lastTouch = 0
    }

    private var entries: [Entry] = []
    private var dirty: [Int32] = []
    /// The number of waits so far.
    private var waits = 0
    /// Whether the last wait has just ended and has reported every ready socket.
    private var hasSeenAll = false

    /// Adds a socket opened for a connection, which the poller doesn't know yet.
    mutating func opened(_ socket: Int32) {
        guard let index = index(of: socket) else { return }
        entries[index] = Entry(isDirty: entries[index].isDirty, isConnection: true)
    }

    /// Records the events wanted of a socket, and their receiver.
    mutating func want(
        _ events: SocketEvents, of socket: Int32, for owner: Owner, handle: UnsafeMutableRawPointer? = nil, at poller: some Poller
    ) {
        guard let index = index(of: socket) else { return }
        entries[index].owner = owner
        entries[index].handle = handle
        entries[index].wanted = events
        entries[index].lastTouch = waits
        if events.isEmpty, !entries[index].isConnection {
            if !entries[index].armed.isEmpty { _ = poller.watch(socket, from: entries[index].armed, to: []) }
            entries[index].armed = []
        }
        guard !entries[index].isDirty else { return }
        entries[index].isDirty = true
        dirty.append(socket)
    }

    /// Forgets a descriptor that is about to be closed, because its number may be reused.
    mutating func forget(_ socket: Int32) {
        guard socket >= 0, Int(socket) < entries.count else { return }
        let isDirty = entries[Int(socket)].isDirty
        entries[Int(socket)] = Entry(isDirty: isDirty)
    }

    /// The receiver of an event. An idle socket has none and is no longer watched: a level-triggered event would be reported repeatedly.
    mutating func owner(of socket: Int32, at poller: some Poller) -> Owner {
        guard Int(socket) < entries.count else { return .none }
        let entry = entries[Int(socket)]
        guard entry.wanted.isEmpty else { return entry.owner }
        if !entry.armed.isEmpty {
            _ = poller.watch(socket, from: entry.armed, to: [])
            entries[Int(socket)].armed = []
        }
        return .none
    }

    /// Applies the changes to the poller. Returns the sockets that could not be watched.
    mutating func reconcile(with poller: some Poller) -> [Unwatched] {
        var unwatched: [Unwatched] = []
        for socket in dirty {
            let entry = entries[Int(socket)]
            entries[Int(socket)].isDirty = false
            guard entry.wanted != entry.armed, !(entry.wanted.isEmpty && entry.armed == .readable) else { continue }
            let reason = poller.watch(socket, from: entry.armed, to: entry.wanted)
            entries[Int(socket)].armed = entry.wanted
            guard reason != 0 else { continue }
            // It is unknown what the poller still watches: the next change adds the socket again.
            entries[Int(socket)].armed = []
            unwatched.append(Unwatched(socket: socket, owner: entry.owner, handle: entry.handle, reason: reason))
        }
        dirty.removeAll(keepingCapacity: true)
        return unwatched
    }

    /// A wait or a poll begins.
    mutating func waitBegins() {
        waits += 1
        hasSeenAll = false
    }

    /// A wait or a poll has ended, and its events were reported or recorded; `hasSeenAll` says whether these were all.
    mutating func waitEnded(hasSeenAll: Bool) {
        self.hasSeenAll = hasSeenAll
    }

    /// Discards the last wait's result, because an unknown time has passed since.
    mutating func forgetWait() {
        hasSeenAll = false
    }

    /// Whether an idle connection had no unread bytes at the last wait, and was idle by then.
    ///
    /// Bytes that arrive between that wait and the next request might as well arrive just after it; another syscall would cost 3 % of a
    /// small request.
    func isQuiet(_ socket: Int32) -> Bool {
        guard hasSeenAll, socket >= 0, Int(socket) < entries.count else { return false }
        let entry = entries[Int(socket)]
        return entry.lastTouch < waits && entry.wanted.isEmpty && entry.armed == .readable
    }

    /// Marks a socket as used: a request goes out on it, or an event was reported for it.
    mutating func touched(_ socket: Int32) {
        if socket >= 0, Int(socket) < entries.count { entries[Int(socket)].lastTouch = waits }
    }

    private mutating func index(of socket: Int32) -> Int? {
        guard socket >= 0 else { return nil }
        while entries.count <= Int(socket) { entries.append(Entry()) }
        return Int(socket)
    }
}
