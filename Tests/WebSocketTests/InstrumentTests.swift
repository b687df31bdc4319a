// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewWebSocket

@Suite(.timeLimit(.minutes(1))) struct InstrumentTests {
    /// Records the handshakes, and sets a field.
    private struct Recorder: ExchangeInstrument {
        let log = Log<String>()
        let metrics = Log<TransferMetrics>()

        func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)? {
            let kind = exchange.isWebSocketHandshake ? "handshake" : "exchange"
            log.append("\(kind) \(exchange.reason.rawValue) \(exchange.attempt).\(exchange.number) \(exchange.method) \(exchange.url)")
            return Observation(log: log, metrics: metrics)
        }
    }

    private final class Observation: ExchangeObservation {
        let log: Log<String>
        let metrics: Log<TransferMetrics>

        init(log: Log<String>, metrics: Log<TransferMetrics>) {
            self.log = log
            self.metrics = metrics
        }

        var headers: HTTPHeaders { ["Traceparent": "00-1", "Connection": "close"] }

        func didReceive(_ head: ResponseHead) { log.append("head \(head.statusCode)") }

        func didEnd(_ completion: ExchangeCompletion) {
            let error =
                switch completion.error {
                case nil: "ok"
                case CurlewError.transferFailed(let failure)?: failure.kind.rawValue
                case WebSocketError.timedOut(.handshake)?: "handshake timed out"
                case WebSocketError.timedOut(.close)?: "close timed out"
                case WebSocketError.handshakeFailed?: "handshake failed"
                case let error?: "\(error)"
                }
            metrics.append(completion.metrics)
            log.append("end \(completion.head.map { "\($0.statusCode)" } ?? "-") \(error)")
        }
    }

    private let recorder = Recorder()

    private func manager() -> SessionManager { makeManager { $0.instruments = [recorder] } }

    @Test func `a handshake is an exchange, with the instrument's fields, and its end is the response's head`() async throws {
        let server = try WebSocketServer(accept: WebSocketHandshake.accept(for:)) { peer in
            while let frame = try peer.receive(), frame.opcode != .close {}
            try peer.send(.close)
        }
        let manager = manager()
        let socket = manager.webSocket(server.url("/chat"), headers: ["traceparent": "old"])
        try await socket.open()
        #expect(recorder.log.elements == ["handshake first 1.1 GET \(server.url("/chat"))", "head 101", "end 101 ok"])
        #expect(server.requests.first?.headers.filter { $0.name.lowercased() == "traceparent" }.map(\.value) == ["00-1"])
        #expect(server.requests.first?.header("Connection") == "Upgrade")
        try await socket.close()
        #expect(await server.waitForConnectionsToClose())
        #expect(recorder.log.elements.count == 3)
    }

    @Test func `each reconnection is an exchange of its own`() async throws {
        let server = try WebSocketServer(
            accept: WebSocketHandshake.accept(for:)
        ) { peer in
            if peer.number == 1 { return }
            while let frame = try peer.receive(), frame.opcode != .close {}
            try peer.send(.close)
        }
        var configuration = WebSocketConfiguration()
        configuration.reconnection = WebSocketReconnection(firstDelay: .milliseconds(1))
        let manager = manager()
        let socket = manager.webSocket(server.url(), configuration: configuration)
        await recorder.log.wait(for: 6)
        try await socket.close()
        let url = server.url()
        #expect(
            recorder.log.elements == [
                "handshake first 1.1 GET \(url)", "head 101", "end 101 ok",
                "handshake reconnection 1.1 GET \(url)", "head 101", "end 101 ok",
            ])
    }

    @Test func `a rejected handshake ends with its status, a failed one with its error`() async throws {
        let server = try WebSocketServer(
            accept: WebSocketHandshake.accept(for:), answer: { _ in "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n" }
        ) { _ in }
        let manager = manager()
        await #expect(throws: WebSocketError.self) { try await manager.webSocket(server.url()).open() }
        #expect(recorder.log.elements.last == "end 403 ok")
        server.stop()
        await #expect(throws: (any Error).self) { try await manager.webSocket(server.url()).open() }
        #expect(recorder.log.elements.last?.hasPrefix("end - ") == true)
        #expect(recorder.log.elements.last != "end - ok")
    }

    @Test func `each attempt of a handshake is an exchange with fields of its own`() async throws {
        let server = try makeServer(
            answer: {
                switch $0.connection {
                case 1: "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
                case 2: "HTTP/1.1 101 x\r\n\r\n"
                default: nil
                }
            }, { try $0.echo() })
        let manager = manager()
        let adapter = CurlewCore.Adapter { (request: URLRequest) throws -> URLRequest in
            var request = request
            request.setValue("adapted", forHTTPHeaderField: "Traceparent")
            return request
        }
        let retrier = CurlewCore.Retrier { _, _, _, completion in completion(true, 0) }
        let socket = manager.webSocket(server.url(), interceptor: Interceptor(adapters: [adapter], retriers: [retrier]))
        try await socket.open()
        #expect(
            recorder.log.elements == [
                "handshake first 1.1 GET \(server.url())", "head 503", "end 503 ok",
                "handshake retry 2.2 GET \(server.url())", "head 101", "end 101 handshake failed",
                "handshake retry 3.3 GET \(server.url())", "head 101", "end 101 ok",
            ])
        #expect(server.requests.map { $0.header("Traceparent") } == ["00-1", "00-1", "00-1"])
        socket.cancel()
    }

    @Test func `the metrics of a handshake are those of its connection, its request and its response`() async throws {
        let head = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.0 503 Busy\r\nContent-Length: 4\r\n\r\n"
        let server = try makeServer(answer: { $0.connection == 1 ? head + "busy" : nil }, { try $0.echo() })
        let manager = manager()
        let retrier = CurlewCore.Retrier { _, _, _, completion in completion(true, 0) }
        let socket = manager.webSocket(server.url(), interceptor: Interceptor(adapters: [], retriers: [retrier]))
        try await socket.open()
        #expect(recorder.metrics.count == 2)
        for metrics in recorder.metrics.elements {
            let times = [
                .zero, metrics.queueDuration, metrics.nameLookupEnd, metrics.connectEnd, metrics.requestStart, metrics.responseStart,
                metrics.total,
            ].compactMap { $0 }
            #expect(times.count == 7 && times == times.sorted())
            #expect((metrics.remoteAddress, metrics.remotePort) == ("127.0.0.1", server.port))
            #expect(metrics.secureConnectionEnd == nil && metrics.tlsVersion == nil && !metrics.reusedConnection)
            #expect(metrics.timesSent == 1 && metrics.requestHeaderBytes > 150 && metrics.requestBodyBytes == 0)
        }
        let (rejected, accepted) = (recorder.metrics.elements[0], recorder.metrics.elements[1])
        #expect((rejected.responseHeaderBytes, rejected.responseBodyBytes) == (Int64(head.utf8.count), 4))
        #expect((rejected.httpVersion, accepted.httpVersion) == (.http1_0, .http1_1))
        #expect(accepted.responseHeaderBytes > 100 && accepted.responseBodyBytes == 0)
        #expect(rejected.localPort != accepted.localPort && rejected.startDate <= accepted.startDate)
        socket.cancel()
        server.stop()
        await #expect(throws: (any Error).self) { try await manager.webSocket(server.url()).open() }
        let failed = try #require(recorder.metrics.elements.last)
        #expect(recorder.metrics.count == 3)
        #expect(failed.queueDuration != nil && failed.nameLookupEnd != nil && failed.total > .zero)
        #expect(failed.connectEnd == nil && failed.requestStart == nil && failed.responseStart == nil && failed.httpVersion == nil)
        #expect(failed.timesSent == 0 && failed.requestHeaderBytes == 0 && failed.responseHeaderBytes == 0)
    }

    @Test func `an attempt whose connection fails ends before the next one begins, also one that was reconnected`() async throws {
        let server = try makeServer { _ in }
        let url = server.url()
        server.stop()
        let manager = manager()
        manager.retrier = CurlewCore.Retrier { _, request, _, completion in completion(request.retryCount < 1, 0) }
        var configuration = WebSocketConfiguration()
        configuration.reconnection = WebSocketReconnection(limit: 1, firstDelay: .milliseconds(1))
        await #expect(throws: (any Error).self) { try await manager.webSocket(url, configuration: configuration).open() }
        #expect(
            recorder.log.elements == [
                "handshake first 1.1 GET \(url)", "end - connect", "handshake retry 2.2 GET \(url)", "end - connect",
                "handshake reconnection 1.1 GET \(url)", "end - connect", "handshake retry 2.2 GET \(url)", "end - connect",
            ])
    }

    @Test func `timeouts, deadlines and closing end the attempt with themselves`() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return nil
        }
        defer { gate.open() }
        let url = "ws://127.0.0.1:\(server.port)/"
        let manager = manager()
        var configuration = WebSocketConfiguration()
        // Not over before the handshake begins.
        configuration.handshakeTimeout = .seconds(1)
        let once = CurlewCore.Retrier { _, request, _, completion in completion(request.retryCount < 1, 0) }
        await #expect(throws: WebSocketError.self) {
            try await manager.webSocket(url, configuration: configuration, interceptor: once).open()
        }
        await #expect(throws: CurlewError.self) {
            try await manager.webSocket(url, options: RequestOptions(deadline: .seconds(1))).open()
        }
        configuration.handshakeTimeout = nil
        configuration.closeTimeout = .milliseconds(50)
        let closed = manager.webSocket(url, configuration: configuration)
        await recorder.log.wait(for: 7)
        await #expect(throws: WebSocketError.self) { try await closed.close() }
        #expect(
            recorder.log.elements == [
                "handshake first 1.1 GET \(url)", "end - handshake timed out", "handshake retry 2.2 GET \(url)",
                "end - handshake timed out", "handshake first 1.1 GET \(url)", "end - deadline", "handshake first 1.1 GET \(url)",
                "end - close timed out",
            ])
    }

    @Test func `releasing the manager during the handshake ends the exchange`() async throws {
        let began = Gate()
        let server = try LoopbackServer { _, connection in
            began.open()
            connection.waitUntilClosed()
            return nil
        }
        var manager: SessionManager? = manager()
        let socket = manager?.webSocket("ws://127.0.0.1:\(server.port)/")
        #expect(await began.wait())
        manager = nil
        await recorder.log.wait(for: 2)
        await #expect(throws: (any Error).self) { try await socket?.open() }
        #expect(recorder.log.elements.count == 2)
        #expect(recorder.log.elements.last?.hasPrefix("end - ") == true)
    }

    @Test func `releasing the WebSocket during its handshake ends the exchange`() async throws {
        let began = Gate()
        let server = try LoopbackServer { _, connection in
            began.open()
            connection.waitUntilClosed()
            return nil
        }
        let manager = manager()
        var socket: WebSocket? = manager.webSocket(server.url("/").replacingOccurrences(of: "http", with: "ws"))
        #expect(await began.wait())
        #expect(socket != nil)
        socket = nil
        manager.invalidateAndCancel()
        await recorder.log.wait(for: 2)
        #expect(recorder.log.elements.count == 2)
        #expect(recorder.log.elements.last?.hasPrefix("end - ") == true)
    }
}
