// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// With the nginx of `scripts/servers`, whose `/` responds to any request, and `/session` with nginx's `$ssl_session_reused`. Its
/// certificate is valid for `localhost`, and not for `127.0.0.1`.
@Suite(.enabled(if: Servers.hasNginx, "needs the nginx of scripts/servers"), .timeLimit(.minutes(1))) struct SecureTransferTests {
    private let servers: Servers.Nginx
    private var options = TransferOptions()

    init() throws {
        servers = try Servers.nginx()
        options.proxy = .none
        options.tls.certificateAuthorityFile = servers.authorities
    }

    @Test("the metrics contain the negotiated TLS and HTTP versions, also on pooled connections", arguments: [true, false])
    func metrics(overHTTP2: Bool) async throws {
        let transport = CurlTransport()
        for id in 1...3 {
            let url = overHTTP2 ? servers.tls : servers.tlsHTTP1
            let end = await transport.run(TransferRequest(url: url + "/", options: options))
            #expect(end.error == nil)
            let metrics = try #require(end.completion?.metrics)
            #expect(metrics.httpVersion == (overHTTP2 ? .http2 : .http1_1))
            #expect(metrics.tlsVersion?.hasPrefix("TLSv1.") == true)
            #expect(metrics.tlsCipher?.contains("AES") == true || metrics.tlsCipher?.contains("CHACHA") == true)
            #expect(metrics.reusedConnection == (id > 1))
            #expect((metrics.secureConnectionEnd != nil) == (id == 1))
        }
    }

    @Test("TLS and HTTP versions are those of the options")
    func versions() async throws {
        var options = options
        options.tls.maximumVersion = .v1_2
        options.httpVersion = .http1
        let metrics = await CurlTransport().run(TransferRequest(url: servers.tls + "/", options: options)).completion?.metrics
        #expect(metrics?.tlsVersion == "TLSv1.2")
        #expect(metrics?.httpVersion == .http1_1)
    }

    @Test("an untrusted certificate, or another host's, is rejected")
    func untrusted() async throws {
        let transport = CurlTransport()
        var distrusting = options
        distrusting.tls.certificateAuthorityFile = nil
        let otherHost = servers.tls.replacing("localhost", with: "127.0.0.1")
        for request in [
            TransferRequest(url: servers.tls + "/", options: distrusting), TransferRequest(url: otherHost + "/", options: options),
        ] {
            let failure = try #require(await transport.run(request).failure)
            // Without system certificates, as in some wheels, libcurl fails earlier.
            #expect(
                failure.kind == .serverCertificate || request.options.tls.certificateAuthorityFile == nil && failure.kind == .configuration)
            #expect(failure.phase == .securing)
            #expect(!failure.requestWasSent)
        }
        distrusting.tls.verifiesServer = false
        #expect(await transport.run(TransferRequest(url: otherHost + "/", options: distrusting)).error == nil)
    }

    @Test("authorities in memory replace the system's")
    func authorities() async throws {
        var options = options
        options.tls.certificateAuthorityFile = nil
        options.tls.certificateAuthorities = try Data(contentsOf: URL(fileURLWithPath: servers.authorities))
        #expect(await CurlTransport().run(TransferRequest(url: servers.tlsHTTP1 + "/", options: options)).error == nil)
        options.tls.certificateAuthorities = Data("no PEM".utf8)
        #expect(await CurlTransport().run(TransferRequest(url: servers.tlsHTTP1 + "/", options: options)).error != nil)
    }

    @Test("a new connection resumes the TLS session of an older one")
    func resumption() async throws {
        let transport = CurlTransport()
        let request = TransferRequest(url: servers.tlsHTTP1 + "/session", headers: ["Connection": "close"], options: options)
        #expect(await transport.run(request).body == Data(".".utf8))
        let second = await transport.run(request)
        #expect(second.body == Data("r".utf8))
        #expect(second.completion?.metrics.reusedConnection == false)
    }

    @Test("large and streamed uploads use an HTTP version that does not hang on them", arguments: [1000, 65_536, 65_537, 3_000_000])
    func uploads(size: Int) async throws {
        let body = DataBody(Data(count: size))
        let end = await CurlTransport().run(TransferRequest(url: servers.tls + "/", method: .put, body: body, options: options))
        #expect(end.error == nil)
        let isSafe = CurlInfo.current.hasReliableHTTP2 || size <= 65_536
        #expect(end.completion?.metrics.httpVersion == (isSafe ? .http2 : .http1_1))
    }

    @Test("many transfers over HTTP/2, some of them paused, all complete", arguments: [nil, true, false])
    func many(multiplexes: Bool?) async throws {
        var configuration = TransportConfiguration()
        configuration.multiplexes = CurlInfo.current.hasReliableHTTP2 ? multiplexes : nil
        configuration.maximumConnectionsPerHost = 4
        let transport = CurlTransport(configuration: configuration)
        let observers = (0..<100).map { _ in RecordingObserver() }
        for (index, observer) in observers.enumerated() {
            var request = TransferRequest(url: servers.tls + "/", options: options)
            request.mayPause = index % 3 == 0
            transport.start(request, observer: observer)
        }
        for observer in observers {
            let end = await observer.end()
            #expect(end.error == nil)
            #expect(end.completion?.metrics.httpVersion == .http2)
        }
    }

    @Test("a paused transfer does not block another one to the same host", arguments: [true, false])
    func heldUp(overHTTP2: Bool) async throws {
        var options = options
        options.connectTimeout = .seconds(30)
        let url = overHTTP2 ? servers.tls : servers.tlsHTTP1
        let transport = CurlTransport()
        let held = RecordingObserver(onHead: { _ in .pause })
        let transfer = transport.start(TransferRequest(url: url + "/", options: options), observer: held)
        let others = (2...5).map { _ in RecordingObserver() }
        for observer in others {
            transport.start(TransferRequest(url: url + "/", options: options), observer: observer)
        }
        for observer in others { #expect(await observer.end().error == nil) }
        // Only a transfer with a head is paused, and so can be resumed.
        #expect(await held.record { $0.head != nil }.completion == nil)
        transfer.resumeReceiving()
        #expect(await held.end().error == nil)
    }

    @Test("a raw stream over TLS echoes its bytes, and both ends close their sides")
    func stream() async throws {
        let url = try #require(URL(string: servers.tlsHTTP1))
        let request = StreamTransferRequest(host: "localhost", port: try #require(url.port), isSecure: true, options: options)
        let observer = RecordingStreamObserver()
        let transport = CurlTransport()
        let stream = transport.openStream(request, observer: observer)
        stream.send(Data("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8), endOfStream: false)
        let half = await observer.record { $0.hasEndedReceiving }
        #expect(half.bytes.starts(with: Data("HTTP/1.1 ".utf8)))
        stream.send(Data(), endOfStream: true)
        let end = await observer.end()
        #expect(end.completion?.error == nil)
        #expect(end.completions == 1)
    }

    @Test("a raw stream rejects an untrusted certificate")
    func untrustedStream() async throws {
        let url = try #require(URL(string: servers.tlsHTTP1))
        var request = StreamTransferRequest(host: "localhost", port: try #require(url.port), isSecure: true)
        request.options.proxy = .none
        let observer = RecordingStreamObserver()
        let transport = CurlTransport()
        transport.openStream(request, observer: observer)
        let failure = try #require(await observer.end().failure)
        #expect(failure.kind == .serverCertificate || failure.kind == .configuration)
        #expect(failure.phase <= .securing)
    }

    @Test("a peer without TLS is reported as such")
    func plain() async throws {
        let server = try LoopbackServer { _, _ in .ok("plain") }
        let failure = try #require(
            await CurlTransport().run(TransferRequest(url: "https://127.0.0.1:\(server.port)/", options: options)).failure)
        #expect(failure.kind == .secureConnection)
    }
}
