// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewURLSession
import Testing

@Suite(.timeLimit(.minutes(1))) struct AwaitedCallsTests {
    // U3.10
    @Test func `awaited calls without a delegate have no operation on the delegate queue`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let queue = CountingQueue()
        let session = URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: queue)
        let url = try server.address("/bytes/100000")
        #expect(try await session.data(from: url).0.count == 100_000)
        var request = URLRequest(url: try server.address("/body"))
        request.httpMethod = "PUT"
        #expect(try await session.upload(for: request, from: Data("sent".utf8)).0 == Data("sent".utf8))
        let (file, _) = try await session.download(from: url)
        try FileManager.default.removeItem(at: file)
        #expect(try await session.bytes(from: url).0.reduce(0) { count, _ in count + 1 } == 100_000)
        await #expect(throws: URLError.self) { try await session.data(from: server.address("/cut-body")) }
        #expect(queue.added == 0)
        // With one, there is something to be called.
        let delegate = RecordingDelegate()
        _ = try await session.data(from: url, delegate: delegate)
        #expect(delegate.calls.elements == ["created 6", "metrics"])
        #expect(queue.added > 0)
    }

    // U2.5, U3.1
    @Test func `the delegate of each kind of call gets its task before that is started`() async throws {
        final class Watching: NSObject, URLSessionTaskDelegate {
            let tasks = Log<URLSessionTask>()
            let states = Log<URLSessionTask.State>()

            func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
                states.append(task.state)
                tasks.append(task)
            }
        }
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let session = URLSession(configuration: .ephemeral)
        let url = try server.address("/json")
        var request = URLRequest(url: try server.address("/body"))
        request.httpMethod = "PUT"
        let own = Watching()
        _ = try await session.data(from: url, delegate: own)
        _ = try await session.upload(for: request, from: Data("sent".utf8), delegate: own)
        let (file, _) = try await session.download(from: url, delegate: own)
        try FileManager.default.removeItem(at: file)
        let (bytes, _) = try await session.bytes(from: url, delegate: own)
        for try await _ in bytes {}
        #expect(own.states.elements == [.suspended, .suspended, .suspended, .suspended])
        let tasks = own.tasks.elements
        try #require(tasks.count == 4)
        #expect(tasks.map(\.taskIdentifier) == [1, 2, 3, 4] && tasks[1] is URLSessionUploadTask && tasks[2] is URLSessionDownloadTask)
        #expect(tasks.allSatisfy { $0.state == .completed && $0.countOfBytesReceived > 0 })
        // One without the method leaves it to the session's delegate, which is not called otherwise.
        final class Empty: NSObject, URLSessionTaskDelegate {}
        let other = Watching()
        let second = URLSession(configuration: .ephemeral, delegate: other, delegateQueue: nil)
        defer { second.finishTasksAndInvalidate() }
        _ = try await second.data(from: url, delegate: Empty())
        _ = try await second.data(from: url, delegate: own)
        #expect(other.tasks.elements.map(\.taskIdentifier) == [1] && own.tasks.elements.count == 5)
    }

    // U2.2
    @Test func `cancelling the task that awaits ends each kind of call`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let session = URLSession(configuration: .ephemeral)
        let url = try server.address("/silent")
        var request = URLRequest(url: url)
        request.httpMethod = "PUT"
        let calls: [@Sendable () async throws -> Void] = [
            { _ = try await session.data(from: url) },
            { [request] in _ = try await session.upload(for: request, from: Data("sent".utf8)) },
            { _ = try await session.download(from: url) },
            { _ = try await session.bytes(from: url) },
        ]
        for (index, call) in calls.enumerated() {
            let task = Task { try await call() }
            #expect(await server.waitForRequests(index + 1))
            task.cancel()
            let error = await #expect(throws: URLError.self) { try await task.value }
            #expect(error?.code == .cancelled)
        }
        #expect(await session.allTasks.isEmpty)
        #expect(await server.waitForConnectionsToClose())
    }
}

private final class CountingQueue: OperationQueue, @unchecked Sendable {  // the count is behind a lock
    private let count = Lock(0)

    var added: Int { count.withLock { $0 } }

    override func addOperation(_ operation: Operation) {
        count.withLock { $0 += 1 }
        super.addOperation(operation)
    }
}
