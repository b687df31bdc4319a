// SPDX-License-Identifier: Apache-2.0
import BenchSupport
import Curlew
import CurlewJSON
import CurlewObservability
import CurlewResilience
import Foundation
import Logging
import Synchronization
import Tracing

/// Everything of Curlew that the benchmarks call, written as its users write it.
struct Client: BenchClient {
    private let options: Options
    private let headers: HTTPHeaders
    private let manager: SessionManager
    /// What a service gives each request.
    private let requestOptions: RequestOptions?
    private let handlerQueue = DispatchQueue(label: "CurlewBench.handlers")
    private let targets: Targets
    private let sessions: Sessions?

    init(_ options: Options) throws {
        self.options = options
        targets = Targets(options.target)
        sessions = [.urlsession, .bytes].contains(options.style) ? Sessions(options) : nil
        // The server closes the connection after each answer, whatever the client would do.
        headers = options.isCold ? ["Connection": "close"] : [:]
        var configuration = SessionConfiguration()
        // 64 by default: more in flight would measure the queue.
        configuration.maximumConnectionsPerHost = nil
        // The default depends on libcurl's version.
        configuration.multiplexes = options.multiplexes
        configuration.proxy = .none
        configuration.loops = options.loops
        configuration.httpVersion = options.usesHTTP2 ? .automatic : .http1
        configuration.tls.certificateAuthorityFile = options.caFile
        switch options.style {
        case .observed:
            configuration.instruments.append(MetricsInstrument())
            configuration.instruments.append(LoggingInstrument(logger: Self.logger))
        case .urlrequest: configuration.headers = Sessions.headers
        case .traced: configuration.instruments.append(TracingInstrument(tracer: SampledOutTracer()))
        default: break
        }
        if let policies = Self.policies(of: options.style) { configuration.use(policies) }
        manager = SessionManager(configuration: configuration)
        requestOptions =
            switch options.style {
            case .deadline: RequestOptions(deadline: .seconds(60))
            case .options: RequestOptions(idleTimeout: .seconds(20), totalTimeout: .seconds(50), name: "GET /{file}")
            default: nil
            }
        switch options.style {
        case .adapter, .handlers: manager.adapter = AuthorizingAdapter()
        case .headers: manager.adapter = AuthorizingHeaders()
        case .awaited: manager.adapter = AwaitedHeaders()
        case .data, .options, .deadline, .object, .list, .observed, .traced, .urls, .breaker, .limiter, .concurrency, .budget, .hedging,
            .coalescing, .leased, .urlrequest, .urlsession, .bytes:
            break
        }
    }

    /// A policy that lets everything pass.
    private static func policies(of style: Options.Style) -> Resilience? {
        switch style {
        case .breaker: Resilience(breaker: CircuitBreaker())
        case .limiter: Resilience(rateLimiter: RateLimiter(RateLimit(1_000_000)))
        case .concurrency: Resilience(concurrency: ConcurrencyLimiter(.fixed(1_000)))
        case .budget: Resilience(retryBudget: RetryBudget())
        case .hedging: Resilience(hedging: Hedging(after: .fixed(.seconds(60))))
        case .coalescing: Resilience(coalescing: Coalescing())
        case .leased: Resilience(rateLimiter: RateLimiter(RateLimit(1_000_000), store: GenerousStore(), leaseSize: 1_000))
        default: nil
        }
    }

    /// As a service has it: nothing below `info`.
    private static var logger: Logger {
        var logger = Logger(label: "bench")
        logger.logLevel = .info
        return logger
    }

    var executor: (any TaskExecutor)? { options.usesExecutor ? manager.taskExecutor : nil }

    /// Tells how much processor time each of several loops has taken.
    func shutdown() async throws {
        guard options.loops > 1 else { return }
        var times: [String] = []
        for executor in manager.taskExecutors {
            times.append(await Task(executorPreference: executor) { String(format: "%.3f", Self.threadSeconds()) }.value)
        }
        printError("loops: \(times.joined(separator: " "))")
    }

    private static func threadSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    func get(_ url: String) async throws -> Int {
        switch options.style {
        case .adapter, .headers: try await manager.request(url, headers: headers).validate().serializingData().value.count
        case .options, .deadline:
            try await manager.request(url, headers: headers, options: requestOptions).serializingData().value.count
        case .urls, .coalescing: try await manager.request(targets.next(), headers: headers).serializingData().value.count
        case .urlrequest:
            try await Sessions.body(of: manager.request(Sessions.request(url)))
        case .urlsession: try await sessions?.data(url) ?? 0
        case .bytes: try await sessions?.bytes(url) ?? 0
        default: try await manager.request(url, headers: headers).serializingData().value.count
        }
    }

    func get(_ url: String, handler: @escaping @Sendable (Result<Int, any Error>) -> Void) {
        manager.request(url, headers: headers).validate().responseData(queue: handlerQueue) { response in
            handler(response.result.map(\.count))
        }
    }

    func decode(_ url: String) async throws -> Int {
        let request = manager.request(url, headers: headers).validate()
        if options.style == .object { return try await request.serializingDecodable(Profile.self, decoder: decoder).value.id }
        return try await request.serializingDecodable([Item].self, decoder: decoder).value.count
    }

    func decode(_ bytes: [UInt8]) throws -> Int {
        // Each time data of its own, as a body is.
        let data = Data(bytes)
        if options.style == .object { return try decoder.decode(Profile.self, from: data).id }
        return try decoder.decode([Item].self, from: data).count
    }

    /// A new one each time, as the default of `serializingDecodable` is.
    private var decoder: any DataDecoder { options.usesFastDecoder ? FastJSONDecoder() : JSONDecoder() }

    func download(_ url: String, to path: String) async throws {
        _ = try await manager.download(url, to: URL(fileURLWithPath: path), options: [.removePreviousFile]).serializingURL().value
    }

    func upload(_ path: String, to url: String) async throws {
        _ = try await manager.upload(URL(fileURLWithPath: path), to: url, method: .put).serializingData().value
    }
}

/// URLs of which no two in flight are equal, so that there is nothing to coalesce: slashes that the server merges take libcurl no time.
private final class Targets: Sendable {
    private let urls: [String]
    private let last = Atomic(0)

    init(_ url: String) {
        let end = url.lastIndex(of: "/") ?? url.endIndex
        urls = (0..<32).map { url[..<end] + String(repeating: "/", count: $0) + url[end...] }
    }

    func next() -> String { urls[last.wrappingAdd(1, ordering: .relaxed).newValue % urls.count] }
}

/// Grants what is asked for.
private struct GenerousStore: RateLimitStore {
    func acquire(_ count: Int, of key: String, limit: RateLimit) async throws -> RateLimitGrant { .granted(count, validFor: .seconds(60)) }
}

/// The least that an adapter does: one header.
private struct AuthorizingAdapter: RequestAdapter {
    func adapt(_ request: URLRequest) throws -> URLRequest {
        var request = request
        request.setValue("Bearer benchmark", forHTTPHeaderField: "Authorization")
        return request
    }
}

/// The same, for a header alone.
private struct AuthorizingHeaders: HeaderAdapter {
    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) {
        headers["Authorization"] = "Bearer benchmark"
    }
}

/// The same, awaited.
private struct AwaitedHeaders: AsyncHeaderAdapter {
    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String, for manager: SessionManager) async throws {
        headers["Authorization"] = "Bearer benchmark"
    }
}

/// A tracer that has decided against every trace, and says so to the next service.
private struct SampledOutTracer: Tracer {
    struct Span: Tracing.Span {
        let context: ServiceContext
        var operationName: String {
            get { "" }
            nonmutating set {}
        }
        var attributes: SpanAttributes {
            get { [:] }
            nonmutating set {}
        }
        var isRecording: Bool { false }
        func setStatus(_ status: SpanStatus) {}
        func addEvent(_ event: SpanEvent) {}
        func recordError<Instant: TracerInstant>(_ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant) {}
        func addLink(_ link: SpanLink) {}
        func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {}
    }

    func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind, at instant: @autoclosure () -> Instant,
        function: String, file fileID: String, line: UInt
    ) -> Span {
        Span(context: context())
    }

    func forceFlush() {}

    func extract<Carrier, Extract: Extractor>(_ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract)
    where Extract.Carrier == Carrier {}

    func inject<Carrier, Inject: Injector>(_ context: ServiceContext, into carrier: inout Carrier, using injector: Inject)
    where Inject.Carrier == Carrier {
        injector.inject("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", forKey: "traceparent", into: &carrier)
    }
}
