// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading
import CurlewWebSocket

extension URLSessionWebSocketTask {
    /// Why a WebSocket was closed (RFC 6455, section 7.4).
    ///
    /// As for Apple's type, any number makes one: those without a name, such as 3000 to 4999 for applications, are ``other(_:)``.
    public enum CloseCode: RawRepresentable, Sendable, Hashable {
        /// None: the WebSocket is not closed, or its connection has ended without a close frame.
        case invalid
        /// 1000: the connection has fulfilled its purpose.
        case normalClosure
        /// 1001: the peer is going away.
        case goingAway
        /// 1002: the peer has received a violation of the protocol.
        case protocolError
        /// 1003: the peer has received a type of message that it doesn't accept.
        case unsupportedData
        /// 1005, never sent: the close frame has no code.
        case noStatusReceived
        /// 1006, never sent: the connection has ended without a close frame.
        case abnormalClosure
        /// 1007: the peer has received a message with inconsistent data.
        case invalidFramePayloadData
        /// 1008: the peer has received a message that violates its policy.
        case policyViolation
        /// 1009: the peer has received a message that is too large.
        case messageTooBig
        /// 1010: the server did not accept an extension that the client requires.
        case mandatoryExtensionMissing
        /// 1011: the peer has encountered an unexpected error.
        case internalServerError
        /// 1015, never sent: the handshake of TLS has failed.
        case tlsHandshakeFailure
        /// Any other code. Apple's type has no name for it, but a value of that number.
        case other(Int)

        private static let named: [(code: CloseCode, number: Int)] = [
            (.invalid, 0), (.normalClosure, 1000), (.goingAway, 1001), (.protocolError, 1002), (.unsupportedData, 1003),
            (.noStatusReceived, 1005), (.abnormalClosure, 1006), (.invalidFramePayloadData, 1007), (.policyViolation, 1008),
            (.messageTooBig, 1009), (.mandatoryExtensionMissing, 1010), (.internalServerError, 1011), (.tlsHandshakeFailure, 1015),
        ]

        /// Makes a code of a number; never `nil`.
        public init?(rawValue: Int) {
            self = Self.named.first { $0.number == rawValue }?.code ?? .other(rawValue)
        }

        /// The number; 0 for ``invalid``.
        public var rawValue: Int {
            switch self {
            case .invalid: 0
            case .normalClosure: 1000
            case .goingAway: 1001
            case .protocolError: 1002
            case .unsupportedData: 1003
            case .noStatusReceived: 1005
            case .abnormalClosure: 1006
            case .invalidFramePayloadData: 1007
            case .policyViolation: 1008
            case .messageTooBig: 1009
            case .mandatoryExtensionMissing: 1010
            case .internalServerError: 1011
            case .tlsHandshakeFailure: 1015
            case .other(let number): number
            }
        }

        init(_ code: WebSocketCloseCode) {
            self = CloseCode(rawValue: Int(code.rawValue)) ?? .other(Int(code.rawValue))
        }
    }
}

extension WebSocketClosure {
    /// The most bytes of a reason that fit into a close frame (RFC 6455, section 5.5).
    private static let largestReason = 123

    /// What is sent for a code and a reason: neither if the code may not be sent, and no reason that a close frame can't have.
    init(_ code: URLSessionWebSocketTask.CloseCode, _ reason: Data?) {
        let number = WebSocketCloseCode(rawValue: UInt16(exactly: code.rawValue) ?? 0)
        guard number.maySend, number != .noStatus else {
            self.init(code: .noStatus)
            return
        }
        let text = reason.flatMap { $0.count <= Self.largestReason ? String(data: $0, encoding: .utf8) : nil }
        self.init(code: number, reason: text ?? "")
    }
}
