// SPDX-License-Identifier: Apache-2.0
#if Observability
import Curlew
import CurlewObservability
import CurlewSessionTestSupport
import CurlewTestSupport
import InMemoryTracing
import MetricsTestKit
import Testing
import Tracing

/// A tracer whose identifiers are those of W3C trace contexts, with the header field of such a context.
func makeTracer() -> InMemoryTracer {
    InMemoryTracer(
        idGenerator: InMemoryTracer.IDGenerator(
            nextTraceID: { (0..<16).map { _ in String(format: "%02x", Int.random(in: 0...255)) }.joined() },
            nextSpanID: { (0..<8).map { _ in String(format: "%02x", Int.random(in: 0...255)) }.joined() }))
}

extension FinishedInMemorySpan {
    /// The value of an attribute as text.
    subscript(_ name: String) -> String? {
        switch attributes.get(name) {
        case nil: nil
        case .string(let value): value
        case .int32(let value): "\(value)"
        case .int64(let value): "\(value)"
        case .stringArray(let values): values.joined(separator: ", ")
        case let other?: "\(other)"
        }
    }

    /// The names of all attributes.
    var attributeNames: Set<String> {
        var names: Set<String> = []
        attributes.forEach { name, _ in names.insert(name) }
        return names
    }
}

extension TestMetrics {
    /// The dimensions of the metric with these values; `nil` without one.
    func timer(_ label: String, _ wanted: [String: String]) -> TestTimer? {
        timers(label: label).first { timer in wanted.allSatisfy { name, value in timer.dimensions.contains { $0 == (name, value) } } }
    }

    /// The number of recorded durations.
    func count(_ label: String, _ wanted: [String: String] = [:]) -> Int {
        timers(label: label).filter { timer in
            wanted.allSatisfy { name, value in timer.dimensions.contains { $0 == (name, value) } }
        }.reduce(0) { $0 + $1.values.count }
    }

    /// The sum of the last values of the meters.
    func level(_ label: String, _ wanted: [String: String] = [:]) -> Double {
        meters(label: label).filter { meter in
            wanted.allSatisfy { name, value in meter.dimensions.contains { $0 == (name, value) } }
        }.reduce(0) { $0 + ($1.lastValue ?? 0) }
    }
}

/// Responds with a body that is fresh for 100 seconds, and confirms its tag.
func makeCacheableServer(_ cacheControl: String = "max-age=100") throws -> LoopbackServer {
    try LoopbackServer { request, _ in
        if request.header("If-None-Match") != nil { return .status(304, headers: [ServerField("ETag", "\"1\"")]) }
        return ServerResponse(
            status: 200, headers: [ServerField("Cache-Control", cacheControl), ServerField("ETag", "\"1\"")], body: .data(Data("x".utf8)))
    }
}

/// Fails with a status first, then as often as it is asked, and retries failures once.
let retryOnce = Retrier { _, request, _, completion in completion(request.retryCount == 0, 0) }

#endif
