// SPDX-License-Identifier: Apache-2.0
#if Observability
import Curlew
import CurlewHAR
import CurlewObservability
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTesting
import InMemoryLogging
import InMemoryTracing
import Logging
import MetricsTestKit
import Testing
import Tracing

/// Exchanges with secrets of many kinds are traced, measured, logged and recorded; no artefact has one.
@Suite(.timeLimit(.minutes(2))) struct SecretScanTests {
    /// All that was written about the exchanges of one session.
    private final class Artefacts {
        let tracer = makeTracer()
        let metrics = TestMetrics()
        let handler = InMemoryLogHandler()
        let recorder = HARRecorder()
        var errors: [any Error] = []

        func configure(_ configuration: inout SessionConfiguration, _ kind: SecretExchange) {
            var tracing = TracingInstrument(tracer: tracer)
            tracing.recordsRequests = true
            tracing.recordsBodySizes = true
            tracing.recordsURLTemplates = true
            tracing.requestHeaders = kind.headers.map(\.name) + ["Content-Type"]
            tracing.responseHeaders = ["Content-Type", "Location", "Set-Cookie"]
            var logger = Logger(label: "scan", factory: { [handler] _ in handler })
            logger.logLevel = .trace
            configuration.instruments += [
                tracing, MetricsInstrument(factory: metrics, optional: [.activeRequests, .bodySizes]), LoggingInstrument(logger: logger),
            ]
            configuration.eventMonitors.append(recorder)
            configuration.redaction = SecretExchange.redaction
        }

        /// The texts, by what wrote them.
        func texts() throws -> [(artefact: String, text: String)] {
            var texts: [(String, String)] = []
            for span in tracer.finishedSpans {
                texts.append(("trace", "\(span) \(span.operationName) \(span.status.map { "\($0)" } ?? "")"))
                texts += span.attributeNames.map { ("trace", "\($0)=\(span[$0] ?? "")") }
            }
            texts += handler.entries.map { ("log", "\($0.message) \($0.metadata)") }
            let dimensions =
                metrics.timers.map { ($0.label, $0.dimensions) } + metrics.meters.map { ($0.label, $0.dimensions) }
                + metrics.recorders.map { ($0.label, $0.dimensions) } + metrics.counters.map { ($0.label, $0.dimensions) }
            texts += dimensions.map { ("metric", "\($0) \($1)") }
            let archive = try #require(recorder.data)
            texts += [("archive", String(decoding: archive, as: UTF8.self)), ("waterfall", try Waterfall(archive: archive).html)]
            for error in errors {
                texts += [("error", "\(error)"), ("error", String(reflecting: error)), ("error", error.localizedDescription)]
            }
            return texts
        }
    }

    @Test(
        "no secret is in a trace, a metric, a log, an archive, a picture or an error",
        arguments: SecretExchange.kinds.filter(\.isKnownToSessions))
    func scan(_ kind: SecretExchange) async throws {
        let artefacts = Artefacts()
        // An answer, a status that is retried, a failure.
        for response in [kind.response, .status(503), .failure(.connect)] {
            var configuration = SessionConfiguration()
            artefacts.configure(&configuration, kind)
            let manager = SessionManager(
                configuration: configuration, interceptor: Interceptor(adapters: [], retriers: [retryOnce]),
                transport: MockTransport(response))
            let result = await manager.request(try kind.urlRequest).validate().serializingData().response
            if let error = result.error { artefacts.errors.append(error) }
            await manager.shutdown(gracePeriod: .seconds(5))
        }
        let texts = try artefacts.texts()
        // Each of them has written something about these exchanges.
        let wrote = Set(texts.filter { $0.text.contains("api.example.org") }.map(\.artefact))
        #expect(wrote == ["trace", "metric", "log", "archive", "waterfall", "error"])
        for (artefact, text) in texts {
            for secret in kind.secrets { #expect(!text.contains(secret), "\(artefact): \(text)") }
        }
    }
}
#endif
