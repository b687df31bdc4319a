// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewURLSession
import Testing

@Suite(.timeLimit(.minutes(1))) struct LinesTests {
    // MARK: Lines

    struct Example: Sendable, CustomTestStringConvertible {
        let text: String
        let lines: [String]

        var testDescription: String { text.debugDescription }
    }

    // U2.2
    @Test(arguments: [
        Example(text: "", lines: []), Example(text: "a", lines: ["a"]), Example(text: "a\nb", lines: ["a", "b"]),
        Example(text: "a\nb\n", lines: ["a", "b"]), Example(text: "a\r\nb\r\n", lines: ["a", "b"]),
        Example(text: "a\rb\r", lines: ["a", "b"]),
        Example(text: "a\u{85}b", lines: ["a", "b"]), Example(text: "a\u{2028}b\u{2029}c", lines: ["a", "b", "c"]),
        Example(text: "a\u{B}b\u{C}c", lines: ["a", "b", "c"]), Example(text: "\n\na\n\n\nb\n\n", lines: ["a", "b"]),
        Example(text: "\r\n\r\na\r\n\r\n", lines: ["a"]), Example(text: "a\n\rb", lines: ["a", "b"]),
        Example(text: "\u{2028}\u{85}a\u{2029}\u{2029}", lines: ["a"]), Example(text: " \n\t\n", lines: [" ", "\t"]),
        // Scalars with a byte of a line's end in them.
        Example(text: "Å\u{A8}\u{A9}\u{C5}…‧\u{20A8}\u{2085}", lines: ["Å\u{A8}\u{A9}\u{C5}…‧\u{20A8}\u{2085}"]),
        Example(text: "e\u{301}\nπ\r\n🐦", lines: ["e\u{301}", "π", "🐦"]), Example(text: "\u{FEFF}a\0b\n", lines: ["\u{FEFF}a\0b"]),
    ]) func `lines are separated as on Apple's systems`(_ example: Example) async throws {
        #expect(await Bytes(example.text.utf8).lines.reduce(into: []) { $0.append($1) }.map(scalars) == example.lines.map(scalars))
    }

    // U2.2
    @Test func `invalid bytes become replacement characters and end no line`() async throws {
        let bytes: [UInt8] = [
            0x61, 0xC2, 0x0A, 0x85, 0xE2, 0x80, 0x0A, 0xE2, 0x80, 0x85, 0xA8, 0x0A, 0xC2, 0xC2, 0x85, 0xFF, 0x0D, 0xE2,
        ]
        let lines = await Bytes(bytes).lines.reduce(into: []) { $0.append($1) }
        #expect(lines == ["a\u{FFFD}", "\u{FFFD}\u{FFFD}", "\u{2005}\u{FFFD}", "\u{FFFD}", "\u{FFFD}", "\u{FFFD}"])
    }

    // U2.2
    @Test func `lines of random bytes are those of their text`() async throws {
        var generator = SplitMix(state: 7)
        let alphabet: [UInt8] = [0x0A, 0x0D, 0x61, 0xC2, 0x85, 0xE2, 0x80, 0xA8, 0xA9, 0xF0, 0x9F]
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in alphabet.randomElement(using: &generator) ?? 0 }
            // In invalid bytes, a sequence that ends a line is found wherever it is.
            let lines = await Bytes(bytes).lines.reduce(into: []) { $0.append($1) }
            #expect(lines == reference(bytes), "\(bytes)")
        }
    }

    // U2.2
    @Test func `a line is there as soon as its end is`() async throws {
        let (bytes, continuation) = AsyncStream.makeStream(of: UInt8.self)
        var iterator = bytes.lines.makeAsyncIterator()
        for end in ["\r", "\n", "\r\n", "\u{2028}", "\u{85}"] {
            for byte in "line\(end)".utf8 { continuation.yield(byte) }
            // The next byte comes only later.
            #expect(await iterator.next() == "line")
        }
        continuation.finish()
        #expect(await iterator.next() == nil)
    }

    // U2.2
    @Test func `an error ends the lines`() async throws {
        let bytes = AsyncThrowingStream<UInt8, any Error> { continuation in
            for byte in "one\ntwo".utf8 { continuation.yield(byte) }
            continuation.finish(throwing: TestError("cut"))
        }
        var lines: [String] = []
        await #expect(throws: TestError("cut")) {
            for try await line in bytes.lines { lines.append(line) }
        }
        #expect(lines == ["one"])
    }

    // U2.2
    @Test func `a response is read line by line while it is received`() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: 1\n\nda")
            connection.wait(until: gate)
            try connection.send(raw: "ta: 2\n\n")
            connection.keepAlive = false
            return nil
        }
        defer { gate.open() }
        let session = URLSession(configuration: .ephemeral)
        let (bytes, _) = try await session.bytes(from: server.url)
        var lines: [String] = []
        for try await line in bytes.lines {
            lines.append(line)
            gate.open()
        }
        #expect(lines == ["data: 1", "data: 2"])
    }

    // MARK: Characters and scalars

    // U2.2
    @Test(arguments: [
        "", "a", "abc", "e\u{301}a", "🇩🇪🇫🇷🇬", "👨‍👩‍👧‍👦👍🏽", "\r\n\n\r", "한국어", "각", "\u{301}a", "नमस्ते", "a\u{200D}b", "\u{FEFF}\0",
    ]) func `characters and scalars are those of the text`(_ text: String) async throws {
        let characters = await Bytes(text.utf8).characters.reduce(into: [Character]()) { $0.append($1) }
        #expect(characters.map { scalars(String($0)) } == text.map { scalars(String($0)) })
        let read = await Bytes(text.utf8).unicodeScalars.reduce(into: [UnicodeScalar]()) { $0.append($1) }
        #expect(read == Array(text.unicodeScalars))
    }

    // U2.2
    @Test func `scalars of random bytes are those of their text`() async throws {
        var generator = SplitMix(state: 11)
        let leads: [UInt8] = [0x41, 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF]
        for _ in 0..<5_000 {
            let bytes = (0..<Int.random(in: 0...12, using: &generator)).map { _ in leads.randomElement(using: &generator) ?? 0 }
            let read = await Bytes(bytes).unicodeScalars.reduce(into: [UnicodeScalar]()) { $0.append($1) }
            #expect(read == Array(String(decoding: bytes, as: UTF8.self).unicodeScalars), "\(bytes)")
        }
    }

    // U2.2
    @Test func `a character with very many marks takes no more time a mark`() async throws {
        let text = "a" + String(repeating: "\u{301}", count: 200_000) + "b"
        let characters = await Bytes(text.utf8).characters.reduce(into: [Character]()) { $0.append($1) }
        #expect(characters.count == 2)
        #expect(characters.last == "b")
    }

    // U2.2
    @Test func `the text of a response is read by characters and scalars`() async throws {
        let text = "Größe: 25 cm 🐦\n"
        let server = try LoopbackServer { _, _ in .ok(text) }
        let session = URLSession(configuration: .ephemeral)
        let (first, _) = try await session.bytes(from: server.url)
        #expect(try await first.characters.reduce(into: "") { $0.append($1) } == text)
        let (second, _) = try await session.bytes(from: server.url)
        #expect(try await second.unicodeScalars.reduce(into: "") { $0.unicodeScalars.append($1) } == text)
    }

    // MARK: Support

    private func scalars(_ text: String) -> [UnicodeScalar] { Array(text.unicodeScalars) }

    /// Splits bytes at the ends of lines, in another way.
    private func reference(_ bytes: [UInt8]) -> [String] {
        var lines: [[UInt8]] = [[]]
        var rest = bytes[...]
        let ends: [[UInt8]] = [[0x0A], [0x0D], [0xC2, 0x85], [0xE2, 0x80, 0xA8], [0xE2, 0x80, 0xA9]]
        while let first = rest.first {
            if let end = ends.first(where: { rest.starts(with: $0) }) {
                lines.append([])
                rest = rest.dropFirst(end.count)
            } else {
                lines[lines.count - 1].append(first)
                rest = rest.dropFirst()
            }
        }
        return lines.filter { !$0.isEmpty }.map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Bytes that never fail.
private struct Bytes: AsyncSequence, AsyncIteratorProtocol, Sendable {
    typealias Failure = Never

    private var rest: ArraySlice<UInt8>

    init(_ bytes: some Sequence<UInt8>) { rest = ArraySlice(bytes) }

    mutating func next() async -> UInt8? { rest.popFirst() }
    func makeAsyncIterator() -> Bytes { self }
}
