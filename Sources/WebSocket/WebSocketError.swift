// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// The error of a WebSocket.
///
/// Errors of the underlying connection are ``CurlewError``: ``CurlewError/transferFailed(_:)`` if it could not be established or was lost,
/// ``CurlewError/cancelled``, ``CurlewError/sessionInvalidated``. Errors thrown by an adapter are passed on unchanged.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum WebSocketError: Error, Sendable {
    /// The request can't open a WebSocket; nothing was sent.
    case invalidRequest(reason: InvalidRequestReason)
    /// The server responded with a status other than 101.
    case handshakeRejected(WebSocketRejection)
    /// The server responded with status 101, but its handshake is invalid.
    case handshakeFailed(reason: HandshakeFailureReason)
    /// The server violated the protocol; the connection was closed with the given code.
    case protocolViolation(code: WebSocketCloseCode, message: String)
    /// A received message or frame exceeds a limit; the connection was closed with ``WebSocketCloseCode/messageTooBig``.
    case messageTooLarge(message: String)
    /// The connection is closed.
    case closed(WebSocketClosure)
    /// A timeout elapsed.
    case timedOut(Stage)
    /// The close code may not be sent, the reason is longer than 123 bytes of UTF-8, or there is a reason without a code.
    case invalidClosure(WebSocketClosure)
    /// A ping's payload is longer than 125 bytes.
    case pingTooLarge(byteCount: Int)
    /// A value could not be encoded as a message; `error` is what the encoder threw.
    case encodingFailed(error: any Error)
    /// A message could not be decoded; `error` is what the decoder threw. The connection stays open.
    case decodingFailed(message: WebSocketMessage, error: any Error)

    /// Why a request can't open a WebSocket.
    ///
    /// Later versions may add cases, so a `switch` needs a `default`.
    public enum InvalidRequestReason: Sendable, Hashable {
        /// The URL is missing, or has no host, an invalid port, or a fragment (RFC 6455, section 3).
        case invalidURL(String)
        /// The URL's scheme is not `ws`, `wss`, `http` or `https`.
        case unsupportedScheme(String)
        /// The method is not GET, or there is a body.
        case notAGet
        /// A header field is invalid, or reserved for the handshake itself.
        case invalidHeader(name: String)
        /// A subprotocol is not a token, or is listed twice (RFC 6455, section 4.1).
        case invalidSubprotocol(String)
    }

    /// Why a handshake is invalid (RFC 6455, section 4.1).
    ///
    /// Later versions may add cases, so a `switch` needs a `default`.
    public enum HandshakeFailureReason: Sendable, Hashable {
        /// The response is not valid HTTP/1, or its head is larger than 64 KiB.
        case invalidResponse
        /// The response is not HTTP/1.1, `Upgrade` is not `websocket`, or `Connection` is not `Upgrade`.
        case notUpgraded
        /// `Sec-WebSocket-Accept` does not match the key.
        case wrongAccept
        /// The server chose a subprotocol that was not offered.
        case unexpectedSubprotocol(String)
        /// The server accepted an extension that was not offered, or with invalid parameters.
        case invalidExtension(String)
    }

    /// What a timeout applies to.
    ///
    /// Later versions may add cases, so a `switch` needs a `default`.
    public enum Stage: Sendable, Hashable {
        /// The server's response to the handshake.
        case handshake
        /// The pong to a keep-alive ping.
        case pong
        /// The server's close frame, or its closing of the connection.
        case close
    }
}

/// A server's response that rejects the WebSocket.
public struct WebSocketRejection: Sendable, Hashable {
    /// The status and the header fields.
    public let response: ResponseHead
    /// The first 64 KiB of the body, as it was sent: content codings are not decoded. What was received of it if the connection is lost;
    /// empty if the server sends no length and keeps the connection open.
    public let body: Data
}

/// The result of a successful handshake.
public struct WebSocketHandshake: Sendable, Hashable {
    /// The server's response: status 101 and its header fields.
    public let response: ResponseHead
    /// The subprotocol chosen by the server; `nil` for none.
    public let subprotocol: String?
    /// Whether compression was negotiated (permessage-deflate; RFC 7692).
    public let isCompressed: Bool
}

// MARK: - Descriptions

extension WebSocketError: CustomStringConvertible, LocalizedError, CustomReflectable {
    /// A sentence that describes the error; control characters sent by the server are escaped.
    public var description: String { Redaction.escaped(sentence) }

    /// The same sentence.
    public var errorDescription: String? { description }

    /// The description, labelled with the name of the case.
    public var customMirror: Mirror { .redacted(self, caseName: caseName) }

    private var caseName: String {
        switch self {
        case .invalidRequest: "invalidRequest"
        case .handshakeRejected: "handshakeRejected"
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
        case .invalidRequest(let reason): "The request cannot open a WebSocket: \(reason)"
        case .handshakeRejected(let rejection): "The server rejected the WebSocket handshake with status \(rejection.response.statusCode)"
        case .handshakeFailed(let reason): "The WebSocket handshake failed: \(reason)"
        case .protocolViolation(let code, let message):
            "The server violated the WebSocket protocol: \(message) (close code \(code.rawValue))"
        case .messageTooLarge(let message): "\(message); the limits are set in WebSocketConfiguration"
        case .closed(let closure): "The WebSocket was closed with code \(closure)"
        case .timedOut(.handshake): "The server did not complete the WebSocket handshake in time"
        case .timedOut(.pong): "The server did not answer a ping in time"
        case .timedOut(.close): "The server did not complete the closing handshake in time"
        case .invalidClosure(let closure):
            "A close frame with code \(closure.code.rawValue) and a reason of \(closure.reason.utf8.count) bytes cannot be sent"
        case .pingTooLarge(let byteCount): "The payload of a ping is limited to 125 bytes, not \(byteCount)"
        case .encodingFailed(let error): "The value could not be encoded as a message: \(error)"
        case .decodingFailed(_, let error): "The message could not be decoded: \(error)"
        }
    }
}

extension WebSocketRejection: CustomStringConvertible, CustomReflectable {
    /// The status, and the size of the body, which is not shown because it may contain secrets.
    public var description: String { "Status \(response.statusCode), with a body of \(body.count) bytes" }

    /// The description only.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}

extension WebSocketError.InvalidRequestReason: CustomStringConvertible, RedactedReflectable {
    /// The case and its value, with URLs redacted (``/CurlewHTTP/Redaction``) and control characters escaped.
    public var description: String {
        switch self {
        case .invalidURL(let url): "invalidURL(\(Redaction.escaped(Redaction.current.url(url).debugDescription)))"
        case .unsupportedScheme(let scheme): "unsupportedScheme(\(Redaction.escaped(scheme.debugDescription)))"
        case .notAGet: "notAGet"
        case .invalidHeader(let name): "invalidHeader(name: \(Redaction.escaped(name.debugDescription)))"
        case .invalidSubprotocol(let name): "invalidSubprotocol(\(Redaction.escaped(name.debugDescription)))"
        }
    }
}

extension WebSocketError.HandshakeFailureReason: CustomStringConvertible, RedactedReflectable {
    /// The case and its value, with control characters escaped.
    public var description: String {
        switch self {
        case .invalidResponse: "invalidResponse"
        case .notUpgraded: "notUpgraded"
        case .wrongAccept: "wrongAccept"
        case .unexpectedSubprotocol(let name): "unexpectedSubprotocol(\(Redaction.escaped(name.debugDescription)))"
        case .invalidExtension(let text): "invalidExtension(\(Redaction.escaped(text.debugDescription)))"
        }
    }
}

extension WebSocketError: ErrorWithKind {
    /// The name of the case, and for a timeout what was waited for.
    package var errorKind: String {
        switch self {
        case .timedOut(.handshake): "timedOut.handshake"
        case .timedOut(.pong): "timedOut.pong"
        case .timedOut(.close): "timedOut.close"
        default: caseName
        }
    }
}
