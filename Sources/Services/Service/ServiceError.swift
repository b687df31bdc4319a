// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewWebSocket

/// Why a request or a stream of a service failed.
///
/// A service may make errors of its own of these, by ``HTTPService/mapError(_:)``.
public enum ServiceError: Error, Sendable {
    /// The request can't be sent as it is: nothing left the process.
    case invalidRequest(message: String)
    /// The body, or a message of a stream, could not be encoded, for this reason.
    case encodingFailed(any Error)
    /// The response, or a message of a stream, is not what its decoding is for.
    case decodingFailed
    /// Time ran out: that of the request, or one of the session's.
    case timeout
    /// No connection to the host, or it was lost.
    case noConnection
    /// The parts of the request give no URL that can be used.
    case invalidURL
    /// The host's name was not resolved.
    case unknownHost
    /// What came is no HTTP, or leads where the library does not go.
    case invalidResponse
    /// The status is none of the accepted ones. `response` is the body.
    case requestFailed(statusCode: Int, response: Data)
    /// The stream was closed with this code (RFC 6455, section 7.4).
    case closedStream(code: Int)
    /// What is asked for can't be had while the request runs. For programs: nothing in the library throws it.
    case requestInProgress
    /// What is asked for can't be had any more. For programs: nothing in the library throws it.
    case requestFinished
    /// Nobody waited any longer, or the task that did was cancelled.
    case cancelled
    /// Anything else: what code of the user's threw, a ``CurlewError``, a `DecodingError`.
    case unknown(any Error)
}

// MARK: - Other errors

extension ServiceError {
    /// The error of a service for any error; a ``ServiceError`` stays what it is.
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
            case .urlRequestValidationFailed(let reason): ServiceError(reason)
            case .parameterEncodingFailed, .multipartEncodingFailed: .encodingFailed(error)
            case .transferFailed(let failure): ServiceError(failure) ?? .unknown(error)
            case .redirectFailed: .invalidResponse
            case .responseValidationFailed(.unacceptableStatusCode(let code)): .requestFailed(statusCode: code, response: Data())
            case .cancelled: .cancelled
            default: .unknown(error)
            }
    }

    private init(_ reason: CurlewError.URLRequestValidationFailureReason) {
        self =
            switch reason {
            case .missingURL, .missingHost, .unsupportedScheme, .invalidPort: .invalidURL
            case .invalidMethod(let method): .invalidRequest(message: "The method \"\(method)\" is not a token.")
            case .invalidHeader(let name): .invalidRequest(message: "The header field \"\(name)\" can't be sent.")
            case .bodyNotAllowed(let method): .invalidRequest(message: "A \(method) request has no body.")
            case .bodyAlreadyEncoded(let coding): .invalidRequest(message: "The body is encoded with \"\(coding)\" already.")
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
}

// MARK: - Descriptions

extension ServiceError: CustomStringConvertible {
    /// What happened, in a sentence; without the response's body, control characters escaped.
    public var description: String { Redaction.escaped(sentence) }

    private var sentence: String {
        switch self {
        case .invalidRequest(let message): "The request is invalid: \(message)"
        case .encodingFailed(let error): "The body was not encoded: \(error)"
        case .decodingFailed: "The response was not decoded."
        case .timeout: "Time ran out."
        case .noConnection: "There is no connection."
        case .invalidURL: "The URL is invalid."
        case .unknownHost: "The host is unknown."
        case .invalidResponse: "The response is invalid."
        case .requestFailed(let status, let response): "The request failed with status \(status) and a body of \(response.count) bytes."
        case .closedStream(let code): "The stream was closed with code \(code)."
        case .requestInProgress: "The request still runs."
        case .requestFinished: "The request is over."
        case .cancelled: "The request was cancelled."
        case .unknown(let error): "\(error)"
        }
    }
}
