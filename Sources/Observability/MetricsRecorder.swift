// SPDX-License-Identifier: Apache-2.0
#if Observability
import CoreMetrics
import CurlewHTTP
import CurlewTransport

/// The metrics of an instrument, by origin. Made once each, because making one costs more than recording a value. Thread-safe.
final class MetricsRecorder: Sendable {
    /// The number of origins with metrics of their own.
    static let largestNumberOfOrigins = 256

    private struct State {
        var origins: [HTTPOrigin: OriginMetrics] = [:]
        var others: OriginMetrics?
        var cache: [TransferMetrics.CacheOutcome: Counter] = [:]
        var hasBegun = false
    }

    private let factory: (any MetricsFactory)?
    private let state = Lock(State())

    init(_ factory: (any MetricsFactory)?) {
        self.factory = factory
    }

    /// The metrics of an origin, or those of all others once there are too many.
    func metrics(of origin: HTTPOrigin?) -> OriginMetrics {
        if let origin, let known = state.withLock({ $0.origins[origin] }) { return known }
        let factory = factory ?? MetricsSystem.factory
        return state.withLock { state in
            if !state.hasBegun {
                state.hasBegun = true
                // Handlers are never dropped; the counter says so to who looks for it.
                Counter(label: "curlew.request.dropped.handlers", dimensions: [], factory: factory).increment(by: 0)
            }
            guard let origin, state.origins.count < Self.largestNumberOfOrigins else {
                let others = state.others ?? OriginMetrics(address: "other", port: 0, factory)
                state.others = others
                return others
            }
            if let known = state.origins[origin] { return known }
            let metrics = OriginMetrics(address: origin.host, port: origin.port, factory)
            state.origins[origin] = metrics
            return metrics
        }
    }

    func cache(_ outcome: TransferMetrics.CacheOutcome) -> Counter {
        let factory = factory ?? MetricsSystem.factory
        return state.withLock { state in
            if let counter = state.cache[outcome] { return counter }
            let counter = Counter(
                label: "curlew.request.cache", dimensions: [("curlew.cache.outcome", outcome.rawValue)], factory: factory)
            state.cache[outcome] = counter
            return counter
        }
    }
}

/// The metrics of an origin.
final class OriginMetrics: Sendable {
    /// What distinguishes the durations of exchanges with an origin.
    struct Outcome: Hashable {
        let method: String
        let status: Int?
        let errorType: String?
        let version: TransferMetrics.HTTPVersion?
    }

    /// What is recorded at the end of an exchange.
    struct Ended {
        let duration: CoreMetrics.Timer
        var requestSize: Recorder?
        var responseSize: Recorder?
    }

    private struct State {
        var ended: [Outcome: Ended] = [:]
        var retries: [String: Counter] = [:]
        var active: [String: Meter] = [:]
        var openConnections: (active: Meter, idle: Meter)?
        var connectionDurations: [Bool: CoreMetrics.Timer] = [:]
    }

    private let server: [(String, String)]
    private let factory: any MetricsFactory
    let queueTime: CoreMetrics.Timer
    /// In the order of ``ExchangePhase/names``.
    let phases: [CoreMetrics.Timer]
    private let state = Lock(State())

    init(address: String, port: Int, _ factory: any MetricsFactory) {
        let server = [("server.address", address), ("server.port", String(port))]
        self.server = server
        self.factory = factory
        queueTime = Self.timer("curlew.request.queue.time", server, factory)
        phases = ExchangePhase.names.map { Self.timer("curlew.request.phase.duration", [("curlew.phase", $0)] + server, factory) }
    }

    func ended(_ outcome: Outcome, withSizes: Bool) -> Ended {
        state.withLock { state in
            if let ended = state.ended[outcome] { return ended }
            // Empty instead of absent: swift-prometheus traps on metrics of one name whose dimensions have different names, and takes an
            // empty value for an absent one.
            let dimensions =
                dimensions(outcome.method) + [
                    ("http.response.status_code", outcome.status.map { String($0) } ?? ""), ("error.type", outcome.errorType ?? ""),
                    ("network.protocol.version", outcome.version.map { HTTPConventions.version($0) } ?? ""),
                ]
            var ended = Ended(duration: timer("http.client.request.duration", dimensions))
            if withSizes {
                ended.requestSize = Recorder(label: "http.client.request.body.size", dimensions: dimensions, factory: factory)
                ended.responseSize = Recorder(label: "http.client.response.body.size", dimensions: dimensions, factory: factory)
            }
            state.ended[outcome] = ended
            return ended
        }
    }

    func retries(_ method: String) -> Counter {
        state.withLock { state in
            if let counter = state.retries[method] { return counter }
            let counter = Counter(label: "curlew.request.retries", dimensions: dimensions(method), factory: factory)
            state.retries[method] = counter
            return counter
        }
    }

    func activeRequests(_ method: String) -> Meter {
        state.withLock { state in
            if let meter = state.active[method] { return meter }
            let meter = Meter(label: "http.client.active_requests", dimensions: dimensions(method), factory: factory)
            state.active[method] = meter
            return meter
        }
    }

    var openConnections: (active: Meter, idle: Meter) {
        state.withLock { state in
            if let meters = state.openConnections { return meters }
            func meter(_ name: String) -> Meter {
                Meter(label: "http.client.open_connections", dimensions: [("http.connection.state", name)] + server, factory: factory)
            }
            let meters = (active: meter("active"), idle: meter("idle"))
            state.openConnections = meters
            return meters
        }
    }

    func connectionDuration(isHTTP2: Bool) -> CoreMetrics.Timer {
        state.withLock { state in
            if let timer = state.connectionDurations[isHTTP2] { return timer }
            let timer = timer("http.client.connection.duration", server + [("network.protocol.version", isHTTP2 ? "2" : "1.1")])
            state.connectionDurations[isHTTP2] = timer
            return timer
        }
    }

    private func dimensions(_ method: String) -> [(String, String)] { [("http.request.method", method)] + server }

    private func timer(_ label: String, _ dimensions: [(String, String)]) -> CoreMetrics.Timer { Self.timer(label, dimensions, factory) }

    private static func timer(_ label: String, _ dimensions: [(String, String)], _ factory: any MetricsFactory) -> CoreMetrics.Timer {
        CoreMetrics.Timer(label: label, dimensions: dimensions, preferredDisplayUnit: .seconds, factory: factory)
    }
}
#endif
