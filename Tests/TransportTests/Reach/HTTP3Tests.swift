// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// What has to be true with a libcurl that has no HTTP/3.
@Suite(.timeLimit(.minutes(1)), .disabled(if: CurlInfo.current.supportsHTTP3)) struct MissingHTTP3Tests {
    @Test(arguments: [HTTPVersionPolicy.http3, .http3Only], ["http", "https"])
    func `asking for HTTP/3 fails at once, and names the libcurl`(_ version: HTTPVersionPolicy, _ scheme: String) async throws {
        let server = try LoopbackServer { _, _ in .ok("ok") }
        var options = TransferOptions()
        options.httpVersion = version
        let end = await CurlTransport().run(TransferRequest(url: "\(scheme)://localhost:\(server.port)/", options: options))
        #expect(end.failure?.kind == .configuration)
        #expect(end.failure?.message == "libcurl \(CurlInfo.current.version) has no HTTP/3")
        #expect(server.connectionCount == 0)
    }
}

/// What has to be true with a libcurl that has HTTP/3, against a server that speaks it.
///
/// `scripts/http3` runs them: it starts the server, and sets `CURLEW_HTTP3_PORT`, another port without HTTP/2, and `CURLEW_HTTP3_AUTHORITY`, the
/// file of its root.
@Suite(.timeLimit(.minutes(1)), .enabled(if: CurlInfo.current.supportsHTTP3 && HTTP3Server.shared != nil)) struct HTTP3Tests {
    private let server: HTTP3Server

    init() throws {
        server = try #require(HTTP3Server.shared)
    }

    private func options(_ version: HTTPVersionPolicy, _ change: (inout TransferOptions) -> Void = { _ in }) -> TransferOptions {
        server.options(version, change)
    }

    @Test func `a request is sent over HTTP/3, and its metrics say so`() async {
        let end = await CurlTransport().run(TransferRequest(url: server.url("/hello"), options: options(.http3Only)))
        #expect(end.error == nil && end.body == Data("hello".utf8))
        #expect(end.completion?.metrics.httpVersion == .http3)
        #expect(end.completion?.metrics.tlsVersion == "TLSv1.3")
    }

    @Test func `with the choice it succeeds, over the version that the metrics record`() async {
        let transport = CurlTransport()
        for _ in 1...3 {
            let end = await transport.run(TransferRequest(url: server.url("/hello"), options: options(.http3)))
            #expect(end.error == nil && end.body == Data("hello".utf8))
            #expect(end.completion?.metrics.httpVersion == .http3 || end.completion?.metrics.httpVersion == .http2)
        }
    }

    @Test func `a host without HTTP/3 is reached over TCP with the choice, and fails without it`() async throws {
        let authority = try CertificateAuthority()
        let tcp = try LoopbackServer(tls: ServerTLS(try authority.issue())) { _, _ in .ok("tcp") }
        let chosen = await CurlTransport().run(
            TransferRequest(
                url: tcp.url("/"),
                options: options(.http3) {
                    $0.tls.certificateAuthorityFile = nil
                    $0.tls.certificateAuthorities = authority.certificate
                }))
        #expect(chosen.body == Data("tcp".utf8) && chosen.completion?.metrics.httpVersion == .http1_1)
        let only = await CurlTransport().run(
            TransferRequest(
                url: tcp.url("/"),
                options: options(.http3Only) {
                    $0.tls.certificateAuthorityFile = nil
                    $0.tls.certificateAuthorities = authority.certificate
                    $0.connectTimeout = .seconds(2)
                }))
        #expect(only.failure != nil)
        #expect([.connect, .connectTimeout].contains(only.failure?.kind))
    }

    @Test func `an untrusted certificate is refused, and nothing is sent`() async throws {
        let other = try CertificateAuthority(name: "Other")
        let end = await CurlTransport().run(
            TransferRequest(
                url: server.url("/hello"),
                options: options(.http3Only) {
                    $0.tls.certificateAuthorityFile = nil
                    $0.tls.certificateAuthorities = other.certificate
                }))
        #expect(end.failure?.kind == .serverCertificate)
        #expect(end.failure?.requestWasSent == false)
    }

    @Test func `many requests at a time share a connection, and large bodies arrive whole`() async {
        let transport = CurlTransport(configuration: TransportConfiguration())
        #expect(await transport.run(TransferRequest(url: server.url("/hello"), options: options(.http3Only))).error == nil)
        let observers = (0..<16).map { _ in RecordingObserver() }
        for (index, observer) in observers.enumerated() {
            let path = index.isMultiple(of: 4) ? "/large" : "/hello"
            transport.start(TransferRequest(url: server.url(path), options: options(.http3Only)), observer: observer)
        }
        for (index, observer) in observers.enumerated() {
            let end = await observer.end()
            #expect(end.error == nil && end.completion?.metrics.httpVersion == .http3)
            #expect(end.body.count == (index.isMultiple(of: 4) ? 1 << 20 : 5))
        }
    }

    @Test func `bodies are sent, and cancelled requests leave the connection to others`() async {
        let transport = CurlTransport()
        let body = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) })
        let end = await transport.run(
            TransferRequest(url: server.url("/upload"), method: .post, body: DataBody(body), options: options(.http3Only)))
        #expect(end.error == nil && end.head?.statusCode == 200)
        let observer = RecordingObserver()
        let transfer = transport.start(TransferRequest(url: server.url("/large"), options: options(.http3Only)), observer: observer)
        transfer.cancel()
        #expect(await observer.end().isCancelled)
        #expect(
            await transport.run(TransferRequest(url: server.url("/hello"), options: options(.http3Only))).body == Data("hello".utf8))
    }

    @Test func `connections tell their version, and one is opened ahead for all requests`() async throws {
        let events = Log<ConnectionEvent>()
        let transport = CurlTransport()
        transport.observeConnections { events.append($0) }
        let request = TransferRequest(url: server.url("/hello"), options: options(.http3Only))
        #expect(try await transport.prewarm(request, count: 3) == 1)
        #expect(await transport.connectionStatistics().connections == .init(idle: 1, busy: 0))
        let observers = (0..<4).map { _ in RecordingObserver() }
        for observer in observers { transport.start(request, observer: observer) }
        for observer in observers { #expect(await observer.end().error == nil) }
        #expect(await transport.run(TransferRequest(url: server.url("/hello"), options: options(.automatic))).error == nil)
        #expect(await transport.closeIdleConnections() == 2)
        transport.shutDown()
        await transport.waitUntilShutDown()
        let opened = events.elements.filter { $0.kind == .opened }
        #expect(opened.map(\.httpVersion) == [.http3, .http2] && opened.map(\.isHTTP2) == [false, true])
        #expect(events.elements.count { if case .closed = $0.kind { true } else { false } } == 2)
        #expect(events.elements.allSatisfy { $0.tlsVersion == "TLSv1.3" && $0.remotePort == server.port })
    }

    @Test func `a host's offer of HTTP/3 is taken by later requests`() async throws {
        let store = AlternativeServices()
        let options = options(.automatic) { $0.alternativeServices = store }
        let transport = CurlTransport()
        let first = await transport.run(TransferRequest(url: server.url("/hello"), options: options))
        #expect(first.error == nil && first.completion?.metrics.httpVersion == .http2)
        #expect(store.entries.map(\.alternativePort) == [server.port])
        for _ in 1...3 {
            let later = await transport.run(TransferRequest(url: server.url("/hello"), options: options))
            #expect(later.body == Data("hello".utf8) && later.completion?.metrics.httpVersion == .http3)
        }
        store.removeAll()
        let again = await transport.run(TransferRequest(url: server.url("/hello"), options: options))
        #expect(again.completion?.metrics.httpVersion == .http2)
    }

    @Test(arguments: [HTTPMethod.get, .post])
    func `an alternative that can't be reached, or has a wrong certificate, is left for TCP, and not tried again`(_ method: HTTPMethod)
        async throws
    {
        let authority = try CertificateAuthority()
        let tcp = try LoopbackServer(tls: ServerTLS(try authority.issue())) { request, _ in .ok("tcp \(request.body.count)") }
        // Of these ports nothing uses the first for UDP, and the second shows a certificate of another root.
        for port in [tcp.port, server.port] {
            let store = AlternativeServices()
            let host = RouteTarget(host: "localhost", port: tcp.port)
            store.received("h3=\":\(port)\"", from: host, at: Date())
            var options = options(.automatic) { $0.alternativeServices = store }
            options.tls.certificateAuthorityFile = nil
            options.tls.certificateAuthorities = authority.certificate
            let transport = CurlTransport()
            for _ in 1...2 {
                let body = method == .post ? DataBody(Data(count: 1000)) : nil
                let end = await transport.run(TransferRequest(url: tcp.url("/"), method: method, body: body, options: options))
                #expect(end.error == nil && end.body == Data("tcp \(body == nil ? 0 : 1000)".utf8))
                #expect(store.alternative(for: host, at: Date()) == nil)
            }
            #expect(store.entries.count == 1)
        }
    }

    @Test func `plain http, sockets and authentication of connections are refused with HTTP/3 only`() async {
        let transport = CurlTransport()
        var requests = [
            TransferRequest(url: "http://localhost:\(server.port)/", options: options(.http3Only)),
            TransferRequest(url: server.url("/"), options: options(.http3Only) { $0.unixSocketPath = "/tmp/curlew.sock" }),
            TransferRequest(url: server.url("/"), options: options(.http3Only)),
        ]
        requests[2].authentication = .negotiate
        for request in requests {
            #expect(await transport.run(request).failure?.kind == .configuration)
        }
    }
}

/// The server of `scripts/http3`.
struct HTTP3Server {
    let port: Int
    /// The port where the server speaks HTTP/1.1 over TCP, and no HTTP/2.
    let portWithoutHTTP2: Int
    let authority: String
    /// The path of the Unix domain socket to which it passes requests for `/origin/`.
    let origin: String

    static let shared: HTTP3Server? = {
        let environment = ProcessInfo.processInfo.environment
        guard let port = environment["CURLEW_HTTP3_PORT"].flatMap({ Int($0) }),
            let portWithoutHTTP2 = environment["CURLEW_HTTP3_PORT_WITHOUT_HTTP2"].flatMap({ Int($0) }),
            let file = environment["CURLEW_HTTP3_AUTHORITY"],
            let origin = environment["CURLEW_HTTP3_ORIGIN"]
        else { return nil }
        return HTTP3Server(port: port, portWithoutHTTP2: portWithoutHTTP2, authority: file, origin: origin)
    }()

    func url(_ path: String) -> String { "https://localhost:\(port)\(path)" }

    /// Options for HTTP/3 alone, or for another policy.
    func options(_ version: HTTPVersionPolicy = .http3Only, _ change: (inout TransferOptions) -> Void = { _ in }) -> TransferOptions {
        var options = TransferOptions()
        options.httpVersion = version
        options.proxy = .none
        options.tls.certificateAuthorityFile = authority
        change(&options)
        return options
    }
}
