// SPDX-License-Identifier: Apache-2.0

/// The sockets of an event loop, by descriptor: what libcurl wants of each, and what the poller has been told.
///
/// libcurl changes its mind twice a request. Its wishes are only noted, and reconciled with the poller once before a wait; a connection
/// that libcurl put aside idle stays armed, so that a kept one costs no system call a request.
///
/// That is safe for sockets only of which this table hears when they are opened and closed. libcurl has others, by which a resolver's
/// thread reports: their end shows in nothing but that nothing is wanted of them any more.
struct SocketTable {
    /// Who is to hear of a socket's events.
    enum Owner {
        case nobody
        case multi(MultiHandle)
        case stream(StreamTransfer)
    }

    /// A socket that the poller does not watch, though it should.
    struct Unwatched {
        let socket: Int32
        let owner: Owner
        /// libcurl's handle on whose behalf it asked last; to be compared only.
        let handle: UnsafeMutableRawPointer?
        /// The system's error number.
        let reason: Int32
    }

    private struct Entry {
        var owner: Owner = .nobody
        var handle: UnsafeMutableRawPointer?
        var wanted: SocketEvents = []
        var armed: SocketEvents = []
        var isDirty = false
        /// Whether it was opened for a connection, whose end will be told.
        var isConnection = false
        /// Which wait it was touched after last.
        var lastTouch = 0
    }

    private var entries: [Entry] = []
    private var dirty: [Int32] = []
    /// How many waits have begun.
    private var waits = 0
    /// Whether the last wait was a moment ago, and every socket that had something has been told of or noted.
    private var hasSeenAll = false

    /// A socket for a connection was opened; the poller can't know it yet.
    mutating func opened(_ socket: Int32) {
        guard let index = index(of: socket) else { return }
        entries[index] = Entry(isDirty: entries[index].isDirty, isConnection: true)
    }

    /// Notes what is wanted of a socket, and for whom.
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

    /// The descriptor is about to be closed, and its number to be used for something else.
    mutating func forget(_ socket: Int32) {
        guard socket >= 0, Int(socket) < entries.count else { return }
        let isDirty = entries[Int(socket)].isDirty
        entries[Int(socket)] = Entry(isDirty: isDirty)
    }

    /// Who is to hear of an event; nobody when the socket is idle, which then is no longer watched: it would report for ever.
    mutating func owner(of socket: Int32, at poller: some Poller) -> Owner {
        guard Int(socket) < entries.count else { return .nobody }
        let entry = entries[Int(socket)]
        guard entry.wanted.isEmpty else { return entry.owner }
        if !entry.armed.isEmpty {
            _ = poller.watch(socket, from: entry.armed, to: [])
            entries[Int(socket)].armed = []
        }
        return .nobody
    }

    /// Tells the poller what has changed. Returns the sockets that it could not be told of.
    mutating func reconcile(with poller: some Poller) -> [Unwatched] {
        var unwatched: [Unwatched] = []
        for socket in dirty {
            let entry = entries[Int(socket)]
            entries[Int(socket)].isDirty = false
            guard entry.wanted != entry.armed, !(entry.wanted.isEmpty && entry.armed == .readable) else { continue }
            let reason = poller.watch(socket, from: entry.armed, to: entry.wanted)
            entries[Int(socket)].armed = entry.wanted
            guard reason != 0 else { continue }
            // Whether it is still watched for what it was is not known: the next change adds it anew.
            entries[Int(socket)].armed = []
            unwatched.append(Unwatched(socket: socket, owner: entry.owner, handle: entry.handle, reason: reason))
        }
        dirty.removeAll(keepingCapacity: true)
        return unwatched
    }

    /// The poller is about to wait, or to look only.
    mutating func waitBegins() {
        waits += 1
        hasSeenAll = false
    }

    /// The wait is over, and what was found has been told or noted; whether that is all there was.
    mutating func waitEnded(hasSeenAll: Bool) {
        self.hasSeenAll = hasSeenAll
    }

    /// Time has passed since the last wait, nobody knows how much: what it found says nothing any more.
    mutating func forgetWait() {
        hasSeenAll = false
    }

    /// Whether an idle connection had nothing to be read at the last wait, and was idle by then.
    ///
    /// What comes between that wait and the next request might as well come just after it: to ask the system again would cost a small
    /// request 3 % of its time.
    func isQuiet(_ socket: Int32) -> Bool {
        guard hasSeenAll, socket >= 0, Int(socket) < entries.count else { return false }
        let entry = entries[Int(socket)]
        return entry.lastTouch < waits && entry.wanted.isEmpty && entry.armed == .readable
    }

    /// A request goes out on a socket, or something was found there.
    mutating func touched(_ socket: Int32) {
        if socket >= 0, Int(socket) < entries.count { entries[Int(socket)].lastTouch = waits }
    }

    private mutating func index(of socket: Int32) -> Int? {
        guard socket >= 0 else { return nil }
        while entries.count <= Int(socket) { entries.append(Entry()) }
        return Int(socket)
    }
}
