// SPDX-License-Identifier: Apache-2.0

/// A transfer's failure: its kind, the phase reached, and libcurl's message.
public struct TransferFailure: Error, Sendable, Hashable {
    /// The kind of a failure.
    ///
    /// An open set: later versions may add kinds, so a `switch` needs a `default`.
    public struct Kind: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The kind's name.
        public let rawValue: String

        /// The kind's name, such as `connectTimeout`.
        public var description: String { rawValue }

        /// Creates a kind from a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The URL is malformed, or libcurl does not accept it.
        public static let invalidURL = Kind(rawValue: "invalidURL")
        /// The URL's scheme is not allowed.
        public static let unsupportedScheme = Kind(rawValue: "unsupportedScheme")
        /// The host's name could not be resolved.
        public static let nameResolution = Kind(rawValue: "nameResolution")
        /// The proxy's name could not be resolved, or the proxy refused the request.
        public static let proxy = Kind(rawValue: "proxy")
        /// No connection to the host could be made, or none to its proxy, which the message then names.
        public static let connect = Kind(rawValue: "connect")
        /// TLS with the host could not be set up.
        public static let secureConnection = Kind(rawValue: "secureConnection")
        /// The host's certificate is invalid or untrusted, or the session's policy for the host refused it.
        public static let serverCertificate = Kind(rawValue: "serverCertificate")
        /// The host requires a client certificate, or the one given can't be used.
        public static let clientCertificate = Kind(rawValue: "clientCertificate")
        /// No connection within the connect timeout.
        public static let connectTimeout = Kind(rawValue: "connectTimeout")
        /// No byte of a response within the first-byte timeout.
        public static let firstByteTimeout = Kind(rawValue: "firstByteTimeout")
        /// No byte in either direction within the idle timeout.
        public static let idleTimeout = Kind(rawValue: "idleTimeout")
        /// The transfer did not complete within the total timeout.
        public static let totalTimeout = Kind(rawValue: "totalTimeout")
        /// No free connection to the host within the queue timeout.
        public static let queueTimeout = Kind(rawValue: "queueTimeout")
        /// The request did not finish by its deadline.
        public static let deadline = Kind(rawValue: "deadline")
        /// The connection, or the request's HTTP/2 stream, ended before the response was complete.
        public static let connectionLost = Kind(rawValue: "connectionLost")
        /// The peer violated HTTP.
        public static let protocolViolation = Kind(rawValue: "protocolViolation")
        /// The body's content coding is corrupt or truncated, or there are too many codings.
        public static let decoding = Kind(rawValue: "decoding")
        /// The response's head or body exceeds a limit of the session.
        public static let tooLarge = Kind(rawValue: "tooLarge")
        /// The request's body could not be read, or ended before its announced length.
        public static let requestBody = Kind(rawValue: "requestBody")
        /// There is no cached response, and the cache policy forbids using the network.
        public static let notInCache = Kind(rawValue: "notInCache")
        /// The host has no address that the session may connect to.
        public static let addressNotAllowed = Kind(rawValue: "addressNotAllowed")
        /// The host can only be reached over a cellular interface, which is not allowed.
        public static let cellularNotAllowed = Kind(rawValue: "cellularNotAllowed")
        /// A circuit breaker is open: nothing was sent.
        public static let circuitOpen = Kind(rawValue: "circuitOpen")
        /// A rate limit is used up, and the wait would be too long: nothing was sent.
        public static let rateLimited = Kind(rawValue: "rateLimited")
        /// Too many requests are in flight, and too many wait: nothing was sent.
        public static let overloaded = Kind(rawValue: "overloaded")
        /// libcurl rejected an option, lacks the feature, or ran out of memory.
        public static let configuration = Kind(rawValue: "configuration")
        /// Any other failure.
        public static let other = Kind(rawValue: "other")
    }

    /// The phase of a transfer; an earlier one is less.
    ///
    /// Later versions may add phases, so a `switch` needs a `default`, and raw values are not stable.
    public enum Phase: Int, Sendable, Hashable, OrderedByRawValue {
        /// Waiting for adapters, before anything is transferred.
        case preparing = -1
        /// Waiting for a free connection to the host.
        case queued = 0
        /// Resolving the host's name.
        case resolving
        /// Connecting, to the host or through a proxy.
        case connecting
        /// Setting up TLS.
        case securing
        /// Sending the request.
        case sending
        /// Waiting for the response's first byte.
        case waiting
        /// Receiving the response's head.
        case receivingHead
        /// Receiving the response's body.
        case receivingBody
        /// Waiting for validations or retriers, or for the delay before a retry: the last transfer has completed.
        case concluding
    }

    /// The kind of the failure.
    public let kind: Kind
    /// The URL of the failed transfer, without user name and password, and with secret query items redacted (``Redaction``).
    public let url: String
    /// The phase that the transfer had reached.
    public let phase: Phase
    /// libcurl's error code; 0 if the failure was detected by Curlew.
    public let code: Int
    /// The reason, in a sentence; libcurl may have included text of the peer, whose control characters are escaped.
    public let message: String
    /// Whether a byte of the request may have reached the host.
    public let requestWasSent: Bool
    /// The number of body bytes received before the failure.
    public let bytesReceived: Int64

    /// The time after which a policy that has refused the request would send it; `nil` if it does not know, and for all other failures.
    public package(set) var retryAfter: Duration?

    /// The request that failed, with its attempt; `nil` in a transport, which knows transfers only.
    public package(set) var request: FailedRequest?

    /// The system's error (`errno`) of the last connect that has failed; 0 without one.
    package var systemError: Int32 = 0

    /// Whether a policy for the host, or a closure that decides for it, refused the host: Alamofire 4 cancels such requests.
    package var isRefusedByPolicy = false

    /// Creates a failure.
    public init(
        kind: Kind, url: String, phase: Phase, code: Int = 0, message: String, requestWasSent: Bool = false, bytesReceived: Int64 = 0
    ) {
        self.kind = kind
        self.url = Redaction.current.url(url)
        self.phase = phase
        self.code = code
        self.message = message.redactedURL
        self.requestWasSent = requestWasSent
        self.bytesReceived = bytesReceived
    }

    /// Whether the kind is one of the timeouts, or the deadline.
    public var isTimeout: Bool {
        [.connectTimeout, .firstByteTimeout, .idleTimeout, .totalTimeout, .queueTimeout, .deadline].contains(kind)
    }
}

// MARK: - CustomStringConvertible

extension TransferFailure: LineConvertible {
    /// The failure in a line: the request, if it is known, message, kind, phase, URL and libcurl's code.
    package var line: String {
        let curl = code == 0 ? "" : ", libcurl code \(code)"
        let place = request?.url == url ? "" : ", \(url)"
        let text = "\(message) (\(kind.rawValue) while \(phase)\(place)\(curl), \(bytesReceived) body bytes received)"
        return Redaction.escaped(request?.failing(because: text) ?? text)
    }
}

// MARK: - LocalizedError

extension TransferFailure: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}
