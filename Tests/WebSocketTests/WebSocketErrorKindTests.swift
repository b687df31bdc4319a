// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@testable import CurlewWebSocket

@Suite(.timeLimit(.minutes(1))) struct WebSocketErrorKindTests {
    @Test(
        "a timeout's kind says what was waited for",
        arguments: [
            (.timedOut(.handshake), "timedOut.handshake"), (.timedOut(.pong), "timedOut.pong"), (.timedOut(.close), "timedOut.close"),
            (.messageTooLarge(message: "1"), "messageTooLarge"),
            (.protocolViolation(code: .protocolError, message: ""), "protocolViolation"),
        ] as [(WebSocketError, String)])
    func kinds(_ error: WebSocketError, _ kind: String) {
        #expect(error.kindName == kind)
    }
}
