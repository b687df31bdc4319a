// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct SocketTableTests {
    /// Records its calls.
    private final class FakePoller: Poller {
        let wakeUp: WakeUp
        var log: [String] = []
        var watched: [Int32: SocketEvents] = [:]
        /// The error with which watching fails; 0 for none.
        var refusal: Int32 = 0

        init() throws { wakeUp = try WakeUp() }

        func watch(_ socket: Int32, from old: SocketEvents, to new: SocketEvents) -> Int32 {
            #expect(watched[socket] ?? [] == old)
            log.append("\(socket):\(new.rawValue)")
            guard refusal == 0 else { return refusal }
            watched[socket] = new.isEmpty ? nil : new
            return 0
        }

        func forget(_ socket: Int32) { watched[socket] = nil }

        func wait(milliseconds: Int32, onWake: () -> Void, onEvent: (Int32, SocketEvents) -> Void) -> Bool { true }
    }

    private let poller: FakePoller
    private var table = SocketTable()

    init() throws { poller = try FakePoller() }

    @Test("changes are applied to the poller once, at the end of a turn")
    mutating func last() {
        table.opened(5)
        for events in [.readable, .writable, [.readable, .writable], .readable] as [SocketEvents] {
            table.want(events, of: 5, for: .none, at: poller)
        }
        #expect(poller.log.isEmpty)
        _ = table.reconcile(with: poller)
        _ = table.reconcile(with: poller)
        #expect(poller.log == ["5:1"])
    }

    @Test("a socket that can't be watched is reported, and the next change adds it again")
    mutating func refused() {
        table.opened(5)
        poller.refusal = ENOSPC
        table.want(.readable, of: 5, for: .none, at: poller)
        let unwatched = table.reconcile(with: poller)
        #expect(unwatched.map(\.socket) == [5] && unwatched.map(\.reason) == [ENOSPC])
        poller.refusal = 0
        table.want([.readable, .writable], of: 5, for: .none, at: poller)
        #expect(table.reconcile(with: poller).isEmpty)
        #expect(poller.log == ["5:1", "5:3"] && poller.watched == [5: [.readable, .writable]])
    }

    @Test("an idle connection stays watched; the next request needs no syscall")
    mutating func idle() {
        table.opened(5)
        for _ in 0..<3 {
            table.want(.readable, of: 5, for: .none, at: poller)
            _ = table.reconcile(with: poller)
            table.want([], of: 5, for: .none, at: poller)
            _ = table.reconcile(with: poller)
        }
        #expect(poller.log == ["5:1"])
    }

    @Test("an idle connection with unread bytes is not reported and no longer watched")
    mutating func idleEvent() {
        table.opened(5)
        table.want(.readable, of: 5, for: .none, at: poller)
        _ = table.reconcile(with: poller)
        table.want([], of: 5, for: .none, at: poller)
        _ = table.reconcile(with: poller)
        guard case .none = table.owner(of: 5, at: poller) else {
            Issue.record("an idle socket has an owner")
            return
        }
        #expect(poller.log == ["5:1", "5:0"])
        table.want(.readable, of: 5, for: .none, at: poller)
        _ = table.reconcile(with: poller)
        #expect(poller.log == ["5:1", "5:0", "5:1"])
    }

    /// Opens a connection and completes its request.
    private mutating func makeIdle(_ socket: Int32) {
        table.opened(socket)
        table.want(.readable, of: socket, for: .none, at: poller)
        _ = table.reconcile(with: poller)
        table.want([], of: socket, for: .none, at: poller)
        _ = table.reconcile(with: poller)
    }

    @Test("an idle connection is known to be quiet after a wait without events, for one request")
    mutating func quiet() {
        makeIdle(5)
        #expect(!table.isQuiet(5))
        table.waitBegins()
        #expect(!table.isQuiet(5))
        table.waitEnded(hasSeenAll: true)
        #expect(table.isQuiet(5))
        table.touched(5)
        #expect(!table.isQuiet(5))
        table.waitBegins()
        table.waitEnded(hasSeenAll: true)
        #expect(table.isQuiet(5))
    }

    @Test("a connection with events, in use, new, or possibly not polled is not known to be quiet")
    mutating func notQuiet() {
        for socket in 5...8 as ClosedRange<Int32> { makeIdle(socket) }
        table.waitBegins()
        _ = table.owner(of: 5, at: poller)
        table.waitEnded(hasSeenAll: true)
        #expect(!table.isQuiet(5))
        table.want(.readable, of: 6, for: .none, at: poller)
        table.forget(7)
        table.opened(7)
        table.waitBegins()
        table.waitEnded(hasSeenAll: true)
        #expect(!table.isQuiet(6))
        #expect(!table.isQuiet(7))
        table.waitBegins()
        table.waitEnded(hasSeenAll: false)
        #expect(!table.isQuiet(8))
        table.waitBegins()
        table.waitEnded(hasSeenAll: true)
        #expect(table.isQuiet(8))
        table.waitBegins()
        table.touched(8)
        table.waitEnded(hasSeenAll: true)
        #expect(!table.isQuiet(8))
        table.waitBegins()
        table.waitEnded(hasSeenAll: true)
        #expect(table.isQuiet(8))
        table.forgetWait()
        #expect(!table.isQuiet(8))
        #expect(!table.isQuiet(-1))
        #expect(!table.isQuiet(900))
    }

    @Test("a closed connection's descriptor can be reused, also within a turn")
    mutating func reuse() {
        table.opened(5)
        table.want(.readable, of: 5, for: .none, at: poller)
        _ = table.reconcile(with: poller)
        table.forget(5)
        poller.forget(5)
        table.opened(5)
        table.want(.readable, of: 5, for: .none, at: poller)
        _ = table.reconcile(with: poller)
        #expect(poller.log == ["5:1", "5:1"])
    }

    @Test("a socket whose opening was not reported is unwatched as soon as no events are wanted")
    mutating func resolver() {
        table.want(.readable, of: 7, for: .none, at: poller)
        _ = table.reconcile(with: poller)
        table.want([], of: 7, for: .none, at: poller)
        #expect(poller.log == ["7:1", "7:0"])
        // Its number now belongs to a connection.
        table.opened(7)
        table.want(.writable, of: 7, for: .none, at: poller)
        _ = table.reconcile(with: poller)
        #expect(poller.log == ["7:1", "7:0", "7:2"])
    }

    @Test("invalid and unknown sockets are harmless")
    mutating func unknown() {
        table.want(.readable, of: -1, for: .none, at: poller)
        table.opened(-1)
        table.forget(-1)
        table.forget(900)
        _ = table.reconcile(with: poller)
        guard case .none = table.owner(of: 900, at: poller) else {
            Issue.record("an unknown socket has an owner")
            return
        }
        #expect(poller.log.isEmpty)
    }
}
