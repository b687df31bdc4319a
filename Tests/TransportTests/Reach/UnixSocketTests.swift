// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct UnixSocketTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func options(_ change: (inout TransferOptions) -> Void) -> TransferOptions {
        var options = TransferOptions()
        change(&options)
        return options
    }

    /// A server like the Docker daemon's: on a socket in the file system.
    private func makeServer(_ name: String = "api.sock", text: String = "over the socket") throws -> LoopbackServer {
        try LoopbackServer(unixSocketPath: directory.file(name).path) { request, _ in
            request.path == "/echo" ? .ok(String(decoding: request.body, as: UTF8.self)) : .ok(text)
        }
    }

    @Test func `requests are sent over the socket, to the URL's host, and its connection is reused`() async throws {
        let server = try makeServer()
        let options = options { $0.unixSocketPath = server.unixSocketPath }
        let transport = CurlTransport()
        let first = await transport.run(TransferRequest(url: "http://docker/version", options: options))
        #expect(first.error == nil && first.body == Data("over the socket".utf8))
        let second = await transport.run(
            TransferRequest(url: "http://docker/echo", method: .post, body: DataBody(Data("ping".utf8)), options: options))
        #expect(second.body == Data("ping".utf8))
        #expect(second.completion?.metrics.reusedConnection == true)
        #expect(server.connectionCount == 1)
        #expect(server.requests.allSatisfy { $0.header("Host") == "docker" })
    }

    @Test func `proxies, address policies and resolvers do not apply to it`() async throws {
        let server = try makeServer()
        let options = options {
            $0.unixSocketPath = server.unixSocketPath
            $0.proxy = .url("http://127.0.0.1:1")
            $0.addresses = .publicOnly
            $0.resolver = HostResolver { _, _ in throw POSIXError(.EIO) }
        }
        let end = await CurlTransport().run(TransferRequest(url: "http://docker/", options: options))
        #expect(end.error == nil && end.body == Data("over the socket".utf8))
    }

    @Test func `its connections and those of TCP or of other sockets are never taken for each other`() async throws {
        let tcp = try LoopbackServer { _, _ in .ok("over TCP") }
        let server = try makeServer()
        let other = try makeServer("other.sock", text: "over the other")
        let transport = CurlTransport()
        let sockets: [(String?, String)] = [
            (server.unixSocketPath, "over the socket"), (nil, "over TCP"), (other.unixSocketPath, "over the other"),
        ]
        for _ in 0..<3 {
            for (path, text) in sockets {
                let request = TransferRequest(url: tcp.url("/"), options: options { $0.unixSocketPath = path })
                #expect(await transport.run(request).body == Data(text.utf8))
            }
        }
        #expect(tcp.connectionCount == 1 && server.connectionCount == 1 && other.connectionCount == 1)
    }

    #if os(Linux)
    @Test func `a socket may have a name in the abstract namespace`() async throws {
        let name = "curlew-\(UUID().uuidString)"
        let server = try LoopbackServer(unixSocketPath: "\0" + name) { _, _ in .ok("abstract") }
        let options = options { $0.abstractUnixSocket = name }
        #expect(options.unixSocketPath == nil)
        let end = await CurlTransport().run(TransferRequest(url: "http://localhost/", options: options))
        #expect(end.error == nil && end.body == Data("abstract".utf8))
        #expect(server.connectionCount == 1)
    }
    #endif

    @Test func `many connections over one socket deliver the right responses`() async throws {
        let server = try makeServer()
        let options = options { $0.unixSocketPath = server.unixSocketPath }
        let transport = CurlTransport()
        for round in 0..<3 {
            let observers = (0..<16).map { _ in RecordingObserver() }
            for (index, observer) in observers.enumerated() {
                let body = DataBody(Data("\(round)-\(index)".utf8))
                let request = TransferRequest(url: "http://docker/echo", method: .post, body: body, options: options)
                transport.start(request, observer: observer)
            }
            for (index, observer) in observers.enumerated() {
                let end = await observer.end()
                #expect(end.error == nil && end.body == Data("\(round)-\(index)".utf8))
            }
        }
    }

    @Test func `a connection that the server has closed is not used`() async throws {
        let server = try LoopbackServer(unixSocketPath: directory.file("closing.sock").path) { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            connection.close()
            return nil
        }
        let options = options { $0.unixSocketPath = server.unixSocketPath }
        let transport = CurlTransport()
        for _ in 1...5 {
            let end = await transport.run(
                TransferRequest(url: "http://docker/", method: .post, body: DataBody(Data("x".utf8)), options: options))
            #expect(end.error == nil)
            #expect(await server.waitForConnectionsToClose())
        }
        #expect(server.requestCount == 5)
    }

    @Test func `bytes that arrive unasked on one of several idle connections are no response`() async throws {
        let (answer, garbage) = (Gate(), Gate())
        let sent = Log<Void>()
        let server = try LoopbackServer(unixSocketPath: directory.file("late.sock").path) { request, connection in
            guard request.path == "/late" else { return .ok("asked") }
            connection.wait(until: answer)
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            connection.wait(until: garbage)
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
            sent.append(())
            return nil
        }
        let options = options { $0.unixSocketPath = server.unixSocketPath }
        let transport = CurlTransport()
        let observers = (0..<3).map { _ in RecordingObserver() }
        for observer in observers {
            transport.start(TransferRequest(url: "http://docker/late", options: options), observer: observer)
        }
        #expect(await answer.arrivals(3))
        answer.open()
        for observer in observers { #expect(await observer.end().body == Data("ok".utf8)) }
        #expect(await garbage.arrivals(3))
        garbage.open()
        await sent.wait(for: 3)
        for _ in 1...5 {
            let request = TransferRequest(url: "http://docker/", method: .post, body: DataBody(Data("x".utf8)), options: options)
            let end = await transport.run(request)
            #expect(end.error == nil && end.body == Data("asked".utf8), "\(String(describing: end.failure))")
        }
    }

    @Test func `TLS runs over it, for the URL's name`() async throws {
        let authority = try CertificateAuthority()
        let server = try LoopbackServer(
            tls: ServerTLS(try authority.issue("sidecar.test")), unixSocketPath: directory.file("tls.sock").path
        ) { _, _ in .ok("secret") }
        var options = options { $0.unixSocketPath = server.unixSocketPath }
        options.tls.certificateAuthorities = authority.certificate
        let transport = CurlTransport()
        // libcurl before 8.0 can't set up TLS over a Unix domain socket reliably; it says so, or it works.
        let end = await transport.run(TransferRequest(url: "https://sidecar.test/", options: options))
        if CurlInfo.current.versionNumber >= 0x080000 || end.error == nil { #expect(end.body == Data("secret".utf8)) }
        let wrong = await transport.run(TransferRequest(url: "https://other.test/", options: options))
        #expect(wrong.failure != nil && wrong.body.isEmpty)
    }

    @Test func `streams use it too`() async throws {
        let path = directory.file("raw.sock").path
        let listener = try SocketListener(path: path) { socket, _ in
            try? socket.send(Data("hello".utf8))
            // libcurl takes a peer that has closed already for one that refused the connection.
            socket.drain(timeout: .seconds(10))
        }
        defer { listener.stop(timeout: Duration.seconds(5)) }
        let stream = StreamRecorder()
        let transport = CurlTransport()
        transport.openStream(
            StreamTransferRequest(host: "docker", port: 80, isSecure: false, options: options { $0.unixSocketPath = path }),
            observer: stream)
        #expect(await stream.received(5) == Data("hello".utf8))
        // Its release would end the stream.
        transport.shutDown()
    }

    @Test(arguments: ["", "a\0b", String(repeating: "x", count: 108)])
    func `a path that can't be one fails before anything is sent`(_ path: String) async {
        let end = await CurlTransport().run(TransferRequest(url: "http://docker/", options: options { $0.unixSocketPath = path }))
        #expect(end.failure?.kind == .configuration)
        #expect(end.failure?.message.contains("Unix domain socket") == true)
    }

    /// Sockets that can't be connected to, with the message of the failure.
    private func deadEnds() throws -> [(options: TransferOptions, message: String)] {
        let (missing, file) = (directory.file("missing.sock").path, directory.file("file").path)
        try Data().write(to: directory.file("file"))
        let name = "curlew-\(UUID())"
        return [
            (options { $0.unixSocketPath = missing }, "connect \(missing): no such file or directory"),
            (options { $0.unixSocketPath = file }, "connect \(file): connection refused"),
            (options { $0.unixSocketPath = file + "/x" }, "connect \(file)/x: not a directory"),
            (options { $0.abstractUnixSocket = name }, "connect @\(name): connection refused"),
        ]
    }

    @Test func `a socket without a server is a failure to connect, with its path and the reason`() async throws {
        let transport = CurlTransport()
        for (number, end) in try deadEnds().enumerated() {
            let request = TransferRequest(url: number == 0 ? "https://docker/" : "http://docker/", options: end.options)
            let failure = await transport.run(request).failure
            #expect(failure?.kind == .connect && failure?.message == end.message)
        }
    }

    @Test func `so it is for a stream`() async throws {
        let transport = CurlTransport()
        for (number, end) in try deadEnds().enumerated() {
            let stream = RecordingStreamObserver()
            let request = StreamTransferRequest(host: "docker", port: 80, isSecure: number == 0, options: end.options)
            transport.openStream(request, observer: stream)
            let failure = await stream.end().failure
            #expect(failure?.kind == .connect && failure?.message == end.message)
        }
    }
}

/// Collects what a stream receives.
private final class StreamRecorder: StreamTransferObserver {
    private let data = Lock(Data())
    private let ended = Lock(false)

    func stream(_ id: Int, didOpen metrics: TransferMetrics) {}
    func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        data.withLock { $0.append(contentsOf: bytes) }
        return .proceed
    }
    func streamDidEndReceiving(_ id: Int) {}
    func stream(_ id: Int, didSend count: Int64) {}
    func stream(_ id: Int, didComplete completion: TransferCompletion) { ended.withLock { $0 = true } }

    /// The bytes so far, once there are as many, or the stream has completed.
    func received(_ count: Int) async -> Data {
        while data.withLock({ $0.count }) < count, !ended.withLock({ $0 }) { await Task.yield() }
        return data.withLock { $0 }
    }
}
