// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewWebSocket
import Testing

@testable import CurlewGraphQL

// A2.3
@Suite struct SubscriptionStateTests {
    private final class Queue: MessageQueue {
        private let messages = Log<WebSocketMessage>()

        /// What was queued: type and id.
        var sent: [String] {
            messages.elements.map { message in
                let message = try? JSONDecoder().decode(GraphQLPeer.Message.self, from: message.data)
                return "\(message?.type ?? "?") \(message?.id ?? "?")"
            }
        }

        private let end = Monitor(false)

        var isOpen: Bool { !end.read { $0 } }

        func close() { end.update { $0 = true } }
        func enqueue(_ message: WebSocketMessage) { messages.append(message) }
    }

    /// A state whose changes can be part of an expectation.
    private final class Subject {
        var state: SubscriptionState<Queue>

        init(_ bufferSize: Int = 1_000, _ overflow: GraphQLConfiguration.OverflowPolicy = .suspend) {
            state = SubscriptionState(bufferSize: bufferSize, overflow: overflow)
        }

        var isOver: Bool { state.isOver }

        func begin() -> Int? { state.begin(Data("{}".utf8)) }
        func remove(_ number: Int) { state.remove(number) }
        func next(of number: Int) -> Result<Data?, any Error>? { state.next(of: number) }
        func wasRequested(_ number: Int) -> Bool { state.wasRequested(number) }
        func acknowledged(_ queue: Queue) { state.acknowledged(queue) }
        func receive(_ message: ServerMessage) -> Bool { state.receive(message) }
    }

    private func event(_ size: Int, id: String = "1") -> ServerMessage { .next(id: id, Data(count: size)) }

    @Test func `what was begun is requested once the connection is acknowledged, in order`() {
        let state = Subject()
        let queue = Queue()
        for number in 1...3 { #expect(state.begin() == number) }
        #expect(!state.wasRequested(1))
        state.remove(2)
        state.acknowledged(queue)
        #expect(state.begin() == 4)
        #expect(queue.sent == ["subscribe 1", "subscribe 3", "subscribe 4"])
        #expect(state.wasRequested(1) && state.wasRequested(4) && !state.isOver)
    }

    @Test func `complete follows subscribe, and is sent once at most`() {
        let state = Subject()
        let queue = Queue()
        state.acknowledged(queue)
        for _ in 1...3 { _ = state.begin() }
        #expect(state.receive(.complete(id: "2")))
        for number in 1...3 { state.remove(number) }
        state.remove(1)
        #expect(queue.sent == ["subscribe 1", "subscribe 2", "subscribe 3", "complete 1", "complete 3"])
        #expect(state.isOver && state.begin() == nil)
    }

    @Test func `after a lost connection all are requested again, except those that have ended`() {
        let state = Subject()
        let (first, second) = (Queue(), Queue())
        state.acknowledged(first)
        for _ in 1...4 { _ = state.begin() }
        #expect(state.receive(.error(id: "2", [GraphQLError(message: "m")])))
        state.state.lost()
        state.remove(3)
        #expect(state.wasRequested(1))
        state.acknowledged(second)
        #expect(first.sent.count == 4 && second.sent == ["subscribe 1", "subscribe 4"])
    }

    @Test func `nothing begins on a connection that is being lost`() {
        let state = Subject()
        let (first, second) = (Queue(), Queue())
        #expect(state.begin() == 1)
        state.acknowledged(first)
        first.close()
        #expect(state.begin() == nil && !state.isOver && first.sent == ["subscribe 1"])
        state.state.lost()
        #expect(state.begin() == 2)
        state.acknowledged(second)
        #expect(second.sent == ["subscribe 1", "subscribe 2"])
    }

    @Test func `events that were received come before the end`() throws {
        let state = Subject()
        _ = state.begin()
        state.acknowledged(Queue())
        #expect(state.next(of: 1) == nil)
        for size in 1...2 { #expect(state.receive(event(size))) }
        state.state.fail(TestError("lost"))
        #expect(state.isOver)
        for size in 1...2 { #expect(try state.next(of: 1)?.get()?.count == size) }
        #expect(throws: TestError.self) { try state.next(of: 1)?.get() }
        state.remove(1)
        #expect(try state.next(of: 1)?.get() == nil)
    }

    @Test(arguments: [false, true]) func `the buffer is bounded, and one event is always accepted`(fails: Bool) throws {
        let state = Subject(100 + 2 * 64, fails ? .fail : .suspend)
        let queue = Queue()
        _ = (state.begin(), state.begin())
        state.acknowledged(queue)
        #expect(state.receive(event(10_000, id: "2")))
        #expect(state.receive(event(50)) && state.receive(event(50)))
        #expect(state.receive(event(0)) == fails)
        #expect(queue.sent.contains("complete 1") == fails)
        #expect(state.receive(event(1, id: "3")) && state.receive(event(1, id: "x")))
        for _ in 1...2 { #expect(try state.next(of: 1)?.get()?.count == 50) }
        if fails {
            #expect(throws: GraphQLClientError.self) { try state.next(of: 1)?.get() }
        } else {
            #expect(state.receive(event(3)))
            #expect(try state.next(of: 1)?.get()?.count == 3)
        }
    }
}
