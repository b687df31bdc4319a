// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct ProcessEndTests {
    /// The program exits while its session's event loop thread ends: the thread must not run into the libraries' own cleanup at exit.
    @Test("a program may exit right after its last request")
    func exitAfterLastRequest() async throws {
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
