// SPDX-License-Identifier: Apache-2.0
#if Observability
import CurlewCache
import CurlewHTTP
import CurlewTransport
public import CoreMetrics

/// Measures the exchanges of a session with swift-metrics, by OpenTelemetry's conventions for HTTP clients.
///
/// ```swift
/// configuration.instruments.append(MetricsInstrument())
/// ```
///
/// | metric | kind | dimensions |
/// | --- | --- | --- |
/// | `http.client.request.duration` | `Timer` | `http.request.method`, `server.address`, `server.port`, `http.response.status_code`, `error.type`, `network.protocol.version` |
/// | `curlew.request.retries` | `Counter` | `http.request.method`, `server.address`, `server.port` |
/// | `curlew.request.queue.time` | `Timer` | `server.address`, `server.port` |
/// | `curlew.request.phase.duration` | `Timer` | `curlew.phase` (`dns`, `connect`, `tls`, `first_byte`), `server.address`, `server.port` |
/// | `curlew.request.cache` | `Counter` | `curlew.cache.outcome` (`hit`, `revalidated`, `stale`, `miss`, `bypass`), `curlew.cache.reason` (those of `CacheReason`) |
/// | `curlew.policy.events` | `Counter` | `curlew.policy`, `curlew.policy.action`, `curlew.policy.phase`, `curlew.policy.name`; of CurlewResilience |
/// | `curlew.request.dropped.handlers` | `Counter` | none |
/// | `http.client.active_requests` | `Meter` | `http.request.method`, `server.address`, `server.port`; opt-in |
/// | `http.client.request.body.size`, `http.client.response.body.size` | `Recorder`, bytes | as the duration; opt-in |
/// | `http.client.open_connections` | `Meter` | `http.connection.state` (`active`, `idle`), `server.address`, `server.port`; opt-in |
/// | `http.client.connection.duration` | `Timer` | `server.address`, `server.port`, `network.protocol.version`; opt-in |
///
/// `curlew.request.dropped.handlers` counts handlers that were released without having been called. A request calls each of its handlers
/// once, however it ends, so that the counter is always 0: it is recorded so that a dashboard or an alert can have that promise as a query,
/// which without a series has no value.
///
/// A metric's dimensions always have the same names, as Prometheus requires; an absent status, error or version is empty. The
/// number of series is bounded: no path or query is a dimension, unknown methods are `_OTHER`, and origins after the 256th are counted
/// together as the address `other`, port `0`. Metrics are created when they are first needed: bootstrap `MetricsSystem` before the first
/// request.
public struct MetricsInstrument: ExchangeInstrument {
    /// Metrics that the conventions list as in development, and which are not recorded by default.
    public struct OptionalMetrics: OptionSet, Sendable, Hashable {
        /// One bit for each.
        public let rawValue: UInt8

        /// Creates a set from its bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// `http.client.active_requests`.
        public static let activeRequests = OptionalMetrics(rawValue: 1 << 0)
        /// `http.client.request.body.size` and `http.client.response.body.size`.
        public static let bodySizes = OptionalMetrics(rawValue: 1 << 1)
        /// `http.client.open_connections` and `http.client.connection.duration`. Costs each request two calls on the session's queue.
        public static let connections = OptionalMetrics(rawValue: 1 << 2)
        /// All of these.
        public static let all: OptionalMetrics = [.activeRequests, .bodySizes, .connections]
    }

    private let recorder: MetricsRecorder
    private let optional: OptionalMetrics

    /// Creates an instrument.
    ///
    /// - Parameters:
    ///   - factory: makes the metrics; with `nil`, the default, the factory of `MetricsSystem`.
    ///   - optional: the metrics to record in addition; none by default.
    public init(factory: (any MetricsFactory)? = nil, optional: OptionalMetrics = []) {
        recorder = MetricsRecorder(factory)
        self.optional = optional
    }

    /// Counts what the cache and policies do and, if asked for, connections.
    public var eventMonitor: (any EventMonitor)? {
        MetricsMonitor(recorder: recorder, followsConnections: optional.contains(.connections))
    }

    /// Begins to measure an exchange.
    public func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)? {
        let origin = recorder.metrics(ofURL: exchange.url)
        let method = HTTPConventions.method(exchange.method)
        if exchange.reason == .retry { origin.retries(method).increment() }
        let active = optional.contains(.activeRequests) ? origin.activeRequests(method) : nil
        active?.increment()
        return MeasuredExchange(origin: origin, method: method, active: active, recordsSizes: optional.contains(.bodySizes))
    }
}

/// Measures an exchange.
private final class MeasuredExchange: ExchangeObservation {
    private let origin: OriginMetrics
    private let method: String
    private let active: Meter?
    private let recordsSizes: Bool

    init(origin: OriginMetrics, method: String, active: Meter?, recordsSizes: Bool) {
        self.origin = origin
        self.method = method
        self.active = active
        self.recordsSizes = recordsSizes
    }

    func didEnd(_ completion: ExchangeCompletion) {
        active?.decrement()
        let metrics = completion.metrics
        let ended = origin.ended(
            OriginMetrics.Outcome(
                method: method, status: completion.head?.statusCode, errorType: HTTPConventions.errorType(completion),
                version: metrics.httpVersion), withSizes: recordsSizes)
        ended.duration.recordNanoseconds(metrics.nanoseconds.total)
        ended.requestSize?.record(metrics.requestBodyBytes)
        ended.responseSize?.record(metrics.responseBodyBytes)
        if let queued = metrics.nanoseconds.queue { origin.queueTime.recordNanoseconds(queued) }
        ExchangePhase.forEach(of: metrics) { origin.phases[$0].recordNanoseconds($1) }
    }
}

/// Counts what concerns no exchange: the cache, policies and the connections.
private struct MetricsMonitor: EventMonitor {
    let recorder: MetricsRecorder
    let followsConnections: Bool

    var monitoredEvents: MonitoredEvents { followsConnections ? [.cache, .policies, .connections] : [.cache, .policies] }

    func policyDidAct(_ report: PolicyReport) {
        recorder.policy(report).increment()
    }

    func request(
        _ request: Request, didUseCache outcome: TransferMetrics.CacheOutcome, because reason: CacheReason, status: CacheStatus
    ) {
        recorder.cache(outcome, reason).increment()
    }

    func connectionDidChange(_ event: ConnectionEvent) {
        let origin = recorder.metrics(of: event.origin)
        let (active, idle) = origin.openConnections
        switch event.kind {
        case .opened: active.increment()
        case .reused:
            guard event.wasIdle else { return }
            idle.decrement()
            active.increment()
        case .becameIdle:
            active.decrement()
            idle.increment()
        case .closed:
            (event.wasIdle ? idle : active).decrement()
            origin.connectionDuration(event.httpVersion).record(event.age)
        }
    }
}

extension CoreMetrics.Timer {
    fileprivate func record(_ duration: Duration) {
        recordNanoseconds(Int64(clamping: duration.nanoseconds))
    }
}
#endif
