// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// What went wrong with a WebSocket.
///
/// What happens to the connection below it arrives as ``CurlewError``: ``CurlewError/transferFailed(_:)`` when it did not come about or broke,
/// ``CurlewError/cancelled``, ``CurlewError/sessionInvalidated``. What an adapter threw arrives as it was thrown.
public enum WebSocketError: Error, Sendable {
    /// The request can't be sent as it is: nothing left the process.
    case invalidRequest(reason: InvalidRequestReason)
    /// The server answered with another status than 101.
    case handshakeRefused(WebSocketRefusal)
    /// The server said that it speaks WebSocket, but not as it was asked to.
    case handshakeFailed(reason: HandshakeFailureReason)
    /// The server broke the rules: the connection was closed with this code.
    case protocolViolation(code: WebSocketCloseCode, message: String)
    /// A message or frame from the server exceeds a limit: the connection was closed with ``WebSocketCloseCode/messageTooBig``.
    case messageTooLarge(message: String)
    /// The connection is closed.
    case closed(WebSocketClosure)
    /// Something did not happen in time.
    case timedOut(Stage)
    /// The code may not be sent, or the reason is longer than 123 bytes of UTF-8, or is there without a code.
    case invalidClosure(WebSocketClosure)
    /// A ping's payload is longer than 125 bytes.
    case pingTooLarge(byteCount: Int)
    /// A value could not be made into a message; the cause is what the encoder threw.
    case encodingFailed(error: any Error)
    /// A message could not be made into a value; the cause is what the decoder threw. The connection stands.
    case decodingFailed(message: WebSocketMessage, error: any Error)

    /// Why a request can't open a WebSocket.
    public enum InvalidRequestReason: Sendable, Hashable {
        /// There is no URL, or it has no host, a port that is none, or a fragment (RFC 6455, section 3).
        case invalidURL(String)
        /// The URL's scheme is none of `ws`, `wss`, `http` and `https`.
        case unsupportedScheme(String)
        /// The method is not GET, or there is a body.
        case notAGet
        /// A header field that is not valid, or that the handshake itself has to set.
        case invalidHeader(name: String)
        /// A subprotocol that is no token, or is there twice (RFC 6455, section 4.1).
        case invalidSubprotocol(String)
    }

    /// What is wrong with a handshake (RFC 6455, section 4.1).
    public enum HandshakeFailureReason: Sendable, Hashable {
        /// The answer is no response of HTTP/1.1, or its head is larger than 64 KiB.
        case invalidResponse
        /// `Upgrade` is not `websocket`, or `Connection` not `Upgrade`.
        case notUpgraded
        /// `Sec-WebSocket-Accept` does not fit the key.
        case wrongAccept
        /// A subprotocol that was not asked for.
        case unexpectedSubprotocol(String)
        /// An extension that was not asked for, or not so.
        case invalidExtension(String)
    }

    /// What takes time.
    public enum Stage: Sendable, Hashable {
        /// The server's answer to the handshake.
        case handshake
        /// The pong to a ping that keeps the connection alive.
        case pong
        /// The server's close frame, or its end of the connection.
        case close
    }
}

/// A server's answer that is no WebSocket.
public struct WebSocketRefusal: Sendable, Hashable {
    /// Status and header fields.
    public let response: ResponseHead
    /// The body as far as its length was announced, up to 64 KiB; else empty. A content coding is not undone.
    public let body: Data
}

/// What client and server have agreed on.
public struct WebSocketHandshake: Sendable, Hashable {
    /// The server's answer: status 101 and its header fields.
    public let response: ResponseHead
    /// The subprotocol that the server chose out of those asked for; `nil` for none.
    public let subprotocol: String?
    /// Whether messages may be compressed (permessage-deflate; RFC 7692).
    public let isCompressed: Bool
}

// MARK: - Descriptions

extension WebSocketError: CustomStringConvertible, CustomReflectable {
    /// What went wrong, in a sentence; control characters in what the server has said are escaped.
    public var description: String { Redaction.escaped(sentence) }

    /// The description, under the name of the case.
    public var customMirror: Mirror { .redacted(self, caseName: caseName) }

    private var caseName: String {
        switch self {
        case .invalidRequest: "invalidRequest"
        case .handshakeRefused: "handshakeRefused"
        case .handshakeFailed: "handshakeFailed"
        case .protocolViolation: "protocolViolation"
        case .messageTooLarge: "messageTooLarge"
        case .closed: "closed"
        case .timedOut: "timedOut"
        case .invalidClosure: "invalidClosure"
        case .pingTooLarge: "pingTooLarge"
        case .encodingFailed: "encodingFailed"
        case .decodingFailed: "decodingFailed"
        }
    }

    private var sentence: String {
        switch self {
        case .invalidRequest(let reason): "The request can't open a WebSocket: \(reason)"
        case .handshakeRefused(let refusal): "The server refused with status \(refusal.response.statusCode)"
        case .handshakeFailed(let reason): "The handshake failed: \(reason)"
        case .protocolViolation(let code, let message): "The server broke the protocol: \(message) (\(code.rawValue))"
        case .messageTooLarge(let message): message
        case .closed(let closure): "Closed with \(closure)"
        case .timedOut(let stage): "Not in time: \(stage)"
        case .invalidClosure(let closure): "\(closure.code.rawValue) with a reason of \(closure.reason.utf8.count) bytes can't be sent"
        case .pingTooLarge(let byteCount): "A ping has 125 bytes at most, not \(byteCount)"
        case .encodingFailed(let error): "The value was not encoded: \(error)"
        case .decodingFailed(_, let error): "The message was not decoded: \(error)"
        }
    }
}

extension WebSocketError.InvalidRequestReason: CustomStringConvertible, CustomReflectable {
    /// The case, with what it is about: a URL redacted (``/CurlewHTTP/Redaction``), control characters escaped.
    public var description: String {
        switch self {
        case .invalidURL(let url): "invalidURL(\(Redaction.escaped(Redaction.current.url(url).debugDescription)))"
        case .unsupportedScheme(let scheme): "unsupportedScheme(\(Redaction.escaped(scheme.debugDescription)))"
        case .notAGet: "notAGet"
        case .invalidHeader(let name): "invalidHeader(name: \(Redaction.escaped(name.debugDescription)))"
        case .invalidSubprotocol(let name): "invalidSubprotocol(\(Redaction.escaped(name.debugDescription)))"
        }
    }

    /// Nothing beyond the description.
    public var customMirror: Mirror { .redacted(self) }
}

extension WebSocketError.HandshakeFailureReason: CustomStringConvertible, CustomReflectable {
    /// The case, with what the server has said, its control characters escaped.
    public var description: String {
        switch self {
        case .invalidResponse: "invalidResponse"
        case .notUpgraded: "notUpgraded"
        case .wrongAccept: "wrongAccept"
        case .unexpectedSubprotocol(let name): "unexpectedSubprotocol(\(Redaction.escaped(name.debugDescription)))"
        case .invalidExtension(let text): "invalidExtension(\(Redaction.escaped(text.debugDescription)))"
        }
    }

    /// Nothing beyond the description.
    public var customMirror: Mirror { .redacted(self) }
}
