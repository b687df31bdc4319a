// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import Testing

@Suite(.timeLimit(.minutes(2))) struct MetricsTests {
    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    @Test("a new connection, and its reuse") func reuse() async throws {
        let first = try #require(await manager.request(server.url("/bytes/1000")).serializingData().response.metrics.last)
        #expect(!first.reusedConnection)
        #expect(first.remoteAddress == "127.0.0.1")
        #expect(first.remotePort == server.port)
        #expect(first.localPort != nil)
        #expect(first.httpVersion == .http1_1)
        #expect(first.tlsVersion == nil)
        let times = [first.connectEnd, first.requestStart, first.responseStart, first.total]
        #expect(times.allSatisfy { $0 != nil })
        #expect(times.compactMap { $0 }.sorted() == times.compactMap { $0 })
        #expect(first.total > .zero)

        let second = try #require(await manager.request(server.url("/bytes/1000")).serializingData().response.metrics.last)
        #expect(second.reusedConnection)
        #expect(second.localPort == first.localPort)
        #expect(second.connectEnd == nil)
        #expect(second.nameLookupEnd == nil)
        #expect(server.connectionCount == 1)
    }

    @Test("a request that is lost with a reused connection is sent again, and counted", arguments: [HTTPMethod.get, .post])
    func sentAgain(_ method: HTTPMethod) async throws {
        let server = try LoopbackServer { request, connection in
            // The second request on the first connection.
            guard connection.number == 1, request.path == "/lost" else { return .ok("x") }
            connection.close()
            return nil
        }
        let first = await manager.request(server.url("/")).serializingData().response
        #expect(first.metrics.last?.timesSent == 1)
        let second = await manager.request(server.url("/lost"), method: method).serializingData().response
        #expect(second.metrics.last?.timesSent == (method == .get ? 2 : 1))
        #expect(second.error == nil || method == .post)
        #expect(server.requestCount == (method == .get ? 3 : 2))
        server.stop()
        #expect(await manager.request(server.url("/")).serializingData().response.metrics.last?.timesSent == 0)
    }

    @Test("bytes are counted in both directions") func bytes() async throws {
        let metrics = try #require(
            await manager.upload(Data(count: 12_345), to: server.url("/body")).serializingData().response.metrics.last)
        #expect(metrics.requestBodyBytes == 12_345)
        #expect(metrics.responseBodyBytes == 12_345)
        #expect(metrics.requestHeaderBytes > 50)
        #expect(metrics.responseHeaderBytes > 50)
    }

    @Test("each exchange of a redirect has metrics") func redirect() async throws {
        let response = await manager.request(server.url("/redirect/2")).serializingData().response
        #expect(response.metrics.redirectCount == 2)
        #expect(response.metrics.transactionMetrics.map(\.reusedConnection) == [false, true, true])
    }

    @Test("the timeline is in order") func timeline() async throws {
        let timeline = await manager.request(server.url("/delay/100")).serializingData().response.timeline
        let times = [
            timeline.requestStartDate, timeline.initialResponseDate, timeline.requestCompletedDate, timeline.serializationCompletedDate,
        ]
        #expect(times == times.sorted())
        #expect(timeline.requestDuration >= .milliseconds(100))
        #expect(timeline.totalDuration >= timeline.requestDuration)
        #expect(abs(timeline.requestStartDate.timeIntervalSinceNow) < 60)
    }

    @Test("the timeline has the times of the first and the last byte", arguments: [false, true])
    func firstAndLastByte(isUpload: Bool) async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            // For an upload the first byte is one that was sent.
            let pieces = ["HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf", "half"]
            if !isUpload { try connection.send(raw: pieces[0]) }
            connection.wait(until: gate)
            if isUpload { try connection.send(raw: pieces[0]) }
            try connection.send(raw: pieces[1])
            connection.close()
            return nil
        }
        let request = isUpload ? manager.upload(Data(count: 1_000), to: server.url("/")) : manager.request(server.url("/"))
        // A byte sent by the server may not have arrived yet.
        if !isUpload { request.downloadProgress(queue: .global()) { _ in gate.arrive() } }
        let response = Task { await request.serializingData().response }
        #expect(await gate.arrivals(isUpload ? 1 : 2))
        let middle = Date()
        gate.open()
        #expect(try await response.value.result.get() == Data("halfhalf".utf8))
        let timeline = await response.value.timeline
        #expect(timeline.requestStartDate <= timeline.initialResponseDate)
        #expect(timeline.initialResponseDate <= middle)
        #expect(timeline.requestCompletedDate >= middle)
        #expect(timeline.serializationCompletedDate >= timeline.requestCompletedDate)
    }

    @Test("a refused connection") func refusedConnection() async throws {
        let listener = try StuckListener(.refusing)
        let response = await manager.request("http://127.0.0.1:\(listener.port)/").serializingData().response
        let failure = try #require(response.error?.transferFailure)
        #expect(failure.kind == .connect)
        #expect(failure.phase == .connecting)
        #expect(failure.code == 7)
        #expect(!failure.requestWasSent)
        #expect((response.error as? CurlewError)?.urlError?.code == .cannotConnectToHost)
        #expect(response.metrics.transactionMetrics.count == 1)
        #expect(try #require(response.metrics.last).total > .zero)
        #expect(response.metrics.last?.responseStart == nil)
        #expect(response.response == nil)
        #expect(response.request?.url?.port == listener.port)
    }

    @Test("a name that does not resolve") func unresolvedName() async throws {
        let response = await manager.request("http://curlew.invalid/").serializingData().response
        let failure = try #require(response.error?.transferFailure)
        #expect(failure.kind == .nameResolution)
        #expect(failure.phase == .resolving)
        #expect(!failure.requestWasSent)
        #expect((response.error as? CurlewError)?.urlError?.code == .cannotFindHost)
        #expect(response.metrics.last?.connectEnd == nil)
    }

    @Test(
        "a lost connection", arguments: ["/cut-head", "/cut-body", "/reset", "/reset?send=1000", "/cut-body?announce=1000&send=0"])
    func lostConnection(_ path: String) async throws {
        let response = await manager.request(server.url(path)).serializingData().response
        let failure = try #require(response.error?.transferFailure)
        #expect(failure.kind == .connectionLost)
        #expect(failure.requestWasSent)
        #expect((response.error as? CurlewError)?.urlError?.code == .networkConnectionLost)
        #expect(response.metrics.last?.remotePort == server.port)
    }

    @Test("a truncated body reports the bytes received") func truncatedBody() async throws {
        let response = await manager.request(server.url("/cut-body?announce=100000&send=70000")).serializingData().response
        let failure = try #require(response.error?.transferFailure)
        #expect(failure.phase == .receivingBody)
        #expect(failure.bytesReceived == 70_000)
        #expect(response.response?.statusCode == 200)
    }

    @Test(
        "a peer that does not speak HTTP",
        arguments: ["SMTP ready\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"])
    func notHTTP(_ text: String) async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: text)
            connection.close()
            return nil
        }
        let response = await manager.request(server.url("/")).serializingData().response
        #expect(response.error?.transferFailure?.kind == .protocolViolation)
    }

    @Test("the versions of HTTP and TLS are reported", .needsNginx) func versions() async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        let first = try #require(await manager.request(nginx.tls + "/1k.bin").validate().serializingData().response.metrics.last)
        #expect(first.httpVersion == .http2)
        #expect(first.tlsVersion == "TLSv1.3")
        #expect(first.tlsCipher?.hasPrefix("TLS_") == true)
        let secured = try #require(first.secureConnectionEnd)
        #expect(try #require(first.connectEnd) <= secured)
        #expect(try secured <= #require(first.requestStart))
        let second = try #require(await manager.request(nginx.tls + "/1k.bin").validate().serializingData().response.metrics.last)
        #expect(second.reusedConnection)
        #expect(second.tlsVersion == "TLSv1.3")
        let other = try #require(await manager.request(nginx.tlsHTTP1 + "/1k.bin").validate().serializingData().response.metrics.last)
        #expect(other.httpVersion == .http1_1)
        #expect(other.tlsVersion == "TLSv1.3")
    }

    @Test("the version of HTTP can be chosen", .needsNginx) func chosenVersion() async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager {
            $0.tls.certificateAuthorityFile = nginx.authorities
            $0.httpVersion = .http1
        }
        let metrics = try #require(await manager.request(nginx.tls + "/1k.bin").validate().serializingData().response.metrics.last)
        #expect(metrics.httpVersion == .http1_1)
    }

    @Test("many requests over HTTP/2", .needsNginx) func http2() async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        let sizes = await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<100 {
                group.addTask { await manager.request(nginx.tls + "/64k.json").validate().serializingData().response.value?.count }
            }
            return await group.reduce(into: [Int?]()) { $0.append($1) }
        }
        #expect(sizes == [Int?](repeating: 65_536, count: 100))
    }
}
