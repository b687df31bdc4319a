// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

@testable import CurlewURLSession

@Suite(.timeLimit(.minutes(1))) struct LocalLoadTests {
    private let directory: TemporaryDirectory
    private let recorder = CallRecorder()

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func session(_ recorder: CallRecorder? = nil) throws -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.curlew.temporaryDirectory = directory.url
        return URLSession(configuration: configuration, delegate: recorder ?? self.recorder, delegateQueue: nil)
    }

    // MARK: data:

    struct Row: Sendable {
        let url: String
        let body: String
        var type = "text/plain"
        var charset: String? = "US-ASCII"
    }

    static let rows = [
        Row(url: "data:,A%20brief%20note", body: "A brief note"), Row(url: "DATA:,x", body: "x"), Row(url: "data:,", body: ""),
        Row(url: "data:;charset=utf-8,%C3%A9", body: "é", charset: "utf-8"),
        Row(url: "data:text/html,%3Cp%3E", body: "<p>", type: "text/html", charset: nil),
        Row(url: "data:text/html;charset=UTF-8;base64,PHA+", body: "<p>", type: "text/html", charset: "UTF-8"),
        Row(url: "data:;base64,SGVsbG8=", body: "Hello"), Row(url: "data:;BASE64,SGVsbG8", body: "Hello"),
        Row(url: "data:;base64,SGVs%0AbG8%3D", body: "Hello"),
        Row(url: "data:image/svg+xml;utf8,a,b;c", body: "a,b;c", type: "image/svg+xml", charset: nil),
        Row(url: "data:,a?b=c#d", body: "a?b=c"), Row(url: "data:base64,SGk=", body: "SGk=", type: "base64", charset: nil),
        Row(url: "data:,100%25", body: "100%"),
    ]

    // U3.7
    @Test(arguments: rows) func `a data URL has its bytes, type and charset`(_ row: Row) async throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let url = try #require(URL(string: row.url))
        let (data, response) = try await session.data(from: url)
        #expect(String(decoding: data, as: UTF8.self) == row.body)
        #expect(response.url == url)
        #expect(response.mimeType == row.type)
        #expect(response.textEncodingName == row.charset)
        #expect(response.expectedContentLength == Int64(data.count))
        #expect(!(response is HTTPURLResponse))
    }

    // U3.7
    @Test(arguments: [("data:", URLError.Code.badURL), ("data:text/plain", .badURL), ("data:;base64,a*b", .cannotDecodeRawData)])
    func `a data URL that is none fails`(_ text: String, _ code: URLError.Code) async throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let url = try #require(URL(string: text))
        let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
        #expect(error?.code == code && error?.failingURL == url)
    }

    // MARK: file:

    // U3.7
    @Test func `a file is loaded, with the type of its extension`() async throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let file = try directory.write(Data("{}".utf8), to: "é ä.json")
        let (data, response) = try await session.data(from: file)
        #expect(data == Data("{}".utf8))
        #expect(response.mimeType == "application/json" && response.expectedContentLength == 2 && response.url == file)
        let handled = Log<(Data?, URLResponse?, (any Error)?)>()
        session.dataTask(with: try directory.write(Data(), to: "empty")) { handled.append(($0, $1, $2)) }.resume()
        await handled.wait(for: 1)
        let empty = try #require(handled.elements.first)
        #expect(empty.0 == Data() && empty.1?.mimeType == "application/octet-stream" && empty.2 == nil)
        #expect(recorder.calls.elements == ["metrics", "metrics"])
    }

    // U3.7
    @Test func `a delegate is called as for a response of a server, with pieces`() async throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let body = GeneratedBody().data(count: 3_000_000)
        let task = session.dataTask(with: try directory.write(body, to: "large.bin"))
        task.resume()
        await recorder.completions.wait(for: 1)
        #expect(recorder.calls.elements == ["response", "data", "metrics", "complete"])
        #expect(recorder.seen.body == body)
        #expect(recorder.seen.largestPiece <= 256 * 1024)
        #expect(recorder.seen.response?.expectedContentLength == 3_000_000)
        #expect(recorder.seen.errors.count == 1 && recorder.seen.errors.first.map { $0 == nil } == true)
        #expect(task.state == .completed && task.response?.url == task.originalRequest?.url)
        #expect(task.countOfBytesReceived == 3_000_000)
    }

    // U3.7
    @Test func `a body in one piece comes at the end`() async throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: try directory.write(Data(count: 1_000_000), to: "x"))
        task.prefersIncrementalDelivery = false
        task.resume()
        await recorder.completions.wait(for: 1)
        #expect(recorder.calls.elements == ["response", "data", "metrics", "complete"])
        #expect(recorder.seen.largestPiece == 1_000_000)
    }

    // U3.7
    @Test func `a delegate that cancels at the response gets no data`() async throws {
        let recorder = CallRecorder(CallRecorder.Answers(response: .cancel))
        let session = try session(recorder)
        defer { session.invalidateAndCancel() }
        session.dataTask(with: try directory.write(Data("x".utf8), to: "x")).resume()
        await recorder.completions.wait(for: 1)
        #expect(recorder.calls.elements == ["response", "metrics", "complete"])
        #expect((recorder.seen.errors.first as? URLError)?.code == .cancelled)
    }

    // U3.7
    @Test func `a response can become a download`() async throws {
        let recorder = CallRecorder(CallRecorder.Answers(response: .becomeDownload))
        let session = try session(recorder)
        defer { session.invalidateAndCancel() }
        let body = GeneratedBody().data(count: 600_000)
        session.dataTask(with: try directory.write(body, to: "x")).resume()
        await recorder.completions.wait(for: 1)
        #expect(recorder.calls.elements == ["response", "became download", "written", "metrics", "finished", "complete"])
        #expect(recorder.seen.file == body)
        #expect(try contents(of: directory) == ["x"])
    }

    @Test func `a load that is cancelled as it would become a download does not`() async throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: directory.file("x"))
        task.cancel()
        #expect(task.becomeDownload(ending: true) == nil)
        await recorder.completions.wait(for: 1)
        #expect(recorder.calls.elements == ["metrics", "complete"])
        #expect(await session.allTasks.isEmpty)
    }

    // U3.7
    @Test func `a download of a file is a copy`() async throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let body = GeneratedBody().data(count: 1_000_000)
        let file = try directory.write(body, to: "x.bin")
        session.downloadTask(with: file).resume()
        await recorder.completions.wait(for: 1)
        #expect(recorder.calls.elements == ["written", "metrics", "finished", "complete"])
        #expect(recorder.seen.file == body)
        #expect(recorder.seen.written.last == 1_000_000)
        // The original stays, and the copy is gone.
        #expect(try contents(of: directory) == ["x.bin"])
        let (copy, response) = try await session.download(from: file)
        #expect(try Data(contentsOf: copy) == body && copy != file && response.expectedContentLength == 1_000_000)
        let (text, _) = try await session.download(from: try #require(URL(string: "data:,abc")))
        #expect(try Data(contentsOf: text) == Data("abc".utf8))
        let handled = Log<Data?>()
        session.downloadTask(with: file) { url, _, _ in handled.append(url.flatMap { try? Data(contentsOf: $0) }) }.resume()
        await handled.wait(for: 1)
        #expect(handled.elements == [body])
    }

    // U3.7
    @Test func `files that can't be read have codes`() async throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let locked = try directory.write(Data("x".utf8), to: "locked")
        chmod(locked.path, 0)
        mkfifo(directory.file("pipe").path, 0o600)
        var cases: [(URL, URLError.Code)] = [
            (directory.file("none"), .fileDoesNotExist), (locked.appendingPathComponent("below"), .fileDoesNotExist),
            (directory.url, .fileIsDirectory), (directory.file("pipe"), .cannotOpenFile),
            (try #require(URL(string: "file://elsewhere.example/x")), .unsupportedURL),
            (try #require(URL(string: "file:///x%00y")), .badURL),
        ]
        // Permissions do not count for the superuser.
        if geteuid() != 0 { cases.append((locked, .noPermissionsToReadFile)) }
        for (url, code) in cases {
            let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
            #expect(error?.code == code, "\(url)")
            let other = await #expect(throws: URLError.self) { try await session.download(from: url) }
            #expect(other?.code == code, "\(url)")
        }
        session.dataTask(with: directory.file("none")).resume()
        await recorder.completions.wait(for: 1)
        #expect(recorder.calls.elements.suffix(2) == ["metrics", "complete"] && !recorder.calls.elements.contains("response"))
        #expect(try contents(of: directory) == ["locked", "pipe"])
    }

    // U3.7
    @Test func `nothing is uploaded to a local URL`() async throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        for text in ["data:,x", directory.file("x").absoluteString] {
            var request = URLRequest(url: try #require(URL(string: text)))
            request.httpMethod = "PUT"
            let error = await #expect(throws: URLError.self) { try await session.upload(for: request, from: Data("y".utf8)) }
            #expect(error?.code == .unsupportedURL)
        }
        #expect(try contents(of: directory).isEmpty)
    }

    // U2.2, U3.7
    @Test func `the bytes of a file are loaded as they are read`() async throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let file = try directory.write(GeneratedBody().data(count: 1_000_000), to: "x")
        let (bytes, response) = try await session.bytes(from: file)
        #expect(response.expectedContentLength == 1_000_000)
        var iterator = bytes.makeAsyncIterator()
        var body = Data([try #require(try await iterator.next())])
        #expect(bytes.task.countOfBytesReceived == 256 * 1024 && bytes.task.state == .running)
        while let byte = try await iterator.next() { body.append(byte) }
        #expect(body.count == 1_000_000 && GeneratedBody().matches(body))
        #expect(bytes.task.state == .completed && bytes.task.countOfBytesReceived == 1_000_000)

        // Of two that read each piece comes to one.
        let (shared, _) = try await session.bytes(from: file)
        let counts = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<2 { group.addTask { try await shared.reduce(0) { count, _ in count + 1 } } }
            return try await group.reduce(0, +)
        }
        #expect(counts == 1_000_000)

        let (cancelled, _) = try await session.bytes(from: file)
        var other = cancelled.makeAsyncIterator()
        _ = try await other.next()
        cancelled.task.cancel()
        let error = await #expect(throws: URLError.self) { while try await other.next() != nil {} }
        #expect(error?.code == .cancelled)
        let (empty, _) = try await session.bytes(from: try directory.write(Data(), to: "empty"))
        #expect(try await empty.reduce(0) { count, _ in count + 1 } == 0)
        await #expect(throws: URLError.self) { _ = try await session.bytes(from: directory.file("none")) }
    }

    // MARK: Control

    @Test func `nothing is reported after the end of a load that is cancelled as it would be`() async throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let file = try directory.write(Data("x".utf8), to: "x")
        let (task, download) = (session.dataTask(with: file), session.downloadTask(with: file))
        task.cancel()
        download.cancel()
        await recorder.completions.wait(for: 2)
        // What the queue of a load does that has found its task running.
        let answers = Log<Void>()
        download.wrote(1, 1, 1)
        task.decide(about: URLResponse(url: file, mimeType: nil, expectedContentLength: 1, textEncodingName: nil)) { _ in
            answers.append(())
        }
        // What the queue of a request does that was made as its task was cancelled.
        task.take(Data("x".utf8)) { answers.append(()) }
        await answers.wait(for: 2)
        #expect(recorder.calls.elements == ["metrics", "complete", "metrics", "complete"])
    }

    @Test func `the session's delegate is not asked about a task that has ended while its own was`() async throws {
        /// Passes a call on as if it did not implement the method, but only after the end of the task.
        final class Passing: NSObject, URLSessionDataDelegate {
            func urlSession(
                _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
            ) async -> URLSession.ResponseDisposition {
                dataTask.cancel()
                await dataTask.waitForEnd()
                DelegateCall.noteDefault(of: self, .response)
                return .allow
            }
        }
        let session = try session()
        defer { session.invalidateAndCancel() }
        let file = directory.file("x")
        let task = session.dataTask(with: file)
        task.delegate = Passing()
        let answers = Log<URLSession.ResponseDisposition>()
        task.decide(about: URLResponse(url: file, mimeType: nil, expectedContentLength: 1, textEncodingName: nil)) { answers.append($0) }
        #expect(await answers.first() == .allow)
        #expect(recorder.calls.elements == ["metrics", "complete"])
    }

    // U3.7
    @Test func `a load can be suspended and cancelled`() async throws {
        let session = try session()
        defer { session.invalidateAndCancel() }
        let file = try directory.write(Data(count: 2_000_000), to: "x")
        let task = session.dataTask(with: file)
        #expect(task.state == .suspended)
        task.resume()
        task.suspend()
        task.resume()
        await recorder.completions.wait(for: 1)
        #expect(recorder.seen.body.count == 2_000_000)

        let stopping = Log<URLSessionTask>()
        let canceller = CallRecorder(CallRecorder.Answers(piece: { _ in stopping.elements.first?.cancel() }))
        let other = try self.session(canceller)
        defer { other.invalidateAndCancel() }
        let cancelled = other.dataTask(with: file)
        stopping.append(cancelled)
        cancelled.resume()
        await canceller.completions.wait(for: 1)
        #expect(canceller.seen.body.count <= 256 * 1024)
        #expect(canceller.calls.elements.last == "complete")
        #expect((canceller.seen.errors.first as? URLError)?.code == .cancelled)

        // Suspended in the middle: resumed by the end of the session, which cancels it.
        let suspended = Log<URLSessionTask>()
        let suspender = CallRecorder(CallRecorder.Answers(piece: { _ in suspended.elements.first?.suspend() }))
        let third = try self.session(suspender)
        let paused = third.dataTask(with: file)
        suspended.append(paused)
        paused.resume()
        await suspender.calls.wait(for: 2)
        #expect(await eventually { paused.values.withLock { $0.resumption != nil } })
        #expect(suspender.seen.body.count == 256 * 1024)
        paused.resume()
        #expect(await eventually { suspender.seen.body.count == 512 * 1024 })
        third.invalidateAndCancel()
        await suspender.completions.wait(for: 1)
        #expect((suspender.seen.errors.first as? URLError)?.code == .cancelled)
    }
}
