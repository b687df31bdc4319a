// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTesting
import Testing

@testable import CurlewWebSocket

@Suite(.timeLimit(.minutes(1))) struct SocketStateTests {
    private static let handshake = WebSocketHandshake(response: ResponseHead(statusCode: 101), subprotocol: nil, isCompressed: false)
    private static let going = WebSocketClosure(code: .goingAway, reason: "later")
    private static let user = WebSocketClosure(code: .normalClosure, reason: "done")

    private func open(receive: Int = 1 << 20, send: Int = 64 << 10) -> SocketState {
        var configuration = WebSocketConfiguration()
        configuration.receiveBufferSize = receive
        configuration.sendBufferSize = send
        var state = SocketState(configuration)
        state.connect(attempt: 1)
        state.opened(Self.handshake)
        return state
    }

    @Test("a closing that timed out is that of its connection, not of the next") func closingTimeout() {
        var state = open()
        state.closingTimedOut()
        #expect(state.hasClosingTimedOut)
        state.connectionEnded()
        state.connect(attempt: 2)
        state.opened(Self.handshake)
        #expect(!state.hasClosingTimedOut)
    }

    @Test("connecting is a state of its own for each attempt but the first, which begins with it") func attempts() {
        var state = SocketState(WebSocketConfiguration())
        let first = state.statusNumber
        state.connect(attempt: 1)
        #expect(state.statusNumber == first)
        state.connect(attempt: 2)
        #expect(state.statusNumber == first + 1)
    }

    // MARK: Sending

    @Test("messages are sent in order, after pings and pongs") func order() throws {
        var state = open()
        _ = try state.send(.text("1"))
        _ = try state.send(.text("2"))
        _ = try state.ping(Data("p".utf8))
        state.receivedPing(Data("q".utf8))
        let batch = try state.batch()
        #expect(batch.messages == [.text("1"), .text("2")])
        #expect(batch.controls.map(\.opcode) == [.ping, .pong])
        #expect(batch.close == nil)
        #expect(state.hasNothingToSend)
    }

    @Test("senders wait while the send buffer is full") func room() throws {
        var state = open(send: 200)
        #expect(try state.send(.binary(Data(count: 100))))
        #expect(try state.send(.binary(Data(count: 100))) == false)
        #expect(state.sendOutcome() == nil)
        let batch = try state.batch()
        #expect(state.sendOutcome() == nil)
        state.batchSent(batch)
        #expect(throws: Never.self) { try #require(state.sendOutcome()).get() }
    }

    @Test("at most one batch is taken at a time") func batches() throws {
        var state = open()
        for _ in 0..<5 { _ = try state.send(.binary(Data(count: 40_000))) }
        var counts: [Int] = []
        while let batch = state.takeBatch() {
            counts.append(batch.messages.count)
            state.batchSent(batch)
        }
        #expect(counts == [2, 2, 1])
    }

    @Test("the oldest of too many pongs are dropped") func pongs() throws {
        var state = open()
        for number in 0..<200 { state.receivedPing(Data("\(number)".utf8)) }
        let pongs = state.takeControls()
        #expect(pongs.count == SocketState.maximumPongs)
        #expect(pongs.last?.payload == Data("199".utf8))
    }

    // MARK: Receiving

    @Test("an empty buffer accepts a message of any size, a full one none") func inbox() throws {
        var state = open(receive: 10)
        let large = WebSocketMessage.binary(Data(count: 1000))
        #expect(try state.takes(large))
        #expect(try state.takes(.text("x")) == false)
        #expect(state.isReceivingSuspended)
        #expect(try state.read() == large)
        #expect(try state.takes(.text("x")))
        #expect(!state.isReceivingSuspended)
    }

    @Test("empty messages count towards the buffer") func emptyMessages() {
        var state = open(receive: 640)
        let taken = (0..<100).prefix { _ in state.receive(.text("")) }
        #expect(taken.count == 10)
    }

    // MARK: Pings

    @Test("a pong answers its ping and earlier ones only") func pongAnswers() throws {
        var state = open()
        let numbers = try ["a", "b", "c"].map { try state.ping(Data($0.utf8)) }
        state.receivedPong(Data("x".utf8))
        #expect(state.pongOutcome(forPing: numbers[0]) == nil)
        state.receivedPong(Data("b".utf8))
        #expect(numbers.map { state.pongOutcome(forPing: $0) != nil } == [true, true, false])
        state.connectionEnded()
        #expect(throws: WebSocketError.self) { try #require(state.pongOutcome(forPing: numbers[2])).get() }
    }

    // MARK: Closing

    @Test("the user's close frame is sent after queued messages, and last") func userCloses() throws {
        var state = open()
        _ = try state.send(.text("1"))
        state.close(Self.user)
        state.close(Self.going)
        #expect(throws: WebSocketError.self) { try state.send(.text("2")) }
        let batch = try state.batch()
        #expect(batch.messages == [.text("1")])
        #expect(batch.close == Self.user)
        state.receivedPing(Data())
        #expect(state.hasNothingToSend)
        #expect(!state.isSendingFinished)
        state.batchSent(batch)
        #expect(state.isSendingFinished)
    }

    @Test("messages received after the user closed are discarded, earlier ones kept") func lateMessages() throws {
        var state = open()
        #expect(try state.takes(.text("1")))
        state.close(Self.user)
        #expect(try state.takes(.text("2")))
        state.finish(.success(Self.user))
        #expect(try state.read() == .text("1"))
        #expect(try state.read() == nil)
    }

    @Test("the server's close frame is answered with its code, before queued messages") func peerCloses() throws {
        var state = open()
        _ = try state.send(.text("1"))
        state.receivedClose(Self.going)
        let batch = try state.batch()
        #expect(batch.messages.isEmpty)
        #expect(batch.close == WebSocketClosure(code: .goingAway))
    }

    @Test("when both close at once, the user's frame answers the server's") func bothClose() throws {
        var state = open()
        _ = try state.send(.text("1"))
        state.close(Self.user)
        state.receivedClose(Self.going)
        let batch = try state.batch()
        #expect(batch.messages.isEmpty)
        #expect(batch.close == Self.user)
    }

    @Test("a violation closes with its code and a truncated reason") func failure() throws {
        var state = open()
        state.failed(.protocolError(String(repeating: "é", count: 100)))
        let close = try #require(try state.batch().close)
        #expect(close.code == .protocolError)
        #expect(close.reason.utf8.count == 122)
    }

    @Test(
        "readers receive the end",
        arguments: [
            (1000, false, true), (1001, false, true), (1005, false, true), (1002, false, false), (1011, false, false), (4000, false, false),
            (4000, true, true),
        ] as [(UInt16, Bool, Bool)])
    func ends(_ code: UInt16, _ isUsers: Bool, _ isProper: Bool) throws {
        var state = open()
        if isUsers { state.close(Self.user) }
        let closure = WebSocketClosure(code: WebSocketCloseCode(rawValue: code))
        state.finish(.success(closure))
        state.finish(.failure(CurlewError.cancelled))
        if isProper { #expect(try state.read() == nil) } else { #expect(throws: WebSocketError.self) { try state.read() } }
        guard case .closed(.success(closure)) = state.status else { return #expect(Bool(false), "\(state.status)") }
        #expect(throws: WebSocketError.self) { try state.send(.text("x")) }
    }

    // MARK: Another connection

    @Test("queued messages pass to the next connection, the closing state does not") func nextConnection() throws {
        var state = open()
        _ = try state.send(.binary(Data(count: 70_000)))
        _ = try state.send(.text("2"))
        _ = try state.batch()
        state.receivedClose(Self.going)
        state.connectionEnded()
        state.opened(Self.handshake)
        #expect(try state.batch().messages == [.text("2")])
        #expect(state.closing == nil)
    }

    @Test("the user's closure applies to the next connection") func closurePersists() throws {
        var state = open()
        state.close(Self.user)
        state.connectionEnded()
        state.opened(Self.handshake)
        #expect(try state.batch().close == Self.user)
    }
}

extension SocketState {
    private struct Nothing: Error {}

    fileprivate mutating func batch() throws -> Batch {
        guard let batch = takeBatch() else { throw Nothing() }
        return batch
    }

    fileprivate mutating func read() throws -> WebSocketMessage? {
        guard let next = nextMessage() else { throw Nothing() }
        return try next.get()
    }

    /// Calls `receive` in a form that the macros can expand.
    fileprivate mutating func takes(_ message: WebSocketMessage) throws -> Bool { receive(message) }

    fileprivate var hasNothingToSend: Bool {
        var copy = self
        return copy.takeBatch() == nil
    }
}

@Suite(.timeLimit(.minutes(1))) struct WatchedTests {
    @Test("waiting tasks are resumed in order, each when its condition is met") func order() async throws {
        let watched = Watched<[Int]>([])
        let log = Watched<[String]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (name, count) in [("two", 2), ("one", 1)] {
                group.addTask {
                    _ = try await watched.wait { state -> [Int]? in
                        guard state.count >= count else { return nil }
                        defer { state.removeFirst(count) }
                        return Array(state.prefix(count))
                    }
                    log.update { $0.append(name) }
                }
            }
            watched.update { $0.append(1) }
            try await log.wait { $0 == ["one"] ? () : nil }
            watched.update { $0 += [2, 3] }
            try await group.waitForAll()
        }
        #expect(log.update { $0 } == ["one", "two"])
    }

    @Test("who waits sees what the beginning of another wait changes") func beginning() {
        let watched = Watched((isReaderWaiting: false, message: String?.none))
        let calls = Lock<[String]>([])
        watched.when({ $0.isReaderWaiting ? () : nil }, { calls.withLock { $0.append("seen") } })
        watched.when(
            { state in
                state.isReaderWaiting = state.message == nil
                return state.message.take()
            }, { message in calls.withLock { $0.append(message) } })
        #expect(calls.withLock { $0 } == ["seen"])
        watched.update { $0.message = "read" }
        #expect(calls.withLock { $0 } == ["seen", "read"])
    }

    @Test("closures of a change are called after those of the changes before, whose thread makes both calls") func changes() {
        let watched = Watched(0)
        let calls = Lock<[Int]>([])
        let (begun, mayEnd, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        watched.when({ $0 >= 1 ? () : nil }) {
            begun.signal()
            mayEnd.wait()
            calls.withLock { $0.append(1) }
        }
        watched.when({ $0 >= 2 ? () : nil }) { calls.withLock { $0.append(2) } }
        Thread {
            watched.update { $0 = 1 }
            ended.signal()
        }.start()
        begun.wait()
        watched.update { $0 = 2 }
        #expect(calls.withLock { $0 }.isEmpty)
        mayEnd.signal()
        ended.wait()
        #expect(calls.withLock { $0 } == [1, 2])
    }

    @Test("a wait is cancelled before and while waiting") func cancellation() async {
        let watched = Watched(0)
        let task = Task { try await watched.wait { $0 > 0 ? $0 : nil } }
        task.cancel()
        let result = await task.result
        #expect(throws: CurlewError.self) { try result.get() }
    }

    @Test("a queue is first in, first out") func queue() {
        var queue = Queue<Int>()
        var expected: [Int] = []
        for round in 0..<300 {
            queue.append(round)
            expected.append(round)
            guard round % 3 == 0 else { continue }
            let next = queue.popFirst()
            let first = expected.removeFirst()
            #expect(next == first)
        }
        var rest: [Int] = []
        while let next = queue.popFirst() { rest.append(next) }
        #expect(rest == expected)
    }

    @Test("a timeout throws the given error") func timeLimit() async throws {
        let clock = VirtualClock()
        let task = Task {
            try await withTimeout(.seconds(5), clock, throwing: WebSocketError.timedOut(.close)) {
                try await Watched(0).wait { $0 > 0 ? $0 : nil }
            }
        }
        try await clock.advance(toWaitAt: .seconds(5))
        let result = await task.result
        #expect(throws: WebSocketError.self) { try result.get() }
    }
}
