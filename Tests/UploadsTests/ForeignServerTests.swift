// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewUploads
import Testing

/// A2.2: a tus server that others have written, PyPI's tuspyserver: creation, creation-with-upload, termination and expiration.
@Suite(.serialized, .timeLimit(.minutes(2)), .enabled("needs Python's tuspyserver and uvicorn") { try await isForeignServerInstalled() })
struct ForeignServerTests {
    private static let size = 16 << 20
    private let directory: TemporaryDirectory
    private let server: ChildProcess
    private let port: UInt16

    init() async throws {
        directory = try TemporaryDirectory()
        let script = """
            import socket, sys, uvicorn
            from fastapi import FastAPI
            from tuspyserver import create_tus_router
            app = FastAPI()
            app.include_router(create_tus_router(prefix="files", files_dir=sys.argv[1]))
            listener = socket.create_server(("127.0.0.1", 0))
            print(listener.getsockname()[1], flush=True)
            uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])
            """
        server = try ChildProcess(Servers.python, ["-c", script, directory.file("stored").path])
        port = try #require(await server.readLine().flatMap { UInt16($0) })
    }

    private func options() -> ResumableUpload.Options {
        var options = ResumableUpload.Options()
        options.metadata = ["filename": "file", "filetype": "application/octet-stream"]
        options.retryPolicy = RetryPolicy(retryLimit: 5, exponentialBackoffScale: 0.3, maximumDelay: 1)
        return options
    }

    /// A closure that returns whether the server has saved what has passed: before that it reports an earlier offset, even after a cut.
    private func hasSaved() -> @Sendable (Int64) -> Bool {
        let stored = directory.file("stored")
        return { passed in
            guard let name = (try? contents(of: stored))?.first(where: { $0.hasSuffix(".info") }),
                let bytes = try? Data(contentsOf: stored.appendingPathComponent(name)),
                let info = try? JSONSerialization.jsonObject(with: bytes) as? [String: Any], let offset = info["offset"] as? Int
            else { return passed == 0 }
            // A little of what has passed were heads.
            return passed == 0 || Int64(offset) > passed - 100_000
        }
    }

    /// The stored file of the only upload.
    private func stored() throws -> Data {
        let stored = directory.file("stored")
        let names = try contents(of: stored).filter { !$0.contains(".") }
        #expect(names.count == 1)
        return try Data(contentsOf: stored.appendingPathComponent(try #require(names.first)))
    }

    private func file(_ size: Int = size) throws -> URL { try directory.write(GeneratedBody().data(count: size), to: "file") }

    // A2.2
    @Test("over a line that is cut six times the file arrives, and hardly a byte is sent twice") func cuts() async throws {
        let relay = try CuttingRelay(to: port, marks: (1...6).map { Int64($0) * 2_500_001 }, isReady: hasSaved())
        let upload = makeManager().resumableUpload(try file(), to: "http://127.0.0.1:\(relay.port)/files/", options: options())
        let response = try await upload.response
        #expect(relay.cutsLeft == 0)
        let bytes = try stored()
        #expect(bytes.count == Self.size)
        #expect(GeneratedBody().matches(bytes))
        #expect(upload.expires != nil)
        #expect(response.length == Int64(Self.size))
        let ratio = Double(relay.passed) / Double(Self.size)
        print("six cuts: \(ratio) times the bytes")
        #expect(ratio <= 1.05)
        withExtendedLifetime(server) {}
    }

    // A2.2
    @Test("a process that is killed in the middle continues its upload") func killed() async throws {
        let child = Lock<ChildProcess?>(nil)
        let relay = try CuttingRelay(to: port, marks: [6_000_000], isReady: hasSaved()) {
            child.withLock { $0 }?.send(SIGKILL)
            return true
        }
        let url = "http://127.0.0.1:\(relay.port)/files/"
        let file = try file()
        let first = try child.withLock { child in
            let process = try Probe.start("tus", url, file.path)
            child = process
            return process
        }
        #expect(await first.finish().status != 0)
        let report = try await Probe.run("tus", url, file.path)
        #expect(report.status == 0)
        #expect((report["resumed"] ?? 0) > 5_000_000)
        let bytes = try stored()
        #expect(bytes.count == Self.size)
        #expect(GeneratedBody().matches(bytes))
        #expect(Double(relay.passed) / Double(Self.size) <= 1.05)
        withExtendedLifetime(server) {}
    }

    // A2.2
    @Test("the first chunk goes with the creation, and an upload is removed") func extensions() async throws {
        var options = options()
        options.sendsDataWithCreation = true
        options.chunkSize = 300_000
        let url = "http://127.0.0.1:\(port)/files/"
        let response = try await makeManager().resumableUpload(try file(1_000_000), to: url, options: options).response
        #expect(response.sent == 1_000_000)
        #expect(GeneratedBody().matches(try stored()))
        let relay = try CuttingRelay(to: port, marks: [600_000])
        options.retryPolicy = RetryPolicy(retryLimit: 0)
        options.sendsDataWithCreation = false
        let cut = makeManager().resumableUpload(directory.file("file"), to: "http://127.0.0.1:\(relay.port)/files/", options: options)
        await #expect(throws: CurlewError.self) { try await cut.response }
        #expect(try contents(of: directory.file("stored")).filter { !$0.contains(".") }.count == 2)
        try await cut.cancel(removingFromServer: true)
        #expect(try contents(of: directory.file("stored")).filter { !$0.contains(".") }.count == 1)
        #expect(try contents(of: directory) == ["file", "stored"])
        withExtendedLifetime(server) {}
    }
}

private func isForeignServerInstalled() async throws -> Bool {
    if Servers.areRequired { return true }
    guard ChildProcess.path(of: Servers.python) != nil else { return false }
    return try await ChildProcess(Servers.python, "-c", "import tuspyserver, uvicorn").finish().status == 0
}
