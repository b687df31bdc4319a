// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewRequests

@Suite(.timeLimit(.minutes(1)))
struct DownloadTests {
    private static let size = 400_000

    /// Sends a generated file or the requested range of it; the first time only half of it, then waits at the gate.
    private func makeStopping(_ gate: Gate) throws -> Stage {
        let isFirst = Lock(true)
        return try Stage { request, connection in
            let response = ServerResponse.generated(length: Int64(Self.size), for: request)
            let stops = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            guard stops else { return response }
            try connection.send(
                raw: "HTTP/1.1 200 \r\nETag: \"\(Self.size)-0\"\r\nAccept-Ranges: bytes\r\nContent-Length: \(Self.size)\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(count: Self.size / 2))
            connection.wait(until: gate)
            connection.close()
            return nil
        }
    }

    private func makeRequest(_ stage: Stage, _ target: URL, _ path: String = "file") -> SampleRequest {
        let request = SampleRequest(stage, path)
        request.resumableDownloadPath = target.path
        return request
    }

    private func isComplete(_ file: URL) throws -> Bool {
        let data = try Data(contentsOf: file)
        return data.count == Self.size && GeneratedBody().matches(data)
    }

    /// Whether no download has the lock on a part file, which it gives back on another thread after it was stopped.
    private func isUnlocked(_ file: URL) -> Bool {
        let descriptor = open(file.path, O_RDONLY)
        defer { close(descriptor) }
        return flock(descriptor, LOCK_EX | LOCK_NB) == 0
    }

    private func length(_ file: URL) -> Int {
        (try? FileManager.default.attributesOfItem(atPath: file.path)[.size] as? NSNumber)?.intValue ?? 0
    }

    @Test func `a download yields a file and no data`() async throws {
        let directory = try TemporaryDirectory()
        let stage = try Stage { request, _ in .generated(length: Int64(Self.size), for: request) }
        let target = try directory.write(Data("before".utf8), to: "file")
        let request = makeRequest(stage, target)
        let progress = Lock<Int64>(0)
        request.resumableDownloadProgressBlock = { now in progress.withLock { $0 = now.completedUnitCount } }
        #expect(await run(request) == .succeeded)
        #expect(request.responseObject as? URL == target)
        #expect(request.responseData == nil && request.responseString == nil)
        #expect(try isComplete(target))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["file"])
    }

    @Test func `in a directory the file is named after the URL`() async throws {
        let directory = try TemporaryDirectory()
        let stage = try Stage { request, _ in .generated(length: Int64(Self.size), for: request) }
        for name in ["one.bin", "two.bin"] {
            let request = makeRequest(stage, directory.url, "a/\(name)?x=y")
            #expect(await run(request) == .succeeded)
            #expect(try isComplete(directory.file(name)))
        }
    }

    @Test func `an error status keeps the existing file and returns the server's body`() async throws {
        let directory = try TemporaryDirectory()
        let target = try directory.write(Data("before".utf8), to: "file")
        let stage = try Stage.standard()
        let request = makeRequest(stage, target, "status/404")
        #expect(await run(request) == .failed)
        #expect(request.error as? RequestValidationError == .invalidStatusCode(404))
        #expect(request.responseString == #"{"code": 7}"#)
        #expect(request.responseObject == nil)
        #expect(try Data(contentsOf: target) == Data("before".utf8))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["file"])
    }

    @Test func `it resumes after a stop`() async throws {
        let directory = try TemporaryDirectory()
        let gate = Gate()
        let stage = try makeStopping(gate)
        let target = directory.file("file")
        let request = makeRequest(stage, target)
        request.start()
        #expect(await eventually { length(directory.file(".file.part")) > 0 })
        request.stop()
        #expect(await eventually { isUnlocked(directory.file(".file.part")) })
        gate.open()
        #expect(await run(makeRequest(stage, target)) == .succeeded)
        #expect(try isComplete(target))
        let range = try #require(stage.server.requests.last?.header("Range"))
        #expect(range.hasPrefix("bytes=") && range != "bytes=0-")
    }

    @Test func `a retry resumes after a failure`() async throws {
        let directory = try TemporaryDirectory()
        let gate = Gate()
        gate.open()
        let stage = try makeStopping(gate)
        let request = makeRequest(stage, directory.file("file"))
        request.retries = 1
        #expect(await run(request) == .succeeded)
        #expect(try isComplete(directory.file("file")))
        #expect(request.requestTotalCount == 2)
        let range = try #require(stage.server.requests.last?.header("Range"))
        #expect(range.hasPrefix("bytes=") && range != "bytes=0-")
    }

    @Test func `it resumes after its process was killed`() async throws {
        let directory = try TemporaryDirectory()
        let gate = Gate()
        let stage = try makeStopping(gate)
        let target = directory.file("file")
        let child = try Probe.start("request", stage.server.url("/file"), target.path)
        #expect(await eventually { length(directory.file(".file.part")) > 0 })
        child.send(SIGKILL)
        #expect(await child.finish().status == -1)
        gate.open()
        let offset = length(directory.file(".file.part"))
        #expect(!FileManager.default.fileExists(atPath: target.path))
        #expect(await run(makeRequest(stage, target)) == .succeeded)
        #expect(try isComplete(target))
        #expect(stage.server.requests.last?.header("Range") == "bytes=\(offset)-")
    }

    @Test func `another URL for the same file starts over`() async throws {
        let directory = try TemporaryDirectory()
        let gate = Gate()
        let stage = try makeStopping(gate)
        let target = directory.file("file")
        let request = makeRequest(stage, target)
        request.start()
        #expect(await eventually { length(directory.file(".file.part")) > 0 })
        request.stop()
        gate.open()
        #expect(await run(makeRequest(stage, target, "other")) == .succeeded)
        #expect(stage.server.requests.last?.header("Range") == nil)
        #expect(try isComplete(target))
    }

    @Test func `methods other than GET are not downloads`() async throws {
        let directory = try TemporaryDirectory()
        let stage = try Stage.standard()
        let request = makeRequest(stage, directory.file("file"), "json")
        request.method = .post
        #expect(await run(request) == .succeeded)
        #expect(request.responseJSONObject != nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path).isEmpty)
    }
}
