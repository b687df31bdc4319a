// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

/// Runs the code of CurlewHAR.md.
@Suite(.timeLimit(.minutes(1))) struct HARGuideTests {
    @Test("every block of the page is compiled, and everything compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/HAR/CurlewHAR.docc/CurlewHAR.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("HARGuide.swift")) == [])
    }

    @Test("a session is recorded and drawn") func run() async throws {
        let server = try LoopbackServer { _, _ in .ok("hello") }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        try await record(server.url("/users/7"), to: directory.url)
        let page = try String(contentsOf: directory.file("session.html"), encoding: .utf8)
        #expect(Elements(page.replacingOccurrences(of: "<!DOCTYPE html>", with: "")).rows == 1)
    }
}
