// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import Testing

@Suite(.timeLimit(.minutes(1))) struct DownloadTaskTests {
    private let server: LoopbackServer
    private let directory: TemporaryDirectory
    private let delegate = RecordingDelegate()

    init() throws {
        server = try LoopbackServer.standard()
        directory = try TemporaryDirectory()
    }

    /// A session whose temporary files are in the test's directory.
    private func session(_ delegate: (any URLSessionDelegate)? = nil) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.curlew.temporaryDirectory = directory.url
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    private func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: directory.url.path) }

    // U2.2, U3.1
    @Test func `the delegate gets the file, which is removed afterwards`() async throws {
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        let contents = Log<Data?>()
        delegate.atFile = { contents.append(try? Data(contentsOf: $0)) }
        let task = session.downloadTask(with: try server.address("/bytes/100000"))
        task.resume()
        #expect(await delegate.completion() == nil)
        #expect(delegate.order == ["created 1", "written", "metrics", "file", "complete"])
        #expect(contents.elements.first??.count == 100_000)
        #expect(try files() == [])
    }

    // U2.2
    @Test func `a handler gets the file, which is removed when it returns, and a moved one stays`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let kept = directory.file("kept")
        let seen = Log<(Int?, Int?)>()
        for isMoved in [false, true] {
            session.downloadTask(with: try server.address("/status/404")) { url, response, error in
                let count = url.flatMap { try? Data(contentsOf: $0) }?.count
                if isMoved, let url { try? FileManager.default.moveItem(at: url, to: kept) }
                seen.append((count, (response as? HTTPURLResponse)?.statusCode))
            }.resume()
            await seen.wait(for: isMoved ? 2 : 1)
        }
        #expect(seen.elements.allSatisfy { $0.0 == 3 && $0.1 == 404 })
        #expect(await eventually { (try? files()) == ["kept"] })
    }

    // U2.2
    @Test func `the file of an awaited download stays`() async throws {
        let (url, response) = try await session().download(from: try server.address("/bytes/1000"))
        #expect(try Data(contentsOf: url).count == 1000)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
    }

    // U2.3
    @Test func `a cancelled download is resumed by its data`() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, connection in
            let whole = ServerResponse.generated(length: 200_000, etag: "\"v1\"", for: request)
            guard request.header("Range") == nil else { return whole }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\nETag: \"v1\"\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(offset: 0, count: 100_000))
            connection.wait(until: gate)
            return nil
        }
        defer { server.stop() }
        defer { gate.open() }
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        let task = session.downloadTask(with: try server.address("/file"))
        task.resume()
        #expect(await eventually { task.countOfBytesReceived == 100_000 })
        let data = try #require(await task.cancelByProducingResumeData())
        let error = try #require(await delegate.completion() as? URLError)
        #expect(error.code == .cancelled)
        #expect(error.userInfo[NSURLSessionDownloadTaskResumeData] as? Data == data)

        let bodies = Log<Data>()
        delegate.atFile = { url in if let data = try? Data(contentsOf: url) { bodies.append(data) } }
        let resumed = session.downloadTask(withResumeData: data)
        resumed.resume()
        await bodies.wait(for: 1)
        #expect(bodies.elements.first.map { $0.count == 200_000 && GeneratedBody().matches($0) } == true)
        #expect(delegate.calls.elements.contains("resumed 100000 of 200000"))
        #expect(server.requests.last?.header("Range") == "bytes=100000-")
        await delegate.errors.wait(for: 2)
        #expect(try files() == [])
    }

    // U2.3
    @Test func `cancelling without resume data leaves no file`() async throws {
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        let task = session.downloadTask(with: try server.address("/head-only"))
        task.resume()
        #expect(await eventually { task.response != nil })
        task.cancel()
        let error = await delegate.completion() as? URLError
        #expect(error?.code == .cancelled && error?.userInfo[NSURLSessionDownloadTaskResumeData] == nil)
        #expect(try files() == [])
    }

    @Test func `data that is none of a download fails the task`() async throws {
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        session.downloadTask(withResumeData: Data("no data".utf8)).resume()
        #expect(await delegate.completion() != nil)
        #expect(delegate.order.suffix(2) == ["metrics", "complete"])
    }

    // U2.5
    @Test func `a data task becomes a download`() async throws {
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        let contents = Log<Int>()
        delegate.disposition = .becomeDownload
        delegate.atFile = { contents.append((try? Data(contentsOf: $0).count) ?? -1) }
        session.dataTask(with: try server.address("/bytes/50000")).resume()
        #expect(await delegate.completion() == nil)
        #expect(contents.elements == [50_000])
        #expect(delegate.order.prefix(3) == ["created 1", "response", "became"])
        #expect(!delegate.calls.elements.contains("data"))
        #expect(delegate.order.suffix(3) == ["metrics", "file", "complete"])
        #expect(try files() == [])
    }

    // U2.3
    @Test func `the progress of a task counts bytes, and cancels it`() async throws {
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        let task = session.downloadTask(with: try server.address("/bytes/300000"))
        let progress = task.progress
        task.resume()
        #expect(await delegate.completion() == nil)
        #expect((progress.completedUnitCount, progress.totalUnitCount) == (300_000, 300_000))
        let other = session.downloadTask(with: try server.address("/silent"))
        other.resume()
        other.progress.cancel()
        await delegate.errors.wait(for: 2)
        #expect((other.error as? URLError)?.code == .cancelled)
    }

    // U2.3
    @Test func `the progress of a task is final when it completes, also if it is read for the first time`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let counts = Log<[Int64]>()
        let note = { @Sendable (progress: Progress?) in
            counts.append([progress?.completedUnitCount ?? 0, progress?.totalUnitCount ?? 0])
        }
        let file = try directory.write(Data("content".utf8), to: "file")
        let urls = [try server.address("/bytes/30000"), file, try directory.write(Data(), to: "empty")]
        for (index, url) in urls.enumerated() {
            let task = Lock<URLSessionTask?>(nil)
            let made = session.dataTask(with: url) { _, _, _ in note(task.withLock { $0 }?.progress) }
            task.withLock { $0 = made }
            made.resume()
            await counts.wait(for: index + 1)
            task.withLock { $0 = nil }
        }
        #expect(counts.elements == [[30_000, 30_000], [7, 7], [0, 0]])
        var request = URLRequest(url: try server.address("/body"))
        request.httpMethod = "POST"
        let sent = Lock<URLSessionTask?>(nil)
        let upload = session.uploadTask(with: request, from: Data(count: 5_000)) { _, _, _ in note(sent.withLock { $0 }?.progress) }
        sent.withLock { $0 = upload }
        upload.resume()
        await counts.wait(for: 4)
        sent.withLock { $0 = nil }
        #expect(counts.elements.last == [5_000, 5_000])
    }

    // U2.5
    @Test func `a data task that became a download has completed when the download completes`() async throws {
        let delegate = ReplacementDelegate()
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        // The download's end comes at the same time.
        for _ in 1...20 { session.dataTask(with: try server.address("/bytes/10")).resume() }
        await delegate.states.wait(for: 20)
        #expect(delegate.states.elements.allSatisfy { $0 == .completed })
    }

    // U2.1, U2.5
    @Test func `what is sent after an upload has become a download is reported of the download`() async throws {
        let delegate = ReplacementDelegate()
        let transport = ScriptedTransport { _ in [.sent(2), .head(200), .sent(5), .bytes(Data("body".utf8)), .complete()] }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.curlew.temporaryDirectory = directory.url
        let session = URLSession(transport: transport, configuration: configuration, delegate: delegate)
        defer { session.invalidateAndCancel() }
        var request = URLRequest(url: try server.address("/"))
        request.httpMethod = "PUT"
        session.uploadTask(with: request, from: Data("whole".utf8)).resume()
        await delegate.states.wait(for: 1)
        #expect(delegate.sent.elements == ["task 1: 2", "task 2: 5"])
    }

    // U2.5, U3.5
    @Test func `a data task that has become a download is not asked about caching`() async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Cache-Control", "max-age=60")], body: .data(Data("body".utf8)))
        }
        defer { server.stop() }
        let delegate = ReplacementDelegate()
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        session.dataTask(with: try server.address("/")).resume()
        await delegate.states.wait(for: 1)
        #expect(delegate.cached.elements.isEmpty)
    }
}

/// Has data tasks become downloads, and notes their states when those complete.
private final class ReplacementDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    let states = Log<URLSessionTask.State?>()
    let sent = Log<String>()
    /// The tasks for which it was asked about caching.
    let cached = Log<Int>()
    private let replaced = Lock<[Int: URLSessionTask]>([:])

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) { completionHandler(.becomeDownload) }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask) {
        replaced.withLock { $0[downloadTask.taskIdentifier] = dataTask }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        cached.append(dataTask.taskIdentifier)
        completionHandler(proposedResponse)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) { sent.append("task \(task.taskIdentifier): \(totalBytesSent)") }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        states.append(replaced.withLock { $0[task.taskIdentifier] }?.state)
    }
}
