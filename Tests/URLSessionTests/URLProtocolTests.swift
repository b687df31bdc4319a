// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import Dispatch
import Testing

/// Is asked with tasks.
private final class TaskProtocol: ScriptedProtocol {
    static let asked = Inbox<(Int, String?)>()

    override class func canInit(with task: URLSessionTask) -> Bool {
        guard let url = task.currentRequest?.url, url.path == "/tasks" else { return false }
        asked.put((task.taskIdentifier, url.host))
        return canInit(with: task.currentRequest ?? URLRequest(url: url))
    }
}

private final class RegisteredProtocol: ScriptedProtocol {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "registered.invalid" }
    override func startLoading() { respond("first") }
    override func stopLoading() {}
}

private final class LaterProtocol: ScriptedProtocol {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "registered.invalid" }
    override func startLoading() { respond("later") }
    override func stopLoading() {}
}

/// One of Foundation's, as a dependency may have it.
private final class ForeignProtocol: CurlewURLLoading.URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "foreign.invalid" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    override func startLoading() {
        guard let url = request.url, let response = HTTPURLResponse(url: url, statusCode: 202, httpVersion: nil, headerFields: nil)
        else { return }
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data("foreign".utf8))
        client?.urlProtocolDidFinishLoading(self)
    }
    override func stopLoading() {}
}

/// Implements nothing but what it has to.
private final class BareProtocol: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "bare.invalid" }
}

@Suite(.timeLimit(.minutes(1))) struct URLProtocolTests {
    private func url(_ host: String, _ path: String = "/", scheme: String = "http") throws -> URL {
        try #require(URL(string: "\(scheme)://\(host)\(path)"))
    }

    // MARK: Which classes are asked

    // U1.3
    @Test func `registered classes load the tasks of the shared session, the last one first`() async throws {
        let url = try url("registered.invalid")
        #expect(URLProtocol.registerClass(RegisteredProtocol.self))
        defer { URLProtocol.unregisterClass(RegisteredProtocol.self) }
        #expect(String(decoding: try await URLSession.shared.data(from: url).0, as: UTF8.self) == "first")
        #expect(URLProtocol.registerClass(LaterProtocol.self))
        #expect(String(decoding: try await URLSession.shared.data(from: url).0, as: UTF8.self) == "later")
        #expect(URLSessionConfiguration.default.protocolClasses?.first == LaterProtocol.self)
        #expect(URLSessionConfiguration.ephemeral.protocolClasses?.contains { $0 == RegisteredProtocol.self } == true)
        URLProtocol.unregisterClass(LaterProtocol.self)
        #expect(String(decoding: try await URLSession.shared.data(from: url).0, as: UTF8.self) == "first")
        URLProtocol.unregisterClass(RegisteredProtocol.self)
        await #expect(throws: URLError.self) { _ = try await URLSession.shared.data(from: url) }
        #expect(!URLProtocol.registerClass(NSObject.self))
    }

    // U1.3
    @Test func `the classes of a configuration are asked in their order, and others go to the network`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let (host, script) = ScriptedProtocol.script { $0.respond("scripted", status: 201, ["X-From": "class"]) }
        let session = scriptedSession([BareProtocol.self, ScriptedProtocol.self])
        let (data, response) = try await session.data(from: url(host))
        #expect(String(decoding: data, as: UTF8.self) == "scripted")
        let http = try #require(response as? HTTPURLResponse)
        #expect(http.statusCode == 201 && http.value(forHTTPHeaderField: "X-From") == "class")
        #expect(try await session.data(from: #require(URL(string: server.url("/bytes/7")))).0.count == 7)
        #expect(script.offered.count == 1)
    }

    // U1.3
    @Test func `a class is asked with the task, and its instance has it`() async throws {
        let seen = Inbox<(Int?, URL?)>()
        let (host, _) = ScriptedProtocol.script { loader in
            seen.put((loader.task?.taskIdentifier, loader.task?.currentRequest?.url))
            loader.respond("done")
        }
        let session = scriptedSession([TaskProtocol.self])
        let task = try session.dataTask(with: url(host, "/tasks"))
        task.resume()
        #expect(await seen[0].0 == task.taskIdentifier)
        #expect(await seen[0].1 == task.currentRequest?.url)
        #expect(TaskProtocol.asked.all.contains { $0 == (task.taskIdentifier, host) })
        await #expect(throws: URLError.self) { _ = try await session.data(from: url(host, "/other")) }
    }

    @Test func `a class of Foundation's can be in a configuration`() async throws {
        let (data, response) = try await scriptedSession([ForeignProtocol.self]).data(from: url("foreign.invalid"))
        #expect(String(decoding: data, as: UTF8.self) == "foreign")
        #expect((response as? HTTPURLResponse)?.statusCode == 202)
    }

    // U3.9
    @Test func `a class that overrides nothing fails its tasks and ends no process`() async throws {
        let error = await #expect(throws: URLError.self) {
            _ = try await scriptedSession([BareProtocol.self]).data(from: url("bare.invalid"))
        }
        #expect(error?.code == .unsupportedURL)
        let request = try URLRequest(url: url("bare.invalid"))
        #expect(!URLProtocol.canInit(with: request))
        #expect(URLProtocol.canonicalRequest(for: request) == request && URLProtocol.requestIsCacheEquivalent(request, to: request))
        URLProtocol(request: request, cachedResponse: nil, client: nil).startLoading()
    }

    // U3.7
    @Test func `other schemes are offered to classes, and unsupported without one`() async throws {
        let (host, _) = ScriptedProtocol.script { $0.respond("ssh") }
        let session = scriptedSession()
        #expect(try await session.data(from: url(host, scheme: "ssh")).0 == Data("ssh".utf8))
        let refused = await #expect(throws: URLError.self) { _ = try await session.data(from: url("other.invalid", scheme: "ssh")) }
        #expect(refused?.code == .unsupportedURL)
        let other = URLSession(configuration: .ephemeral)
        let unsupported = await #expect(throws: URLError.self) { _ = try await other.data(from: url(host, scheme: "ssh")) }
        #expect(unsupported?.code == .unsupportedURL)
    }

    // MARK: Requests

    @Test func `a class gets the request of the task, with the configuration's fields and without the session's defaults`() async throws {
        let (host, script) = ScriptedProtocol.script { $0.respond("") }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [ScriptedProtocol.self]
        configuration.httpAdditionalHeaders = ["X-Added": "1"]
        let session = URLSession(configuration: configuration)
        var request = try URLRequest(url: url(host, "/a?b=c"))
        request.httpMethod = "PATCH"
        request.setValue("2", forHTTPHeaderField: "X-Own")
        request.timeoutInterval = 17
        request.networkServiceType = .voice
        _ = try await session.data(for: request)
        let offered = await script.offered[0]
        #expect(offered.url == request.url && offered.httpMethod == "PATCH" && offered.timeoutInterval == 17)
        #expect(offered.networkServiceType == .voice)
        #expect(offered.allHTTPHeaderFields == ["X-Added": "1", "X-Own": "2"])
    }

    @Test func `bodies in memory are data, those of files and streams are streams`() async throws {
        let (host, _) = ScriptedProtocol.script { $0.respond($0.body) }
        let session = scriptedSession()
        var request = try URLRequest(url: url(host))
        request.httpMethod = "POST"
        func text(_ request: URLRequest, _ send: (URLRequest) async throws -> (Data, URLResponse)) async throws -> String {
            String(decoding: try await send(request).0, as: UTF8.self)
        }
        #expect(try await text(request) { try await session.data(for: $0) } == "none")
        #expect(try await text(request) { try await session.upload(for: $0, from: Data("bytes".utf8)) } == "data:bytes")
        let directory = try TemporaryDirectory()
        let file = directory.url.appendingPathComponent("body")
        let content = String(repeating: "0123456789", count: 100_000)
        try Data(content.utf8).write(to: file)
        #expect(try await text(request) { try await session.upload(for: $0, fromFile: file) } == "stream:\(content)")
        request.httpBody = Data("own".utf8)
        #expect(try await text(request) { try await session.data(for: $0) } == "data:own")
        request.httpBodyStream = InputStream(data: Data(content.utf8))
        #expect(try await text(request) { try await session.data(for: $0) } == "stream:\(content)")
    }

    @Test func `properties of a request reach the class, also after changes to copies`() async throws {
        let (host, _) = ScriptedProtocol.script { loader in
            loader.respond("\(URLProtocol.property(forKey: "marker", in: loader.request) as? String ?? "none")")
        }
        var request = try URLRequest(url: url(host)).with("present", forKey: "marker")
        request.setValue("1", forHTTPHeaderField: "X-Changed")
        let copy = request
        request.httpMethod = "DELETE"
        #expect(URLProtocol.property(forKey: "marker", in: copy) as? String == "present")
        let session = scriptedSession()
        let task = session.dataTask(with: request)
        #expect(try await session.data(for: request).0 == Data("present".utf8))
        #expect(task.currentRequest.flatMap { URLProtocol.property(forKey: "marker", in: $0) } as? String == "present")
        task.cancel()
        let changed = try #require((request as NSURLRequest).mutableCopy() as? NSMutableURLRequest)
        URLProtocol.removeProperty(forKey: "marker", in: changed)
        #expect(URLProtocol.property(forKey: "marker", in: changed as URLRequest) == nil)
        #expect(URLProtocol.property(forKey: "marker", in: request) as? String == "present")
        #expect(URLProtocol.property(forKey: "other", in: request) == nil)
        let mutable = try NSMutableURLRequest(url: url(host))
        URLProtocol.setProperty("of an object", forKey: "marker", in: mutable)
        #expect(try await session.data(for: mutable as URLRequest).0 == Data("of an object".utf8))
    }

    @Test func `what is stored with a request is released with its last copy`() throws {
        weak var weak: NSObject?
        do {
            let object = NSObject()
            weak = object
            var request = try URLRequest(url: url("released.invalid")).with(object, forKey: "object")
            request.httpMethod = "PUT"
            #expect(URLProtocol.property(forKey: "object", in: request) as? NSObject === object)
        }
        #expect(weak == nil)
    }

    // MARK: Tasks of other sessions

    @Test func `a class loads a request with a session of its own`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let inner = URLSession(configuration: .ephemeral)
        let target = try #require(URL(string: server.url("/bytes/100000")))
        let (host, _) = ScriptedProtocol.script { loader in
            let shown = LoaderBox(loader)
            inner.dataTask(with: target) { shown.value.pass($0, $1, $2) }.resume()
        }
        let (data, response) = try await scriptedSession().data(from: url(host))
        #expect(data.count == 100_000 && response.url == target)
    }

    @Test func `a property guards against recursion where class and session are the same`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let target = try #require(URL(string: server.url("/redirect/2")))
        let session = scriptedSession([GuardedProtocol.self])
        GuardedProtocol.session.withLock { $0[target.port ?? 0] = session }
        defer { GuardedProtocol.session.withLock { $0[target.port ?? 0] = nil } }
        let (data, response) = try await session.data(from: target)
        #expect(data.count > 20 && (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Type") == "application/json")
        // The redirects carry the property, so that the class has loaded the first request only.
        #expect(GuardedProtocol.loaded.all.filter { $0.port == target.port }.map(\.path) == ["/redirect/2"])
    }

    // MARK: Many

    @Test func `two hundred tasks at once are each loaded once`() async throws {
        let (host, script) = ScriptedProtocol.script { loader in
            let shown = LoaderBox(loader)
            DispatchQueue.global().async { shown.value.respond(shown.value.request.url?.query ?? "") }
        }
        let session = scriptedSession()
        let urls = try (0..<200).map { try url(host, "/?\($0)") }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for url in urls {
                group.addTask {
                    let text = String(decoding: try await session.data(from: url).0, as: UTF8.self)
                    #expect(text == url.query)
                }
            }
            try await group.waitForAll()
        }
        #expect(script.offered.count == 200)
        #expect(await script.stopped.first(200).count == 200)
    }
}

/// Loads requests to the loopback server with the session that has asked it.
private final class GuardedProtocol: URLProtocol {
    static let session = Lock<[Int: URLSession]>([:])
    static let loaded = Inbox<URL>()

    override class func canInit(with request: URLRequest) -> Bool {
        guard let port = request.url?.port, session.withLock({ $0[port] }) != nil else { return false }
        return property(forKey: "handled", in: request) == nil
    }

    override func startLoading() {
        guard let url = request.url, let session = Self.session.withLock({ $0[url.port ?? 0] }),
            let marked = try? request.with(true, forKey: "handled")
        else { return }
        Self.loaded.put(url)
        let shown = LoaderBox(self)
        session.dataTask(with: marked) { shown.value.pass($0, $1, $2) }.resume()
    }
}

/// A loader that is used by one thread at a time.
struct LoaderBox<Loader: URLProtocol>: @unchecked Sendable {
    let value: Loader

    init(_ value: Loader) {
        self.value = value
    }
}

extension URLProtocol {
    /// Passes on what another task has ended with.
    func pass(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) {
        if let error {
            client?.urlProtocol(self, didFailWithError: error)
            return
        }
        if let response { client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed) }
        if let data { client?.urlProtocol(self, didLoad: data) }
        client?.urlProtocolDidFinishLoading(self)
    }
}
