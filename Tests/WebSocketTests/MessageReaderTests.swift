// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewWebSocket

@Suite(.timeLimit(.minutes(1))) struct MessageReaderTests {
    /// Returns the events of bytes that are fed in pieces of the given size, and the code of the violation that ends them.
    private func events(
        _ bytes: Data, by size: Int, limits: MessageReader.Limits = .init(), inflater: MessageInflater? = nil
    ) -> (events: [MessageReader.Event], code: WebSocketCloseCode?) {
        var reader = MessageReader(limits: limits, inflater: inflater)
        var events: [MessageReader.Event] = []
        do {
            for start in stride(from: 0, to: bytes.count, by: size) {
                reader.feed(bytes[start..<min(start + size, bytes.count)])
                while let event = try reader.next() { if event != .fragment { events.append(event) } }
            }
            return (events, nil)
        } catch {
            return (events, error.code)
        }
    }

    private static func frame(_ opcode: WebSocketPeer.Opcode, _ text: String, isFinal: Bool = true) -> Data {
        WebSocketPeer.frame(opcode, Data(text.utf8), isFinal: isFinal)
    }

    @Test("frames and blocks that carry nothing end the connection, not an ordinary message", arguments: [1, 7, 4096])
    func nothing(size: Int) {
        let empty = Self.frame(.continuation, "", isFinal: false)
        func repeated(_ data: Data, _ count: Int) -> Data { Data([Data](repeating: data, count: count).joined()) }
        let few = Self.frame(.text, "a", isFinal: false) + repeated(empty, 999) + Self.frame(.continuation, "b")
        #expect(events(few + few, by: size).events == [.message(.text("ab")), .message(.text("ab"))])
        #expect(events(Self.frame(.text, "a", isFinal: false) + repeated(empty, 1_001), by: size).code == .policyViolation)
        // With pings in between, too.
        let flood = repeated(empty + Self.frame(.ping, ""), 1_001)
        #expect(events(Self.frame(.binary, "", isFinal: false) + flood, by: size).code == .policyViolation)
    }

    @Test("each frame is an event of its own, so that their reader can give others a turn") func fragments() throws {
        var reader = MessageReader(limits: .init())
        let part = Self.frame(.continuation, "b", isFinal: false)
        reader.feed(Self.frame(.text, "a", isFinal: false) + part + part + Self.frame(.continuation, "c"))
        for _ in 0..<3 { #expect(try reader.next() == .fragment) }
        #expect(try reader.next() == .message(.text("abbc")))
        #expect(try reader.next() == nil)
    }

    @Test("compressed blocks that carry nothing end the connection", arguments: [5, 4096])
    func emptyBlocks(size: Int) {
        // A stored block without contents, whose end is a byte's.
        let block = Data([0x00, 0x00, 0x00, 0xFF, 0xFF])
        let blocks = Data([Data](repeating: block, count: 1_000).joined())
        var bytes = WebSocketPeer.frame(.binary, blocks, isFinal: false, isCompressed: true)
        for _ in 0..<20 { bytes += WebSocketPeer.frame(.continuation, blocks, isFinal: false) }
        let result = events(bytes, by: size, inflater: MessageInflater(DeflateAgreement()))
        #expect(result.code == .policyViolation && result.events.isEmpty)
        // A message that is flushed after each byte has blocks like these, and is received.
        var flushed = Data()
        for _ in 0..<30_000 { flushed += Data([0x00, 0x01, 0x00, 0xFE, 0xFF, 0x61]) }
        let message = WebSocketPeer.frame(.binary, flushed + [0x00], isCompressed: true)
        let whole = events(message, by: 4096, inflater: MessageInflater(DeflateAgreement()))
        #expect(whole.code == nil && whole.events == [.message(.binary(Data(repeating: 0x61, count: 30_000)))])
    }

    // Computed each time, because the leak checker reports `Data` in a static property: its pointer has extra bits set.
    private static var conversations: [(String, Data, [MessageReader.Event])] {
        [
            ("a text", frame(.text, "Hello"), [.message(.text("Hello"))]),
            ("an empty text", frame(.text, ""), [.message(.text(""))]),
            ("empty bytes", frame(.binary, ""), [.message(.binary(Data()))]),
            ("bytes that are not UTF-8", WebSocketPeer.frame(.binary, Data([0xFF])), [.message(.binary(Data([0xFF])))]),
            (
                "fragments with a ping in between",
                frame(.text, "Hé", isFinal: false) + frame(.ping, "p") + frame(.continuation, "ll", isFinal: false)
                    + frame(.continuation, "o"),
                [.ping(Data("p".utf8)), .message(.text("Héllo"))]
            ),
            (
                "a character in two fragments",
                WebSocketPeer.frame(.text, Data([0xC3]), isFinal: false) + WebSocketPeer.frame(.continuation, Data([0xA9])),
                [.message(.text("é"))]
            ),
            (
                "empty fragments", frame(.binary, "", isFinal: false) + frame(.continuation, "", isFinal: false) + frame(.continuation, ""),
                [.message(.binary(Data()))]
            ),
            (
                "a pong and two messages", frame(.pong, "x") + frame(.text, "1") + frame(.text, "2"),
                [.pong(Data("x".utf8)), .message(.text("1")), .message(.text("2"))]
            ),
            (
                "a long message", frame(.text, String(repeating: "x", count: 70_000)),
                [.message(.text(String(repeating: "x", count: 70_000)))]
            ),
            ("a close", WebSocketPeer.frame(.close, Data([0x03, 0xE9, 0x62])), [.close(WebSocketClosure(code: .goingAway, reason: "b"))]),
        ]
    }

    @Test("messages are assembled from pieces of any size", arguments: conversations.indices)
    func assembly(_ index: Int) {
        let (name, bytes, expected) = Self.conversations[index]
        for size in [1, 2, 3, 1000, bytes.count] where bytes.count / size < 1000 {
            let (events, code) = events(bytes, by: size)
            #expect(events == expected, "\(name) by \(size)")
            #expect(code == nil)
        }
    }

    private static var violations: [(String, Data, UInt16)] {
        [
            ("a continuation without a message", frame(.continuation, "x"), 1002),
            ("a message within another", frame(.text, "a", isFinal: false) + frame(.text, "b"), 1002),
            ("a compressed frame without an agreement", WebSocketPeer.frame(.text, Data(), isCompressed: true), 1002),
            ("a text that is not UTF-8", WebSocketPeer.frame(.text, Data([0x61, 0xFF])), 1007),
            ("a text that ends within a character", WebSocketPeer.frame(.text, Data([0x61, 0xC3])), 1007),
            ("a text that is not UTF-8, before its end", WebSocketPeer.frame(.text, Data([0xC0]), isFinal: false), 1007),
            ("a close frame with an invalid code", WebSocketPeer.frame(.close, Data([0, 1])), 1002),
            ("a frame exceeding its limit", WebSocketPeer.frame(.binary, Data(count: 101)), 1009),
            (
                "fragments exceeding the message limit",
                frame(.binary, String(repeating: "x", count: 100), isFinal: false)
                    + frame(.continuation, String(repeating: "x", count: 51)), 1009
            ),
        ]
    }

    @Test("protocol violations are detected", arguments: violations.indices)
    func detectedViolations(_ index: Int) {
        let (name, bytes, code) = Self.violations[index]
        for size in [1, bytes.count] {
            #expect(events(bytes, by: size, limits: .init(frame: 100, message: 150)).code?.rawValue == code, "\(name)")
        }
    }

    @Test("invalid UTF-8 fails before its frame is complete") func failsFast() {
        let bytes = WebSocketPeer.frame(.text, Data([0x61, 0xFF]) + Data(count: 1000)).prefix(6)
        #expect(events(Data(bytes), by: 6).code == .invalidPayload)
    }

    @Test("an oversized frame is rejected by its header") func oversizedFrame() {
        let bytes = Data([0x82, 0x7F, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        #expect(events(bytes, by: 10).code == .messageTooBig)
    }

    @Test("messages at the limits are accepted") func atTheLimit() {
        let bytes = WebSocketPeer.frame(.binary, Data(count: 100), isFinal: false) + WebSocketPeer.frame(.continuation, Data(count: 50))
        #expect(events(bytes, by: 7, limits: .init(frame: 100, message: 150)).events == [.message(.binary(Data(count: 150)))])
    }

    @Test("random bytes give the same events and end in pieces of any size") func randomBytes() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            var bytes = Data()
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let opcodes: [WebSocketPeer.Opcode] = [.text, .binary, .continuation, .ping, .pong, .close]
                let payload = Data((0..<Int.random(in: 0...150, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) })
                bytes += WebSocketPeer.frame(
                    opcodes.randomElement(using: &random) ?? .text, payload.prefix(Int.random(in: 0...150, using: &random)),
                    isFinal: .random(using: &random), isCompressed: .random(using: &random))
            }
            if .random(using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0...7, using: &random)
            }
            let whole = events(bytes, by: bytes.count, limits: .init(frame: 140, message: 300), inflater: inflater())
            for size in [1, 7] {
                let pieces = events(bytes, by: size, limits: .init(frame: 140, message: 300), inflater: inflater())
                #expect(pieces.events == whole.events, "\(Array(bytes))")
                #expect(pieces.code == whole.code, "\(Array(bytes))")
            }
        }
    }

    @Test(
        "the first of two errors in a compressed text is reported, in pieces of any size",
        arguments: [(10, WebSocketCloseCode.invalidPayload), (300, .messageTooBig), (400, .messageTooBig)])
    func firstViolation(place: Int, code: WebSocketCloseCode) throws {
        let text = Data(repeating: 0x61, count: place) + [0xFF] + Data(repeating: 0x61, count: 1000)
        let compressed = try #require(try MessageDeflater(DeflateAgreement(), WebSocketCompression()).compress(text))
        for size in [1, compressed.count + 2] {
            let bytes = WebSocketPeer.frame(.text, compressed, isCompressed: true)
            #expect(events(bytes, by: size, limits: .init(frame: 140, message: 300), inflater: inflater()).code == code)
        }
    }

    @Test("a negative limit rejects compressed messages") func negativeLimit() {
        let bytes = Self.hellos[0].1
        #expect(events(bytes, by: bytes.count, limits: .init(frame: 140, message: -1), inflater: inflater()).code == .messageTooBig)
    }

    // MARK: Compression

    private func inflater() -> MessageInflater { MessageInflater(DeflateAgreement()) }

    /// The examples of "Hello" in RFC 7692, section 7.2.3.
    private static var hellos: [(String, Data)] {
        [
            ("one block", WebSocketPeer.frame(.text, Data([0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]), isCompressed: true)),
            (
                "two fragments",
                WebSocketPeer.frame(.text, Data([0xf2, 0x48, 0xcd]), isFinal: false, isCompressed: true)
                    + WebSocketPeer.frame(.continuation, Data([0xc9, 0xc9, 0x07, 0x00]))
            ),
            (
                "no compression",
                WebSocketPeer.frame(.text, Data([0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00]), isCompressed: true)
            ),
            (
                "a final block",
                WebSocketPeer.frame(.text, Data([0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00]), isCompressed: true)
            ),
            (
                "two blocks",
                WebSocketPeer.frame(
                    .text, Data([0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00]), isCompressed: true)
            ),
        ]
    }

    @Test("the examples of RFC 7692, section 7.2.3", arguments: hellos.indices)
    func compressedExamples(_ index: Int) {
        let (name, bytes) = Self.hellos[index]
        for size in [1, bytes.count] {
            #expect(events(bytes, by: size, inflater: inflater()).events == [.message(.text("Hello"))], "\(name)")
        }
    }

    @Test("a message refers to the one before it, even after a final block") func contextTakeover() {
        let second = WebSocketPeer.frame(.text, Data([0xf2, 0x00, 0x11, 0x00, 0x00]), isCompressed: true)
        for index in [0, 3] {
            let bytes = Self.hellos[index].1 + second
            #expect(events(bytes, by: bytes.count, inflater: inflater()).events == [.message(.text("Hello")), .message(.text("Hello"))])
        }
    }

    @Test("a message may have many final blocks") func manyFinalBlocks() {
        let blocks = Array(repeating: [0x03, 0x00] as [UInt8], count: 30_000).joined()
        let empty = WebSocketPeer.frame(.binary, Data(blocks) + [0x00], isCompressed: true)
        let second = WebSocketPeer.frame(.text, Data([0xf2, 0x00, 0x11, 0x00, 0x00]), isCompressed: true)
        let bytes = Self.hellos[3].1 + empty + second
        let expected: [MessageReader.Event] = [.message(.text("Hello")), .message(.binary(Data())), .message(.text("Hello"))]
        #expect(events(bytes, by: 16 << 10, inflater: inflater()).events == expected)
    }

    @Test("without context takeover, a reference to an earlier message is corrupt") func noContext() {
        var agreement = DeflateAgreement()
        agreement.serverKeepsContext = false
        let bytes = Self.hellos[0].1 + WebSocketPeer.frame(.text, Data([0xf2, 0x00, 0x11, 0x00, 0x00]), isCompressed: true)
        #expect(events(bytes, by: bytes.count, inflater: MessageInflater(agreement)).code == .invalidPayload)
    }

    @Test("uncompressed messages may follow compressed ones") func mixed() {
        let bytes = Self.frame(.text, "plain") + Self.hellos[0].1 + Self.frame(.text, "again")
        let expected: [MessageReader.Event] = [.message(.text("plain")), .message(.text("Hello")), .message(.text("again"))]
        #expect(events(bytes, by: 5, inflater: inflater()).events == expected)
    }

    private static var corrupt: [(String, Data, UInt16)] {
        [
            ("invalid DEFLATE data", WebSocketPeer.frame(.binary, Data([0x07]), isCompressed: true), 1007),
            (
                "the compression bit on a continuation frame",
                WebSocketPeer.frame(.binary, Data([0xf2]), isFinal: false, isCompressed: true)
                    + WebSocketPeer.frame(.continuation, Data(), isCompressed: true), 1002
            ),
            (
                "a text that is not UTF-8",
                WebSocketPeer.frame(.text, Data([0x00, 0x01, 0x00, 0xfe, 0xff, 0xff, 0x00]), isCompressed: true), 1007
            ),
        ]
    }

    @Test("corrupt compressed messages are detected", arguments: corrupt.indices)
    func corruptMessages(_ index: Int) {
        let (name, bytes, code) = Self.corrupt[index]
        #expect(events(bytes, by: bytes.count, inflater: inflater()).code?.rawValue == code, "\(name)")
    }

    @Test("the message limit applies after decompression") func decompressedLimit() throws {
        let deflater = MessageDeflater(DeflateAgreement(), WebSocketCompression())
        let bytes = try #require(try deflater.compress(Data(count: 1_000_000)))
        #expect(bytes.count < 5000)
        let frame = WebSocketPeer.frame(.binary, bytes, isCompressed: true)
        #expect(events(frame, by: frame.count, limits: .init(message: 999_999), inflater: inflater()).code == .messageTooBig)
        #expect(events(frame, by: frame.count, limits: .init(message: 1_000_000), inflater: inflater()).code == nil)
    }
}
