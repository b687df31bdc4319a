// SPDX-License-Identifier: Apache-2.0

/// Why a transfer failed, how far it had come, and what libcurl said.
public struct TransferFailure: Error, Sendable, Hashable {
    /// The class of a failure.
    ///
    /// An open set: later versions may add kinds, so a `switch` needs a `default`.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        /// The kind's name.
        public let rawValue: String

        /// Makes a kind of a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The URL is malformed, or libcurl does not take it.
        public static let invalidURL = Kind(rawValue: "invalidURL")
        /// The URL's scheme is not one of those allowed.
        public static let unsupportedScheme = Kind(rawValue: "unsupportedScheme")
        /// The host's name was not resolved.
        public static let nameResolution = Kind(rawValue: "nameResolution")
        /// The proxy's name was not resolved, or the proxy refused.
        public static let proxy = Kind(rawValue: "proxy")
        /// No connection to the host.
        public static let connect = Kind(rawValue: "connect")
        /// No TLS session with the host.
        public static let secureConnection = Kind(rawValue: "secureConnection")
        /// The host's certificate is not trusted: it is not in order, or the session's policy for the host refused it.
        public static let serverCertificate = Kind(rawValue: "serverCertificate")
        /// The host wants a client certificate, or ours can't be used.
        public static let clientCertificate = Kind(rawValue: "clientCertificate")
        /// No connection within the connect timeout.
        public static let connectTimeout = Kind(rawValue: "connectTimeout")
        /// No byte of a response within the first-byte timeout.
        public static let firstByteTimeout = Kind(rawValue: "firstByteTimeout")
        /// No byte in either direction within the idle timeout.
        public static let idleTimeout = Kind(rawValue: "idleTimeout")
        /// Not done within the total timeout.
        public static let totalTimeout = Kind(rawValue: "totalTimeout")
        /// No free connection to the host within the queue timeout.
        public static let queueTimeout = Kind(rawValue: "queueTimeout")
        /// The connection, or the request's stream of HTTP/2, ended before the response was whole.
        public static let connectionLost = Kind(rawValue: "connectionLost")
        /// The peer broke the rules of HTTP.
        public static let protocolViolation = Kind(rawValue: "protocolViolation")
        /// The body's content coding is corrupt or cut short, or there are too many of them.
        public static let decoding = Kind(rawValue: "decoding")
        /// The response's head or body exceeds a limit of the session.
        public static let tooLarge = Kind(rawValue: "tooLarge")
        /// The request's body could not be read, or ended before its announced length.
        public static let requestBody = Kind(rawValue: "requestBody")
        /// The cache has no answer, and the network was not to be asked.
        public static let notInCache = Kind(rawValue: "notInCache")
        /// The host has no address that the session may connect to.
        public static let addressNotAllowed = Kind(rawValue: "addressNotAllowed")
        /// Only a cellular interface leads to the host, and those were not to be used.
        public static let cellularNotAllowed = Kind(rawValue: "cellularNotAllowed")
        /// libcurl refused an option, has not the feature, or ran out of memory.
        public static let configuration = Kind(rawValue: "configuration")
        /// Anything else.
        public static let other = Kind(rawValue: "other")
    }

    /// How far a transfer had come.
    public enum Phase: Int, Sendable, Hashable, Comparable {
        /// Waiting for a free connection to the host.
        case queued
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

        /// Whether `lhs` comes before `rhs` in a transfer's life.
        public static func < (lhs: Phase, rhs: Phase) -> Bool { lhs.rawValue < rhs.rawValue }
    }

    /// The class of the failure.
    public let kind: Kind
    /// The URL of the hop that failed, without user name and password, secret query items redacted (``Redaction``).
    public let url: String
    /// How far the transfer had come.
    public let phase: Phase
    /// libcurl's error code; 0 when the failure was found by Curlew.
    public let code: Int
    /// What went wrong, in a sentence; libcurl may have put words of the peer into it, whose control characters are escaped.
    public let message: String
    /// Whether a byte of the request may have reached the host.
    public let requestWasSent: Bool
    /// The number of body bytes received before the failure.
    public let bytesReceived: Int64

    /// Whether a policy for the host, or a closure that was asked, refused it: Alamofire 4 cancels such requests.
    package var isRefusedByPolicy = false

    /// Makes a failure.
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

    /// Whether time ran out, whichever of the timeouts it was.
    public var isTimeout: Bool {
        [.connectTimeout, .firstByteTimeout, .idleTimeout, .totalTimeout, .queueTimeout].contains(kind)
    }
}

// MARK: - CustomStringConvertible

extension TransferFailure: CustomStringConvertible {
    /// The failure in a line: kind, message, phase, URL and libcurl's code.
    public var description: String {
        let curl = code == 0 ? "" : ", libcurl code \(code)"
        return Redaction.escaped("\(message) (\(kind.rawValue) while \(phase), \(url)\(curl), \(bytesReceived) body bytes received)")
    }
}
