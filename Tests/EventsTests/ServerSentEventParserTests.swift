// SPDX-License-Identifier: Apache-2.0
import CurlewEvents
import CurlewHTTP
import Testing

@Suite(.timeLimit(.minutes(1))) struct ServerSentEventParserTests {
    private func parse(_ bytes: Data, by size: Int, limit: Int = 1000) throws -> (events: [ServerSentEvent], parser: ServerSentEventParser)
    {
        var parser = ServerSentEventParser(maximumEventSize: limit)
        var events: [ServerSentEvent] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            parser.feed(bytes[start..<min(start + size, bytes.count)])
            while let event = try parser.next() { events.append(event) }
        }
        return (events, parser)
    }

    private static let streams: [(String, String, [ServerSentEvent])] = [
        ("one line", "data: x\n\n", [.init(data: "x")]),
        ("the standard's stock", "data: YHOO\ndata: +2\ndata: 10\n\n", [.init(data: "YHOO\n+2\n10")]),
        (
            "the standard's comment, IDs and space",
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            [.init(data: "first event", id: "1"), .init(data: "second event"), .init(data: " third event")]
        ),
        ("the standard's empty data", "data\n\ndata\ndata\n\ndata:", [.init(data: ""), .init(data: "\n")]),
        ("the standard's two that are alike", "data:test\n\ndata: test\n\n", [.init(data: "test"), .init(data: "test")]),
        ("CR", "data: a\rdata: b\r\rdata: c\r\r", [.init(data: "a\nb"), .init(data: "c")]),
        ("CR LF", "data: a\r\ndata: b\r\n\r\n", [.init(data: "a\nb")]),
        ("LF and CR are two breaks, CR LF is one", "data: a\n\rdata: b\r\n\n", [.init(data: "a"), .init(data: "b")]),
        (
            "types", "event: add\ndata: 1\n\ndata: 2\n\nevent:\ndata: 3\n\n",
            [.init(type: "add", data: "1"), .init(data: "2"), .init(data: "3")]
        ),
        ("a type without data is forgotten", "event: add\n\ndata: 1\n\n", [.init(data: "1")]),
        ("IDs stay", "id: 7\ndata: a\n\ndata: b\n\n", [.init(data: "a", id: "7"), .init(data: "b", id: "7")]),
        ("an ID without data counts for later events", "id: 7\n\ndata: b\n\n", [.init(data: "b", id: "7")]),
        (
            "an ID with NUL is passed over", "id: 7\ndata: a\n\nid: 8\0\ndata: b\n\n",
            [.init(data: "a", id: "7"), .init(data: "b", id: "7")]
        ),
        ("unknown fields, and names in other letters", "DATA: a\nfoo: b\nfoo\n data: c\ndata: d\n\n", [.init(data: "d")]),
        ("colons in values", "data: a:b: c\ndata::\n\n", [.init(data: "a:b: c\n:")]),
        ("a byte order mark", "\u{FEFF}data: a\n\n", [.init(data: "a")]),
        ("a byte order mark counts once", "\u{FEFF}\u{FEFF}data: a\n\ndata: b\n\n", [.init(data: "b")]),
        ("a byte order mark later is none", "\n\u{FEFF}data: a\n\ndata: b\n\n", [.init(data: "b")]),
        ("no blank line at the end", "data: a\n\ndata: b\n", [.init(data: "a")]),
        ("text beyond ASCII", "data: Brachvogel – 麻鷸\n\n", [.init(data: "Brachvogel – 麻鷸")]),
        ("nothing", ":\n\n:\n", []),
    ]

    @Test("streams are parsed, wherever they are split", arguments: streams.indices)
    func events(_ index: Int) throws {
        let (name, stream, expected) = Self.streams[index]
        for size in [1, 2, 3, 5, 1000] {
            #expect(try parse(Data(stream.utf8), by: size).events == expected, "\(name) by \(size)")
        }
    }

    @Test("random bytes give the same events, wherever they are split") func randomBytes() throws {
        let words = ["data", "id", "event", "retry", ":", ":", " ", "\r", "\n", "\n\n", "\r\n", "\0", "7", "\u{FEFF}", "ü"].map {
            Data($0.utf8)
        }
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            var bytes = Data()
            for _ in 0..<60 {
                bytes += words.randomElement(using: &random) ?? Data()
                if Int.random(in: 0..<20, using: &random) == 0 { bytes.append(.random(in: 0...255, using: &random)) }
            }
            let (events, parser) = try parse(bytes, by: bytes.count)
            for size in [1, 7] {
                let cut = try parse(bytes, by: size)
                #expect(cut.events == events, "\(Array(bytes))")
                #expect(cut.parser.lastEventID == parser.lastEventID)
                #expect(cut.parser.retry == parser.retry)
            }
        }
    }

    @Test("invalid UTF-8 is replaced") func invalidText() throws {
        #expect(try parse(Data("data: ".utf8) + Data([0xFF]) + Data("\n\n".utf8), by: 1).events == [.init(data: "\u{FFFD}")])
    }

    @Test(
        "the reconnection time is digits only",
        arguments: [
            ("retry: 1500", .milliseconds(1500)), ("retry:0", .zero), ("retry: 1.5", nil), ("retry: -1", nil), ("retry: 1s", nil),
            ("retry", nil),
            ("retry: ١", nil), ("retry: 99999999999999999999999", .seconds(Int32.max)),
        ] as [(String, Duration?)])
    func retry(_ line: String, _ expected: Duration?) throws {
        #expect(try parse(Data((line + "\n").utf8), by: 1000).parser.retry == expected)
    }

    @Test("the last ID is that of the last complete event") func lastEventID() throws {
        let parser = try parse(Data("id: 1\ndata: a\n\nid: 2\ndata: b\n".utf8), by: 1000).parser
        #expect(parser.lastEventID == "1")
    }

    @Test(
        "events over the limit are rejected, in one line or many",
        arguments: [
            "data: " + String(repeating: "x", count: 100), String(repeating: "data: 123456789\n", count: 11),
            ":" + String(repeating: "x", count: 100),
        ])
    func limits(_ stream: String) {
        for size in [1, 1000] {
            #expect(throws: EventStreamError.self) { try parse(Data(stream.utf8), by: size, limit: 100) }
        }
    }

    @Test("events at the limit are accepted") func atTheLimit() throws {
        let stream = String(repeating: "data: 123456789\n", count: 9) + "data: 12345678\n\n"
        #expect(try parse(Data(stream.utf8), by: 1000, limit: 98).events.first?.data.utf8.count == 98)
    }
}
