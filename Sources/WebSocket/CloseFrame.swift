// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The payload of a close frame (RFC 6455, section 5.5.1).
enum CloseFrame {
    /// The maximum length of the reason, in bytes of UTF-8: what a control frame's payload leaves after the code.
    static let largestReason = FrameHeader.largestControlPayload - 2

    /// Parses the payload of a received close frame.
    static func read(_ payload: UnsafeRawBufferPointer) throws(FrameViolation) -> WebSocketClosure {
        guard !payload.isEmpty else { return WebSocketClosure(code: .noStatus) }
        guard payload.count >= 2 else { throw .protocolError("A close frame has an incomplete code") }
        let code = WebSocketCloseCode(rawValue: UInt16(bigEndian: payload.loadUnaligned(as: UInt16.self)))
        guard code.mayBeReceived else { throw .protocolError("A close frame has the invalid code \(code.rawValue)") }
        let reason = UnsafeRawBufferPointer(rebasing: payload[2...])
        var validator = UTF8Validator()
        guard validator.consume(reason), validator.isComplete else {
            throw FrameViolation(code: .invalidPayload, message: "The reason of a close frame is not valid UTF-8")
        }
        return WebSocketClosure(code: code, reason: String(decoding: reason, as: UTF8.self))
    }

    /// Returns the payload for a closure; it is empty for ``WebSocketCloseCode/noStatus``, which represents the absence of a code.
    static func payload(_ closure: WebSocketClosure) -> Data {
        guard closure.code != .noStatus else { return Data() }
        let code = closure.code.rawValue
        return Data([UInt8(code >> 8), UInt8(code & 0xFF)]) + Data(closure.reason.utf8)
    }
}
