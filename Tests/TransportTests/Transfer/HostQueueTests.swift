// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct HostQueueTests {
    private final class Item {}

    /// A queue by reference, so that expectations can change it.
    private final class Queue {
        private var queue: HostQueue<Item>

        init(limit: Int?) { queue = HostQueue(limit: limit) }

        func enter(_ host: UInt64, _ item: Item) -> Bool { queue.enter(host, item) }
        func leave(_ host: UInt64) -> Item? { queue.leave(host) }
        func withdraw(_ item: Item, from host: UInt64) { queue.withdraw(item, from: host) }
    }

    @Test("admits as many transfers per host as the limit allows")
    func limit() {
        let queue = Queue(limit: 2)
        #expect(queue.enter(1, Item()))
        #expect(queue.enter(1, Item()))
        #expect(!queue.enter(1, Item()))
        #expect(queue.enter(2, Item()))
    }

    @Test("a limit below one is clamped to one", arguments: [0, -5])
    func smallLimit(limit: Int) {
        let queue = Queue(limit: limit)
        #expect(queue.enter(1, Item()))
        #expect(!queue.enter(1, Item()))
    }

    @Test("without a limit, all transfers start immediately")
    func noLimit() {
        let queue = Queue(limit: nil)
        #expect((0..<1000).allSatisfy { _ in queue.enter(1, Item()) })
        #expect(queue.leave(1) == nil)
    }

    @Test("first come, first served, over many times the compaction's threshold")
    func order() {
        let queue = Queue(limit: 1)
        #expect(queue.enter(1, Item()))
        let items = (0..<500).map { _ in Item() }
        #expect(items.allSatisfy { !queue.enter(1, $0) })
        #expect(items.allSatisfy { queue.leave(1) === $0 })
        #expect(queue.leave(1) == nil)
        #expect(queue.enter(1, Item()))
    }

    @Test("more urgent transfers start first, equals in order of arrival")
    func urgency() {
        var queue = HostQueue<Item>(limit: 1)
        let items = (0..<6).map { _ in Item() }
        _ = queue.enter(1, Item())
        for (item, urgency) in zip(items, [3, 5, 1, 3, 1, 7]) { _ = queue.enter(1, item, urgency: urgency) }
        let order = [2, 4, 0, 3, 1, 5].map { items[$0] }
        for item in order {
            let next = queue.leave(1)
            #expect(next === item)
        }
    }

    @Test(
        "the urgency is taken from the header field Priority",
        arguments: [
            ("u=1", 1), ("i, u=7", 7), ("u=2;a=b", 2), ("u=1, u=4", 4), ("i", 3), ("u=8", 3), ("u=x", 3), ("u=", 3), ("", 3),
            ("x=\"u=0, \", u=2", 2), ("u=\"1\"", 3), ("u=1, u=(2)", 3), ("u=-1", 3),
        ])
    func urgencyOfHeader(_ field: String, _ urgency: Int) {
        #expect(TransferRequest(url: "http://h/", headers: ["Priority": field]).urgency == urgency)
    }

    @Test("a withdrawn element is skipped at any position")
    func withdraw() {
        let queue = Queue(limit: 1)
        #expect(queue.enter(1, Item()))
        let items = (0..<200).map { _ in Item() }
        #expect(items.allSatisfy { !queue.enter(1, $0) })
        for index in stride(from: 0, to: 100, by: 1) { #expect(queue.leave(1) === items[index]) }
        for index in stride(from: 100, to: 200, by: 2) { queue.withdraw(items[index], from: 1) }
        queue.withdraw(items[0], from: 1)  // no longer queued
        queue.withdraw(Item(), from: 9)  // was never queued
        for index in stride(from: 101, to: 200, by: 2) { #expect(queue.leave(1) === items[index]) }
        #expect(queue.leave(1) == nil)
    }
}
