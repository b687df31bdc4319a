// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Takes part in each exchange of a session's requests, to trace, measure or log it.
///
/// Set in ``SessionConfiguration/instruments``. An instrument is asked as the last step before an exchange goes to the transport: the first
/// of a request, a redirect, an authenticated retry, a restart, a retry, and the handshake of a WebSocket. It may set header fields, such as
/// a trace's context, and is notified of the exchange's head and its end:
///
/// ```swift
/// struct Numbering: ExchangeInstrument {
///     func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)? { Numbered(exchange) }
/// }
/// final class Numbered: ExchangeObservation {
///     let headers: HTTPHeaders
///     init(_ exchange: OutgoingExchange) { headers = ["X-Exchange": "\(exchange.requestID)-\(exchange.number)"] }
///     func didEnd(_ completion: ExchangeCompletion) {}
/// }
/// ```
///
/// Only exchanges on the wire count: a response that the session's cache serves alone is none, its validation with the server is one. A
/// repetition inside libcurl, on a fresh connection or for the authentication of a connection, is part of its exchange. Raw streams, and the
/// requests that `protocolClasses` load, have none.
///
/// Called on any thread, the event loop's included, in the order of ``SessionConfiguration/instruments``, and not in the context of the
/// caller, which ``OutgoingExchange/context(of:)`` returns. Must not block.
public protocol ExchangeInstrument: Sendable {
    /// An exchange is about to be sent.
    ///
    /// - Returns: what observes the exchange; `nil` to leave the exchange alone.
    func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)?

    /// A context carrier that is installed with the instrument; `nil` by default.
    ///
    /// Of several carriers of one type, those of ``SessionConfiguration/contextCarriers`` included, a session has the first.
    var contextCarrier: (any ContextCarrier)? { get }

    /// A monitor that is installed with the instrument; `nil` by default.
    var eventMonitor: (any EventMonitor)? { get }
}

extension ExchangeInstrument {
    /// No carrier.
    public var contextCarrier: (any ContextCarrier)? { nil }
    /// No monitor.
    public var eventMonitor: (any EventMonitor)? { nil }
}

/// What an instrument has begun for one exchange, such as a span.
///
/// ``didEnd(_:)`` is called exactly once, as the last, however the exchange ends: also when it is cancelled, or its session ends.
public protocol ExchangeObservation: AnyObject, Sendable {
    /// The fields to set in the exchange's request, in place of fields of their names; read once, before the exchange is sent. None by
    /// default.
    ///
    /// They are not part of the task's request, so that a follow-up or a retry does not inherit them. Invalid fields are left out.
    var headers: HTTPHeaders { get }

    /// The head of an interim response was received (1xx; RFC 9110, section 15.2), before that of the final response; not of `100 Continue`,
    /// and not of the handshake of a WebSocket. Does nothing by default.
    func didReceiveInterim(_ head: ResponseHead)

    /// The head of the response was received. Does nothing by default.
    func didReceive(_ head: ResponseHead)

    /// The exchange has ended.
    func didEnd(_ completion: ExchangeCompletion)
}

extension ExchangeObservation {
    /// No fields.
    public var headers: HTTPHeaders { HTTPHeaders() }
    /// Does nothing.
    public func didReceiveInterim(_ head: ResponseHead) {}
    /// Does nothing.
    public func didReceive(_ head: ResponseHead) {}
}

/// An exchange that is about to be sent: one request and one response on the wire.
public struct OutgoingExchange: Sendable {
    /// Why an exchange is sent.
    ///
    /// An open set: later versions may add reasons, so a `switch` needs a `default`.
    public struct Reason: RawRepresentable, Sendable, Hashable {
        /// The reason's name.
        public let rawValue: String

        /// Creates a reason from a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The first exchange of a request.
        public static let first = Reason(rawValue: "first")
        /// The first exchange of a later attempt, which a retrier asked for.
        public static let retry = Reason(rawValue: "retry")
        /// The request to which a response redirects.
        public static let redirect = Reason(rawValue: "redirect")
        /// The same request with credentials, for a challenge.
        public static let authentication = Reason(rawValue: "authentication")
        /// The same request without a range or conditions: what was stored can't be used.
        public static let restart = Reason(rawValue: "restart")
        /// Validates a stale response that the cache has served already (`stale-while-revalidate`). The request may have finished.
        public static let validation = Reason(rawValue: "validation")
        /// The same request once more, while the first exchange of it is still waiting for its response.
        public static let hedge = Reason(rawValue: "hedge")
        /// A WebSocket connects again.
        public static let reconnection = Reason(rawValue: "reconnection")
    }

    /// The request's number in the process: ``Request/id``.
    public let requestID: UInt64
    /// The request's ``RequestOptions/name``; `nil` if it has none.
    public let name: String?
    /// The number of the exchange among those of its request, all attempts included, from 1.
    public let number: Int
    /// The number of the attempt, from 1: 2 is the first retry.
    public let attempt: Int
    /// Why the exchange is sent.
    public let reason: Reason
    /// The request's method.
    public let method: HTTPMethod
    /// The request's absolute URL. Not redacted; ``redactedURL`` is.
    public let url: String
    /// The header fields of the request, with credentials and cookies, and without those that libcurl or an instrument adds. Not redacted.
    public let headers: HTTPHeaders
    /// The length of the request's body in bytes; `nil` without a body, or if it is unknown.
    public let bodyLength: Int64?
    /// Whether the exchange is the handshake of a WebSocket, which ends with the response's head.
    public let isWebSocketHandshake: Bool
    /// Whether the request is made over TLS only because of its host's `Strict-Transport-Security` (``SessionConfiguration/hsts``): its URL
    /// had the scheme `http`.
    public let isUpgradedByHSTS: Bool
    /// Why the session's cache does not answer the request without this exchange; `nil` without a cache, and in what monitors receive.
    public let cacheReason: CacheReason?
    /// Whether the end of the request is not reported after the exchange: it has finished before and was reopened by a late validation, or
    /// the exchange is a validation in the background.
    package let isAfterEnd: Bool
    /// The context of the request's caller.
    let captured: CapturedContext?

    /// Origin of the URL; `nil` if it has none. Parsed when it is read.
    public var origin: HTTPOrigin? { HTTPOrigin(url: url) }

    /// The URL without user name and password, and with secret query items redacted (``Redaction``).
    public var redactedURL: String { url.redactedURL }

    /// Returns what a carrier of that type has captured when the request was made; `nil` if the session has none, or the caller had no
    /// context.
    public func context<Carrier: ContextCarrier>(of carrier: Carrier.Type) -> Carrier.Context? {
        captured?.context(of: carrier)
    }
}

/// How an exchange has ended.
public struct ExchangeCompletion: Sendable {
    /// The head of the response; `nil` if none was received.
    public let head: ResponseHead?
    /// Why the exchange failed: a ``CurlewError``, or what was thrown by the request's body or for the response's; `nil` if the response was
    /// received. A status is no error.
    public let error: (any Error)?
    /// The measurements, also of a failed exchange.
    public let metrics: TransferMetrics

    /// Creates a completion.
    public init(head: ResponseHead?, error: (any Error)?, metrics: TransferMetrics) {
        self.head = head
        self.error = error
        self.metrics = metrics
    }
}

// MARK: - Descriptions

extension OutgoingExchange: LineConvertible, RedactedReflectable {
    /// Method and URL, redacted (``Redaction``), with the numbers of request, attempt and exchange.
    package var line: String { "\(method) \(redactedURL) (request \(requestID), attempt \(attempt), exchange \(number))" }

    /// The properties, with URL and header fields redacted.
    package var shownParts: KeyValuePairs<String, Any> {
        [
            "requestID": requestID, "name": name as Any, "number": number, "attempt": attempt, "reason": reason.rawValue,
            "method": method, "url": redactedURL, "headers": headers, "isWebSocketHandshake": isWebSocketHandshake,
            "isUpgradedByHSTS": isUpgradedByHSTS, "cacheReason": cacheReason?.rawValue as Any,
        ]
    }
}

/// An exchange that is reported to the session's monitors. A class, as it is large, and most sessions have none.
final class ReportedExchange: Sendable {
    let exchange: OutgoingExchange

    init(_ exchange: OutgoingExchange) {
        self.exchange = exchange
    }
}
