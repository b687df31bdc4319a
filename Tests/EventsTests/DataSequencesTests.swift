// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewEvents

@Suite(.timeLimit(.minutes(1))) struct DataSequencesTests {
    private struct Entry: Codable, Sendable, Hashable {
        let n: Int
    }

    /// The bytes of a text in pieces.
    private func pieces(_ text: String, by size: Int) -> AsyncStream<Data> {
        let bytes = Data(text.utf8)
        return AsyncStream { continuation in
            for start in stride(from: 0, to: bytes.count, by: size) {
                continuation.yield(bytes[start..<min(start + size, bytes.count)])
            }
            continuation.finish()
        }
    }

    @Test("lines end with LF or CR LF, the last one without either", arguments: [1, 2, 3, 100])
    func lines(_ size: Int) async throws {
        var lines: [String] = []
        for try await line in pieces("a\nb\r\n\n\rc\rd\ne", by: size).dataLines() { lines.append(String(decoding: line, as: UTF8.self)) }
        #expect(lines == ["a", "b", "", "\rc\rd", "e"])
    }

    @Test("a long piece is read in portions, between which other tasks get a turn") func turns() async throws {
        let blank = String(repeating: "\n", count: 300_000)
        try await withTaskExecutorPreference(SerialTaskExecutor()) {
            var events = pieces(blank + "data: a\n\n" + blank, by: .max).serverSentEvents().makeAsyncIterator()
            let isOver = Lock(false)
            async let other: Void = isOver.withLock { $0 = true }
            let first = try await events.next()
            #expect(first?.data == "a")
            #expect(isOver.withLock { $0 })
            await other
            let second = try await events.next()
            #expect(second == nil)
        }
    }

    @Test("between two portions a cancellation is noticed") func cancelled() async {
        let reading = Task {
            while !Task.isCancelled { await Task.yield() }
            for try await _ in pieces(String(repeating: "\n", count: 300_000) + "data: a\n\n", by: .max).serverSentEvents() {}
        }
        reading.cancel()
        await #expect(throws: CancellationError.self) { try await reading.value }
    }

    @Test("a line is a copy whose first index is 0", arguments: [1, 100])
    func indices(_ size: Int) async throws {
        for try await line in pieces("ab\nab\nab", by: size).dataLines() { #expect(line.indices == 0..<2) }
    }

    @Test("returned lines are not retained, wherever the pieces end") func memory() throws {
        var lines = LineSplitter(.any, limit: 1000)
        var count = 0
        for _ in 0..<10_000 {
            lines.feed(Data("rest\nline\nbegin".utf8))
            while try lines.next() != nil { count += 1 }
        }
        #expect(count == 20_000)
        #expect(lines.bytes.endIndex < 100)
    }

    @Test("a line over the limit is rejected") func limit() async {
        await #expect(throws: EventStreamError.self) {
            for try await _ in pieces("123\n12345", by: 1).dataLines(maximumSize: 4) {}
        }
    }

    @Test("values are lines of JSON, and empty lines are skipped", arguments: [1, 7, 100])
    func values(_ size: Int) async throws {
        var values: [Entry] = []
        for try await value in pieces("{\"n\":1}\n\n{\"n\": 2}\r\n  \n{\"n\":3}", by: size).jsonLines(of: Entry.self) {
            values.append(value)
        }
        #expect(values == [Entry(n: 1), Entry(n: 2), Entry(n: 3)])
    }

    @Test("an invalid line throws, and the next one is read") func invalidLine() async throws {
        var values = pieces("{\"n\":1}\n{\"n\":\n{\"n\":3}\n", by: 100).jsonLines(of: Entry.self).makeAsyncIterator()
        #expect(try await values.next() == Entry(n: 1))
        do {
            _ = try await values.next()
            #expect(Bool(false))
        } catch EventStreamError.decodingFailed(let data, _) {
            #expect(data == Data("{\"n\":".utf8))
        }
        #expect(try await values.next() == Entry(n: 3))
        #expect(try await values.next() == nil)
    }

    @Test("events are read from any bytes, and typed") func typedEvents() async throws {
        let text = "event: e\ndata: {\"n\":1}\n\nevent: other\ndata: x\n\nevent: e\nid: 5\ndata: {\"n\":2}\n\n"
        var events: [TypedEvent<Entry>] = []
        for try await event in pieces(text, by: 3).serverSentEvents().typed(as: Entry.self, eventType: "e") { events.append(event) }
        #expect(events.map(\.value) == [Entry(n: 1), Entry(n: 2)])
        #expect(events.map(\.event.id) == ["", "5"])
    }

    @Test("data can be decoded by a closure") func closure() async throws {
        var lengths: [Int] = []
        for try await event in pieces("data: abc\n\n", by: 100).serverSentEvents().typed(decode: { $0.data.count }) {
            lengths.append(event.value)
        }
        #expect(lengths == [3])
    }
}
