// SPDX-License-Identifier: Apache-2.0
#if Observability
import Curlew
import CurlewObservability
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import InMemoryLogging
import InMemoryTracing
import Logging
import Testing
import Tracing

@Suite(.timeLimit(.minutes(1))) struct LoggingInstrumentTests {
    private let server: LoopbackServer
    private let handler = InMemoryLogHandler()

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func logger(_ level: Logger.Level, metadataProvider: Logger.MetadataProvider? = nil) -> Logger {
        var handler = handler
        handler.metadataProvider = metadataProvider
        var logger = Logger(label: "test", factory: { [handler] _ in handler })
        logger.logLevel = level
        return logger
    }

    private func manager(
        _ level: Logger.Level, _ change: (inout SessionConfiguration) -> Void = { _ in },
        _ set: (inout LoggingInstrument) -> Void = { _ in }
    ) -> SessionManager {
        makeManager {
            var instrument = LoggingInstrument(logger: logger(level))
            set(&instrument)
            $0.instruments.append(instrument)
            change(&$0)
        }
    }

    private func entries(_ level: Logger.Level) -> [InMemoryLogHandler.Entry] { handler.entries.filter { $0.level == level } }

    @Test func `the end of each exchange is logged as metadata at debug`() async throws {
        let request = manager(.debug).request(server.url("/redirect/1"), options: RequestOptions(name: "redirected"))
        _ = try await request.serializingData().value
        let entries = handler.entries
        #expect(entries.map(\.level) == [.debug, .debug])
        #expect(Set(entries.map(\.message.description)) == ["An exchange has ended"])
        #expect(entries.map { $0.metadata["http.response.status_code"] } == ["302", "200"])
        #expect(entries.map { $0.metadata["curlew.exchange.reason"] } == ["first", "redirect"])
        #expect(entries.map { $0.metadata["curlew.connection.reused"] } == ["false", "true"])
        let first = entries[0].metadata
        #expect(first["curlew.request.id"] == "\(request.id)" && first["curlew.request.name"] == "redirected")
        #expect(first["http.request.method"] == "GET" && first["url.full"] == "\(server.url("/redirect/1"))")
        #expect(first["curlew.request.attempt"] == "1" && first["curlew.exchange.number"] == "1")
        #expect(first["network.protocol.version"] == "1.1" && first["curlew.duration"]?.description.hasSuffix(" ms") == true)
        #expect(entries[1].metadata["http.response.body.size"]?.description != "0")
    }

    @Test func `nothing is logged about successes at info`() async throws {
        _ = try await manager(.info).request(server.url("/redirect/1")).serializingData().value
        #expect(handler.entries == [])
    }

    @Test func `heads and phases are logged at trace, without secrets`() async throws {
        let headers: HTTPHeaders = ["Authorization": "Bearer s3cret", "X-Logged": "shown"]
        _ = try await manager(.trace, { $0.redaction.queryItems = ["code"] })
            .request(server.url("/cookies/set?code=s3cret&access_token=s3cret"), headers: headers).serializingData().value
        let messages = Set(entries(.trace).map(\.message.description))
        #expect(messages == ["Sending a request", "Received a response's head", "A phase of an exchange"])
        let text = "\(handler.entries)"
        #expect(text.contains("X-Logged: shown") && text.contains("Set-Cookie"))
        #expect(!text.contains("s3cret"))
        let phases = entries(.trace).compactMap { $0.metadata["curlew.phase"]?.description }
        #expect(phases.contains("first_byte"))
    }

    @Test func `retries are notices, handled failures debug, and others warnings`() async throws {
        let manager = manager(.debug)
        manager.retrier = retryOnce
        let request = manager.request(server.url("/flaky?fail=5&key=l")).validate()
        _ = await request.serializingData().result
        #expect(await eventually { handler.entries.contains { $0.message.description == "A request has failed" } })
        let notice = try #require(entries(.notice).first)
        #expect(notice.metadata["curlew.request.id"] == "\(request.id)" && notice.metadata["curlew.request.attempt"] == "1")
        #expect(notice.metadata["curlew.retry.delay"] == "0 ms" && notice.metadata["http.response.status_code"] == "503")
        #expect(entries(.warning) == [])
        let handled = try #require(handler.entries.last { $0.message.description == "A request has failed" })
        #expect(handled.level == .debug && handled.metadata["error.type"] == "responseValidationFailed")
        #expect(handled.metadata["curlew.request.attempt"] == "2")

        handler.clear()
        manager.request(server.url("/cut-body"))
        #expect(await eventually { !entries(.warning).isEmpty })
        let warning = try #require(entries(.warning).first)
        #expect(warning.metadata["error.type"] == "connectionLost")
        #expect(warning.metadata["url.full"] == "\(server.url("/cut-body"))")

        handler.clear()
        let cancelled = manager.request(server.url("/silent"))
        cancelled.cancel()
        #expect(await eventually { handler.entries.contains { $0.message.description == "A request has failed" } })
        #expect(entries(.warning) == [] && entries(.error) == [])
    }

    @Test func `a delay that is no number of milliseconds is logged as it is`() async throws {
        let manager = manager(.notice)
        for (delay, text) in [(Double.infinity, "inf ms"), (1e300, nil)] {
            manager.retrier = Retrier { _, _, _, completion in completion(true, delay) }
            let request = manager.request(server.url("/status/503")).validate()
            async let response = request.serializingData().response
            #expect(await eventually { !entries(.notice).isEmpty })
            if let text { #expect(entries(.notice).first?.metadata["curlew.retry.delay"] == "\(text)") }
            request.cancel()
            _ = await response
            handler.clear()
        }
    }

    @Test func `failures of WebSockets and of streams with a reader are handled`() async throws {
        let manager = manager(.debug)
        let socket = manager.webSocket(server.url("/json"))
        await #expect(throws: WebSocketError.self) { try await socket.open() }
        #expect(await eventually { handler.entries.contains { $0.message.description == "A request has failed" } })
        let failure = try #require(handler.entries.last { $0.message.description == "A request has failed" })
        #expect(failure.level == .debug && failure.metadata["error.type"] == "handshakeRejected")
        handler.clear()
        let closed = try LoopbackServer { _, _ in .ok() }
        let port = closed.port
        closed.stop()
        let stream = manager.stream(withHostName: "127.0.0.1", port: port)
        await #expect(throws: (any Error).self) { for try await _ in stream.bytes() {} }
        #expect(await eventually { handler.entries.contains { $0.message.description == "A request has failed" } })
        #expect(entries(.warning) == [])
        handler.clear()
        _ = manager.stream(withHostName: "127.0.0.1", port: port)
        #expect(await eventually { !entries(.warning).isEmpty })
    }

    @Test func `texts of errors inside of Curlew's are not logged`() async throws {
        struct Secret: Error, CustomStringConvertible {
            var description: String { "s3cret" }
        }
        struct Failing: Encodable {
            func encode(to encoder: any Encoder) throws { throw Secret() }
        }
        let request = manager(.debug).request(
            server.url("/json"), method: .post, parameters: Failing(), encoder: JSONParameterEncoder.default)
        let error = await request.serializingData().response.error
        #expect("\(try #require(error))".contains("s3cret"))
        #expect(await eventually { handler.entries.contains { $0.message.description == "A request has failed" } })
        #expect(!"\(handler.entries)".contains("s3cret"))
        #expect(handler.entries.last?.metadata["error.type"] == "parameterEncodingFailed")
    }

    @Test func `without a logger the task-local one is used, on every thread`() async throws {
        let manager = makeManager { $0.instruments = [LoggingInstrument()] }
        let request = withLogger(logger(.debug)) { _ in manager.request(server.url("/redirect/2")) }
        _ = try await request.serializingData().value
        #expect(handler.entries.count == 3)
        _ = try await manager.request(server.url("/json")).serializingData().value
        #expect(handler.entries.count == 3)
    }

    @Test func `the metadata provider sees the caller's trace`() async throws {
        let tracer = makeTracer()
        let provider = Logger.MetadataProvider {
            ServiceContext.current?.inMemorySpanContext.map { ["trace_id": "\($0.traceID)"] } ?? [:]
        }
        let manager = makeManager { $0.instruments = [LoggingInstrument(logger: logger(.debug, metadataProvider: provider))] }
        manager.retrier = retryOnce
        let span = tracer.startSpan("work", context: .topLevel)
        let request = ServiceContext.withValue(span.context) { manager.request(server.url("/flaky?fail=9&key=t")).validate() }
        _ = await request.serializingData().result
        span.end()
        #expect(await eventually { handler.entries.count == 4 })
        #expect(Set(handler.entries.map { $0.metadata["trace_id"]?.description }) == [span.spanContext.traceID])
    }

    @Test func `bodies are logged only if asked for, as text, and cut`() async throws {
        let manager = manager(.trace, { _ in }) { $0.bodyLimit = 10 }
        let url = server.url("/body")
        _ = try await manager.upload(Data("a body that is longer".utf8), to: url, headers: [.contentType("text/plain")]).serializingData()
            .value
        _ = try await manager.upload(Data([0, 1, 2, 0xFF]), to: url).serializingData().value
        _ = try await manager.request(server.url("/json")).serializingData().value
        #expect(await eventually { handler.entries.count { $0.metadata["http.response.body"] != nil } == 2 })
        let bodies = handler.entries.compactMap { $0.metadata["http.response.body"]?.description }
        #expect(bodies == ["a body tha", #"{"name":"c"#])
        handler.clear()
        let secrets = self.manager(.trace, { _ in }) { $0.bodyLimit = 25 }
        _ = try await secrets.upload(
            Data(#"{"a":1,"password":"s3cret and more"}"#.utf8), to: url, headers: [.contentType("application/json")]
        )
        .serializingData().value
        #expect(await eventually { handler.entries.contains { $0.metadata["http.request.body"] != nil } })
        #expect(!"\(handler.entries)".contains("s3cret"))
        handler.clear()
        _ = try await self.manager(.trace).request(server.url("/json")).serializingData().value
        #expect(!"\(handler.entries)".contains(#"{"name"#))
    }

    private final class Finished: EventMonitor {
        let count = Lock(0)
        var monitoredEvents: MonitoredEvents { .end }
        func requestDidFinish(_ request: Request) { count.withLock { $0 += 1 } }
    }

    @Test func `what the cache did is logged at debug, with the reason`() async throws {
        let server = try makeCacheableServer()
        let manager = manager(.debug) { $0.cache = .memory() }
        for policy in [URLRequest.CachePolicy.useProtocolCachePolicy, .useProtocolCachePolicy, .reloadRevalidatingCacheData] {
            var request = try URLRequest(url: server.url("/"), method: .get)
            request.cachePolicy = policy
            _ = try await manager.request(request, options: RequestOptions(name: "cached")).serializingData().value
        }
        func uses() -> [Logger.Metadata] { entries(.debug).filter { $0.message == "The cache was used" }.map(\.metadata) }
        #expect(await eventually { uses().count == 3 })
        #expect(uses().map { $0["curlew.cache.outcome"] } == ["miss", "hit", "revalidated"])
        #expect(uses().map { $0["curlew.cache.reason"] } == ["not-stored", "fresh", "requested-by-request"])
        #expect(uses().first?["curlew.cache.status"] == "Curlew; fwd=uri-miss; stored; detail=\"not-stored\"")
        #expect(uses().allSatisfy { $0["curlew.request.name"] == "cached" && $0["curlew.request.id"] != nil })
        let exchanges = entries(.debug).filter { $0.message == "An exchange has ended" }
        #expect(exchanges.map { $0.metadata["curlew.cache.reason"] } == ["not-stored", "requested-by-request"])
        handler.clear()
        let finished = Finished()
        let quiet = self.manager(.info) {
            $0.cache = .memory()
            $0.eventMonitors = [finished]
        }
        _ = try await quiet.request(server.url("/")).serializingData().value
        // Told after what the cache did.
        #expect(await eventually { finished.count.withLock { $0 } == 1 })
        #expect(handler.entries == [])
    }

    @Test func `tracing, metrics and logging are set with one line each, and work together`() async throws {
        let tracer = makeTracer()
        let manager = makeManager {
            $0.instruments.append(TracingInstrument(tracer: tracer))
            $0.instruments.append(MetricsInstrument())
            $0.instruments.append(LoggingInstrument(logger: logger(.debug)))
        }
        _ = try await manager.request(server.url("/redirect/1")).serializingData().value
        #expect(tracer.finishedSpans.count == 2 && handler.entries.count == 2)
    }
}
#endif
