// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct FilePermissionTests {
    @Test("a download's temporary file is its owner's only, and the final one has what the umask gives", arguments: [0o000, 0o022, 0o077])
    func modes(mask: Int) async throws {
        let server = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(at: directory.file("temporary"), withIntermediateDirectories: false)
        let report = try await Probe.run("modes", server.url("/bytes/1000"), directory.url.path, String(mask, radix: 8))
        #expect(report.status == 0)
        #expect(report["kept"] == 0o600 && report["temporary"] == 0o600)
        for name in ["placed", "known", "replaced"] { #expect(report[name] == 0o666 & ~mask, "\(name)") }
    }
}
