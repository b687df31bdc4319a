// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewWebSocket

/// Why a request or a stream of a service failed.
///
/// A service may convert it to its own error, with ``HTTPService/mapError(_:)``. An error that a request or stream has failed with names
/// it, as far as the case has room for that: ``request`` has its method, URL and attempt, and the description begins with them. Programs
/// that create errors leave it out.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum ServiceError: Error, Sendable {
    /// The request can't be sent as it is; nothing was sent.
    case invalidRequest(message: String)
    /// The body, or a message of a stream, could not be encoded, for the given reason.
    case encodingFailed(any Error)
    /// The response, or a message of a stream, could not be decoded; to be matched as `.decodingFailed`.
    case decodingFailed(in: FailedRequest?)
    /// A timeout elapsed: the request's, or one of the session's; or a deadline has passed. To be matched as `.timeout`.
    case timeout(in: FailedRequest?)
    /// The connection to the host could not be established, or was lost; to be matched as `.noConnection`.
    case noConnection(in: FailedRequest?)
    /// The parts of the request don't form a valid URL; to be matched as `.invalidURL`.
    case invalidURL(in: FailedRequest?)
    /// The host's name could not be resolved; to be matched as `.unknownHost`.
    case unknownHost(in: FailedRequest?)
    /// The response is not valid HTTP, or its redirect or link can't be followed; to be matched as `.invalidResponse`.
    case invalidResponse(in: FailedRequest?)
    /// The status code is not accepted. `response` is the body, of which ``FailedRequest/bodyData`` of the request has the beginning.
    case requestFailed(statusCode: Int, response: Data, in: FailedRequest? = nil)
    /// The stream was closed with the given code (RFC 6455, section 7.4).
    case closedStream(code: Int)
    /// The operation is not possible while the request is running. For use by programs: the library never throws it.
    case requestInProgress
    /// The operation is not possible after the request has finished. For use by programs: the library never throws it.
    case requestFinished
    /// The last consumer was cancelled or released, or the awaiting task was cancelled; to be matched as `.cancelled`.
    case cancelled(in: FailedRequest?)
    /// Any other error: one thrown by the user's code, a ``CurlewError``, a `DecodingError`.
    case unknown(any Error)

    /// The response, or a message of a stream, could not be decoded.
    public static var decodingFailed: ServiceError { .decodingFailed(in: nil) }
    /// A timeout elapsed: the request's, or one of the session's; or a deadline has passed.
    public static var timeout: ServiceError { .timeout(in: nil) }
    /// The connection to the host could not be established, or was lost.
    public static var noConnection: ServiceError { .noConnection(in: nil) }
    /// The parts of the request don't form a valid URL.
    public static var invalidURL: ServiceError { .invalidURL(in: nil) }
    /// The host's name could not be resolved.
    public static var unknownHost: ServiceError { .unknownHost(in: nil) }
    /// The response is not valid HTTP, or its redirect or link can't be followed.
    public static var invalidResponse: ServiceError { .invalidResponse(in: nil) }
    /// The last consumer was cancelled or released, or the awaiting task was cancelled.
    public static var cancelled: ServiceError { .cancelled(in: nil) }
}

// MARK: - The request

extension ServiceError {
    /// The request or stream that failed; `nil` if the error was not delivered by one, or its case has no room for it.
    ///
    /// Its attempt counts all times that the request was sent, by the retriers of the session and of the service.
    public var request: FailedRequest? {
        switch self {
        case .decodingFailed(let request), .timeout(let request), .noConnection(let request), .invalidURL(let request),
            .unknownHost(let request), .invalidResponse(let request), .requestFailed(_, _, let request), .cancelled(let request):
            request
        case .encodingFailed(let error), .unknown(let error): (error as? CurlewError)?.request
        case .invalidRequest, .closedStream, .requestInProgress, .requestFinished: nil
        }
    }

    /// The body of a response whose status is not accepted, decoded as ``HTTPService/errorBodyType``; `nil` for another type.
    public func decodedBody<Value>(as type: Value.Type = Value.self) -> Value? { request?.decodedBody as? Value }

    /// The status that is not accepted.
    private var statusCode: Int? { if case .requestFailed(let status, _, _) = self { status } else { nil } }

    /// Returns the same error of a request.
    func describing(_ request: FailedRequest) -> ServiceError {
        switch self {
        case .decodingFailed: .decodingFailed(in: request)
        case .timeout: .timeout(in: request)
        case .noConnection: .noConnection(in: request)
        case .invalidURL: .invalidURL(in: request)
        case .unknownHost: .unknownHost(in: request)
        case .invalidResponse: .invalidResponse(in: request)
        case .requestFailed(let status, let response, _): .requestFailed(statusCode: status, response: response, in: request)
        case .cancelled: .cancelled(in: request)
        case .encodingFailed(let error as CurlewError): .encodingFailed(error.describing(request))
        case .unknown(let error as CurlewError): .unknown(error.describing(request))
        case .invalidRequest, .encodingFailed, .closedStream, .requestInProgress, .requestFinished, .unknown: self
        }
    }

    /// Returns the error of an attempt with the request that it is about.
    ///
    /// - Parameters:
    ///   - urlRequest: the attempt's; `nil` if it could not be built.
    ///   - earlier: how often the request was sent by earlier attempts.
    func describing(_ urlRequest: URLRequest?, after earlier: Int = 0) -> ServiceError {
        if let request { return earlier > 0 && request.attempt > 0 ? describing(request.numbered(request.attempt + earlier)) : self }
        guard let urlRequest, let url = urlRequest.url else { return self }
        let method = urlRequest.httpMethod.flatMap { HTTPMethod(rawValue: $0) }
        return describing(FailedRequest(method: method, url: url.absoluteString, attempt: earlier + 1, statusCode: statusCode))
    }
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
            case is PaginationError: .invalidResponse
            default: .unknown(error)
            }
    }

    private init(_ error: CurlewError) {
        self =
            switch error {
            case .invalidURL(_, let request): .invalidURL(in: request)
            case .urlRequestValidationFailed(let reason, let request): ServiceError(reason, request)
            case .parameterEncodingFailed, .multipartEncodingFailed: .encodingFailed(error)
            case .transferFailed(let failure): ServiceError(failure) ?? .unknown(error)
            case .redirectFailed(_, let request): .invalidResponse(in: request)
            case .responseValidationFailed(.unacceptableStatusCode(let code), let request):
                .requestFailed(statusCode: code, response: request?.bodyData ?? Data(), in: request)
            case .cancelled(let request): .cancelled(in: request)
            default: .unknown(error)
            }
    }

    private init(_ reason: CurlewError.URLRequestValidationFailureReason, _ request: FailedRequest?) {
        self =
            switch reason {
            case .missingURL, .missingHost, .unsupportedScheme, .invalidPort: .invalidURL(in: request)
            case .invalidMethod(let method): .invalidRequest(message: "The method \"\(method)\" is not a valid HTTP token.")
            case .invalidHeader(let name): .invalidRequest(message: "The header field \"\(name)\" has an invalid name or value.")
            case .bodyNotAllowed(let method): .invalidRequest(message: "A \(method) request must not have a body.")
            case .bodyAlreadyEncoded(let coding): .invalidRequest(message: "The body is already encoded with \"\(coding)\".")
            }
    }

    private init?(_ failure: TransferFailure) {
        switch failure.kind {
        case _ where failure.isTimeout: self = .timeout(in: failure.request)
        case .nameResolution: self = .unknownHost(in: failure.request)
        case .connect, .connectionLost, .cellularNotAllowed: self = .noConnection(in: failure.request)
        case .invalidURL, .unsupportedScheme: self = .invalidURL(in: failure.request)
        case .protocolViolation, .decoding, .tooLarge: self = .invalidResponse(in: failure.request)
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

extension ServiceError: CustomStringConvertible, LocalizedError, RedactedCases {
    /// The name of a case with a payload: reflection shows the description in place of the response's body.
    package var caseName: String? {
        switch self {
        case .invalidRequest: "invalidRequest"
        case .encodingFailed: "encodingFailed"
        case .decodingFailed: "decodingFailed"
        case .timeout: "timeout"
        case .noConnection: "noConnection"
        case .invalidURL: "invalidURL"
        case .unknownHost: "unknownHost"
        case .invalidResponse: "invalidResponse"
        case .requestFailed: "requestFailed"
        case .closedStream: "closedStream"
        case .cancelled: "cancelled"
        case .unknown: "unknown"
        case .requestInProgress, .requestFinished: nil
        }
    }

    /// The failed request, as far as it is known, and the reason, without the response's body, with control characters escaped:
    /// `GET https://example.org/ (attempt 2): the request timed out`. Without a request, the reason as a sentence.
    public var description: String {
        switch self {
        // These have the error of the session, whose description begins with the request.
        case .encodingFailed, .unknown: Redaction.escaped(sentence)
        default: Redaction.escaped(request?.failing(because: sentence, hasStatus: false) ?? sentence)
        }
    }

    /// The same text.
    public var errorDescription: String? { description }

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
        case .requestFailed(let status, let response, _):
            "Status \(status) is not accepted by the request; the response body has \(response.count) bytes."
        case .closedStream(let code): "The stream was closed with code \(code)."
        case .requestInProgress: "The request is still running."
        case .requestFinished: "The request has already finished."
        case .cancelled: "The request was cancelled."
        case .unknown(let error): "\(error)"
        }
    }
}
