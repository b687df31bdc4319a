// SPDX-License-Identifier: Apache-2.0

import CurlewTestSupport
import Testing

@testable import CurlewLoopback

@Suite struct LoopbackServerTests {
    @Test("requests share a connection until one asks to close") func keepAlive() throws {
        let server = try LoopbackServer.standard()
        let client = try RawClient(port: server.port)
        for number in 1...3 {
            #expect(try client.exchange("/bytes/10?seed=\(number)").body == GeneratedBody(seed: UInt64(number)).data(count: 10))
        }
        let last = try client.exchange("/json", headers: ["Connection: close"])
        #expect(last.header("Connection") == "close")
        #expect(try client.readToEnd().isEmpty)
        #expect(server.requests.map(\.sequence) == [1, 2, 3, 4])
        #expect(server.connectionCount == 1)
        #expect(server.waitForConnectionsToClose())
    }

    @Test("responses to pipelined requests are in order") func pipelining() throws {
        let server = try LoopbackServer.standard()
        let client = try RawClient(port: server.port)
        try client.send(
            "GET /status/201 HTTP/1.1\r\n\r\nPOST /body HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /status/202 HTTP/1.1\r\n\r\n")
        #expect(try client.readResponse().status == 201)
        #expect(try client.readResponse().body.text == "abc")
        #expect(try client.readResponse().status == 202)
    }

    @Test("a port of choice is used once at a time, and again as soon as it is free") func port() throws {
        // None of those that the system gives to connections, which could take it meanwhile.
        let free = (0..<20).lazy.compactMap { _ in try? LoopbackServer(port: .random(in: 20_000..<30_000)) { _, _ in .ok("first") } }
        let first = try #require(free.first)
        // Closed by the server first, so that the connection lingers on the port.
        #expect(try RawClient(port: first.port).exchange("/", headers: ["Connection: close"]).status == 200)
        #expect(first.waitForConnectionsToClose())
        let refusal = #expect(throws: SocketError.self) { try LoopbackServer(port: UInt16(first.port)) { _, _ in .ok("x") } }
        #expect(refusal?.function == "bind" && refusal?.code == EADDRINUSE)
        #expect(refusal?.errorDescription == refusal?.description)
        first.stop()
        let second = try LoopbackServer(port: UInt16(first.port)) { _, _ in .ok("second") }
        #expect(second.port == first.port)
        #expect(try RawClient(port: second.port).exchange("/").body.text == "second")
    }

    @Test("a request is read completely") func completeRequest() throws {
        let server = try LoopbackServer.standard()
        let body = GeneratedBody(seed: 7).data(count: 100_000)
        let reply = try RawClient(port: server.port).exchange(
            "/echo?a=1+2&b=%C3%A9&c", method: "PUT", headers: ["X-One:  two\t", "x-one: three"], body: body)
        let echo = try JSONDecoder().decode(EchoReply.self, from: reply.body)
        #expect(echo.method == "PUT")
        #expect(echo.target == "/echo?a=1+2&b=%C3%A9&c")
        #expect(echo.path == "/echo")
        #expect(echo.query == [ServerField("a", "1 2"), ServerField("b", "é"), ServerField("c", "")])
        #expect(echo.header("X-ONE") == "two")
        #expect(echo.body == body)
        #expect(echo.bodyLength == 100_000)
        #expect(echo.bodyChecksum == GeneratedBody(seed: 7).checksum(count: 100_000))
        let request = try #require(server.requests.first)
        #expect(request.headers(named: "X-One") == ["two", "three"])
        #expect(request.bodyLength == 100_000)
        #expect(request.body.isEmpty)
    }

    @Test("a chunked body is assembled and its trailers are discarded") func chunkedRequest() throws {
        let server = try LoopbackServer.standard()
        let client = try RawClient(port: server.port)
        try client.send("POST /body HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        try client.send("4;name=value\r\nCurl\r\n2\r\new\r\n0\r\nX-Trailer: 1\r\n\r\n")
        #expect(try client.readResponse().body.text == "Curlew")
        #expect(try client.exchange("/status/204").status == 204)
    }

    @Test("a chunked response is sent in chunks") func chunkedResponse() throws {
        let server = try LoopbackServer.standard()
        let response = try RawClient(port: server.port).exchange("/chunked/10000?size=999")
        #expect(response.header("Transfer-Encoding") == "chunked")
        #expect(response.header("Content-Length") == nil)
        #expect(GeneratedBody().matches(response.body))
        #expect(response.body.count == 10000)
    }

    @Test("HEAD gets the head only") func headRequest() throws {
        let server = try LoopbackServer.standard()
        let client = try RawClient(port: server.port)
        #expect(try client.exchange("/bytes/1000", method: "HEAD").header("Content-Length") == "1000")
        #expect(try client.exchange("/chunked/1000", method: "HEAD").header("Transfer-Encoding") == "chunked")
        #expect(try client.exchange("/status/418").body.text == "418")
    }

    @Test("100 Continue is sent before the body is read") func expectContinue() throws {
        let server = try LoopbackServer.standard()
        let client = try RawClient(port: server.port)
        try client.send("POST /body HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        #expect(try client.readResponse().status == 100)
        try client.send("ok")
        #expect(try client.readResponse().body.text == "ok")
    }

    @Test("a body can be rejected instead of 100-continue") func expectationRejected() throws {
        let server = try LoopbackServer(bodies: { _ in .refused(.status(413)) }) { _, _ in .ok() }
        let client = try RawClient(port: server.port)
        try client.send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 200\r\n\r\n")
        #expect(try client.readResponse().status == 413)
        client.shutDownWriting()
        #expect(try client.readToEnd().isEmpty)
        #expect(server.waitForConnectionsToClose())
    }

    @Test("a body can be left unread") func unreadBody() throws {
        let gate = Gate()
        let server = try LoopbackServer(bodies: { _ in .unread }) { _, connection in
            connection.wait(until: gate)
            return .status(507)
        }
        let client = try RawClient(port: server.port)
        try client.send("POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\nbegun")
        #expect(gate.arrivals())
        gate.open()
        #expect(try client.readResponse().status == 507)
    }

    @Test("a large body is counted, not stored") func largeBody() throws {
        let server = try LoopbackServer.standard()
        let client = try RawClient(port: server.port)
        let length = 64 << 20
        try client.send("POST /upload HTTP/1.1\r\nContent-Length: \(length)\r\n\r\n")
        for offset in stride(from: 0, to: length, by: 1 << 20) {
            try client.send(GeneratedBody(seed: 3).data(offset: Int64(offset), count: 1 << 20))
        }
        let echo = try JSONDecoder().decode(EchoReply.self, from: client.readResponse().body)
        #expect(echo.bodyLength == Int64(length))
        #expect(echo.bodyChecksum == GeneratedBody(seed: 3).checksum(count: Int64(length)))
        #expect(echo.body.isEmpty)
    }

    @Test(
        "a malformed request gets 400 and the connection is closed",
        arguments: [
            "", "GET /\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ])
    func malformedRequests(_ text: String) throws {
        let server = try LoopbackServer { _, _ in .ok() }
        let client = try RawClient(port: server.port)
        try client.send(text)
        client.shutDownWriting()
        let response = try client.readToEnd().text
        #expect(text.isEmpty ? response.isEmpty : response.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
        #expect(server.waitForConnectionsToClose())
    }

    @Test("an error thrown by a route is sent as 500") func routeErrors() throws {
        struct Failure: Error {}
        let server = try LoopbackServer { _, _ in throw Failure() }
        let client = try RawClient(port: server.port)
        #expect(try client.exchange("/").body.text == "Failure()")
        #expect(try client.exchange("/").status == 500)
    }

    @Test("200 connections are served concurrently") func concurrentConnections() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, connection in
            if request.sequence == 1 { connection.wait(until: gate) }
            return .ok(request.path)
        }
        let clients = try (0..<200).map { _ in try RawClient(port: server.port) }
        for (index, client) in clients.enumerated() {
            try client.send("GET /\(index) HTTP/1.1\r\n\r\n")
        }
        #expect(await gate.arrivals(200))
        #expect(server.openConnections == 200)
        gate.open()
        for (index, client) in clients.enumerated() {
            #expect(try client.readResponse().body.text == "/\(index)")
            #expect(try client.exchange("/again").status == 200)
        }
        #expect(server.requestCount == 400)
        clients.forEach { $0.close() }
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("sequential connections leak nothing") func sequentialConnections() throws {
        let server = try LoopbackServer(recording: false) { _, _ in .ok() }
        for _ in 0..<500 {
            let client = try RawClient(port: server.port)
            #expect(try client.exchange("/").status == 200)
        }
        #expect(server.waitForConnectionsToClose())
        #expect(server.requests.isEmpty)
        #expect(server.requestCount == 500)
        if let threads = ProcessProbe.threadCount(named: server.threadName) { #expect(threads < 50) }
    }
}

@Suite struct ServerStopTests {
    @Test("stopping joins every thread", arguments: ["/silent", "/head-only", "/delay/60000", "/drip?ms=60000", "/json"])
    func joinsThreads(_ path: String) throws {
        let server = try LoopbackServer.standard()
        let clients = try (0..<10).map { _ in try RawClient(port: server.port) }
        for client in clients { try client.send("GET \(path) HTTP/1.1\r\n\r\n") }
        #expect(server.waitForRequests(10))
        server.stop()
        #expect(server.openConnections == 0)
        if ProcessProbe.threadCount(named: "") != nil {
            #expect(ProcessProbe.settles { ProcessProbe.threadCount(named: server.threadName) == 0 })
        }
        for client in clients { #expect(throws: Never.self) { try client.readToEnd() } }
        #expect(throws: SocketError.self) { try RawClient(port: server.port) }
    }

    @Test("stopping ends a wait at a gate") func stopEndsWait() async throws {
        let gate = Gate()
        let result = Gate()
        let server = try LoopbackServer { _, connection in
            if !connection.wait(until: gate, timeout: .seconds(600)) { result.open() }
            return nil
        }
        let client = try RawClient(port: server.port)
        try client.send("GET / HTTP/1.1\r\n\r\n")
        #expect(await gate.arrivals())
        server.stop()
        #expect(result.isOpen)
        server.stop()
    }

    @Test("a disconnecting client ends the wait at a gate") func disconnectEndsWait() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate, timeout: .seconds(600))
            return .ok()
        }
        let client = try RawClient(port: server.port)
        try client.send("GET / HTTP/1.1\r\n\r\n")
        #expect(await gate.arrivals())
        client.close()
        #expect(await server.waitForConnectionsToClose())
        #expect(!gate.isOpen)
    }

    @Test("a released server stops") func release() throws {
        var server: LoopbackServer? = try LoopbackServer.standard()
        let client = try RawClient(port: try #require(server).port)
        #expect(try client.exchange("/json").status == 200)
        server = nil
        #expect(try client.readToEnd().isEmpty)
    }

    @Test("a route may stop its own server") func stopFromRoute() throws {
        let holder = Monitor<LoopbackServer?>(nil)
        let server = try LoopbackServer { _, _ in
            holder.read { $0 }?.stop()
            return .ok()
        }
        holder.update { $0 = server }
        let client = try RawClient(port: server.port)
        try client.send("GET / HTTP/1.1\r\n\r\n")
        #expect(try client.readToEnd().isEmpty)
        #expect(server.waitForConnectionsToClose())
        holder.update { $0 = nil }
    }
}

@Suite struct GateTests {
    @Test("a gate holds until it is opened") func opening() async {
        let gate = Gate()
        async let passed: Bool = gate.wait()
        #expect(await gate.arrivals(1))
        #expect(!gate.isOpen)
        gate.open()
        #expect(await passed)
        #expect(await gate.wait())
        #expect(gate.arrived == 2)
    }

    @Test("waiting ends with the timeout") func timeout() async {
        let gate = Gate()
        #expect(await !gate.wait(timeout: .milliseconds(5)))
        #expect(await !gate.arrivals(2, timeout: .milliseconds(5)))
    }
}
