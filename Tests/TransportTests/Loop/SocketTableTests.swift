// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct SocketTableTests {
    /// Notes what it is told.
    private final class FakePoller: Poller {
        let wakeUp: WakeUp
        var log: [String] = []
        var watched: [Int32: SocketEvents] = [:]
        /// The error with which it refuses to watch; 0 for none.
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

        func wait(milliseconds: Int32, afterwards: () -> Void, onEvent: (Int32, SocketEvents) -> Void) -> Bool { true }
    }

    private let poller: FakePoller
    private var table = SocketTable()

    init() throws { poller = try FakePoller() }

    @Test("wishes reach the poller once, as they stand at the end of a turn")
    mutating func last() {
        table.opened(5)
        for events in [.readable, .writable, [.readable, .writable], .readable] as [SocketEvents] {
            table.want(events, of: 5, for: .nobody, at: poller)
        }
        #expect(poller.log.isEmpty)
        _ = table.reconcile(with: poller)
        _ = table.reconcile(with: poller)
        #expect(poller.log == ["5:1"])
    }

    @Test("a socket that can't be watched is told of, and the next wish adds it anew")
    mutating func refused() {
        table.opened(5)
        poller.refusal = ENOSPC
        table.want(.readable, of: 5, for: .nobody, at: poller)
        let unwatched = table.reconcile(with: poller)
        #expect(unwatched.map(\.socket) == [5] && unwatched.map(\.reason) == [ENOSPC])
        poller.refusal = 0
        table.want([.readable, .writable], of: 5, for: .nobody, at: poller)
        #expect(table.reconcile(with: poller).isEmpty)
        #expect(poller.log == ["5:1", "5:3"] && poller.watched == [5: [.readable, .writable]])
    }

    @Test("an idle connection stays watched; the next request costs no call")
    mutating func idle() {
        table.opened(5)
        for _ in 0..<3 {
            table.want(.readable, of: 5, for: .nobody, at: poller)
            _ = table.reconcile(with: poller)
            table.want([], of: 5, for: .nobody, at: poller)
            _ = table.reconcile(with: poller)
        }
        #expect(poller.log == ["5:1"])
    }

    @Test("an idle connection that has something is told to nobody and no longer watched")
    mutating func idleEvent() {
        table.opened(5)
        table.want(.readable, of: 5, for: .nobody, at: poller)
        _ = table.reconcile(with: poller)
        table.want([], of: 5, for: .nobody, at: poller)
        _ = table.reconcile(with: poller)
        guard case .nobody = table.owner(of: 5, at: poller) else {
            Issue.record("an idle socket has an owner")
            return
        }
        #expect(poller.log == ["5:1", "5:0"])
        table.want(.readable, of: 5, for: .nobody, at: poller)
        _ = table.reconcile(with: poller)
        #expect(poller.log == ["5:1", "5:0", "5:1"])
    }

    /// A connection that has had its request.
    private mutating func makeIdle(_ socket: Int32) {
        table.opened(socket)
        table.want(.readable, of: socket, for: .nobody, at: poller)
        _ = table.reconcile(with: poller)
        table.want([], of: socket, for: .nobody, at: poller)
        _ = table.reconcile(with: poller)
    }

    @Test("an idle connection is known to be quiet after a wait that found nothing, for one request")
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

    @Test("a connection is not known to be quiet that had something, is in use, is new, or may not have been looked at")
    mutating func notQuiet() {
        for socket in 5...8 as ClosedRange<Int32> { makeIdle(socket) }
        table.waitBegins()
        _ = table.owner(of: 5, at: poller)
        table.waitEnded(hasSeenAll: true)
        #expect(!table.isQuiet(5))
        table.want(.readable, of: 6, for: .nobody, at: poller)
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

    @Test("a closed connection's number begins anew, within one turn too")
    mutating func reuse() {
        table.opened(5)
        table.want(.readable, of: 5, for: .nobody, at: poller)
        _ = table.reconcile(with: poller)
        table.forget(5)
        poller.forget(5)
        table.opened(5)
        table.want(.readable, of: 5, for: .nobody, at: poller)
        _ = table.reconcile(with: poller)
        #expect(poller.log == ["5:1", "5:1"])
    }

    @Test("a socket whose opening nobody told is not watched any more as soon as it is not wanted")
    mutating func resolver() {
        table.want(.readable, of: 7, for: .nobody, at: poller)
        _ = table.reconcile(with: poller)
        table.want([], of: 7, for: .nobody, at: poller)
        #expect(poller.log == ["7:1", "7:0"])
        // Its number is a connection's now.
        table.opened(7)
        table.want(.writable, of: 7, for: .nobody, at: poller)
        _ = table.reconcile(with: poller)
        #expect(poller.log == ["7:1", "7:0", "7:2"])
    }

    @Test("sockets that are none, or unknown, do no harm")
    mutating func unknown() {
        table.want(.readable, of: -1, for: .nobody, at: poller)
        table.opened(-1)
        table.forget(-1)
        table.forget(900)
        _ = table.reconcile(with: poller)
        guard case .nobody = table.owner(of: 900, at: poller) else {
            Issue.record("an unknown socket has an owner")
            return
        }
        #expect(poller.log.isEmpty)
    }
}
