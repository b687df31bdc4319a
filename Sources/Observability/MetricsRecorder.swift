// SPDX-License-Identifier: Apache-2.0
#if Observability
import CoreMetrics
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// The metrics of an instrument, by host and port. Made once each, because making one costs more than recording a value; never inside a lock,
/// as that calls the user's factory. Thread-safe.
final class MetricsRecorder: Sendable {
    /// The number of origins with metrics of their own.
    static let largestNumberOfOrigins = 256

    /// What distinguishes origins in the dimensions: not the scheme.
    private struct Server: Hashable {
        let host: String
        let port: Int
    }

    /// What distinguishes the counts of what policies do: not the group, of which there may be many.
    private struct PolicyAction: Hashable {
        let policy: String
        let action: String
        let phase: String
        let name: String
    }

    /// What distinguishes the counts of what the cache does.
    private struct CacheUse: Hashable {
        let outcome: TransferMetrics.CacheOutcome
        let reason: CacheReason
    }

    private struct State {
        var servers: [Server: OriginMetrics] = [:]
        /// The last URL's scheme and authority with the slash after them, and its metrics: reading an origin costs more than comparing.
        var last: (prefix: String, metrics: OriginMetrics)?
        var others: OriginMetrics?
        var cache: [CacheUse: Counter] = [:]
        var policies: [PolicyAction: Counter] = [:]
        var hasBegun = false
    }

    private let factory: (any MetricsFactory)?
    private let state = Lock(State())

    init(_ factory: (any MetricsFactory)?) {
        self.factory = factory
    }

    /// The metrics of a URL's origin.
    func metrics(ofURL url: String) -> OriginMetrics {
        if let last = state.withLock({ $0.last }), url.hasBytePrefix(last.prefix) { return last.metrics }
        let metrics = metrics(of: HTTPOrigin(url: url))
        guard let scheme = url.firstScalarRange(of: "://"),
            let slash = url[scheme.upperBound...].unicodeScalars.firstIndex(where: { "/?#".unicodeScalars.contains($0) }),
            url[slash] == "/"
        else { return metrics }
        let prefix = String(url[...slash])
        state.withLock { $0.last = (prefix, metrics) }
        return metrics
    }

    /// The metrics of an origin, or those of all others once there are too many.
    func metrics(of origin: HTTPOrigin?) -> OriginMetrics {
        let server = origin.map { Server(host: $0.host, port: $0.port) }
        let known = state.withLock { state -> OriginMetrics? in
            if let server, let known = state.servers[server] { return known }
            return server == nil || state.servers.count >= Self.largestNumberOfOrigins ? state.others : nil
        }
        if let known { return known }
        let factory = factory ?? MetricsSystem.factory
        let isFirst = state.withLock { state in
            defer { state.hasBegun = true }
            return !state.hasBegun
        }
        // Handlers are never dropped; the series exists so that dashboards and alerts can ask for it.
        if isFirst { Counter(label: "curlew.request.dropped.handlers", dimensions: [], factory: factory).increment(by: 0) }
        // Made without the lock, as that calls the user's factory; of two that are made at once the first counts.
        guard let server, state.withLock({ $0.servers.count }) < Self.largestNumberOfOrigins else {
            let others = OriginMetrics(address: "other", port: 0, factory)
            return state.withLock { state in
                if let known = state.others { return known }
                state.others = others
                return others
            }
        }
        let made = OriginMetrics(address: server.host, port: server.port, factory)
        let entered = state.withLock { state -> OriginMetrics? in
            guard state.servers[server] != nil || state.servers.count < Self.largestNumberOfOrigins else { return nil }
            return state.servers.first(made, for: server)
        }
        return entered ?? metrics(of: nil)
    }

    func policy(_ report: PolicyReport) -> Counter {
        let key = PolicyAction(policy: report.policy, action: report.action, phase: report.phase ?? "", name: report.name)
        if let counter = state.withLock({ $0.policies[key] }) { return counter }
        let counter = Counter(
            label: "curlew.policy.events",
            dimensions: [
                ("curlew.policy", key.policy), ("curlew.policy.action", key.action), ("curlew.policy.phase", key.phase),
                ("curlew.policy.name", key.name),
            ], factory: factory ?? MetricsSystem.factory)
        return state.withLock { $0.policies.first(counter, for: key) }
    }

    func cache(_ outcome: TransferMetrics.CacheOutcome, _ reason: CacheReason) -> Counter {
        let use = CacheUse(outcome: outcome, reason: reason)
        if let counter = state.withLock({ $0.cache[use] }) { return counter }
        let counter = Counter(
            label: "curlew.request.cache",
            dimensions: [("curlew.cache.outcome", outcome.rawValue), ("curlew.cache.reason", reason.rawValue)],
            factory: factory ?? MetricsSystem.factory)
        return state.withLock { $0.cache.first(counter, for: use) }
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
        /// The last of these: most exchanges end like the one before, and comparing costs less than hashing.
        var last: (outcome: Outcome, ended: Ended)?
        var retries: [String: Counter] = [:]
        var active: [String: Meter] = [:]
        var openConnections: (active: Meter, idle: Meter)?
        var connectionDurations: [TransferMetrics.HTTPVersion: CoreMetrics.Timer] = [:]
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
        let known = state.withLock { state -> Ended? in
            if let last = state.last, last.outcome == outcome { return last.ended }
            guard let ended = state.ended[outcome] else { return nil }
            state.last = (outcome, ended)
            return ended
        }
        if let known { return known }
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
        return state.withLock { [ended] state in state.ended.first(ended, for: outcome) }
    }

    func retries(_ method: String) -> Counter {
        if let counter = state.withLock({ $0.retries[method] }) { return counter }
        let counter = Counter(label: "curlew.request.retries", dimensions: dimensions(method), factory: factory)
        return state.withLock { $0.retries.first(counter, for: method) }
    }

    func activeRequests(_ method: String) -> Meter {
        if let meter = state.withLock({ $0.active[method] }) { return meter }
        let meter = Meter(label: "http.client.active_requests", dimensions: dimensions(method), factory: factory)
        return state.withLock { $0.active.first(meter, for: method) }
    }

    var openConnections: (active: Meter, idle: Meter) {
        if let meters = state.withLock({ $0.openConnections }) { return meters }
        func meter(_ name: String) -> Meter {
            Meter(label: "http.client.open_connections", dimensions: [("http.connection.state", name)] + server, factory: factory)
        }
        let meters = (active: meter("active"), idle: meter("idle"))
        return state.withLock { state in
            if let known = state.openConnections { return known }
            state.openConnections = meters
            return meters
        }
    }

    func connectionDuration(_ version: TransferMetrics.HTTPVersion) -> CoreMetrics.Timer {
        if let timer = state.withLock({ $0.connectionDurations[version] }) { return timer }
        let timer = timer("http.client.connection.duration", server + [("network.protocol.version", HTTPConventions.version(version))])
        return state.withLock { $0.connectionDurations.first(timer, for: version) }
    }

    private func dimensions(_ method: String) -> [(String, String)] { [("http.request.method", method)] + server }

    private func timer(_ label: String, _ dimensions: [(String, String)]) -> CoreMetrics.Timer { Self.timer(label, dimensions, factory) }

    private static func timer(_ label: String, _ dimensions: [(String, String)], _ factory: any MetricsFactory) -> CoreMetrics.Timer {
        CoreMetrics.Timer(label: label, dimensions: dimensions, preferredDisplayUnit: .seconds, factory: factory)
    }
}

extension Dictionary {
    /// Returns the value for the key, which is this one if there was none.
    fileprivate mutating func first(_ value: Value, for key: Key) -> Value {
        if let known = self[key] { return known }
        self[key] = value
        return value
    }
}
#endif
