// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@testable import CurlewWebSocket

@Suite(.timeLimit(.minutes(1))) struct FrameTests {
    private func read(_ bytes: [UInt8]) throws -> (FrameHeader, Int)? {
        try bytes.withUnsafeBytes { try FrameHeader.read($0).map { ($0.header, $0.size) } }
    }

    @Test(
        "headers with lengths of every size are parsed",
        arguments: [
            ([0x81, 0x05], true, Opcode.text, 5, 2),
            ([0x02, 0x7D], false, .binary, 125, 2),
            ([0x80, 0x00], true, .continuation, 0, 2),
            ([0x82, 0x7E, 0x00, 0x7E], true, .binary, 126, 4),
            ([0x82, 0x7E, 0xFF, 0xFF], true, .binary, 65535, 4),
            ([0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0], true, .binary, 65536, 10),
            ([0x88, 0x02], true, .close, 2, 2),
            ([0x89, 0x7D], true, .ping, 125, 2),
            ([0x8A, 0x00], true, .pong, 0, 2),
        ] as [([UInt8], Bool, Opcode, Int, Int)])
    func headers(_ bytes: [UInt8], _ isFinal: Bool, _ opcode: Opcode, _ length: Int, _ size: Int) throws {
        for count in 0..<size { #expect(try read(Array(bytes.prefix(count))) == nil) }
        let (header, read) = try #require(try read(bytes + [1, 2, 3]))
        #expect(header == FrameHeader(isFinal: isFinal, isCompressed: false, opcode: opcode, length: length))
        #expect(read == size)
    }

    @Test("the first reserved bit marks compression") func compressedFrame() throws {
        #expect(try read([0xC1, 0x00])?.0.isCompressed == true)
    }

    @Test(
        "invalid headers are rejected",
        arguments: [
            ("second reserved bit", [0xA1, 0x00]),
            ("third reserved bit", [0x91, 0x00]),
            ("reserved opcode of data", [0x83, 0x00]),
            ("reserved opcode of control", [0x8B, 0x00]),
            ("masked", [0x81, 0x85]),
            ("fragmented ping", [0x09, 0x00]),
            ("compressed pong", [0xCA, 0x00]),
            ("ping too long", [0x89, 0x7E]),
            ("16-bit length below 126", [0x82, 0x7E, 0x00, 0x7D]),
            ("64-bit length below 65,536", [0x82, 0x7F, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]),
            ("64-bit length with its first bit set", [0x82, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        ] as [(String, [UInt8])])
    func invalidHeaders(_ name: String, _ bytes: [UInt8]) {
        #expect(throws: FrameViolation.self, "\(name)") { try read(bytes) }
    }

    /// Returns the same mask each time.
    private struct FixedMasks: RandomNumberGenerator {
        mutating func next() -> UInt64 { UInt64(UInt32(littleEndian: 0x3d21_fa37)) * 0x1_0000_0001 }
    }

    @Test("the masked example of RFC 6455, section 5.7") func maskedExample() {
        var writer = FrameWriter(random: FixedMasks())
        var output = Data()
        writer.append(.text, payload: Data("Hello".utf8), to: &output)
        #expect(output == Data([0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]))
    }

    @Test("frames of every size unmask to their payload", arguments: [0, 1, 3, 7, 8, 9, 125, 126, 65535, 65536])
    func lengths(_ count: Int) throws {
        var writer = FrameWriter()
        let payload = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        var output = Data("before".utf8)
        writer.append(.binary, payload: payload, to: &output)
        let frame = Array(output.dropFirst(6))
        let size = count <= 125 ? 2 : count <= 65535 ? 4 : 10
        #expect(frame[0] == 0x82)
        #expect(frame[1] & 0x80 == 0x80)
        let mask = frame[size..<(size + 4)]
        let unmasked = frame[(size + 4)...].enumerated().map { $1 ^ mask[size + $0 & 3] }
        #expect(Data(unmasked) == payload)
    }

    @Test("consecutive masks differ") func masksDiffer() {
        var writer = FrameWriter()
        let masks = (0..<100).map { _ in
            var output = Data()
            writer.append(.ping, payload: Data(), to: &output)
            return output.suffix(4)
        }
        #expect(Set(masks).count > 95)
    }

    @Test(
        "close frames carry code and reason",
        arguments: [
            ([], 1005, ""), ([0x03, 0xE8], 1000, ""), ([0x0B, 0xB8, 0x41], 3000, "A"), ([0x13, 0x87], 4999, ""), ([0x03, 0xF6], 1014, ""),
        ] as [([UInt8], UInt16, String)])
    func closeFrames(_ payload: [UInt8], _ code: UInt16, _ reason: String) throws {
        let closure = try payload.withUnsafeBytes { try CloseFrame.read($0) }
        #expect(closure == WebSocketClosure(code: WebSocketCloseCode(rawValue: code), reason: reason))
        #expect(CloseFrame.payload(closure) == Data(payload))
    }

    @Test(
        "close frames with a reserved code, an incomplete one, or an invalid reason are rejected",
        arguments: [
            ([0x03], 1002), ([0x00, 0x00], 1002), ([0x03, 0xE7], 1002), ([0x03, 0xEC], 1002), ([0x03, 0xED], 1002), ([0x03, 0xEE], 1002),
            ([0x03, 0xF7], 1002), ([0x07, 0xD0], 1002), ([0x0B, 0xB7], 1002), ([0x13, 0x88], 1002), ([0x03, 0xE8, 0xC3], 1007),
        ] as [([UInt8], UInt16)])
    func invalidCloseFrames(_ payload: [UInt8], _ code: UInt16) {
        let violation = #expect(throws: FrameViolation.self) { try payload.withUnsafeBytes { try CloseFrame.read($0) } }
        #expect(violation?.code.rawValue == code)
    }
}
