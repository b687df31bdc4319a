// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// What a policy counts together.
public enum PolicyGroup: Sendable {
    /// All requests of the session.
    case session
    /// The requests to an origin: scheme, host and port.
    case origin
    /// The requests for which a closure returns the same name; those for which it returns `nil` are left alone. Called on the thread that
    /// sends the request: must not block.
    case named(@Sendable (PolicyRequest) -> String?)
}

/// What policies see of a request: one exchange with a server.
public struct PolicyRequest: Sendable {
    private let request: TransferRequest

    init(_ request: TransferRequest) { self.request = request }

    /// The method.
    public var method: HTTPMethod { request.method }
    /// The absolute URL. Not redacted.
    public var url: String { request.url }
    /// The header fields. Not redacted.
    public var headers: HTTPHeaders { request.headers }
    /// The origin of the URL; `nil` if it has none. Parsed when it is read.
    public var origin: HTTPOrigin? { HTTPOrigin(url: request.url) }
    /// The urgency, from 0, the most urgent, to 7: of the field `Priority` (RFC 9218, section 4.1), otherwise 3.
    public var urgency: Int { request.urgency }
    /// The request's ``RequestOptions/name``; `nil` if it has none.
    public var name: String? { request.exchangeName }
    /// Whether the exchange is the first of a retry.
    public var isRetry: Bool { request.exchangeReason == .retry }
}

/// How an exchange ended, for classifications.
public struct PolicyOutcome: Sendable {
    /// The status of the response; `nil` if none was received.
    public let statusCode: Int?
    /// Why the exchange failed; `nil` if the response was received. A status is no error.
    public let error: (any Error)?
    /// The time from sending the request to the response's end, or to the failure.
    public let duration: Duration

    /// Creates an outcome.
    public init(statusCode: Int?, error: (any Error)? = nil, duration: Duration = .zero) {
        self.statusCode = statusCode
        self.error = error
        self.duration = duration
    }

    /// Whether the exchange failed for reasons of the host or the way to it: name resolution, connecting, TLS, timeouts of the transfer, a
    /// lost connection, a violated protocol.
    public var isFailureOfHost: Bool {
        guard case CurlewError.transferFailed(let failure)? = error else { return false }
        return Self.kindsOfHost.contains(failure.kind)
    }

    private static let kindsOfHost: Set<TransferFailure.Kind> = [
        .nameResolution, .proxy, .connect, .secureConnection, .serverCertificate, .connectTimeout, .firstByteTimeout, .idleTimeout,
        .totalTimeout, .connectionLost, .protocolViolation, .decoding,
    ]
}
