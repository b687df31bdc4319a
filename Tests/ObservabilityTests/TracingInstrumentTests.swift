// SPDX-License-Identifier: Apache-2.0
#if Observability
import Curlew
import CurlewEvents
import CurlewObservability
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import InMemoryTracing
import Testing
import Tracing

@Suite(.timeLimit(.minutes(1))) struct TracingInstrumentTests {
    private let tracer = makeTracer()
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func manager(
        _ change: (inout SessionConfiguration) -> Void = { _ in }, _ set: (inout TracingInstrument) -> Void = { _ in }
    ) -> SessionManager {
        makeManager {
            var instrument = TracingInstrument(tracer: tracer)
            set(&instrument)
            $0.instruments.append(instrument)
            change(&$0)
        }
    }

    /// The span that a request of the server belongs to, by its header field.
    private func spanID(_ request: ServerRequest?) -> String? { request?.header(InMemoryTracer.spanIDKey) }

    private func expectNoActiveSpans(_ location: SourceLocation = #_sourceLocation) {
        #expect(tracer.activeSpans.isEmpty, sourceLocation: location)
    }

    @Test func `a span has the stable attributes of the conventions, and its context is sent`() async throws {
        let manager = manager()
        let parent = tracer.startSpan("work", context: .topLevel)
        let request = ServiceContext.withValue(parent.context) { manager.request(server.url("/json?a=1")) }
        _ = try await request.serializingData().value
        parent.end()
        let span = try #require(tracer.finishedSpans.first)
        #expect(span.operationName == "GET")
        #expect(span.kind == .client)
        #expect(span.traceID == parent.spanContext.traceID && span.parentSpanID == parent.spanContext.spanID)
        #expect(span.status == nil)
        #expect(
            span.attributeNames == [
                "http.request.method", "server.address", "server.port", "url.full", "http.response.status_code", "network.protocol.version",
                "network.peer.address", "network.peer.port",
            ])
        #expect(span["http.request.method"] == "GET")
        #expect(span["server.address"] == "127.0.0.1" && span["server.port"] == "\(server.port)")
        #expect(span["url.full"] == server.url("/json?a=1"))
        #expect(span["http.response.status_code"] == "200" && span["network.protocol.version"] == "1.1")
        #expect(span["network.peer.address"] == "127.0.0.1" && span["network.peer.port"] == "\(server.port)")
        #expect(span.endInstant.nanosecondsSinceEpoch >= span.startInstant.nanosecondsSinceEpoch)
        #expect(spanID(server.requests.first) == span.spanID)
        #expect(server.requests.first?.header(InMemoryTracer.traceIDKey) == span.traceID)
        expectNoActiveSpans()
    }

    @Test func `the exchanges of a request that was reopened have no span of a request`() async throws {
        let manager = manager({ _ in }) { $0.recordsRequests = true }
        manager.retrier = retryOnce
        let request = manager.request(server.url("/flaky?fail=1&key=reopened"))
        // Without a handler it finishes by itself.
        #expect(await eventually { tracer.finishedSpans.contains { $0.kind == .internal } })
        #expect(await request.validate().serializingData().response.error == nil)
        #expect(await eventually { tracer.finishedSpans.count == 3 })
        #expect(tracer.finishedSpans.map(\.kind) == [.client, .internal, .client])
        expectNoActiveSpans()
    }

    @Test func `a redirect has a span for each exchange, each with its own context`() async throws {
        _ = try await manager().request(server.url("/redirect/2")).serializingData().value
        let spans = tracer.finishedSpans
        #expect(spans.map { $0["http.response.status_code"] } == ["302", "302", "200"])
        #expect(spans.map { $0["http.request.resend_count"] } == [nil, "1", "2"])
        #expect(spans.map(\.spanID) == server.requests.map { spanID($0) })
        #expect(Set(spans.map(\.spanID)).count == 3)
        #expect(spans.allSatisfy { $0.status == nil && $0["error.type"] == nil })
        expectNoActiveSpans()
    }

    @Test func `a retry has a span with the error of its status`() async throws {
        let manager = manager()
        manager.retrier = retryOnce
        _ = try await manager.request(server.url("/flaky?fail=1&key=a")).validate().serializingData().value
        let spans = tracer.finishedSpans
        #expect(spans.map { $0["http.response.status_code"] } == ["503", "200"])
        #expect(spans.map { $0["error.type"] } == ["503", nil])
        #expect(spans.map { $0.status?.code } == [.error, nil])
        #expect(spans[0].status?.message == nil)
        #expect(spans.map { $0["http.request.resend_count"] } == [nil, "1"])
        #expect(spans.map(\.spanID) == server.requests.map { spanID($0) })
    }

    @Test func `a challenge that is answered has two spans`() async throws {
        let request = manager().request(server.url("/auth-basic?user=u&password=p")).authenticate(user: "u", password: "p")
        _ = try await request.serializingData().value
        #expect(tracer.finishedSpans.map { $0["http.response.status_code"] } == ["401", "200"])
        #expect(tracer.finishedSpans.map { $0["error.type"] } == ["401", nil])
        expectNoActiveSpans()
    }

    @Test func `a timeout, a cancellation, a deadline and a refused connection are errors of their kind`() async throws {
        let manager = manager()
        _ = await manager.request(server.url("/silent"), options: RequestOptions(idleTimeout: .seconds(1))).serializingData().result
        let silent = manager.request(server.url("/head-only"))
        silent.stream { _ in }
        #expect(await server.waitForRequests(2))
        silent.cancel()
        _ = await silent.serializingData().result
        _ = await manager.request(server.url("/silent"), options: RequestOptions(deadline: .seconds(1))).serializingData().result
        let listener = try LoopbackServer.standard()
        let url = listener.url("/")
        listener.stop()
        _ = await manager.request(url).serializingData().result
        let spans = tracer.finishedSpans
        #expect(spans.map { $0["error.type"] } == ["idleTimeout", "cancelled", "deadline", "connect"])
        #expect(spans.allSatisfy { $0.status?.code == .error && $0.status?.message != nil })
        #expect(spans[3]["http.response.status_code"] == nil && spans[3]["network.peer.address"] == nil)
        expectNoActiveSpans()
    }

    @Test func `a body that is cut off fails the span of a successful status`() async throws {
        _ = await manager().request(server.url("/cut-body")).serializingData().result
        let span = try #require(tracer.finishedSpans.first)
        #expect(span["http.response.status_code"] == "200" && span["error.type"] == "connectionLost")
        #expect(span.status?.code == .error)
    }

    @Test func `a response from the cache has no span, its validation has one`() async throws {
        let server = try LoopbackServer { request, _ in
            if request.header("If-None-Match") != nil { return .status(304, headers: [ServerField("ETag", "\"1\"")]) }
            return ServerResponse(
                status: 200, headers: [ServerField("Cache-Control", "max-age=100"), ServerField("ETag", "\"1\"")],
                body: .data(Data("x".utf8)))
        }
        let manager = manager { $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil) }
        for policy in [URLRequest.CachePolicy.useProtocolCachePolicy, .useProtocolCachePolicy, .reloadRevalidatingCacheData] {
            var request = try URLRequest(url: server.url("/"), method: .get)
            request.cachePolicy = policy
            #expect(try await manager.request(request).serializingString().value == "x")
        }
        #expect(tracer.finishedSpans.map { $0["http.response.status_code"] } == ["200", "304"])
        #expect(tracer.finishedSpans.map { $0["curlew.cache.reason"] } == ["not-stored", "requested-by-request"])
        #expect(tracer.finishedSpans.allSatisfy { $0.status == nil })
        expectNoActiveSpans()
    }

    @Test func `the span of a request tells what the cache did and why, also without an exchange`() async throws {
        let server = try makeCacheableServer()
        let manager = manager({ $0.cache = .memory() }) { $0.recordsRequests = true }
        let parent = tracer.startSpan("work", context: .topLevel)
        let cases: [(URLRequest.CachePolicy, HTTPMethod)] = [
            (.useProtocolCachePolicy, .get), (.useProtocolCachePolicy, .get), (.reloadRevalidatingCacheData, .get),
            (.reloadIgnoringLocalCacheData, .get), (.useProtocolCachePolicy, .post), (.returnCacheDataDontLoad, .get),
        ]
        for (policy, method) in cases {
            var sent = try URLRequest(url: server.url(policy == .returnCacheDataDontLoad ? "/none" : "/"), method: method)
            sent.cachePolicy = policy
            let request = ServiceContext.withValue(parent.context) { [sent] in
                manager.request(sent, options: RequestOptions(name: "cached"))
            }
            _ = await request.serializingData().result
        }
        parent.end()
        #expect(await eventually { tracer.finishedSpans.count { $0.kind == .internal } == cases.count + 1 })
        let spans = tracer.finishedSpans.filter { $0.operationName.hasSuffix("cached") && $0.kind == .internal }
        #expect(spans.map { $0["curlew.cache.outcome"] } == ["miss", "hit", "revalidated", "bypass", "bypass", "miss"])
        #expect(
            spans.map { $0["curlew.cache.reason"] } == [
                "not-stored", "fresh", "requested-by-request", "ignored", "method", "only-if-cached",
            ])
        let statuses = spans.map { $0["curlew.cache.status"] ?? "" }
        #expect(statuses[1].hasPrefix("Curlew; hit; ttl=") && statuses[2].hasPrefix("Curlew; fwd=request; fwd-status=304;"))
        #expect(statuses[5] == "Curlew; detail=\"only-if-cached\"" && spans[5]["error.type"] != nil)
        #expect(spans.allSatisfy { $0.parentSpanID == parent.spanContext.spanID })
        let exchanges = tracer.finishedSpans.filter { $0.kind == .client }
        #expect(exchanges.map { $0["curlew.cache.reason"] } == ["not-stored", "requested-by-request", "ignored", "method"])
        expectNoActiveSpans()
    }

    @Test func `a validation in the background has a span of its own, and leaves none of the request`() async throws {
        let server = try makeCacheableServer("max-age=0, stale-while-revalidate=100")
        let manager = manager({ $0.cache = .memory() }) { $0.recordsRequests = true }
        for _ in 0..<2 { #expect(try await manager.request(server.url("/")).serializingString().value == "x") }
        #expect(await eventually { tracer.finishedSpans.count == 4 })
        let exchanges = tracer.finishedSpans.filter { $0.kind == .client }
        #expect(exchanges.map { $0["http.response.status_code"] } == ["200", "304"])
        #expect(exchanges.map { $0["curlew.cache.reason"] } == ["not-stored", "stale-while-revalidate"])
        let last = tracer.finishedSpans.filter { $0.kind == .internal }.last
        #expect(last?["curlew.cache.outcome"] == "stale" && last?["curlew.cache.reason"] == "stale-while-revalidate")
        expectNoActiveSpans()
    }

    @Test func `streamed bodies, downloads and uploads have spans that end with the body`() async throws {
        let manager = manager({ _ in }) { $0.recordsBodySizes = true }
        for try await _ in manager.streamRequest(server.url("/bytes/100000")).bodyStream() {}
        _ = try await manager.download(server.url("/bytes/1000")).serializingData().value
        _ = try await manager.upload(Data(count: 2000), to: server.url("/upload")).serializingData().value
        let spans = tracer.finishedSpans
        #expect(spans.map { $0["http.response.body.size"] }.prefix(2) == ["100000", "1000"])
        #expect(spans.last?["http.request.body.size"] == "2000" && spans.last?.operationName == "POST")
        expectNoActiveSpans()
    }

    @Test func `a WebSocket's handshake has a span, and sends its context`() async throws {
        let server = try WebSocketServer(accept: WebSocketHandshake.accept(for:)) { peer in
            while let frame = try peer.receive(), frame.opcode != .close {}
            try peer.send(.close)
        }
        let manager = manager()
        let socket = manager.webSocket(server.url("/chat"))
        try await socket.open()
        let span = try #require(tracer.finishedSpans.first)
        #expect(span["http.response.status_code"] == "101" && span["url.full"] == server.url("/chat"))
        #expect(span.status == nil && span.operationName == "GET")
        #expect(spanID(server.requests.first) == span.spanID)
        try await socket.close()
        #expect(tracer.finishedSpans.count == 1)
        expectNoActiveSpans()
    }

    @Test func `each connection of an event stream has a span`() async throws {
        let server = try LoopbackServer { request, _ in
            guard request.header("Last-Event-ID") != "2" else { return .status(204) }
            let id = request.header("Last-Event-ID") == nil ? 1 : 2
            return .ok("retry: 1\nid: \(id)\ndata: x\n\n", type: "text/event-stream")
        }
        var events = 0
        for try await _ in manager().eventStream(server.url("/")) { events += 1 }
        #expect(events == 2)
        #expect(tracer.finishedSpans.map { $0["http.response.status_code"] } == ["200", "200", "204"])
        #expect(tracer.finishedSpans.map(\.spanID) == server.requests.map { spanID($0) })
        expectNoActiveSpans()
    }

    @Test func `an unknown method is _OTHER, and its span is HTTP`() async throws {
        let method = try #require(HTTPMethod(rawValue: "FROB"))
        _ = try await manager().request(server.url("/json"), method: method).serializingData().value
        let span = try #require(tracer.finishedSpans.first)
        #expect(span.operationName == "HTTP")
        #expect(span["http.request.method"] == "_OTHER" && span["http.request.method_original"] == "FROB")
    }

    @Test func `the request's name is part of the span's, and its template`() async throws {
        let manager = manager({ _ in }) { $0.recordsURLTemplates = true }
        for name in ["GET /bytes/{n}", "bytes"] {
            _ = try await manager.request(server.url("/bytes/1"), options: RequestOptions(name: name)).serializingData().value
        }
        #expect(tracer.finishedSpans.map(\.operationName) == ["GET /bytes/{n}", "GET bytes"])
        #expect(tracer.finishedSpans.map { $0["url.template"] } == ["/bytes/{n}", "bytes"])
    }

    @Test func `secrets of the URL and of fields are redacted`() async throws {
        let manager = manager({ $0.redaction.queryItems = ["code"] }) {
            $0.requestHeaders = ["Authorization", "X-Tenant", "Absent"]
            $0.responseHeaders = ["Content-Type", "set-cookie"]
        }
        let url = "http://user:s3cret@127.0.0.1:\(server.port)/cookies/set?access_token=s3cret&sig=s3cret&code=s3cret&page=2"
        let headers: HTTPHeaders = ["X-Tenant": "red", "Authorization": "Bearer s3cret"]
        _ = try await manager.request(url, headers: headers).serializingData().value
        let span = try #require(tracer.finishedSpans.first)
        #expect(
            span["url.full"]
                == "http://REDACTED:REDACTED@127.0.0.1:\(server.port)/cookies/set?access_token=REDACTED&sig=REDACTED&code=REDACTED&page=2")
        #expect(span["http.request.header.x-tenant"] == "red")
        #expect(span["http.request.header.authorization"]?.contains("s3cret") == false)
        #expect(span["http.request.header.absent"] == nil)
        #expect(span["http.response.header.set-cookie"]?.contains("s3cret") == false)
        #expect(!"\(span)".contains("s3cret"))
    }

    @Test func `an excluded origin gets no context, also after a redirect`() async throws {
        let other = try LoopbackServer.standard()
        let manager = manager({ _ in }) { [port = server.port] in $0.propagates = { $0.port == port } }
        _ = try await manager.request(server.url("/redirect-to?url=\(other.url("/json"))")).serializingData().value
        #expect(server.requests.map { spanID($0) } == [tracer.finishedSpans[0].spanID])
        #expect(other.requests.map { spanID($0) } == [nil])
        #expect(tracer.finishedSpans.count == 2)
    }

    @Test func `a span of the request contains those of its exchanges, and ends with it`() async throws {
        let manager = manager({ _ in }) { $0.recordsRequests = true }
        manager.retrier = retryOnce
        _ = try await manager.request(server.url("/flaky?fail=1&key=b"), options: RequestOptions(name: "flaky")).validate()
            .serializingData().value
        _ = await manager.request(server.url("/status/500")).validate().serializingData().result
        #expect(await eventually { tracer.finishedSpans.count { $0.kind == .internal } == 2 })
        let parents = tracer.finishedSpans.filter { $0.kind == .internal }
        #expect(parents.map(\.operationName) == ["GET flaky", "GET"])
        #expect(parents.map { $0["error.type"] } == [nil, "responseValidationFailed"])
        let exchanges = tracer.finishedSpans.filter { $0.kind == .client }
        #expect(exchanges.map(\.parentSpanID) == [parents[0].spanID, parents[0].spanID, parents[1].spanID, parents[1].spanID])
        expectNoActiveSpans()
    }

    @Test func `the end of a session ends all spans, a shutdown too`() async throws {
        for isShutDown in [false, true] {
            let manager = manager({ _ in }) { $0.recordsRequests = true }
            let requests = (0..<5).map { _ in manager.request(server.url("/silent")) }
            #expect(await server.waitForRequests(isShutDown ? 10 : 5))
            if isShutDown { await manager.shutdown(gracePeriod: .zero) } else { manager.invalidateAndCancel() }
            for request in requests { _ = await request.serializingData().result }
            #expect(await eventually { tracer.activeSpans.isEmpty })
        }
        let kinds = Set(tracer.finishedSpans.filter { $0.kind == .client }.compactMap { $0["error.type"] })
        #expect(kinds == ["sessionInvalidated", "sessionShutDown"])
        #expect(tracer.finishedSpans.count { $0.kind == .client } == 10)
    }

    @Test func `the bootstrapped tracer is used without one, and nothing is traced without either`() async throws {
        let manager = makeManager { $0.instruments = [TracingInstrument()] }
        _ = try await manager.request(server.url("/json")).serializingData().value
        #expect(tracer.finishedSpans.isEmpty)
        #expect(spanID(server.requests.first) == nil)
    }
}
#endif
