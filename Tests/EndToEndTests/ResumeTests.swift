// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct ResumeTests {
    private let directory: TemporaryDirectory
    private let temporary: TemporaryDirectory
    private let manager: SessionManager

    init() throws {
        directory = try TemporaryDirectory()
        temporary = try TemporaryDirectory()
        let url = temporary.url
        manager = makeManager { $0.temporaryDirectory = url }
    }

    private var target: URL { directory.file("file") }

    /// Returns the resume data of a download whose connection was lost.
    private func resumeData(_ server: RangeServer) async throws -> Data {
        let response = await manager.download(server.url).validate().serializingURL().response
        #expect(response.error?.transferFailure?.kind == .connectionLost)
        return try #require(response.resumeData)
    }

    private func expectComplete(_ response: DownloadResponse<Data>, seed: UInt64 = 0, _ location: SourceLocation = #_sourceLocation) {
        #expect(response.error == nil, sourceLocation: location)
        // Compared here, because the values of a megabyte each must not be printed.
        #expect((response.value == RangeServer.body(seed: seed)) == true, sourceLocation: location)
    }

    // MARK: Obtaining resume data

    @Test("a cancelled download is resumed") func cancelledDownload() async throws {
        let server = try RangeServer(.stalled(after: RangeServer.half))
        let come = Log<Int64>()
        let request = manager.download(server.url)
        request.downloadProgress { if $0.completedUnitCount == RangeServer.half { come.append($0.completedUnitCount) } }
        await come.wait(for: 1)
        request.cancel()
        let cancelled = await request.serializingURL().response
        #expect(cancelled.error?.isCancelled == true)
        let data = try #require(cancelled.resumeData)
        #expect(request.resumeData == data && request.delegate.data == data)
        let response = await manager.download(resumingWith: data, to: target).validate().serializingData().response
        expectComplete(response)
        #expect(response.response?.statusCode == 206)
        #expect(server.ranges == [nil, "bytes=400000-"])
        #expect(server.requests[1].header("If-Range") == "\"1000000-0\"")
        #expect(try contents(of: directory) == ["file"])
        #expect(try contents(of: temporary).isEmpty)
    }

    @Test("resume data has no header field that is usual for secrets, or that the session or the request's options name as sensitive")
    func sensitiveHeaders() async throws {
        let directory = try TemporaryDirectory()
        let url = directory.url
        let manager = makeManager {
            $0.temporaryDirectory = url
            $0.redirects.sensitiveHeaders = ["X-Sessions"]
        }
        var redirects = RedirectPolicy()
        redirects.sensitiveHeaders = ["X-Own"]
        var options = RequestOptions()
        options.redirects = redirects
        let server = try RangeServer(.cut(after: RangeServer.half), .cut(after: RangeServer.half))
        let headers: HTTPHeaders = [
            "X-Sessions": "s3cret1", "X-Own": "s3cret2", "X-Other": "plain", "X-Api-Key": "s3cret3", "X-Auth-Token": "s3cret3",
        ]
        // What the options of one request name counts for the whole process from then on, as all marks of secrets do.
        for options in [options, nil] {
            let request = manager.download(server.url, headers: headers, requestOptions: options)
            let data = try #require(await request.serializingURL().response.resumeData)
            let text = String(decoding: data, as: UTF8.self)
            #expect(["s3cret1", "s3cret2", "s3cret3", "plain"].filter { text.contains($0) } == ["plain"], "\(text)")
        }
    }

    @Test("cancelling without resume data leaves no file behind") func cancelWithoutResumeData() async throws {
        let server = try RangeServer(.stalled(after: RangeServer.half))
        let come = Log<Void>()
        let request = manager.download(server.url).downloadProgress { if $0.completedUnitCount == RangeServer.half { come.append(()) } }
        await come.wait(for: 1)
        request.cancel(createResumeData: false)
        #expect(await request.serializingURL().response.resumeData == nil)
        #expect(try contents(of: temporary).isEmpty)
    }

    @Test("a lost connection, a timeout and the session's end yield resume data", arguments: ["lost", "timeout", "session"])
    func failedDownload(_ failure: String) async throws {
        let server = try RangeServer(failure == "lost" ? .cut(after: RangeServer.half) : .stalled(after: RangeServer.half))
        let url = temporary.url
        let manager = makeManager {
            $0.temporaryDirectory = url
            if failure == "timeout" { $0.idleTimeout = .seconds(1) }
        }
        let come = Log<Void>()
        let request = manager.download(server.url).downloadProgress { if $0.completedUnitCount == RangeServer.half { come.append(()) } }
        await come.wait(for: 1)
        if failure == "session" { manager.invalidateAndCancel() }
        let ended = Log<DefaultDownloadResponse>()
        request.response { ended.append($0) }
        await ended.wait(for: 1)
        let data = try #require(ended.elements.first?.resumeData)
        expectComplete(await self.manager.download(resumingWith: data).serializingData().response)
        #expect(server.ranges == [nil, "bytes=400000-"])
    }

    @Test("a coded download, or one without a validator, starts over", arguments: ["gzip", "weak", "none", "date"])
    func notResumable(_ kind: String) async throws {
        let fields: [String: [ServerField]] = [
            "gzip": [ServerField("ETag", "\"v1\""), ServerField("Content-Encoding", "gzip")], "weak": [ServerField("ETag", "W/\"v1\"")],
            "none": [ServerField("Content-Type", "text/plain")],
            "date": [
                ServerField("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"), ServerField("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ],
        ]
        let server = try RangeServer(.cut(after: RangeServer.half, headers: fields[kind] ?? []))
        manager.retrier = Retrier.attempts(1)
        expectComplete(await manager.download(server.url).serializingData().response)
        #expect(server.ranges == [nil, nil])
    }

    @Test("Last-Modified is the validator if there is no ETag") func lastModified() async throws {
        let fields = [
            ServerField("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"), ServerField("Date", "Mon, 07 Nov 1994 08:49:37 GMT"),
        ]
        let server = try RangeServer(.cut(after: RangeServer.half, headers: fields))
        manager.retrier = Retrier.attempts(1)
        expectComplete(await manager.download(server.url).serializingData().response)
        #expect(server.requests.last?.header("If-Range") == "Sun, 06 Nov 1994 08:49:37 GMT")
    }

    // MARK: Responses

    @Test("a full response from a server that ignores ranges is accepted") func ignoredRange() async throws {
        let server = try RangeServer(
            .cut(after: RangeServer.half), .bytes(status: 200, from: 0, [ServerField("ETag", "\"1000000-0\"")]))
        let data = try await resumeData(server)
        expectComplete(await manager.download(resumingWith: data, to: target).validate().serializingData().response)
        #expect(server.requests.count == 2)
        #expect(try contents(of: temporary).isEmpty)
    }

    @Test("a changed file starts over") func changedFile() async throws {
        let server = try RangeServer(.cut(after: RangeServer.half), .version(7))
        let data = try await resumeData(server)
        expectComplete(await manager.download(resumingWith: data, to: target).validate().serializingData().response, seed: 7)
    }

    private static let range = "bytes 400000-999999/1000000"

    @Test(
        "a mismatched response starts over and is never appended",
        arguments: [
            .bytes(status: 206, from: 300_000, [ServerField("Content-Range", "bytes 300000-999999/1000000")]),
            .bytes(status: 206, from: 0, [ServerField("Content-Range", "bytes 0-999999/1000000")]),
            .bytes(status: 206, from: half, [ServerField("Content-Range", "bytes 400000-999999/2000000")]),
            .bytes(status: 206, from: half, [ServerField("Content-Range", range), ServerField("ETag", "\"new\"")], seed: 3),
            .bytes(status: 206, from: half, [ServerField("Content-Range", range), ServerField("Content-Encoding", "gzip")]),
            .bytes(status: 206, from: half, [ServerField("Content-Range", range)], seed: 3), .bytes(status: 206, from: half, []),
            .bytes(status: 206, from: 300_000, [ServerField("Content-Range", range)]),
            .bytes(status: 206, from: half, [ServerField("Content-Type", "multipart/byteranges; boundary=b")]),
            .response(.status(416, headers: [ServerField("Content-Range", "bytes */1000000")])),
            .response(.status(416, headers: [ServerField("Content-Range", "bytes */300000")])), .response(.status(416)),
        ] as [RangeServer.Response])
    func mismatchedResponse(_ answer: RangeServer.Response) async throws {
        let server = try RangeServer(.cut(after: half), answer)
        let data = try await resumeData(server)
        expectComplete(await manager.download(resumingWith: data, to: target).validate().serializingData().response)
        #expect(server.ranges == [nil, "bytes=400000-", nil])
        #expect(try contents(of: directory) == ["file"])
        #expect(try contents(of: temporary).isEmpty)
    }

    @Test("a complete file is only validated with the server") func completeFile() async throws {
        let server = try RangeServer(.unended)
        let data = try await resumeData(server)
        let progress = Log<Int64>()
        let request = manager.download(resumingWith: data, to: target).validate()
        request.downloadProgress { progress.append($0.completedUnitCount) }
        expectComplete(await request.serializingData().response)
        #expect(server.ranges == [nil, "bytes=1000000-"])
        await progress.wait(for: 1)
        #expect(progress.elements.first == RangeServer.length)
    }

    @Test("an error response in between keeps the partial data") func intermediateError() async throws {
        let server = try RangeServer(.cut(after: RangeServer.half), .response(.status(503)))
        manager.retrier = Retrier.attempts(2)
        expectComplete(await manager.download(server.url, to: target).validate().serializingData().response)
        #expect(server.ranges == [nil, "bytes=400000-", "bytes=400000-"])
        #expect(try contents(of: directory) == ["file"])
    }

    @Test("a repeatedly interrupted download completes") func repeatedlyCut() async throws {
        let server = try RangeServer(.cut(after: 100_000), .cut(after: 1), .cut(after: 250_000), .cut(after: 0), .cut(after: 300_000))
        manager.retrier = Retrier.attempts(9)
        let progress = Log<Int64>()
        let request = manager.download(server.url, to: target).downloadProgress { progress.append($0.completedUnitCount) }
        expectComplete(await request.serializingData().response)
        #expect(server.ranges == [nil, 100_000, 100_001, 350_001, 350_001, 650_001].map { $0.map { "bytes=\($0)-" } })
        // The awaited response does not wait for the progress callbacks on that queue.
        callbackQueue.sync {}
        #expect(progress.elements == progress.elements.sorted())
        #expect(progress.elements.last == RangeServer.length)
    }

    @Test("a redirect keeps the range") func redirect() async throws {
        let server = try RangeServer(.cut(after: RangeServer.half), .response(.redirect(to: "/elsewhere", status: 307)))
        let data = try await resumeData(server)
        expectComplete(await manager.download(resumingWith: data).validate().serializingData().response)
        #expect(server.ranges == [nil, "bytes=400000-", "bytes=400000-"])
    }

    @Test("the adapter is applied") func adapter() async throws {
        let server = try RangeServer(.cut(after: RangeServer.half))
        manager.adapter = Adapter { $0.setValue("Bearer token", forHTTPHeaderField: "Authorization") }
        let data = try await resumeData(server)
        #expect(!String(decoding: data, as: UTF8.self).contains("token"))
        expectComplete(await manager.download(resumingWith: data).validate().serializingData().response)
        #expect(server.requests.map { $0.header("Authorization") } == ["Bearer token", "Bearer token"])
    }

    @Test("a closure chooses a resumed file's destination, and the offset is reported") func destination() async throws {
        let server = try RangeServer(.cut(after: RangeServer.half))
        let data = try await resumeData(server)
        let told = Log<[Int64]>()
        manager.delegate.downloadTaskDidResumeAtOffset = { _, _, offset, total in told.append([offset, total]) }
        let target = target
        let response = await manager.download(resumingWith: data) { _, _ in (target, []) }.serializingData().response
        expectComplete(response)
        #expect(response.destinationURL == target)
        #expect(told.elements == [[400_000, 1_000_000]])
    }

    @Test("the same resume data used twice concurrently yields two complete files") func concurrentResumption() async throws {
        let server = try RangeServer(.cut(after: RangeServer.half))
        let data = try await resumeData(server)
        let requests = (0..<4).map { manager.download(resumingWith: data, to: directory.file("file\($0)")) }
        for request in requests { expectComplete(await request.serializingData().response) }
        #expect(try contents(of: directory).count == 4)
    }

    // MARK: Resuming by destination

    @Test("a download resumes from the partial file at its destination") func partialFile() async throws {
        let server = try RangeServer(.cut(after: RangeServer.half))
        let failed = await manager.download(server.url, to: target, options: .resumePreviousDownload).serializingURL().response
        #expect(failed.error != nil)
        #expect(try contents(of: directory) == [".file.part", ".file.part.json"])
        let another = makeManager()
        expectComplete(await another.download(server.url, to: target, options: .resumePreviousDownload).serializingData().response)
        #expect(server.ranges == [nil, "bytes=400000-"])
        #expect(try contents(of: directory) == ["file"])
    }

    @Test("many concurrent downloads to the same destination do not mix") func concurrentDownloads() async throws {
        let server = try RangeServer(.cut(after: RangeServer.half))
        _ = await manager.download(server.url, to: target, options: .resumePreviousDownload).serializingURL().response
        let managers = (0..<8).map { _ in makeManager() }
        let requests = managers.map { $0.download(server.url, to: target, options: [.resumePreviousDownload, .removePreviousFile]) }
        for request in requests { expectComplete(await request.serializingData().response) }
        #expect(try contents(of: directory) == ["file"])
        // One of them resumed, the others wrote to separate files.
        #expect(server.ranges.compactMap { $0 } == ["bytes=400000-"])
    }
}

private let half = RangeServer.half
