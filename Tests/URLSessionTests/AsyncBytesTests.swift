// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewURLSession
import Testing

@Suite(.timeLimit(.minutes(2))) struct AsyncBytesTests {
    private let server: LoopbackServer
    private let session = URLSession(configuration: .ephemeral)

    init() throws {
        server = try LoopbackServer.standard(recording: false)
    }

    private func url(_ path: String) throws -> URL { try server.address(path) }

    // MARK: The bytes

    // U2.2
    @Test(arguments: [0, 1, 100_000, 5_000_000]) func `the bytes make up the body`(_ count: Int) async throws {
        let (bytes, response) = try await session.bytes(from: url("/bytes/\(count)?seed=3"))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(response.expectedContentLength == count)
        var body = Data()
        body.reserveCapacity(count)
        for try await byte in bytes { body.append(byte) }
        #expect(body.count == count)
        #expect(GeneratedBody(seed: 3).matches(body))
        #expect(bytes.task.state == .completed)
        #expect(bytes.task.error == nil)
        #expect(bytes.task.countOfBytesReceived == count)
        #expect(await session.allTasks.isEmpty)
    }

    // U2.2
    @Test func `the bytes come while the body is received and the function returns at the head`() async throws {
        let (head, piece, end) = (Gate(), Gate(), Gate())
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nX-Name: value\r\n\r\n")
            head.arrive()
            connection.wait(until: piece)
            try connection.send(raw: "12345")
            connection.wait(until: end)
            try connection.send(raw: "67890")
            return nil
        }
        defer {
            piece.open()
            end.open()
        }
        let (bytes, response) = try await session.bytes(from: server.url)
        #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Name") == "value")
        #expect(bytes.task.state == .running)
        #expect(await session.allTasks == [bytes.task])
        piece.open()
        var iterator = bytes.makeAsyncIterator()
        var first: [UInt8] = []
        for _ in 0..<5 { first.append(try #require(try await iterator.next())) }
        #expect(first == Array("12345".utf8))
        end.open()
        var rest: [UInt8] = []
        while let byte = try await iterator.next() { rest.append(byte) }
        #expect(rest == Array("67890".utf8))
        #expect(try await iterator.next() == nil)
    }

    // U2.2
    @Test func `reading does not suspend for each byte`() async throws {
        let executor = CountingExecutor()
        let (bytes, _) = try await session.bytes(from: url("/bytes/2000000"))
        let count = try await Task(executorPreference: executor) {
            var count = 0
            for try await _ in bytes { count += 1 }
            return count
        }.value
        #expect(count == 2_000_000)
        #expect(executor.jobs < 20_000)
    }

    // U2.2
    @Test func `an actor reads without leaving it`() async throws {
        let (bytes, _) = try await session.bytes(from: url("/bytes/100000"))
        #expect(try await Reader().read(bytes) == 100_000)
    }

    // U2.2
    @Test func `a coded body is decoded`() async throws {
        let (bytes, _) = try await session.bytes(from: url("/gzip?n=300000"))
        var body = Data()
        for try await byte in bytes { body.append(byte) }
        #expect(body == ServerRoutes.text(count: 300_000))
    }

    // U2.2
    @Test func `a body can be posted`() async throws {
        var request = URLRequest(url: try url("/body"))
        request.httpMethod = "POST"
        request.httpBody = Data("posted".utf8)
        let (bytes, response) = try await session.bytes(for: request)
        var body: [UInt8] = []
        for try await byte in bytes { body.append(byte) }
        #expect(body == Array("posted".utf8))
        #expect(response.mimeType == "application/x-www-form-urlencoded")
    }

    // U2.2
    @Test func `the status of a failure is the response's and its body is read`() async throws {
        let (bytes, response) = try await session.bytes(from: url("/status/503"))
        #expect((response as? HTTPURLResponse)?.statusCode == 503)
        var text = ""
        for try await line in bytes.lines { text += line }
        #expect(text == "503")
    }

    // U2.2
    @Test func `a reader that pauses pauses the server`() async throws {
        let sent = Lock<Int64>(0)
        let length: Int64 = 128 << 20
        let stalled = try LoopbackServer(recording: false) { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
            while sent.withLock({ $0 }) < length {
                try connection.send(raw: Data(count: 1 << 20))
                sent.withLock { $0 += 1 << 20 }
            }
            return nil
        }
        let (bytes, _) = try await session.bytes(from: stalled.url)
        var iterator = bytes.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        // Enough time for the buffers along the path to fill; another request passes it without sleeping.
        for _ in 0..<5 { _ = try await session.data(from: url("/delay/100")) }
        #expect(sent.withLock { $0 } < 32 << 20)
    }

    // MARK: Errors

    // U2.2
    @Test func `an error in the middle is thrown after the bytes before it`() async throws {
        let (bytes, _) = try await session.bytes(from: url("/cut-body?announce=300000&send=200000"))
        var count = 0
        let error = await #expect(throws: URLError.self) {
            for try await _ in bytes { count += 1 }
        }
        #expect(error?.code == .networkConnectionLost)
        #expect(count == 200_000)
        #expect(bytes.task.state == .completed)
        #expect((bytes.task.error as? URLError)?.code == .networkConnectionLost)
        #expect(await session.allTasks.isEmpty)
    }

    // U2.2
    @Test func `a coded body that is cut off is an error`() async throws {
        let (bytes, _) = try await session.bytes(from: url("/gzip-truncated?n=300000"))
        await #expect(throws: URLError.self) {
            for try await _ in bytes {}
        }
    }

    // U2.2
    @Test func `an error before the head is thrown by the function`() async throws {
        let gone = try LoopbackServer.standard()
        let url = gone.url
        gone.stop()
        let error = await #expect(throws: URLError.self) { _ = try await session.bytes(from: url) }
        #expect(error?.code == .cannotConnectToHost)
        #expect(await session.allTasks.isEmpty)
    }

    // MARK: Its end

    // U2.2
    @Test func `cancelling the reading task cancels the transfer`() async throws {
        let read = Log<Void>()
        let (session, url) = (session, try url("/drip?n=1000&ms=100"))
        let task = Task {
            let (bytes, _) = try await session.bytes(from: url)
            for try await _ in bytes { read.append(()) }
        }
        await read.wait(for: 1)
        task.cancel()
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(await server.waitForConnectionsToClose())
        #expect(await session.allTasks.isEmpty)
    }

    // U2.2
    @Test func `cancelling the task that awaits the head cancels the transfer`() async throws {
        let (session, url) = (session, try url("/silent"))
        let task = Task { _ = try await session.bytes(from: url) }
        #expect(await server.waitForRequests(1))
        task.cancel()
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(await server.waitForConnectionsToClose())
        #expect(await session.allTasks.isEmpty)
    }

    // U2.2
    @Test func `a task that was cancelled before gets no bytes`() async throws {
        let (session, url) = (session, try url("/silent"))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try await session.bytes(from: url)
        }
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .cancelled)
    }

    // U2.2
    @Test func `cancelling the data task ends the bytes`() async throws {
        let (bytes, _) = try await session.bytes(from: url("/drip?n=1000&ms=100"))
        var iterator = bytes.makeAsyncIterator()
        #expect(try await iterator.next() == UInt8(ascii: "*"))
        bytes.task.cancel()
        let error = await #expect(throws: URLError.self) {
            while try await iterator.next() != nil {}
        }
        #expect(error?.code == .cancelled)
        #expect(bytes.task.state == .completed)
    }

    // U2.2
    @Test func `releasing the sequence cancels the transfer`() async throws {
        let task: URLSessionDataTask
        do {
            let (bytes, _) = try await session.bytes(from: url("/bytes/1000000000"))
            task = bytes.task
            for try await _ in bytes { break }
        }
        #expect(await server.waitForConnectionsToClose())
        #expect(await eventually { task.state == .completed })
        #expect((task.error as? URLError)?.code == .cancelled)
        #expect(await session.allTasks.isEmpty)
    }

    // U2.2
    @Test func `the end of the session ends the bytes`() async throws {
        let session = URLSession(configuration: .ephemeral)
        let (bytes, _) = try await session.bytes(from: url("/drip?n=1000&ms=100"))
        session.invalidateAndCancel()
        let error = await #expect(throws: URLError.self) {
            for try await _ in bytes {}
        }
        #expect(error?.code == .cancelled)
    }

    // U2.2
    @Test func `a session that is released lets the bytes be read`() async throws {
        var session: URLSession? = URLSession(configuration: .ephemeral)
        let (bytes, _) = try await #require(session).bytes(from: url("/bytes/3000000"))
        session = nil
        var count = 0
        for try await _ in bytes { count += 1 }
        #expect(count == 3_000_000)
    }

    // U2.2
    @Test func `a second reader gets an error and the first one its bytes`() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n")
            connection.wait(until: gate)
            try connection.send(raw: "*")
            return nil
        }
        defer { gate.open() }
        let (bytes, _) = try await session.bytes(from: server.url)
        // One of the two waits first; the other one is refused.
        let results = await withTaskGroup(of: Result<UInt8?, any Error>.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    var iterator = bytes.makeAsyncIterator()
                    do { return .success(try await iterator.next()) } catch { return .failure(error) }
                }
            }
            var results: [Result<UInt8?, any Error>] = []
            for await result in group {
                results.append(result)
                gate.open()
            }
            return results
        }
        #expect(results.compactMap { try? $0.get() } == [UInt8(ascii: "*")])
        #expect(throws: URLError.self) { for result in results { _ = try result.get() } }
    }
}

private actor Reader {
    func read(_ bytes: URLSession.AsyncBytes) async throws -> Int {
        var count = 0
        for try await _ in bytes {
            assertIsolated()
            count += 1
        }
        return count
    }
}

/// Counts how often a task continues on it.
private final class CountingExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "curlew.test.counting")
    private let count = Lock(0)

    var jobs: Int { count.withLock { $0 } }

    func enqueue(_ job: consuming ExecutorJob) {
        count.withLock { $0 += 1 }
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
