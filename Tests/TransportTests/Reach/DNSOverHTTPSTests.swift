// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct DNSOverHTTPSTests {
    private let authority: CertificateAuthority
    private let names: NameServer

    init() throws {
        authority = try CertificateAuthority()
        names = try NameServer(name: "service.test", identity: try authority.issue())
    }

    private func options(_ change: (inout TransferOptions) -> Void = { _ in }) -> TransferOptions {
        var options = TransferOptions()
        options.proxy = .none
        options.dohURL = names.url
        options.tls.certificateAuthorities = authority.certificate
        change(&options)
        return options
    }

    @Test func `the server's addresses are used, for http and https`() async throws {
        let plain = try LoopbackServer { request, _ in .ok(request.header("Host") ?? "") }
        let secure = try LoopbackServer(tls: ServerTLS(try authority.issue("service.test"))) { _, _ in .ok("secure") }
        let transport = CurlTransport()
        let first = await transport.run(TransferRequest(url: "http://service.test:\(plain.port)/", options: options()))
        #expect(first.error == nil && first.body == Data("service.test:\(plain.port)".utf8))
        let second = await transport.run(TransferRequest(url: "https://service.test:\(secure.port)/", options: options()))
        #expect(second.error == nil && second.body == Data("secure".utf8))
        #expect(names.server.requestCount >= 2)
    }

    @Test func `a name that it does not know has no address`() async throws {
        let end = await CurlTransport().run(TransferRequest(url: "http://other.test/", options: options()))
        #expect(end.failure?.kind == .nameResolution)
        #expect(names.server.requestCount >= 1)
    }

    @Test func `its certificate is verified unless that is switched off`() async throws {
        let server = try LoopbackServer { _, _ in .ok("ok") }
        let url = "http://service.test:\(server.port)/"
        let other = try CertificateAuthority(name: "Other")
        let refused = await CurlTransport().run(
            TransferRequest(url: url, options: options { $0.tls.certificateAuthorities = other.certificate }))
        #expect(refused.failure?.kind == .nameResolution && server.connectionCount == 0)
        let accepted = await CurlTransport().run(
            TransferRequest(
                url: url,
                options: options {
                    $0.tls.certificateAuthorities = other.certificate
                    $0.dohVerifiesServer = false
                }))
        #expect(accepted.body == Data("ok".utf8))
    }

    @Test func `many names at a time, and cancelled ones, leave the session working`() async throws {
        let server = try LoopbackServer { _, _ in .ok("ok") }
        let transport = CurlTransport()
        let observers = (0..<12).map { _ in RecordingObserver() }
        for (index, observer) in observers.enumerated() {
            let name = index.isMultiple(of: 3) ? "service.test" : "other\(index).test"
            let transfer = transport.start(TransferRequest(url: "http://\(name):\(server.port)/", options: options()), observer: observer)
            if index % 3 == 2 { transfer.cancel() }
        }
        for (index, observer) in observers.enumerated() {
            let end = await observer.end()
            switch index % 3 {
            case 0: #expect(end.body == Data("ok".utf8))
            case 1: #expect(end.failure?.kind == .nameResolution)
            default: #expect(end.isCancelled)
            }
        }
    }

    @Test func `a server whose certificate has only a common name is not asked`() async throws {
        let nameless = try NameServer(name: "service.test", identity: try authority.issue(commonName: "localhost"))
        let end = await CurlTransport().run(
            TransferRequest(url: "http://service.test:1/", options: options { $0.dohURL = nameless.url }))
        #expect(end.failure?.kind == .nameResolution)
        #expect(nameless.server.requests.isEmpty)
    }
}
