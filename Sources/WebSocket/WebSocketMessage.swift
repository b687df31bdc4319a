// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A message of a WebSocket (RFC 6455, section 5.6).
public enum WebSocketMessage: Sendable, Hashable {
    /// A text; UTF-8 on the wire.
    case text(String)
    /// Bytes.
    case binary(Data)

    /// The message's bytes; of a text, its UTF-8.
    public var data: Data {
        switch self {
        case .text(let text): Data(text.utf8)
        case .binary(let data): data
        }
    }

    /// How many bytes the message has, of a text in UTF-8.
    public var byteCount: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let data): data.count
        }
    }
}

/// Why a connection is closed (RFC 6455, section 7.4, and IANA's registry of WebSocket close codes).
///
/// An open set: 3000 to 3999 are for libraries and frameworks, 4000 to 4999 for agreements between programs.
public struct WebSocketCloseCode: RawRepresentable, Sendable, Hashable {
    /// The number.
    public let rawValue: UInt16

    /// Makes a code of its number, whether it may be sent or not.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// 1000: the connection has served its purpose.
    public static let normalClosure = WebSocketCloseCode(rawValue: 1000)
    /// 1001: the peer goes away, as a server that goes down or a page that is left.
    public static let goingAway = WebSocketCloseCode(rawValue: 1001)
    /// 1002: the peer broke the rules of the protocol.
    public static let protocolError = WebSocketCloseCode(rawValue: 1002)
    /// 1003: a kind of message that can't be accepted.
    public static let unsupportedData = WebSocketCloseCode(rawValue: 1003)
    /// 1005, never sent: the peer closed without a code.
    public static let noStatus = WebSocketCloseCode(rawValue: 1005)
    /// 1006, never sent: the connection ended without a word.
    public static let abnormalClosure = WebSocketCloseCode(rawValue: 1006)
    /// 1007: a message that is not what it says, as a text that is not UTF-8.
    public static let invalidPayload = WebSocketCloseCode(rawValue: 1007)
    /// 1008: a message against the rules of whoever received it.
    public static let policyViolation = WebSocketCloseCode(rawValue: 1008)
    /// 1009: a message too large.
    public static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
    /// 1010: the server did not agree to an extension that the client needs.
    public static let mandatoryExtension = WebSocketCloseCode(rawValue: 1010)
    /// 1011: something unexpected kept the peer from going on.
    public static let internalError = WebSocketCloseCode(rawValue: 1011)
    /// 1012: the server restarts.
    public static let serviceRestart = WebSocketCloseCode(rawValue: 1012)
    /// 1013: the server is overloaded.
    public static let tryAgainLater = WebSocketCloseCode(rawValue: 1013)
    /// 1014: a gateway got no valid answer.
    public static let badGateway = WebSocketCloseCode(rawValue: 1014)

    /// Whether a peer may send it.
    var mayBeReceived: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// Whether a client may send it (RFC 6455, section 7.4.1): 1010 is the client's, 1011 to 1014 the server's, and 1000 both's.
    var maySend: Bool { mayBeReceived || self == .noStatus }
}

/// How a connection was closed: what the peer's close frame says, or what stands for the lack of one.
public struct WebSocketClosure: Sendable, Hashable {
    /// The code; ``WebSocketCloseCode/noStatus`` for a close frame without one, ``WebSocketCloseCode/abnormalClosure`` for none at all.
    public let code: WebSocketCloseCode
    /// The reason, for people; often empty.
    public let reason: String

    /// Makes a closure.
    public init(code: WebSocketCloseCode, reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// Whether nothing is wrong: the peer said 1000, 1001 or nothing.
    var isNormal: Bool { [.normalClosure, .goingAway, .noStatus].contains(code) }
}

// MARK: - Descriptions

extension WebSocketClosure: CustomStringConvertible, CustomReflectable {
    /// The code and, where there is one, the reason, its control characters escaped.
    public var description: String { "\(code.rawValue)" + (reason.isEmpty ? "" : ": \(Redaction.escaped(reason))") }

    /// Nothing beyond the description.
    public var customMirror: Mirror { .redacted(self) }
}
