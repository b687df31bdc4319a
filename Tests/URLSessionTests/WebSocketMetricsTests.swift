// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import CurlewWebSocket
import Testing

@testable import CurlewURLSession

/// The metrics of WebSocket tasks: an exchange for each handshake, and the bytes of the messages.
@Suite(.timeLimit(.minutes(1))) struct WebSocketMetricsTests {
    private let recorder = CallRecorder(
        CallRecorder.Answers(challenge: { challenge in
            guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic else {
                return (.performDefaultHandling, nil)
            }
            return (.useCredential, URLCredential(user: "ann", password: "pass", persistence: .none))
        }))

    private func session(_ change: (URLSessionConfiguration) -> Void = { _ in }) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.curlew.proxy = .none
        change(configuration)
        return URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
    }

    private func task(_ session: URLSession, _ url: String) throws -> URLSessionWebSocketTask {
        session.webSocketTask(with: try #require(URL(string: url)), protocols: ["v1"])
    }

    /// Waits for the end of the session's only task; returns its metrics, which came before.
    private func metrics() async throws -> URLSessionTaskMetrics {
        await recorder.completions.wait(for: 1)
        #expect(recorder.calls.elements.suffix(2) == ["metrics", "complete"])
        return try #require(recorder.seen.metrics.first)
    }

    private func times(_ exchange: URLSessionTaskTransactionMetrics) -> [Date?] {
        [
            exchange.fetchStartDate, exchange.domainLookupStartDate, exchange.domainLookupEndDate, exchange.connectStartDate,
            exchange.connectEndDate, exchange.requestStartDate, exchange.requestEndDate, exchange.responseStartDate,
            exchange.responseEndDate,
        ]
    }

    private func statuses(_ metrics: URLSessionTaskMetrics) -> [Int?] {
        metrics.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode }
    }

    // U2.7
    @Test func `an open WebSocket has one exchange, and its messages are the task's bytes`() async throws {
        let server = try makeEchoSocketServer(fields: { _ in ["Sec-WebSocket-Protocol: v1", "X-Server: s"] })
        defer { server.stop() }
        let session = session()
        defer { session.invalidateAndCancel() }
        let task = try task(session, server.url("/chat"))
        #expect((task.countOfBytesSent, task.countOfBytesReceived) == (0, 0))
        task.resume()
        try await task.send(.string("Größe"))
        try await task.send(.data(Data(count: 1_000)))
        _ = try await task.receive()
        _ = try await task.receive()
        task.cancel(with: .normalClosure, reason: nil)
        let metrics = try await metrics()
        #expect((task.countOfBytesSent, task.countOfBytesReceived) == (1_007, 1_007))
        #expect(metrics.redirectCount == 0)
        #expect(metrics.transactionMetrics.count == 1)
        let exchange = try #require(metrics.transactionMetrics.first)
        #expect(exchange.request.url?.absoluteString == server.url("/chat"))
        #expect(exchange.request.httpMethod == "GET")
        let sent = try #require(server.requests.first)
        for name in ["Upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions"] {
            #expect(exchange.request.value(forHTTPHeaderField: name) == sent.header(name))
        }
        let response = try #require(exchange.response as? HTTPURLResponse)
        #expect((response.statusCode, response.value(forHTTPHeaderField: "X-Server")) == (101, "s"))
        #expect(response.url == exchange.request.url)
        let known = times(exchange).compactMap { $0 }
        #expect(known.count == 9 && known == known.sorted())
        #expect(known.allSatisfy { metrics.taskInterval.contains($0) })
        #expect(exchange.secureConnectionStartDate == nil && exchange.negotiatedTLSProtocolVersion == nil)
        #expect(exchange.networkProtocolName == "http/1.1" && exchange.resourceFetchType == .networkLoad)
        #expect(!exchange.isProxyConnection && !exchange.isReusedConnection)
        #expect((exchange.localAddress, exchange.remoteAddress) == ("127.0.0.1", "127.0.0.1"))
        #expect(exchange.remotePort == server.port && exchange.localPort ?? 0 > 0)
        #expect(exchange.countOfRequestHeaderBytesSent > 150 && exchange.countOfRequestBodyBytesSent == 0)
        #expect(exchange.countOfResponseHeaderBytesReceived > 100 && exchange.countOfResponseBodyBytesReceived == 0)
    }

    // U2.7
    @Test func `a redirect, a challenge and their follow-ups have exchanges of their own`() async throws {
        let server = try makeEchoSocketServer(answer: { request in
            if request.target == "/first" { return socketHead("302 Found", "Location: /second", "Set-Cookie: seen=1; Path=/") }
            return request.header("Authorization") == nil ? socketHead("401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"") : nil
        })
        defer { server.stop() }
        let session = session()
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: try #require(URL(string: server.url("/first"))))
        task.resume()
        try await task.send(.string("x"))
        task.cancel()
        let metrics = try await metrics()
        #expect(statuses(metrics) == [302, 401, 101])
        #expect(metrics.redirectCount == 1)
        let exchanges = metrics.transactionMetrics
        #expect(exchanges.map { $0.request.url?.path } == ["/first", "/second", "/second"])
        #expect(exchanges.map { $0.response?.url?.path } == ["/first", "/second", "/second"])
        #expect(exchanges.map { $0.request.value(forHTTPHeaderField: "Authorization") } == [nil, nil, "Basic YW5uOnBhc3M="])
        #expect(exchanges.map { $0.request.value(forHTTPHeaderField: "Cookie") } == [nil, "seen=1", "seen=1"])
        #expect(Set(exchanges.map(\.localPort)).count == 3)
        let starts = exchanges.compactMap(\.fetchStartDate)
        #expect(starts.count == 3 && starts == starts.sorted())
        #expect(!metrics.description.contains("YW5u"))
    }

    // U2.7
    @Test func `a rejected handshake has its response, with the bytes of head and body`() async throws {
        let head = "HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\n"
        let server = try makeSocketServer(answer: { _ in head + "never" }) { $0.waitUntilClosed() }
        defer { server.stop() }
        let session = session()
        defer { session.invalidateAndCancel() }
        try task(session, server.url()).resume()
        let metrics = try await metrics()
        #expect(statuses(metrics) == [403])
        let exchange = try #require(metrics.transactionMetrics.first)
        #expect(exchange.countOfResponseHeaderBytesReceived == Int64(head.utf8.count))
        #expect(exchange.countOfResponseBodyBytesReceived == 5 && exchange.countOfResponseBodyBytesAfterDecoding == 5)
        #expect(exchange.responseEndDate != nil)
    }

    // U2.7
    @Test func `a handshake without a connection, through a proxy too, has an exchange without a response`() async throws {
        let port = try RefusingPort()
        for proxy in [ProxyPolicy.none, .url("http://127.0.0.1:\(port.number)")] {
            let session = session { $0.curlew.proxy = proxy }
            defer { session.invalidateAndCancel() }
            let count = recorder.completions.count
            try task(session, "ws://127.0.0.1:\(port.number)/x").resume()
            await recorder.completions.wait(for: count + 1)
            let metrics = try #require(recorder.seen.metrics.last)
            #expect(metrics.transactionMetrics.count == 1)
            let exchange = try #require(metrics.transactionMetrics.first)
            #expect(exchange.request.url?.path == "/x" && exchange.response == nil)
            #expect(exchange.fetchStartDate != nil && exchange.domainLookupEndDate != nil)
            #expect(exchange.connectEndDate == nil && exchange.requestStartDate == nil && exchange.responseEndDate == nil)
            #expect(exchange.networkProtocolName == nil && exchange.resourceFetchType == .unknown)
            #expect(exchange.countOfRequestHeaderBytesSent == 0)
            #expect(exchange.isProxyConnection == (proxy != .none))
        }
    }

    // U2.7
    @Test func `a task that was cancelled before its start, or that has no valid URL, has no exchange`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        try task(session, "ws://127.0.0.1:1/").cancel()
        #expect(try await metrics().transactionMetrics.isEmpty)
        try task(session, "ftp://127.0.0.1/").resume()
        await recorder.completions.wait(for: 2)
        #expect(recorder.seen.metrics.map(\.transactionMetrics.isEmpty) == [true, true])
    }

    // U2.7
    @Test(arguments: [false, true])
    func `a task that is cancelled while the server has not answered has what was measured until then`(closes: Bool) async throws {
        let gate = Gate()
        let server = try makeEchoSocketServer(answer: { _ in
            gate.wait()
            return nil
        })
        defer { server.stop() }
        defer { gate.open() }
        let session = session()
        defer { session.invalidateAndCancel() }
        let task = try task(session, server.url())
        task.resume()
        #expect(await gate.arrivals())
        if closes { session.invalidateAndCancel() } else { task.cancel() }
        let metrics = try await metrics()
        #expect(statuses(metrics) == [nil])
        let exchange = try #require(metrics.transactionMetrics.first)
        let known = times(exchange).compactMap { $0 }
        #expect(known.count == 7 && known == known.sorted())
        #expect(exchange.responseStartDate == nil && exchange.responseEndDate == nil)
        #expect(exchange.countOfRequestHeaderBytesSent > 150 && exchange.remotePort == server.port)
        #expect(exchange.request.value(forHTTPHeaderField: "Sec-WebSocket-Key") == server.requests.first?.header("Sec-WebSocket-Key"))
    }

    // U2.7
    @Test func `times, version and cipher suite of TLS are known, and an untrusted server gets no request`() async throws {
        let (tls, authority) = try ServerTLS.throwAway()
        let server = try LoopbackServer(tls: tls) { _, connection in
            try connection.send(raw: socketHead("403 Forbidden"))
            connection.waitUntilClosed()
            return nil
        }
        defer { server.stop() }
        let trusting = session { $0.curlew.tls.certificateAuthorities = authority.certificate }
        defer { trusting.invalidateAndCancel() }
        try task(trusting, "wss://localhost:\(server.port)/").resume()
        let metrics = try await metrics()
        let exchange = try #require(metrics.transactionMetrics.first)
        #expect(statuses(metrics) == [403] && exchange.request.url?.scheme == "wss")
        #expect(exchange.negotiatedTLSProtocolVersion != nil && exchange.negotiatedTLSCipherSuite != nil)
        #expect(exchange.hasTimesOfTLS)

        let untrusting = session()
        defer { untrusting.invalidateAndCancel() }
        try task(untrusting, "wss://localhost:\(server.port)/").resume()
        await recorder.completions.wait(for: 2)
        let failed = try #require(recorder.seen.metrics.last?.transactionMetrics.first)
        #expect(failed.response == nil && failed.requestStartDate == nil && failed.connectEndDate == nil)
        #expect(server.requestCount == 1)
    }

    // U2.7
    @Test func `exchanges are recorded only for tasks that have a delegate, and keep no task`() async throws {
        let server = try makeEchoSocketServer()
        defer { server.stop() }
        let silent = URLSession(configuration: .ephemeral)
        defer { silent.invalidateAndCancel() }
        let unobserved = try task(silent, server.url())
        unobserved.resume()
        try await unobserved.send(.string("x"))
        #expect(unobserved.measured.metrics.transactionMetrics.isEmpty)
        unobserved.cancel()
        let session = session()
        defer { session.invalidateAndCancel() }
        weak var released: URLSessionWebSocketTask?
        do {
            let task = try task(session, server.url())
            released = task
            task.resume()
            try await task.send(.string("x"))
            task.cancel()
        }
        #expect(statuses(try await metrics()) == [101])
        #expect(await eventually { released == nil })
    }
}
