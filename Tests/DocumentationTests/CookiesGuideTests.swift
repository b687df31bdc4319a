// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import Foundation
import Testing

/// Runs the guide's code and checks that it behaves as the guide says.
@Suite(.timeLimit(.minutes(1))) struct CookiesGuideTests {
    @Test("every block of the guide is compiled, and all code compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/CookiesAndHSTS.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("CookiesGuideSnippets.swift")) == [])
    }

    @Test("the second request sends the first one's cookie") func memory() async throws {
        let server = try LoopbackServer { request, _ in
            ServerResponse(
                status: 200, headers: [ServerField("Set-Cookie", "a=1")], body: .data(Data((request.header("Cookie") ?? "none").utf8)))
        }
        defer { server.stop() }
        let manager = CookiesGuideSnippets.memory()
        var texts: [String?] = []
        for _ in 0..<2 { texts.append(await manager.request(server.url("/")).serializingString().response.value) }
        #expect(texts == ["none", "a=1"])
        manager.session.invalidateAndCancel()
    }

    @Test("another session finds cookies and hosts in the files") func files() async throws {
        let directory = try TemporaryDirectory()
        let security = "max-age=1000; includeSubDomains"
        let response = MockResponse.text("x").header("Set-Cookie", "a=1; Max-Age=1000").header("Strict-Transport-Security", security)
        var sent: [MockRequest] = []
        for url in ["https://example.org/", "http://example.org/"] {
            // A transport for each, as it ends with its session.
            let mock = MockTransport()
            mock.stub(.any, respond: response)
            let manager = SessionManager(mock: mock) { CookiesGuideSnippets.files(&$0, directory.url) }
            #expect(await manager.request(url).serializingData().response.error == nil)
            sent += mock.requests
        }
        #expect(sent.map(\.url) == ["https://example.org/", "https://example.org/"])
        #expect(sent.map { $0.headers["Cookie"] } == [nil, "a=1"])
    }

    @Test("cookies are listed, imported and exported") func editing() throws {
        var printed: [String] = []
        let store = try CookiesGuideSnippets.editing { printed.append("\($0)=\($1)") }
        #expect(printed == ["session=42"])
        #expect(try store.cookies().isEmpty)
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("x\nexample.org\tFALSE\t/\tFALSE\t0\ta\t1\n".utf8), to: "in")
        var skipped: [Int] = []
        try CookiesGuideSnippets.netscape(store, from: file, to: directory.file("out")) { skipped = $1 }
        #expect(skipped == [1])
        #expect(try String(contentsOf: directory.file("out"), encoding: .utf8).hasSuffix("example.org\tFALSE\t/\tFALSE\t0\ta\t1\n"))
    }

    @Test("known hosts, with subdomains") func hosts() throws {
        var configuration = SessionConfiguration()
        CookiesGuideSnippets.hsts(&configuration)
        #expect(try configuration.hsts?.hosts() == [])
        try CookiesGuideSnippets.hosts(&configuration)
        #expect(try configuration.hsts?.upgradedURL(of: "http://www.example.org/")?.absoluteString == "https://www.example.org/")
    }
}
