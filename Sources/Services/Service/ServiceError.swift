// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewWebSocket

/// Why a request or a stream of a service failed.
///
/// A service may convert it to its own error, with ``HTTPService/mapError(_:)``.
public enum ServiceError: Error, Sendable {
    /// The request can't be sent as it is; nothing was sent.
    case invalidRequest(message: String)
    /// The body, or a message of a stream, could not be encoded, for the given reason.
    case encodingFailed(any Error)
    /// The response, or a message of a stream, could not be decoded.
    case decodingFailed
    /// A timeout elapsed: the request's, or one of the session's; or a deadline has passed.
    case timeout
    /// The connection to the host could not be established, or was lost.
    case noConnection
    /// The parts of the request don't form a valid URL.
    case invalidURL
    /// The host's name could not be resolved.
    case unknownHost
    /// The response is not valid HTTP, or its redirect or link can't be followed.
    case invalidResponse
    /// The status code is not accepted. `response` is the body.
    case requestFailed(statusCode: Int, response: Data)
    /// The stream was closed with the given code (RFC 6455, section 7.4).
    case closedStream(code: Int)
    /// The operation is not possible while the request is running. For use by programs: the library never throws it.
    case requestInProgress
    /// The operation is not possible after the request has finished. For use by programs: the library never throws it.
    case requestFinished
    /// The last consumer was cancelled or released, or the awaiting task was cancelled.
    case cancelled
    /// Any other error: one thrown by the user's code, a ``CurlewError``, a `DecodingError`.
    case unknown(any Error)
}

// MARK: - Other errors

extension ServiceError {
    /// Makes a service's error of any error; a ``ServiceError`` is kept unchanged.
    public init(_ error: any Error) {
        self =
            switch error {
            case let error as ServiceError: error
            case let error as CurlewError: ServiceError(error)
            case let error as WebSocketError: ServiceError(error)
            case is CancellationError: .cancelled
            default: .unknown(error)
            }
    }

    private init(_ error: CurlewError) {
        self =
            switch error {
            case .invalidURL: .invalidURL
            case .urlRequestValidationFailed(let reason, _): ServiceError(reason)
            case .parameterEncodingFailed, .multipartEncodingFailed: .encodingFailed(error)
            case .transferFailed(let failure): ServiceError(failure) ?? .unknown(error)
            case .redirectFailed: .invalidResponse
            case .responseValidationFailed(.unacceptableStatusCode(let code), _): .requestFailed(statusCode: code, response: Data())
            case .cancelled: .cancelled
            default: .unknown(error)
            }
    }

    private init(_ reason: CurlewError.URLRequestValidationFailureReason) {
        self =
            switch reason {
            case .missingURL, .missingHost, .unsupportedScheme, .invalidPort: .invalidURL
            case .invalidMethod(let method): .invalidRequest(message: "The method \"\(method)\" is not a valid HTTP token.")
            case .invalidHeader(let name): .invalidRequest(message: "The header field \"\(name)\" has an invalid name or value.")
            case .bodyNotAllowed(let method): .invalidRequest(message: "A \(method) request must not have a body.")
            case .bodyAlreadyEncoded(let coding): .invalidRequest(message: "The body is already encoded with \"\(coding)\".")
            }
    }

    private init?(_ failure: TransferFailure) {
        switch failure.kind {
        case _ where failure.isTimeout: self = .timeout
        case .nameResolution: self = .unknownHost
        case .connect, .connectionLost, .cellularNotAllowed: self = .noConnection
        case .invalidURL, .unsupportedScheme: self = .invalidURL
        case .protocolViolation, .decoding, .tooLarge: self = .invalidResponse
        default: return nil
        }
    }

    /// Converts a WebSocket's error to a stream's.
    init(_ error: WebSocketError) {
        self =
            switch error {
            case .invalidRequest(.invalidURL), .invalidRequest(.unsupportedScheme): .invalidURL
            case .invalidRequest, .pingTooLarge, .invalidClosure: .invalidRequest(message: "\(error)")
            case .handshakeRejected(let rejection): .requestFailed(statusCode: rejection.response.statusCode, response: rejection.body)
            case .handshakeFailed: .invalidResponse
            case .protocolViolation(let code, _): .closedStream(code: Int(code.rawValue))
            case .messageTooLarge: .closedStream(code: Int(WebSocketCloseCode.messageTooBig.rawValue))
            case .closed(let closure): .closedStream(code: Int(closure.code.rawValue))
            case .timedOut: .timeout
            case .encodingFailed(let cause): cause as? ServiceError ?? .encodingFailed(cause)
            case .decodingFailed(_, let cause): ServiceError(cause)
            }
    }
}

// MARK: - Descriptions

extension ServiceError: CustomStringConvertible {
    /// A sentence that describes the error, without the response's body, with control characters escaped.
    public var description: String { Redaction.escaped(sentence) }

    private var sentence: String {
        switch self {
        case .invalidRequest(let message): "The request is invalid: \(message)"
        case .encodingFailed(let error): "The body or message could not be encoded: \(error)"
        case .decodingFailed: "The response or message could not be decoded."
        case .timeout: "The request timed out."
        case .noConnection: "The connection to the host could not be established, or was lost."
        case .invalidURL: "The URL is invalid: check the service's URL, and the request's URL, routes and query."
        case .unknownHost: "The host name could not be resolved."
        case .invalidResponse: "The response is not valid HTTP, or its redirect or link cannot be followed."
        case .requestFailed(let status, let response):
            "Status \(status) is not accepted by the request; the response body has \(response.count) bytes."
        case .closedStream(let code): "The stream was closed with code \(code)."
        case .requestInProgress: "The request is still running."
        case .requestFinished: "The request has already finished."
        case .cancelled: "The request was cancelled."
        case .unknown(let error): "\(error)"
        }
    }
}
