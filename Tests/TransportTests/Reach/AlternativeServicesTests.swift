// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

private let host = RouteTarget(host: "api.example.org", port: 443)
private let start = Date()

@Suite(.timeLimit(.minutes(1))) struct AlternativeServicesTests {
    private func stored(_ fields: String..., at date: Date = start) -> AlternativeServices {
        let store = AlternativeServices()
        for field in fields { store.received(field, from: host, at: date) }
        return store
    }

    @Test(
        arguments: [
            ("h3=\":443\"", RouteTarget(host: "api.example.org", port: 443)),
            ("h2=\":8000\", h3=\":8443\"; ma=60; persist=1, h3=\":9\"", RouteTarget(host: "api.example.org", port: 8443)),
            ("h3=\"Alt.example.org:444\";ma=60", RouteTarget(host: "alt.example.org", port: 444)),
            ("h3=\"[2001:db8::1]:444\"", RouteTarget(host: "2001:db8::1", port: 444)),
            ("h3-29=\":1\", x=\"a,b;c\", h3=\":2\"", RouteTarget(host: "api.example.org", port: 2)),
            ("h2=\":443\"", nil), ("clear", nil), ("h3=\":443\"; ma=0", nil), ("h3=\":443\"; ma=-5", nil), ("h3", nil), ("", nil),
            ("h3=\":0\"", nil), ("h3=\":99999\"", nil), ("h3=\"evil/path:1\"", nil), ("h3=\"a b:1\"", nil), ("h3=\":443", nil),
        ] as [(String, RouteTarget?)])
    func `the first offer of HTTP/3 in a field counts`(_ field: String, _ target: RouteTarget?) {
        #expect(stored(field).alternative(for: host, at: start) == target)
    }

    @Test func `an offer expires after its lifetime, a day by default`() {
        for (field, lifetime) in [("h3=\":1\"; ma=60", 60.0), ("h3=\":1\"", 86_400), ("h3=\":1\"; ma=99999999999999999999", 365 * 86_400)] {
            let store = stored(field)
            #expect(store.alternative(for: host, at: start + lifetime - 1) != nil)
            #expect(store.alternative(for: host, at: start + lifetime + 1) == nil)
        }
    }

    @Test func `a later field replaces the offer, an invalid one does not, and clear removes it`() {
        #expect(stored("h3=\":1\"", "h3=\":2\"").alternative(for: host, at: start)?.port == 2)
        #expect(stored("h3=\":1\"", "h3=").alternative(for: host, at: start)?.port == 1)
        for end in ["clear", "h3=\":1\"; ma=0", "h2=\":1\""] {
            #expect(stored("h3=\":1\"", end).alternative(for: host, at: start) == nil)
        }
    }

    @Test func `an alternative that could not be reached is not tried for five minutes, or until the network changes`() throws {
        let store = stored("h3=\":1\"; persist=1")
        let target = try #require(store.alternative(for: host, at: start))
        store.failed(target, at: start)
        #expect(store.alternative(for: host, at: start + 299) == nil)
        #expect(store.alternative(for: host, at: start + 301) == target)
        store.failed(target, at: start)
        store.networkDidChange()
        #expect(store.alternative(for: host, at: start) == target)
        #expect(stored("h3=\":1\"").entries.count == 1)
        let volatile = stored("h3=\":1\"")
        volatile.networkDidChange()
        #expect(volatile.entries.isEmpty)
    }

    @Test func `at most a thousand hosts are kept, those whose offers last longest`() {
        let store = AlternativeServices()
        for index in 1...1_001 {
            store.received("h3=\":1\"; ma=\(index * 100)", from: RouteTarget(host: "h\(index)", port: 443), at: start)
        }
        #expect(store.entries.count == 1_000)
        #expect(store.alternative(for: RouteTarget(host: "h1", port: 443), at: start) == nil)
    }

    @Test func `a file keeps the offers, for its owner only, and a symbolic link in its place is replaced`() throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("alternatives.json")
        let store = try AlternativeServices(file: file)
        store.received("h3=\":444\"; ma=3600; persist=1", from: host, at: start)
        let target = try directory.write(Data("target".utf8), to: "target")
        try FileManager.default.createSymbolicLink(at: file, withDestinationURL: target)
        try store.save()
        #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
        #expect(try String(contentsOf: target, encoding: .utf8) == "target")
        let loaded = try AlternativeServices(file: file)
        #expect(loaded.entries == store.entries && loaded.entries.count == 1)
        loaded.removeAll()
        try loaded.save()
        #expect(try AlternativeServices(file: file).entries.isEmpty)
        let broken = try directory.write(Data("{".utf8), to: "broken.json")
        #expect(throws: DecodingError.self) { try AlternativeServices(file: broken) }
    }

    @Test func `offers are recorded from verified https only, and not where no store is set`() async throws {
        let authority = try CertificateAuthority()
        let fields = [ServerField("Alt-Svc", "h3=\":1\"; ma=60")]
        let route: LoopbackServer.Route = { _, _ in ServerResponse(status: 200, headers: fields, body: .data(Data("ok".utf8))) }
        let secure = try LoopbackServer(tls: ServerTLS(try authority.issue()), route: route)
        let plain = try LoopbackServer(route: route)
        let store = AlternativeServices()
        var options = TransferOptions()
        options.proxy = .none
        options.alternativeServices = store
        var unverified = options
        unverified.tls.verifiesServer = false
        let transport = CurlTransport()
        #expect(await transport.run(TransferRequest(url: plain.url("/"), options: options)).error == nil)
        #expect(await transport.run(TransferRequest(url: secure.url("/"), options: unverified)).error == nil)
        #expect(store.entries.isEmpty)
        options.tls.certificateAuthorities = authority.certificate
        #expect(await transport.run(TransferRequest(url: secure.url("/"), options: options)).error == nil)
        #expect(store.entries.map(\.port) == [secure.port])
        // Without HTTP/3 in libcurl, or without a server of it, the next transfer uses TCP.
        #expect(await transport.run(TransferRequest(url: secure.url("/"), options: options)).body == Data("ok".utf8))
    }
}
