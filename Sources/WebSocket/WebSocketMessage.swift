// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A message of a WebSocket (RFC 6455, section 5.6).
public enum WebSocketMessage: Sendable, Hashable {
    /// A text message; UTF-8 on the wire.
    case text(String)
    /// A binary message.
    case binary(Data)

    /// The message's bytes; for a text message, its UTF-8.
    public var data: Data {
        switch self {
        case .text(let text): Data(text.utf8)
        case .binary(let data): data
        }
    }

    /// The size of the message in bytes; for a text message, in UTF-8.
    var byteCount: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let data): data.count
        }
    }
}

/// The code that a connection is closed with (RFC 6455, section 7.4, and IANA's registry of WebSocket close codes).
///
/// An open set: 3000 to 3999 are for libraries and frameworks, 4000 to 4999 for private use.
public struct WebSocketCloseCode: RawRepresentable, Sendable, Hashable {
    /// The number.
    public let rawValue: UInt16

    /// Makes a code of a number, which may be one that must not be sent.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// 1000: the connection has fulfilled its purpose.
    public static let normalClosure = WebSocketCloseCode(rawValue: 1000)
    /// 1001: the peer is going away, for example because a server shuts down or a page is left.
    public static let goingAway = WebSocketCloseCode(rawValue: 1001)
    /// 1002: the peer has received a violation of the protocol.
    public static let protocolError = WebSocketCloseCode(rawValue: 1002)
    /// 1003: the peer has received a type of message that it doesn't accept.
    public static let unsupportedData = WebSocketCloseCode(rawValue: 1003)
    /// 1005, never sent: the peer's close frame has no code.
    public static let noStatus = WebSocketCloseCode(rawValue: 1005)
    /// 1006, never sent: the connection ended without a close frame.
    public static let abnormalClosure = WebSocketCloseCode(rawValue: 1006)
    /// 1007: the peer has received a message with inconsistent data, such as a text message that is not UTF-8.
    public static let invalidPayload = WebSocketCloseCode(rawValue: 1007)
    /// 1008: the peer has received a message that violates its policy.
    public static let policyViolation = WebSocketCloseCode(rawValue: 1008)
    /// 1009: the peer has received a message that is too large.
    public static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
    /// 1010: the server did not accept an extension that the client requires.
    public static let mandatoryExtension = WebSocketCloseCode(rawValue: 1010)
    /// 1011: the peer has encountered an unexpected error.
    public static let internalError = WebSocketCloseCode(rawValue: 1011)
    /// 1012: the server is restarting.
    public static let serviceRestart = WebSocketCloseCode(rawValue: 1012)
    /// 1013: the server is overloaded.
    public static let tryAgainLater = WebSocketCloseCode(rawValue: 1013)
    /// 1014: a gateway received an invalid response from its upstream server.
    public static let badGateway = WebSocketCloseCode(rawValue: 1014)

    /// Whether a received close frame may have the code.
    var mayBeReceived: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// Whether this client may send the code. Codes are not restricted by direction, although RFC 6455, section 7.4.1, defines 1010 for
    /// clients and 1011 for servers.
    package var maySend: Bool { mayBeReceived || self == .noStatus }
}

/// How a connection was closed: the contents of the peer's close frame, or a code that represents its absence.
public struct WebSocketClosure: Sendable, Hashable {
    /// The code; ``WebSocketCloseCode/noStatus`` for a close frame without one, ``WebSocketCloseCode/abnormalClosure`` without a close
    /// frame.
    public let code: WebSocketCloseCode
    /// The human-readable reason; often empty.
    public let reason: String

    /// Makes a closure.
    public init(code: WebSocketCloseCode, reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// Whether the code is 1000, 1001 or absent, none of which indicates an error.
    var isNormal: Bool { [.normalClosure, .goingAway, .noStatus].contains(code) }
}

// MARK: - Descriptions

extension WebSocketClosure: CustomStringConvertible, RedactedReflectable {
    /// The code and the reason, if any, with control characters escaped.
    public var description: String { "\(code.rawValue)" + (reason.isEmpty ? "" : ": \(Redaction.escaped(reason))") }
}
