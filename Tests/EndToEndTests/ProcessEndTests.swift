// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct ProcessEndTests {
    /// The program ends while the thread of its session's event loop does: that must not meet the libraries' own end.
    @Test("a program may end right behind its last request")
    func endBehindLastRequest() async throws {
        let server = try LoopbackServer.standard(recording: false)
        let directory = try TemporaryDirectory()
        var statuses: [Int32] = []
        for index in 0..<20 {
            let process = try Probe.start("download", server.url("/bytes/1000"), directory.file("\(index)").path)
            statuses.append(await process.finish().status)
        }
        #expect(statuses.allSatisfy { $0 == 0 })
        #expect(try contents(of: directory).count == 20)
    }
}
