// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Testing

@Suite struct MissCoalescerTests {
    private let key = MissCoalescer.Key(url: "http://a/", headers: ["Accept": "*/*", "X": "1"])

    @Test func `The first request leads, the others are woken once by the end of its flight`() {
        let coalescer = MissCoalescer()
        let woken = Lock([String]())
        func join(_ name: String) -> MissCoalescer.Flight? {
            coalescer.join(key) { outcome in woken.withLock { $0.append("\(name) \(outcome)") } }
        }
        let flight = join("a")
        #expect(flight != nil)
        #expect(join("b") == nil)
        #expect(join("c") == nil)
        #expect(coalescer.waitingCount == 2)
        if let flight {
            coalescer.end(flight, .stored)
            coalescer.end(flight, .abandoned)
        }
        #expect(woken.withLock { $0 } == ["b stored", "c stored"])
        #expect(coalescer.waitingCount == 0)
    }

    @Test func `The end of an earlier flight does not end a later one`() throws {
        let coalescer = MissCoalescer()
        let first = try #require(coalescer.join(key) { _ in })
        coalescer.end(first, .abandoned)
        let second = try #require(coalescer.join(key) { _ in })
        let wakes = Lock(0)
        #expect(coalescer.join(key) { _ in wakes.withLock { $0 += 1 } } == nil)
        coalescer.end(first, .stored)
        #expect(wakes.withLock { $0 } == 0)
        coalescer.end(second, .stored)
        #expect(wakes.withLock { $0 } == 1)
    }

    @Test func `Requests are equal by URL and fields, in any order and case of names`() {
        let same = MissCoalescer.Key(url: "http://a/", headers: ["x": "1", "ACCEPT": "*/*"])
        #expect(key == same)
        #expect(key != MissCoalescer.Key(url: "http://a/?", headers: ["Accept": "*/*", "X": "1"]))
        #expect(key != MissCoalescer.Key(url: "http://a/", headers: ["Accept": "*/*", "X": "2"]))
        #expect(key != MissCoalescer.Key(url: "http://a/", headers: ["Accept": "*/*"]))
    }
}
