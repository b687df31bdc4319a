// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewURLSession
import Testing

/// What sessions, tasks and configurations are as objects, and as base classes.
@Suite(.timeLimit(.minutes(1))) struct TypeTests {
    private let url: URL

    init() throws {
        url = try #require(URL(string: "https://unused.invalid/"))
    }

    // U1.5
    @Test func `objects are equal to themselves only`() throws {
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        let objects: [NSObject] = [
            session, URLSession.shared, session.dataTask(with: url), session.dataTask(with: url), session.downloadTask(with: url),
            URLSessionConfiguration.default, URLSessionConfiguration.default,
        ]
        for (number, object) in objects.enumerated() {
            for (other, candidate) in objects.enumerated() { #expect(object.isEqual(candidate) == (number == other)) }
            #expect(object.hash == object.hash)
        }
        #expect(Set(objects).count == objects.count)
        #expect(URLSession.shared === URLSession.shared)
        let tasks = [session.dataTask(with: url): 1]
        #expect(tasks[session.dataTask(with: url)] == nil)
    }

    // U1.5
    @Test func `a copy of a configuration has its values, and changes alone`() throws {
        let original = URLSessionConfiguration.ephemeral
        original.timeoutIntervalForRequest = 5
        original.httpAdditionalHeaders = ["X-A": "1"]
        original.waitsForConnectivity = true
        original.isDiscretionary = true
        original.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "proxy.invalid", "HTTPPort": 8080]
        original.curlew.maximumBodySize = 5
        let copy = try #require(original.copy() as? URLSessionConfiguration)
        #expect(copy !== original && type(of: copy) == URLSessionConfiguration.self)
        #expect(copy.timeoutIntervalForRequest == 5 && copy.waitsForConnectivity && copy.isDiscretionary)
        #expect(copy.httpAdditionalHeaders?["X-A"] as? String == "1" && copy.connectionProxyDictionary?.count == 3)
        #expect(copy.curlew.maximumBodySize == 5)
        #expect(copy.httpCookieStorage === original.httpCookieStorage && copy.urlCache === original.urlCache)
        copy.timeoutIntervalForRequest = 6
        copy.httpAdditionalHeaders = nil
        #expect(original.timeoutIntervalForRequest == 5 && original.httpAdditionalHeaders?.count == 1)
    }

    // U1.5
    @Test func `a session keeps a copy of its configuration, and a task is its own copy`() {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 5
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        configuration.timeoutIntervalForRequest = 6
        session.configuration.timeoutIntervalForRequest = 7
        #expect(session.configuration.timeoutIntervalForRequest == 5)
        #expect(session.configuration !== session.configuration)
        let task = session.dataTask(with: url)
        #expect(task.copy() as? URLSessionTask === task)
    }

    // U1.5: the way in which many programs test their clients.
    @Test func `subclasses answer in place of a session`() {
        let session = MockSession(Data("answer".utf8))
        let received = Log<Data?>()
        let base: URLSession = session
        base.dataTask(with: url) { data, _, _ in received.append(data) }.resume()
        base.dataTask(with: URLRequest(url: url)) { data, _, _ in received.append(data) }.resume()
        #expect(received.elements == [Data("answer".utf8), Data("answer".utf8)])
        #expect(session.made == 2)
    }

    // U1.5, U3.9
    @Test func `a task that a program makes belongs to no session, and does nothing`() {
        let tasks: [URLSessionTask] = [URLSessionTask(), URLSessionDataTask(), URLSessionUploadTask(), URLSessionDownloadTask()]
        for task in tasks {
            #expect(task.state == .suspended && task.originalRequest == nil && task.response == nil && task.error == nil)
            task.suspend()
            task.resume()
            task.cancel()
            #expect([.canceling, .completed].contains(task.state))
        }
    }
}

/// The session that tests of many programs have in place of a real one.
private final class MockSession: URLSession, @unchecked Sendable {  // used by one thread
    private let answer: Data
    private(set) var made = 0

    init(_ answer: Data) {
        self.answer = answer
        super.init()
    }

    override func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        made += 1
        return MockTask { [answer] in completionHandler(answer, nil, nil) }
    }

    override func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        made += 1
        return MockTask { [answer] in completionHandler(answer, nil, nil) }
    }
}

private final class MockTask: URLSessionDataTask, @unchecked Sendable {  // used by one thread
    private let answer: () -> Void

    init(_ answer: @escaping () -> Void) {
        self.answer = answer
    }

    override func resume() { answer() }
}
