// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The type of a frame (RFC 6455, section 5.2).
enum Opcode: UInt8, Sendable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    var isControl: Bool { rawValue & 0x8 != 0 }
}

/// A violation of the protocol or of a local limit: the code to close the connection with, and a description.
struct FrameViolation: Error, Sendable, Hashable {
    let code: WebSocketCloseCode
    let message: String

    static func protocolError(_ message: String) -> FrameViolation { FrameViolation(code: .protocolError, message: message) }
}

/// The header of a frame (RFC 6455, section 5.2).
struct FrameHeader: Sendable, Hashable {
    /// The maximum payload of a control frame, in bytes.
    static let largestControlPayload = 125
    /// The maximum size of a header, in bytes.
    static let largestSize = 14

    let isFinal: Bool
    /// Whether the first reserved bit is set, which permessage-deflate uses to mark compressed messages.
    let isCompressed: Bool
    let opcode: Opcode
    let length: Int

    /// Parses the header of a server's frame, and returns it with its size in bytes; `nil` if more bytes are needed.
    static func read(_ bytes: UnsafeRawBufferPointer) throws(FrameViolation) -> (header: FrameHeader, size: Int)? {
        guard bytes.count >= 2 else { return nil }
        let (first, second) = (bytes[0], bytes[1])
        guard first & 0x30 == 0 else { throw .protocolError("A reserved bit is set") }
        guard let opcode = Opcode(rawValue: first & 0x0F) else { throw .protocolError("Opcode \(first & 0x0F) is reserved") }
        guard second & 0x80 == 0 else { throw .protocolError("A frame from the server is masked") }
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
            guard length > 125 else { throw .protocolError("A payload length is not minimally encoded") }
            return (length, 4)
        case 127:
            guard bytes.count >= 10 else { return nil }
            let length = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt64.self))
            guard let length = Int(exactly: length) else { throw .protocolError("The most significant bit of a payload length is set") }
            guard length > 0xFFFF else { throw .protocolError("A payload length is not minimally encoded") }
            return (length, 10)
        case let length: return (Int(length), 2)
        }
    }
}

/// Writes frames, masked as a client's must be (RFC 6455, section 5.3).
struct FrameWriter {
    private var random: any RandomNumberGenerator
    private var spareMask: UInt32?

    /// Makes a writer with unpredictable masks, unless given another source.
    init(random: any RandomNumberGenerator = SystemRandomNumberGenerator()) {
        self.random = random
    }

    /// Appends a frame to the output.
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

    /// Appends a frame to the output.
    mutating func append(_ opcode: Opcode, payload: some ContiguousBytes, to output: inout Data) {
        payload.withUnsafeBytes { append(opcode, payload: $0, to: &output) }
    }

    private mutating func nextMask() -> UInt32 {
        if let mask = spareMask {
            spareMask = nil
            return mask
        }
        // One system call serves two masks.
        let bits = random.next() as UInt64
        spareMask = UInt32(truncatingIfNeeded: bits >> 32)
        return UInt32(truncatingIfNeeded: bits)
    }

    /// Copies bytes and applies the mask, whose bytes are used in memory order.
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
