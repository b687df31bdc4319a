// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Foundation
import Testing

/// Runs the guide's code and checks that it behaves as the guide says.
@Suite(.timeLimit(.minutes(1))) struct ReachGuideTests {
    @Test("every block of the guide is compiled, and all code compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/Reach.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("ReachGuideSnippets.swift")) == [])
    }

    @Test("one request of a session uses a socket") func sidecar() async throws {
        let directory = try TemporaryDirectory()
        let server = try LoopbackServer(unixSocketPath: directory.file("health.sock").path) { request, _ in
            request.path == "/health" ? .ok("healthy") : .status(404)
        }
        defer { server.stop() }
        let manager = SessionManager(configuration: SessionConfiguration())
        let path = try #require(server.unixSocketPath)
        #expect(await ReachGuideSnippets.sidecar(manager, path).value == "healthy")
        manager.session.invalidateAndCancel()
    }

    @Test("the session's names, connections and authorities are those of the guide's code, and a request uses them") func configuration()
        async throws
    {
        let authority = try CertificateAuthority()
        let directory = try TemporaryDirectory()
        let file = try directory.write(authority.certificate, to: "root.pem")
        let server = try LoopbackServer(tls: ServerTLS(try authority.issue("service.invalid"))) { _, _ in .ok("found") }
        defer { server.stop() }
        var configuration = SessionConfiguration()
        ReachGuideSnippets.proxies(&configuration)
        #expect(configuration.proxy == .none)
        ReachGuideSnippets.names(&configuration, GuideRegistry(known: ["service.invalid": ["127.0.0.1"]]))
        ReachGuideSnippets.connections(&configuration)
        try ReachGuideSnippets.authorities(&configuration, file)
        try ReachGuideSnippets.alternatives(&configuration, directory.file("alternatives.json"))
        #expect(configuration.resolve == ["api.example.org:443": ["10.0.0.7", "10.0.0.8"]])
        #expect(configuration.connectTo == ["www.example.org": "canary.example.org:8443"])
        let manager = SessionManager(configuration: configuration)
        let response = await manager.request("https://service.invalid:\(server.port)/").serializingString().response
        #expect(response.value == "found")
        #expect(response.metrics.last?.localPort.map { (40_000...49_999).contains($0) } == true)
        manager.session.invalidateAndCancel()
        ReachGuideSnippets.doh(&configuration)
        ReachGuideSnippets.http3(&configuration)
        #expect(configuration.dohURL != nil && configuration.httpVersion == .http3)
    }
}
