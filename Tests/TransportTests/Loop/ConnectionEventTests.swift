// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct ConnectionEventTests {
    private let events = Log<ConnectionEvent>()

    private func transport(_ configuration: TransportConfiguration = TransportConfiguration()) -> CurlTransport {
        let transport = CurlTransport(configuration: configuration)
        transport.observeConnections { [events] in events.append($0) }
        return transport
    }

    /// The events, each with its connection's number.
    private var kinds: [String] {
        events.elements.map { event in
            switch event.kind {
            case .opened: "\(event.connection) opened"
            case .reused: "\(event.connection) reused"
            case .becameIdle: "\(event.connection) idle"
            case .closed(let reason): "\(event.connection) \(reason.rawValue)"
            }
        }
    }

    @Test func `a connection is opened, reused, idle between, and closed with its session`() async throws {
        let server = try LoopbackServer.standard()
        let transport = transport()
        for _ in 1...2 { #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil) }
        transport.shutDown()
        await transport.waitUntilShutDown()
        #expect(kinds == ["1 opened", "1 idle", "1 reused", "1 idle", "1 sessionEnded"])
        let first = try #require(events.elements.first)
        #expect(first.origin == HTTPOrigin(scheme: "http", host: "127.0.0.1", port: server.port))
        #expect(first.remoteAddress == "127.0.0.1" && first.remotePort == server.port)
        #expect(first.localPort != nil && first.tlsVersion == nil && !first.isHTTP2)
        #expect(events.elements.map(\.transferCount) == [1, 0, 1, 0, 0])
        let ages = events.elements.map(\.age)
        #expect(ages == ages.sorted())
    }

    @Test func `a response that ends the connection closes it as finished`() async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            connection.close()
            return nil
        }
        let transport = transport()
        for _ in 1...2 { #expect(await transport.run(TransferRequest(url: server.url("/"))).error == nil) }
        #expect(kinds == ["1 opened", "1 finished", "2 opened", "2 finished"])
    }

    @Test func `cancelled and failed transfers close their connections for that reason`() async throws {
        let server = try LoopbackServer.standard()
        let transport = transport()
        let observer = RecordingObserver(onHead: { _ in .cancel })
        #expect(await transport.run(TransferRequest(url: server.url("/head-only")), observer: observer).isCancelled)
        #expect(await transport.run(TransferRequest(url: server.url("/cut-body"))).failure?.kind == .connectionLost)
        #expect(kinds == ["1 opened", "1 cancelled", "2 opened", "2 failed"])
    }

    @Test func `a stale connection is closed by its peer, and the request gets another`() async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            connection.close()
            return nil
        }
        let transport = transport()
        #expect(await transport.run(TransferRequest(url: server.url("/"))).error == nil)
        #expect(await server.waitForConnectionsToClose())
        #expect(await transport.run(TransferRequest(url: server.url("/"))).error == nil)
        // Which library notices first, and when, is libcurl's affair; the first is closed once, before the end of the second's use.
        #expect(kinds.filter { $0.hasPrefix("1 ") && $0 != "1 reused" } == ["1 opened", "1 idle", "1 closedByPeer"])
        #expect(kinds.filter { $0.hasPrefix("2 ") } == ["2 opened", "2 idle"])
    }

    @Test func `what exceeds the pool is closed as unused`() async throws {
        var configuration = TransportConfiguration()
        configuration.maximumIdleConnections = 1
        let servers = try (0..<4).map { _ in try LoopbackServer.standard() }
        let transport = transport(configuration)
        for server in servers {
            #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil)
        }
        // libcurl closes what was used longest ago, to the millisecond.
        #expect(["1 unused", "2 unused", "3 unused"].contains { kinds.contains($0) })
        #expect(!kinds.contains("4 unused"))
    }

    @Test func `a connection that can't be made is not reported`() async throws {
        let server = try LoopbackServer.standard()
        let url = server.url("/")
        server.stop()
        #expect(await transport().run(TransferRequest(url: url)).failure?.kind == .connect)
        #expect(kinds == [])
    }

    @Test func `streams are reported, too`() async throws {
        let server = try TCPEchoServer()
        let transport = transport()
        for ends in [true, false] {
            let observer = RecordingStreamObserver()
            let request = StreamTransferRequest(host: "127.0.0.1", port: server.port, isSecure: false)
            let stream = transport.openStream(request, observer: observer)
            stream.send(Data("x".utf8), endOfStream: ends)
            if ends {
                _ = await observer.end()
            } else {
                _ = await observer.record { !$0.bytes.isEmpty }
                stream.cancel()
                _ = await observer.end()
            }
        }
        #expect(kinds == ["1 opened", "1 finished", "2 opened", "2 cancelled"])
        #expect(events.elements.first?.remotePort == server.port)
    }

    @Test(.enabled(if: Servers.hasNginx, "needs the nginx of scripts/servers"), arguments: [false, true])
    func `TLS and HTTP/2 are reported`(overHTTP2: Bool) async throws {
        let servers = try Servers.nginx()
        var options = TransferOptions()
        options.proxy = .none
        options.tls.certificateAuthorityFile = servers.authorities
        let transport = transport()
        let url = (overHTTP2 ? servers.tls : servers.tlsHTTP1) + "/"
        for _ in 1...2 { #expect(await transport.run(TransferRequest(url: url, options: options)).error == nil) }
        transport.shutDown()
        await transport.waitUntilShutDown()
        #expect(kinds == ["1 opened", "1 idle", "1 reused", "1 idle", "1 sessionEnded"])
        #expect(events.elements.allSatisfy { $0.isHTTP2 == overHTTP2 && $0.tlsVersion != nil })
        #expect(events.elements.allSatisfy { $0.httpVersion == (overHTTP2 ? .http2 : .http1_1) })
    }

    @Test func `several connections over one Unix domain socket have events of their own`() async throws {
        let directory = try TemporaryDirectory()
        let gates = [Gate(), Gate(), Gate()]
        let server = try LoopbackServer(unixSocketPath: directory.file("api.sock").path) { request, connection in
            connection.wait(until: gates[Int(request.path.dropFirst()) ?? 0])
            return .ok("done")
        }
        var options = TransferOptions()
        options.unixSocketPath = server.unixSocketPath
        let transport = transport()
        for (round, count) in [3, 2, 3].enumerated() {
            let observers = (0..<count).map { _ in RecordingObserver() }
            for observer in observers {
                let request = TransferRequest(url: "http://docker/\(round)", options: options)
                transport.start(request, observer: observer)
            }
            #expect(await gates[round].arrivals(count))
            #expect(await transport.connectionStatistics().connections == .init(idle: 3 - count, busy: count))
            gates[round].open()
            for observer in observers { #expect(await observer.end().error == nil) }
        }
        transport.shutDown()
        await transport.waitUntilShutDown()
        #expect(server.connectionCount == 3)
        let byConnection = Dictionary(grouping: events.elements, by: \.connection).mapValues { $0.map(\.kind) }
        #expect(byConnection.keys.sorted() == [1, 2, 3])
        for kinds in byConnection.values {
            #expect(kinds.first == .opened && kinds.last == .closed(.sessionEnded))
            let between = kinds.dropFirst().dropLast()
            #expect(
                between.count % 2 == 1 && between.enumerated().allSatisfy { $0.element == ($0.offset % 2 == 0 ? .becameIdle : .reused) })
        }
        #expect(events.elements.count { $0.kind == .reused } == 5)
        #expect(events.elements.allSatisfy { $0.httpVersion == .http1_1 })
    }

    @Test func `every connection that was opened is closed once, and active and idle counts return to zero`() async throws {
        let server = try LoopbackServer.standard()
        let transport = transport()
        let paths = ["/json", "/cut-body", "/reset", "/status/500", "/chunked/5000", "/head-only", "/gzip", "/cut-head"]
        await withTaskGroup(of: Void.self) { group in
            for id in 1...80 {
                group.addTask {
                    let path = paths[id % paths.count]
                    let observer = RecordingObserver(onHead: { _ in path == "/head-only" ? .cancel : .proceed })
                    _ = await transport.run(TransferRequest(url: server.url(path)), observer: observer)
                }
            }
        }
        transport.shutDown()
        await transport.waitUntilShutDown()
        for (_, events) in Dictionary(grouping: events.elements, by: \.connection) {
            #expect(events.first?.kind == .opened)
            #expect(events.count { if case .closed = $0.kind { true } else { false } } == 1)
            #expect(events.last?.transferCount == 0)
            if case .closed? = events.last?.kind {} else { Issue.record("\(events)") }
        }
    }
}
