// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

/// Takes the network of a separate process down and up again.
@Suite(.timeLimit(.minutes(1))) struct NetworkCutTests {
    private static func mayMakeNetworks() async -> Bool {
        let script = "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up"
        return await (try? ChildProcess("unshare", "-rn", "sh", "-c", script).finish().status) == 0
    }

    @Test(
        "a transfer survives a short network outage and resumes after a long one",
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
