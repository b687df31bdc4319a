// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewURLSession
import Testing

@Suite(.timeLimit(.minutes(1))) struct AsyncBytesDelegateTests {
    private let server: LoopbackServer
    private let session = URLSession(configuration: .ephemeral)

    init() throws {
        server = try LoopbackServer.standard(recording: false)
    }

    private func url(_ path: String) throws -> URL { try server.address(path) }

    // U3.1
    @Test func `the delegate is told of redirects and metrics but not of the response and body`() async throws {
        let delegate = Delegate()
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        let (bytes, response) = try await session.bytes(from: url("/redirect/1"))
        #expect(response.url?.path == "/json")
        for try await _ in bytes {}
        #expect(delegate.calls.elements == ["create", "redirect", "metrics"])
    }

    // U3.1
    @Test func `the delegate of the task is told before the session's`() async throws {
        let (own, other) = (Delegate(), Delegate())
        let session = URLSession(configuration: .ephemeral, delegate: other, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        let (bytes, _) = try await session.bytes(for: URLRequest(url: url("/redirect/1")), delegate: own)
        for try await _ in bytes {}
        #expect(own.calls.elements == ["create", "redirect", "metrics"])
        #expect(other.calls.elements.isEmpty)
        #expect(bytes.task.delegate == nil)
    }

    // U3.1
    @Test func `the delegate answers a challenge`() async throws {
        let delegate = Delegate()
        let (bytes, response) = try await session.bytes(from: url("/auth-basic?user=a&password=b"), delegate: delegate)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        for try await _ in bytes {}
        #expect(delegate.calls.elements == ["create", "challenge", "metrics"])
    }

    // U2.2
    @Test func `metrics are delivered after a failure too`() async throws {
        let delegate = Delegate()
        let (bytes, _) = try await session.bytes(from: url("/cut-body"), delegate: delegate)
        await #expect(throws: URLError.self) {
            for try await _ in bytes {}
        }
        #expect(delegate.calls.elements == ["create", "metrics"])
    }

    // U2.2
    @Test func `a task that begins later is awaited`() async throws {
        let delegate = Delegate { $0.earliestBeginDate = Date(timeIntervalSinceNow: 0.05) }
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        let (bytes, _) = try await session.bytes(from: url("/bytes/100"))
        var count = 0
        for try await _ in bytes { count += 1 }
        #expect(count == 100)
    }

    // U2.2
    @Test func `a task that would begin later can be cancelled`() async throws {
        let created = Log<URLSessionTask>()
        let delegate = Delegate {
            $0.earliestBeginDate = .distantFuture
            created.append($0)
        }
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        let url = try url("/bytes/100")
        let task = Task { _ = try await session.bytes(from: url) }
        await created.wait(for: 1)
        task.cancel()
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .cancelled)
    }
}

/// Notes what it is told of.
private final class Delegate: NSObject, URLSessionDataDelegate, Sendable {
    let calls = Log<String>()
    private let created: @Sendable (URLSessionTask) -> Void

    init(created: @escaping @Sendable (URLSessionTask) -> Void = { _ in }) {
        self.created = created
    }

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        calls.append("create")
        created(task)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        calls.append("redirect")
        completionHandler(request)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        calls.append("challenge")
        completionHandler(.useCredential, URLCredential(user: "a", password: "b", persistence: .none))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        calls.append("metrics")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        calls.append("complete")
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        calls.append("response")
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        calls.append("data")
    }
}
