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

    /// A thread that ends, or is using OpenSSL, while the process exits is not concerned by its clean-up.
    @Test(arguments: [true, false])
    func `OpenSSL lives as long as the process, for a request or a server`(_ hasRequest: Bool) async throws {
        let server = try LoopbackServer.standard(recording: false)
        let process = try hasRequest ? Probe.start("end", server.url("/bytes/1000")) : Probe.start("end")
        let report = await Probe.Report(process)
        #expect(report.status == 0)
        #expect(report["made"] == 1)
    }
}
