// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

/// A network of a process's own, which it cuts and restores.
@Suite(.timeLimit(.minutes(1))) struct NetworkCutTests {
    private static func mayMakeNetworks() async -> Bool {
        let script = "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up"
        return await (try? ChildProcess("unshare", "-rn", "sh", "-c", script).finish().status) == 0
    }

    @Test(
        "a transfer outlives a short cut, and goes on where it was after a long one",
        .enabled("needs namespaces") { await mayMakeNetworks() })
    func cut() async throws {
        let report = await Probe.Report(try ChildProcess("unshare", ["-rn", try Probe.path(), "cut"]))
        #expect(report.status == 0)
        #expect(report["unreachable"] == 1)
        #expect(report["whole"] == 1)
        #expect(report["idleTimeout"] == 1)
        #expect(report["early"] == 0)
        #expect((1...1 << 20).contains(try #require(report["offset"])))
        #expect(report["resumed"] == 1)
    }
}
