// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewEvents
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

// A1.6: end markers, and data that can't be decoded.
@Suite(.timeLimit(.minutes(1))) struct TypedEventsTests {
    private struct Entry: Decodable, Sendable, Equatable {
        let n: Int
    }

    private func bytes(_ text: String) -> AsyncStream<Data> {
        AsyncStream { continuation in
            continuation.yield(Data(text.utf8))
            continuation.finish()
        }
    }

    private func events(_ data: [String]) -> ServerSentEvents<AsyncStream<Data>> {
        bytes(data.map { "data: \($0)\n\n" }.joined()).serverSentEvents()
    }

    @Test func `the marker ends the events, also one of another type, and is not decoded`() async throws {
        let text = "event: e\ndata: {\"n\":1}\n\ndata: x\n\nevent: end\ndata: [DONE]\n\nevent: e\ndata: {\"n\":2}\n\n"
        var iterator = bytes(text).serverSentEvents().typed(as: Entry.self, eventType: "e", until: "[DONE]").makeAsyncIterator()
        #expect(try await iterator.next()?.value == Entry(n: 1))
        for _ in 0..<2 { #expect(try await iterator.next() == nil) }
    }

    @Test(arguments: ["[DONE] ", "[done]", " [DONE]", "[DONE]\u{301}"])
    func `only the exact marker ends them`(_ other: String) async throws {
        var values: [String] = []
        for try await event in events([other, "a", "[DONE]", "b"]).typed(until: "[DONE]", decode: { $0.data }) {
            values.append(event.value)
        }
        #expect(values == [other, "a"])
    }

    @Test func `without a marker it is data like any other`() async {
        await #expect(throws: EventStreamError.self) {
            for try await _ in events([#"{"n":1}"#, "[DONE]"]).typed(as: Entry.self) {}
        }
    }

    @Test func `invalid data is skipped, and reported`() async throws {
        let skipped = Log<String>()
        let policy = DecodingErrorPolicy.skip { error in
            guard case EventStreamError.decodingFailed(let data, _) = error else { return }
            skipped.append(String(decoding: data, as: UTF8.self))
        }
        var values: [Entry] = []
        let data = [#"{"n":1}"#, "{", #"{"n":2}"#, "no", "[DONE]", #"{"n":3}"#]
        for try await event in events(data).typed(as: Entry.self, until: "[DONE]", onDecodingError: policy) { values.append(event.value) }
        #expect(values == [Entry(n: 1), Entry(n: 2)])
        #expect(skipped.elements == ["{", "no"])

        var numbers: [Int] = []
        let other = events(["1", "x", "2"]).typed(onDecodingError: .skip()) { event in
            guard let number = Int(event.data) else { throw TestError("no number") }
            return number
        }
        for try await event in other { numbers.append(event.value) }
        #expect(numbers == [1, 2])
    }

    @Test func `an error of the events themselves is not skipped`() async {
        await #expect(throws: EventStreamError.self) {
            let events = bytes("data: 12345678\n\n").serverSentEvents(maximumEventSize: 4)
            for try await _ in events.typed(as: Entry.self, onDecodingError: .skip()) {}
        }
    }

    @Test func `lines end at the marker, and invalid ones are skipped`() async throws {
        let text = "{\"n\":1}\r\n\nno\n{\"n\":2}\n[DONE]\r\n{\"n\":3}\n"
        var values: [Entry] = []
        let skipped = Log<String>()
        let lines = bytes(text).jsonLines(of: Entry.self, until: "[DONE]", onDecodingError: .skip { skipped.append("\($0)") })
        for try await value in lines { values.append(value) }
        #expect(values == [Entry(n: 1), Entry(n: 2)])
        #expect(skipped.count == 1)
        var iterator = bytes(text).jsonLines(of: Entry.self, until: "{\"n\":2}").makeAsyncIterator()
        #expect(try await iterator.next() == Entry(n: 1))
        await #expect(throws: EventStreamError.self) { try await iterator.next() }
        for _ in 0..<2 { #expect(try await iterator.next() == nil) }
    }

    @Test func `the connection is released at the marker, although the server sends more, and is not made again`() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            try connection.send(raw: "data: {\"n\":1}\n\ndata: [DONE]\n\n")
            connection.wait(until: gate)
            return nil
        }
        defer {
            gate.open()
            server.stop()
        }
        let manager = makeManager()
        var iterator = manager.eventStream(server.url("/")).typed(as: Entry.self, until: "[DONE]").makeAsyncIterator()
        #expect(try await iterator.next()?.value == Entry(n: 1))
        #expect(try await iterator.next() == nil)
        #expect(await eventually { manager.requests.isEmpty })
        #expect(try await iterator.next() == nil)
        #expect(server.requestCount == 1)
    }
}
