// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What a frame is (RFC 6455, section 5.2).
enum Opcode: UInt8, Sendable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    var isControl: Bool { rawValue & 0x8 != 0 }
}

/// A rule that the peer broke, or a limit of ours: the code that the connection is closed with, and a sentence.
struct FrameViolation: Error, Sendable, Hashable {
    let code: WebSocketCloseCode
    let message: String

    static func protocolError(_ message: String) -> FrameViolation { FrameViolation(code: .protocolError, message: message) }
}

/// What stands before a frame's payload (RFC 6455, section 5.2).
struct FrameHeader: Sendable, Hashable {
    /// The longest payload of a control frame.
    static let largestControlPayload = 125
    /// The most bytes that a header has.
    static let largestSize = 14

    let isFinal: Bool
    /// The first reserved bit, which permessage-deflate gives a meaning.
    let isCompressed: Bool
    let opcode: Opcode
    let length: Int

    /// Reads the header of a frame from a server; its size is told too. `nil` when more bytes are needed.
    static func read(_ bytes: UnsafeRawBufferPointer) throws(FrameViolation) -> (header: FrameHeader, size: Int)? {
        guard bytes.count >= 2 else { return nil }
        let (first, second) = (bytes[0], bytes[1])
        guard first & 0x30 == 0 else { throw .protocolError("A reserved bit is set") }
        guard let opcode = Opcode(rawValue: first & 0x0F) else { throw .protocolError("Opcode \(first & 0x0F) is reserved") }
        guard second & 0x80 == 0 else { throw .protocolError("A server's frame is masked") }
        let isFinal = first & 0x80 != 0
        let isCompressed = first & 0x40 != 0
        if opcode.isControl {
            guard isFinal else { throw .protocolError("A control frame is fragmented") }
            guard !isCompressed else { throw .protocolError("A control frame is compressed") }
            guard second <= largestControlPayload else { throw .protocolError("A control frame is longer than 125 bytes") }
        }
        guard let (length, size) = try readLength(bytes) else { return nil }
        return (FrameHeader(isFinal: isFinal, isCompressed: isCompressed, opcode: opcode, length: length), size)
    }

    private static func readLength(_ bytes: UnsafeRawBufferPointer) throws(FrameViolation) -> (length: Int, size: Int)? {
        switch bytes[1] & 0x7F {
        case 126:
            guard bytes.count >= 4 else { return nil }
            let length = Int(UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
            guard length > 125 else { throw .protocolError("A length is longer written than it has to be") }
            return (length, 4)
        case 127:
            guard bytes.count >= 10 else { return nil }
            let length = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt64.self))
            guard let length = Int(exactly: length) else { throw .protocolError("The first bit of a length is set") }
            guard length > 0xFFFF else { throw .protocolError("A length is longer written than it has to be") }
            return (length, 10)
        case let length: return (Int(length), 2)
        }
    }
}

/// Writes frames, masked as a client's are (RFC 6455, section 5.3).
struct FrameWriter {
    private var random: any RandomNumberGenerator
    private var spareMask: UInt32?

    /// Makes a writer whose masks nobody can foretell, unless another source is given.
    init(random: any RandomNumberGenerator = SystemRandomNumberGenerator()) {
        self.random = random
    }

    /// Adds a frame to what is to be sent.
    mutating func append(
        _ opcode: Opcode, isFinal: Bool = true, isCompressed: Bool = false, payload: UnsafeRawBufferPointer, to output: inout Data
    ) {
        let start = output.count
        let lengthSize = payload.count <= 125 ? 0 : payload.count <= 0xFFFF ? 2 : 8
        let mask = nextMask()
        output.count += 2 + lengthSize + 4 + payload.count
        output.withUnsafeMutableBytes { output in
            let frame = UnsafeMutableRawBufferPointer(rebasing: output[start...])
            frame[0] = (isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue
            switch lengthSize {
            case 0: frame[1] = 0x80 | UInt8(payload.count)
            case 2:
                frame[1] = 0x80 | 126
                frame.storeBytes(of: UInt16(payload.count).bigEndian, toByteOffset: 2, as: UInt16.self)
            default:
                frame[1] = 0x80 | 127
                frame.storeBytes(of: UInt64(payload.count).bigEndian, toByteOffset: 2, as: UInt64.self)
            }
            frame.storeBytes(of: mask, toByteOffset: 2 + lengthSize, as: UInt32.self)
            Self.copy(payload, to: UnsafeMutableRawBufferPointer(rebasing: frame[(6 + lengthSize)...]), mask: mask)
        }
    }

    /// Adds a frame with the bytes of something as its payload.
    mutating func append(_ opcode: Opcode, payload: some ContiguousBytes, to output: inout Data) {
        payload.withUnsafeBytes { append(opcode, payload: $0, to: &output) }
    }

    private mutating func nextMask() -> UInt32 {
        if let mask = spareMask {
            spareMask = nil
            return mask
        }
        // One call of the system for two masks.
        let bits = random.next() as UInt64
        spareMask = UInt32(truncatingIfNeeded: bits >> 32)
        return UInt32(truncatingIfNeeded: bits)
    }

    /// Copies bytes, each combined with its byte of the mask as that lies in memory.
    private static func copy(_ source: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer, mask: UInt32) {
        guard let source = UnsafeRawBufferPointer(source).baseAddress, let start = target.baseAddress else { return }
        let count = target.count
        let wide = UInt64(mask) << 32 | UInt64(mask)
        var index = 0
        while index &+ 8 <= count {
            let word = source.loadUnaligned(fromByteOffset: index, as: UInt64.self) ^ wide
            start.storeBytes(of: word, toByteOffset: index, as: UInt64.self)
            index &+= 8
        }
        withUnsafeBytes(of: mask) { mask in
            while index < count {
                let byte = source.load(fromByteOffset: index, as: UInt8.self) ^ mask[index & 3]
                start.storeBytes(of: byte, toByteOffset: index, as: UInt8.self)
                index &+= 1
            }
        }
    }
}
