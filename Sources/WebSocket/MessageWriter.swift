// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// Serializes messages to a server into frames.
struct MessageWriter {
    private let largestFrame: Int
    private let deflater: MessageDeflater?
    private var frames: FrameWriter

    private var payload = Data()
    private var opcode = Opcode.binary
    private var isCompressed = false

    /// - Parameter largestFrame: the maximum payload of a frame, in bytes; longer messages are fragmented.
    init(largestFrame: Int? = nil, deflater: MessageDeflater? = nil, frames: FrameWriter = FrameWriter()) {
        self.largestFrame = max(largestFrame ?? .max, 1)
        self.deflater = deflater
        self.frames = frames
    }

    /// Starts a message; the previous one must be completely written.
    mutating func begin(_ message: WebSocketMessage) throws(RawDeflateError) {
        payload = message.data
        opcode = if case .text = message { .text } else { .binary }
        isCompressed = false
        guard let compressed = try deflater?.compress(payload) else { return }
        payload = compressed
        isCompressed = true
    }

    /// Writes the next frame of the current message, and returns whether it was the last.
    mutating func writeFrame(to output: inout Data) -> Bool {
        let piece = payload.prefix(largestFrame)
        let isLast = piece.count == payload.count
        piece.withUnsafeBytes { bytes in
            frames.append(opcode, isFinal: isLast, isCompressed: isCompressed, payload: bytes, to: &output)
        }
        payload = isLast ? Data() : payload.dropFirst(piece.count)
        // Only the first frame carries the type and the compression bit.
        opcode = .continuation
        isCompressed = false
        return isLast
    }

    /// Writes a control frame.
    mutating func write(_ opcode: Opcode, _ payload: Data, to output: inout Data) {
        frames.append(opcode, payload: payload, to: &output)
    }
}
