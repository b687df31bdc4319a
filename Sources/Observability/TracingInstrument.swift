// SPDX-License-Identifier: Apache-2.0
#if Observability
import CurlewCache
import CurlewHTTP
import CurlewTransport
public import Tracing

/// Traces the exchanges of a session with swift-distributed-tracing, by OpenTelemetry's conventions for HTTP clients.
///
/// ```swift
/// configuration.instruments.append(TracingInstrument())
/// ```
///
/// Each exchange on the wire has a span of kind `client`: redirects, authenticated retries, retries and the handshakes of WebSockets have
/// their own. Its parent is the `ServiceContext` of the call that created the request, and its context is injected into the exchange's
/// header fields, in place of an earlier one's. It is named by the method and the request's `RequestOptions.name`, never by the path, and
/// ends with the body, or with the head of a WebSocket's handshake. Its status is an error for failures and from status 400 up.
///
/// With the policies of CurlewResilience, an exchange that was refused, or shares that of an equal request, is not sent: it has a span of kind
/// `internal` without a length, with `curlew.policy` and `curlew.policy.action`.
///
/// The attributes are the stable ones of the conventions; those in development are off by default. In a session with a cache
/// `curlew.cache.reason` says why it did not answer the request without the exchange. Secrets are redacted in all of them. Spans that are
/// not recorded, by the tracer's sampling, cost little.
public struct TracingInstrument: ExchangeInstrument {
    /// The tracer; with `nil`, the default, the one that `InstrumentationSystem` was bootstrapped with, looked up for each exchange.
    public var tracer: (any Tracer)?

    /// Whether each request has a span of kind `internal` as the parent of its exchanges; `false` by default.
    ///
    /// It begins with the first exchange, or with a response of the cache, and ends when the request finishes, so that it contains delays
    /// before retries and validation. In a session with a cache it has the attributes `curlew.cache.outcome`, `curlew.cache.reason` and
    /// `curlew.cache.status` (RFC 9211) of the request's last response.
    public var recordsRequests = false

    /// The names of fields of the request to be recorded as `http.request.header.…`; none by default. Secret fields (`Redaction`) are recorded
    /// in redacted form.
    public var requestHeaders: [String] = []

    /// The names of fields of the response to be recorded as `http.response.header.…`; none by default. Secret fields (`Redaction`) are
    /// recorded in redacted form.
    public var responseHeaders: [String] = []

    /// Whether to record the sizes of bodies on the wire in bytes (`http.request.body.size`, `http.response.body.size`; in development);
    /// `false` by default.
    public var recordsBodySizes = false

    /// Whether to record the request's name without its method as `url.template` (in development); `false` by default.
    public var recordsURLTemplates = false

    /// Decides whether the context is injected into exchanges with an origin; with `nil`, the default, into all.
    ///
    /// An origin that gets none has a span nevertheless. Called on any thread.
    public var propagates: (@Sendable (HTTPOrigin) -> Bool)?

    private let requests = RequestSpans()

    /// Creates an instrument.
    ///
    /// - Parameter tracer: see ``tracer``.
    public init(tracer: (any Tracer)? = nil) {
        self.tracer = tracer
    }

    /// Carries the `ServiceContext`.
    public var contextCarrier: (any ContextCarrier)? { ServiceContextCarrier() }

    /// Ends the spans of requests, and records exchanges that policies have refused or coalesced.
    public var eventMonitor: (any EventMonitor)? { TracingMonitor(instrument: self, spans: requests) }

    /// Starts a span, and injects its context.
    public func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)? {
        let tracer = tracer ?? InstrumentationSystem.tracer
        let span = startSpan(of: exchange, .client, tracer)
        // Parsed only if it is needed: not for a trace that is sampled out.
        let origin = span.isRecording || propagates != nil ? exchange.origin : nil
        if span.isRecording { describe(exchange, origin, in: span) }
        var headers = HTTPHeaders()
        if propagates.map({ propagates in origin.map(propagates) ?? false }) ?? true {
            tracer.inject(span.context, into: &headers, using: HeaderInjector())
        }
        return TracedExchange(span: span, headers: headers, instrument: self)
    }

    private func startSpan(of exchange: OutgoingExchange, _ kind: SpanKind, _ tracer: any Tracer) -> any Span {
        var context = exchange.context(of: ServiceContextCarrier.self) ?? .topLevel
        // After the end nothing would end the span of the request.
        if recordsRequests, !exchange.isAfterEnd { context = requests.context(of: exchange, tracer, context) }
        return tracer.startSpan(HTTPConventions.spanName(exchange.method, exchange.name), context: context, ofKind: kind)
    }

    /// Records an exchange that a policy has kept from being sent.
    fileprivate func record(_ report: PolicyReport) {
        guard let exchange = report.exchange else { return }
        let span = startSpan(of: exchange, .internal, tracer ?? InstrumentationSystem.tracer)
        if span.isRecording {
            describe(exchange, exchange.origin, in: span)
            span.updateAttributes { attributes in
                attributes["curlew.policy"] = report.policy
                attributes["curlew.policy.action"] = report.action
                if !report.name.isEmpty { attributes["curlew.policy.name"] = report.name }
            }
            if report.action == "refused" { span.setStatus(SpanStatus(code: .error)) }
        }
        span.end()
    }

    private func describe(_ exchange: OutgoingExchange, _ origin: HTTPOrigin?, in span: any Span) {
        span.updateAttributes { attributes in
            attributes["http.request.method"] = HTTPConventions.method(exchange.method)
            if !HTTPConventions.isKnown(exchange.method) { attributes["http.request.method_original"] = exchange.method.rawValue }
            if let origin {
                attributes["server.address"] = origin.host
                attributes["server.port"] = origin.port
            }
            attributes["url.full"] = HTTPConventions.url(exchange.url)
            if let reason = exchange.cacheReason { attributes["curlew.cache.reason"] = reason.rawValue }
            if exchange.number > 1 { attributes["http.request.resend_count"] = exchange.number - 1 }
            if recordsURLTemplates, let name = exchange.name {
                attributes["url.template"] = HTTPConventions.template(exchange.method, name)
            }
            for name in requestHeaders { attributes.record(exchange.headers.values(for: name), as: "http.request.header", name) }
        }
    }

    /// Completes the attributes of a span, and ends it.
    fileprivate func end(_ span: any Span, _ completion: ExchangeCompletion) {
        if span.isRecording { describe(completion, in: span) }
        span.end()
    }

    private func describe(_ completion: ExchangeCompletion, in span: any Span) {
        let errorType = HTTPConventions.errorType(completion)
        span.updateAttributes { attributes in
            if let status = completion.head?.statusCode { attributes["http.response.status_code"] = status }
            if let errorType { attributes["error.type"] = errorType }
            let metrics = completion.metrics
            if let version = metrics.httpVersion { attributes["network.protocol.version"] = HTTPConventions.version(version) }
            if let address = metrics.remoteAddress {
                attributes["network.peer.address"] = address
                if let port = metrics.remotePort { attributes["network.peer.port"] = port }
            }
            if recordsBodySizes {
                attributes["http.request.body.size"] = metrics.requestBodyBytes
                attributes["http.response.body.size"] = metrics.responseBodyBytes
            }
            guard let head = completion.head else { return }
            for name in responseHeaders { attributes.record(head.headers.values(for: name), as: "http.response.header", name) }
        }
        guard errorType != nil else { return }
        // A status says enough; the texts of other libraries' errors may have secrets.
        let message = completion.error?.ownText
        span.setStatus(SpanStatus(code: .error, message: completion.head.map { $0.statusCode >= 400 } ?? false ? nil : message))
    }
}

/// The span of an exchange.
private final class TracedExchange: ExchangeObservation {
    private let span: any Span
    let headers: HTTPHeaders
    private let instrument: TracingInstrument

    init(span: any Span, headers: HTTPHeaders, instrument: TracingInstrument) {
        self.span = span
        self.headers = headers
        self.instrument = instrument
    }

    func didEnd(_ completion: ExchangeCompletion) {
        instrument.end(span, completion)
    }
}

/// Injects a context into header fields.
private struct HeaderInjector: Injector {
    func inject(_ value: String, forKey key: String, into headers: inout HTTPHeaders) {
        headers.update(name: key, value: value)
    }
}

/// The spans of the requests in flight.
private final class RequestSpans: Sendable {
    private let spans = Lock<[UInt64: any Span]>([:])

    /// Returns the context of the span of an exchange's request, which begins with the first exchange.
    func context(of exchange: OutgoingExchange, _ tracer: any Tracer, _ parent: ServiceContext) -> ServiceContext {
        // The exchanges of a request are sent one after the other.
        if let span = span(of: exchange.requestID) { return span.context }
        return begin(exchange.requestID, exchange.method, exchange.name, tracer, parent).context
    }

    /// The span of a request; `nil` if none has begun.
    func span(of request: UInt64) -> (any Span)? { spans.withLock { $0[request] } }

    /// Begins the span of a request.
    func begin(_ request: UInt64, _ method: HTTPMethod, _ name: String?, _ tracer: any Tracer, _ parent: ServiceContext) -> any Span {
        let span: any Span = tracer.startSpan(HTTPConventions.spanName(method, name), context: parent, ofKind: .internal)
        spans.withLock { $0[request] = span }
        return span
    }

    /// Removes and returns the span of a request.
    func end(_ request: UInt64) -> (any Span)? { spans.withLock { $0.removeValue(forKey: request) } }
}

/// Records in the spans of requests what the cache did, and ends them, in the context of the request's caller; passes what policies do to
/// the instrument.
private struct TracingMonitor: EventMonitor {
    let instrument: TracingInstrument
    let spans: RequestSpans

    var monitoredEvents: MonitoredEvents { instrument.recordsRequests ? [.cache, .end, .policies] : .policies }

    func policyDidAct(_ report: PolicyReport) { instrument.record(report) }

    func request(
        _ request: Request, didUseCache outcome: TransferMetrics.CacheOutcome, because reason: CacheReason, status: CacheStatus
    ) {
        guard let span = spans.span(of: request.id) ?? begin(request) else { return }
        guard span.isRecording else { return }
        span.updateAttributes { attributes in
            attributes["curlew.cache.outcome"] = outcome.rawValue
            attributes["curlew.cache.reason"] = reason.rawValue
            attributes["curlew.cache.status"] = status.description
        }
    }

    /// Begins the span of a request without an exchange; not after its end, as nothing would end the span.
    private func begin(_ request: Request) -> (any Span)? {
        guard !request.isReopened, let method = request.request?.httpMethod.flatMap({ HTTPMethod(rawValue: $0) }) else { return nil }
        let tracer = instrument.tracer ?? InstrumentationSystem.tracer
        return spans.begin(request.id, method, request.name, tracer, ServiceContext.current ?? .topLevel)
    }

    func requestDidFinish(_ request: Request) {
        guard let span = spans.end(request.id) else { return }
        if span.isRecording, let error = request.delegate.error {
            span.updateAttributes { $0["error.type"] = error.kindName }
            span.setStatus(SpanStatus(code: .error))
        }
        span.end()
    }
}

extension SpanAttributes {
    /// Records the values of a header field, redacted.
    fileprivate mutating func record(_ values: [String], as prefix: String, _ name: String) {
        guard !values.isEmpty else { return }
        let redaction = Redaction.current
        set("\(prefix).\(name.lowercased())", value: .stringArray(values.map { redaction.value(of: HTTPHeader(name: name, value: $0)) }))
    }
}
#endif
