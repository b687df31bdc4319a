// SPDX-License-Identifier: Apache-2.0
#if Observability
import CurlewCache
import CurlewHTTP
import CurlewTransport
public import Logging
import Tracing

/// Logs the exchanges and the failures of a session with swift-log, as metadata.
///
/// ```swift
/// configuration.instruments.append(LoggingInstrument(logger: logger))
/// ```
///
/// | level | what |
/// | --- | --- |
/// | `trace` | heads of requests and responses, redacted; phases of an exchange; bodies, if ``bodyLimit`` is set |
/// | `debug` | the end of each exchange; what the cache and policies (CurlewResilience) did; failures that the program handles, cancellations |
/// | `notice` | retries; changes of a circuit breaker's phase |
/// | `warning` | failures of requests that have no handler and are not awaited |
///
/// Nothing is logged as `error`: only the program knows whether a failure is one. The logger's metadata provider is called in the
/// `ServiceContext` of the request's caller, so that it finds the trace. With a level above `debug` an exchange costs a comparison.
public struct LoggingInstrument: ExchangeInstrument {
    /// The logger; with `nil`, the default, the task-local one of the request's caller (`withLogger`).
    public var logger: Logger?

    /// The length in bytes to which bodies are logged at `trace`, if they are text; `nil`, the default, logs none.
    ///
    /// Of JSON and forms, the values whose names are marked or usual for secrets are redacted (``/CurlewHTTP/Redaction``); of others only the
    /// program knows what they contain. Streamed bodies, downloads and uploads of files are not logged.
    public var bodyLimit: Int?

    /// Creates an instrument.
    ///
    /// - Parameter logger: see ``logger``.
    public init(logger: Logger? = nil) {
        self.logger = logger
    }

    /// Carries the `ServiceContext`, and without ``logger`` the task-local one.
    public var contextCarrier: (any ContextCarrier)? { logger == nil ? LoggingContextCarrier() : ServiceContextCarrier() }

    /// Logs retries, failures, uses of the cache, and what policies do.
    public var eventMonitor: (any EventMonitor)? { LoggingMonitor(logger: logger, bodyLimit: bodyLimit) }

    /// Logs the head of a request, and later the exchange's end.
    public func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)? {
        let context = logger == nil ? exchange.context(of: LoggingContextCarrier.self) : nil
        let logger = logger ?? context?.logger ?? Logger.current
        guard logger.logLevel <= .debug else { return nil }
        let logged = LoggedExchange(logger, exchange, context?.serviceContext ?? exchange.context(of: ServiceContextCarrier.self))
        logged.logRequest(exchange)
        return logged
    }
}

/// Logs an exchange.
private final class LoggedExchange: ExchangeObservation {
    private let logger: Logger
    private let metadata: Logger.Metadata
    private let context: ServiceContext?

    init(_ logger: Logger, _ exchange: OutgoingExchange, _ context: ServiceContext?) {
        self.logger = logger
        self.context = context
        var metadata: Logger.Metadata = [
            "curlew.request.id": "\(exchange.requestID)", "curlew.request.attempt": "\(exchange.attempt)",
            "curlew.exchange.number": "\(exchange.number)", "curlew.exchange.reason": "\(exchange.reason.rawValue)",
            "http.request.method": "\(exchange.method)", "url.full": "\(exchange.redactedURL)",
        ]
        if let name = exchange.name { metadata["curlew.request.name"] = "\(name)" }
        if let reason = exchange.cacheReason { metadata["curlew.cache.reason"] = "\(reason.rawValue)" }
        self.metadata = metadata
    }

    func logRequest(_ exchange: OutgoingExchange) {
        guard logger.logLevel <= .trace else { return }
        log(.trace, "Sending a request", ["http.request.headers": Self.redacted(exchange.headers)])
    }

    func didReceive(_ head: ResponseHead) {
        guard logger.logLevel <= .trace else { return }
        log(
            .trace, "Received a response's head",
            ["http.response.status_code": "\(head.statusCode)", "http.response.headers": Self.redacted(head.headers)])
    }

    func didEnd(_ completion: ExchangeCompletion) {
        let metrics = completion.metrics
        var more: Logger.Metadata = [
            "curlew.duration": "\(metrics.total.milliseconds) ms", "http.request.body.size": "\(metrics.requestBodyBytes)",
            "http.response.body.size": "\(metrics.responseBodyBytes)", "curlew.connection.reused": "\(metrics.reusedConnection)",
        ]
        if let status = completion.head?.statusCode { more["http.response.status_code"] = "\(status)" }
        if let version = metrics.httpVersion { more["network.protocol.version"] = "\(HTTPConventions.version(version))" }
        if let error = completion.error { more.describe(error) }
        log(.debug, "An exchange has ended", more)
        guard logger.logLevel <= .trace else { return }
        for phase in ExchangePhase.phases(of: metrics) {
            log(
                .trace, "A phase of an exchange", ["curlew.phase": "\(phase.name)", "curlew.duration": "\(phase.duration.milliseconds) ms"])
        }
    }

    private func log(_ level: Logger.Level, _ message: Logger.Message, _ more: Logger.Metadata) {
        ServiceContext.withValue(context) {
            logger.log(level: level, message, metadata: metadata.merging(more) { $1 }, source: "Curlew")
        }
    }

    private static func redacted(_ headers: HTTPHeaders) -> Logger.MetadataValue {
        let redaction = Redaction.current
        return .array(headers.map { .string(redaction.line($0)) })
    }
}

/// Logs retries, failures and uses of the cache, in the context of the request's caller, and what policies do.
private struct LoggingMonitor: EventMonitor {
    let logger: Logger?
    let bodyLimit: Int?

    var monitoredEvents: MonitoredEvents {
        bodyLimit == nil ? [.retries, .failures, .cache, .policies] : [.retries, .failures, .cache, .policies, .end]
    }

    func policyDidAct(_ report: PolicyReport) {
        let context = logger == nil ? report.exchange?.context(of: LoggingContextCarrier.self) : nil
        let logger = logger ?? context?.logger ?? Logger.current
        let level = report.phase == nil ? Logger.Level.debug : .notice
        guard logger.logLevel <= level else { return }
        var metadata: Logger.Metadata = ["curlew.policy": "\(report.policy)", "curlew.policy.action": "\(report.action)"]
        if let phase = report.phase { metadata["curlew.policy.phase"] = "\(phase)" }
        if !report.name.isEmpty { metadata["curlew.policy.name"] = "\(report.name)" }
        if !report.group.isEmpty { metadata["curlew.policy.group"] = "\(report.group)" }
        if let duration = report.duration { metadata["curlew.duration"] = "\(duration.milliseconds) ms" }
        if let exchange = report.exchange {
            metadata["curlew.request.id"] = "\(exchange.requestID)"
            metadata["http.request.method"] = "\(exchange.method)"
            metadata["url.full"] = "\(exchange.redactedURL)"
            if let name = exchange.name { metadata["curlew.request.name"] = "\(name)" }
        }
        ServiceContext.withValue(context?.serviceContext ?? report.exchange?.context(of: ServiceContextCarrier.self)) {
            logger.log(level: level, "A policy has acted", metadata: metadata, source: "Curlew")
        }
    }

    func request(
        _ request: Request, didUseCache outcome: TransferMetrics.CacheOutcome, because reason: CacheReason, status: CacheStatus
    ) {
        let logger = logger ?? Logger.current
        guard logger.logLevel <= .debug else { return }
        var metadata: Logger.Metadata = [
            "curlew.request.id": "\(request.id)", "curlew.cache.outcome": "\(outcome.rawValue)",
            "curlew.cache.reason": "\(reason.rawValue)", "curlew.cache.status": "\(status)",
        ]
        if let name = request.name { metadata["curlew.request.name"] = "\(name)" }
        logger.log(level: .debug, "The cache was used", metadata: metadata, source: "Curlew")
    }

    func request(_ request: Request, willRetryAfter delay: TimeInterval, because error: any Error) {
        let logger = logger ?? Logger.current
        guard logger.logLevel <= .notice else { return }
        var metadata = metadata(of: request, error)
        // No integer: a retrier may answer with any number.
        metadata["curlew.retry.delay"] = .string(String(format: "%.0f ms", delay * 1000))
        logger.log(level: .notice, "Retrying a request", metadata: metadata, source: "Curlew")
    }

    func request(_ request: Request, didFailWith error: any Error, isHandled: Bool) {
        let logger = logger ?? Logger.current
        let isCancelled = error.kindName == "cancelled"
        let level = isHandled || isCancelled ? Logger.Level.debug : .warning
        guard logger.logLevel <= level else { return }
        logger.log(level: level, "A request has failed", metadata: metadata(of: request, error), source: "Curlew")
    }

    func requestDidFinish(_ request: Request) {
        let logger = logger ?? Logger.current
        guard let bodyLimit, logger.logLevel <= .trace else { return }
        var metadata: Logger.Metadata = ["curlew.request.id": "\(request.id)"]
        if let body = request.request?.httpBody, let text = request.text(of: body, upTo: bodyLimit, isResponse: false) {
            metadata["http.request.body"] = "\(Redaction.current.body(text))"
        }
        if let body = request.delegate.data, let text = request.text(of: body, upTo: bodyLimit, isResponse: true) {
            metadata["http.response.body"] = "\(Redaction.current.body(text))"
        }
        if metadata.count > 1 { logger.log(level: .trace, "The bodies of a request", metadata: metadata, source: "Curlew") }
    }

    private func metadata(of request: Request, _ error: any Error) -> Logger.Metadata {
        var metadata: Logger.Metadata = ["curlew.request.id": "\(request.id)"]
        if let name = request.name { metadata["curlew.request.name"] = "\(name)" }
        let failed = (error as? CurlewError)?.request
        if let method = failed?.method { metadata["http.request.method"] = "\(method)" }
        if let url = failed?.url, !url.isEmpty { metadata["url.full"] = "\(Redaction.escaped(url))" }
        if let attempt = failed?.attempt, attempt > 0 { metadata["curlew.request.attempt"] = "\(attempt)" }
        if let status = failed?.statusCode { metadata["http.response.status_code"] = "\(status)" }
        metadata.describe(error)
        return metadata
    }
}

extension Logger.Metadata {
    /// Adds the kind of an error and, if it is Curlew's own, its text, which is redacted: that of others may have secrets.
    fileprivate mutating func describe(_ error: any Error) {
        self["error.type"] = "\(error.kindName)"
        if let text = error.ownText { self["error.message"] = "\(text)" }
    }
}

extension Duration {
    /// The duration in milliseconds, with three digits.
    fileprivate var milliseconds: String {
        let microseconds = components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
        return String(format: "%.3f", Double(microseconds) / 1000)
    }
}
#endif
