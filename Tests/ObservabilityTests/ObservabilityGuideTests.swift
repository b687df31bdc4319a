// SPDX-License-Identifier: Apache-2.0
#if Observability
import Curlew
import CurlewObservability
import CurlewTestSupport
import CurlewTesting
import InMemoryLogging
import InMemoryTracing
import Logging
import MetricsTestKit
import Testing

/// Runs the code of ObservingASession.md, and checks what it says.
@Suite(.timeLimit(.minutes(1))) struct ObservabilityGuideTests {
    @Test("every block of the guide is compiled, and everything compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Observability/CurlewObservability.docc/ObservingASession.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("ObservabilityGuide.swift")) == [])
    }

    @Test("a name is in a span and in the metadata of a log; context is propagated as the guide says") func names() async throws {
        let tracer = makeTracer()
        let handler = InMemoryLogHandler()
        var logger = Logger(label: "guide", factory: { [handler] _ in handler })
        logger.logLevel = .debug
        var tracing = ObservabilityGuide.tracing()
        tracing.tracer = tracer
        var configuration = SessionConfiguration()
        configuration.instruments += [tracing, LoggingInstrument(logger: logger)]
        let mock = MockTransport(.json(User(id: 7, name: "Ada")))
        let manager = SessionManager(configuration: configuration, transport: mock)
        for api in ["https://api.example.org", "https://api.example.com"] {
            #expect(try await ObservabilityGuide.user(7, of: api, with: manager).name == "Ada")
        }
        await manager.shutdown(gracePeriod: .seconds(5))
        // Of each request the exchange's span and its own.
        #expect(tracer.finishedSpans.map(\.operationName) == Array(repeating: "GET /users/{id}", count: 4))
        #expect(handler.entries.map { $0.metadata["curlew.request.name"] } == ["GET /users/{id}", "GET /users/{id}"])
        let names = tracer.finishedSpans.filter { $0.kind == .client }.compactMap { $0["server.address"] }
        #expect(names == ["api.example.org", "api.example.com"])
        let injected = mock.requests.map { request in request.headers.contains { $0.name.hasPrefix("in-memory") } }
        #expect(injected == [true, false], "\(mock.requests.map(\.headers))")
    }

    @Test("the other instruments of the guide can be installed") func instruments() async throws {
        var configuration = SessionConfiguration()
        ObservabilityGuide.logging(&configuration)
        configuration.instruments.append(ObservabilityGuide.measuring())
        let manager = SessionManager(configuration: configuration, transport: MockTransport(.text("ok")))
        #expect(try await manager.request("https://api.example.org/").serializingString().value == "ok")
        #expect(ObservabilityGuide.manager(Logger(label: "guide")).session.configuration.instruments.count == 3)
    }
}
#endif
