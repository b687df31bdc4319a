// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewURLSession
import Testing

/// Download tasks of `CurlewURLSession`, of which the resume data outlives the process.
@Suite(.timeLimit(.minutes(1))) struct KilledDownloadTaskTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test("a download whose resume data was written resumes by it after its process was killed, each time") func resumeData() async throws {
        let lead: Int64 = 100_000
        let server = try LoopbackServer { request, connection in
            let response = ServerResponse.generated(length: 4 * lead, etag: "\"v1\"", for: request)
            guard case .generated(let length, _, let offset) = response.body, length > lead else { return response }
            let fields = response.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
            try connection.send(raw: "HTTP/1.1 \(response.status) \r\n\(fields)Content-Length: \(length)\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(offset: offset, count: Int(lead)))
            connection.waitUntilClosed()
            return nil
        }
        defer { server.stop() }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.curlew.temporaryDirectory = directory.url
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let task = session.downloadTask(with: try #require(URL(string: server.url("/file"))))
        task.resume()
        #expect(await eventually { task.countOfBytesReceived == lead })
        let directories = (try TemporaryDirectory(), try TemporaryDirectory())
        let (resumeData, target) = (directories.0.file("resume"), directories.1.file("file"))
        try #require(await task.cancelByProducingResumeData()).write(to: resumeData)

        for offset in [lead, 2 * lead] {
            let child = try Probe.start("task", resumeData.path, target.path)
            // Before it is killed, as its delegate is called on a thread of its own.
            #expect(await child.readLine() == "offset=\(offset)")
            #expect(await eventually { partLength() == offset + lead })
            child.send(SIGKILL)
            let (status, output) = await child.finish()
            #expect(status != 0)
            #expect(output.isEmpty)
        }
        let report = try await Probe.run("task", resumeData.path, target.path)
        #expect(report.status == 0)
        #expect(report["offset"] == Int(3 * lead))
        let body = try Data(contentsOf: target)
        #expect(body.count == 4 * lead && GeneratedBody().matches(body))
        #expect(try contents(of: directory) == [])
    }

    /// The length of the largest file of the session's directory.
    private func partLength() -> Int64? {
        let files = try? FileManager.default.contentsOfDirectory(at: directory.url, includingPropertiesForKeys: nil)
        return files?.map { (try? FileManager.default.attributesOfItem(atPath: $0.path)[.size] as? NSNumber)?.int64Value ?? 0 }.max()
    }
}
