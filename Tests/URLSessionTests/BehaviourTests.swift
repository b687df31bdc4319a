// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewURLSession
import Testing

/// What servers and programs see of a session: fields, redirects, cookies, caches, limits of time.
@Suite(.timeLimit(.minutes(1))) struct BehaviourTests {
    private let server: LoopbackServer
    private let configuration = URLSessionConfiguration.ephemeral

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func session(_ delegate: (any URLSessionDelegate)? = nil) -> URLSession {
        URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    private func code(_ body: () async throws -> some Any) async -> URLError.Code? {
        do {
            _ = try await body()
            return nil
        } catch {
            return (error as? URLError)?.code
        }
    }

    // U3.6
    @Test func `requests have the default fields, and those of the configuration, but a request's own count`() async throws {
        configuration.httpAdditionalHeaders = ["X-Extra": "1", "X-Own": "configuration", "User-Agent": "Mine"]
        var request = URLRequest(url: try server.address("/json"))
        request.setValue("request", forHTTPHeaderField: "X-Own")
        request.setValue("text/plain", forHTTPHeaderField: "Accept")
        let session = session()
        _ = try await session.data(for: request)
        _ = try await URLSession(configuration: .ephemeral).data(from: try server.address("/json"))
        let (own, plain) = (server.requests[0], server.requests[1])
        #expect(own.header("X-Extra") == "1" && own.header("X-Own") == "request" && own.header("Accept") == "text/plain")
        #expect(own.header("User-Agent") == "Mine")
        #expect(plain.header("Accept") == "*/*" && plain.header("Accept-Encoding")?.contains("gzip") == true)
        #expect(plain.header("Accept-Language") != nil && plain.header("User-Agent")?.isEmpty == false)
        #expect(session.configuration.httpAdditionalHeaders?["X-Extra"] as? String == "1")
    }

    // U3.4
    @Test func `credentials do not follow a redirect to another origin`() async throws {
        let other = try LoopbackServer.standard()
        defer { other.stop() }
        for delegate in [RecordingDelegate(), nil] {
            var request = URLRequest(url: try server.address("/redirect-to?url=\(other.url("/json"))"))
            request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
            request.setValue("a=b", forHTTPHeaderField: "Cookie")
            request.setValue("1", forHTTPHeaderField: "X-Plain")
            let session = session(delegate)
            defer { session.invalidateAndCancel() }
            _ = try await session.data(for: request)
            let last = try #require(other.requests.last)
            #expect(last.header("Authorization") == nil && last.header("Cookie") == nil && last.header("X-Plain") == "1")
        }
        #expect(server.requests.allSatisfy { $0.header("Authorization") == "Bearer secret" })
    }

    // U3.4
    @Test func `more than 20 redirects are an error`() async throws {
        let session = session()
        let (_, response) = try await session.data(from: server.address("/redirect/20"))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        let far = try server.address("/redirect/21")
        #expect(await code { try await session.data(from: far) } == .httpTooManyRedirects)
    }

    // U3.4
    @Test func `a redirect that the delegate declines is the response, with its body`() async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 302, headers: [ServerField("Location", "/other")], body: .data(Data("moved".utf8)))
        }
        defer { server.stop() }
        let delegate = RecordingDelegate()
        delegate.redirect = { _ in nil }
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        let (data, response) = try await session.data(from: server.address("/"))
        #expect(String(decoding: data, as: UTF8.self) == "moved" && (response as? HTTPURLResponse)?.statusCode == 302)
        #expect(server.requestCount == 1)
    }

    // U3.4, U3.5
    @Test func `cookies of a redirect are stored and sent, also with a delegate`() async throws {
        for delegate in [RecordingDelegate(), nil] {
            let server = try LoopbackServer { request, _ in
                request.path == "/login"
                    ? .status(302, headers: [ServerField("Set-Cookie", "id=7; Path=/"), ServerField("Location", "/home")])
                    : .ok(request.header("Cookie") ?? "none")
            }
            defer { server.stop() }
            let configuration = URLSessionConfiguration.ephemeral
            let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
            defer { session.invalidateAndCancel() }
            let (data, _) = try await session.data(from: server.address("/login"))
            #expect(String(decoding: data, as: UTF8.self) == "id=7")
            #expect(configuration.httpCookieStorage?.cookies?.map(\.name) == ["id"])
            var request = URLRequest(url: try server.address("/home"))
            request.httpShouldHandleCookies = false
            let (without, _) = try await session.data(for: request)
            #expect(String(decoding: without, as: UTF8.self) == "none")
        }
    }

    // U3.5
    @Test func `responses are cached, and the delegate is asked about that`() async throws {
        let server = try LoopbackServer { request, _ in
            ServerResponse(status: 200, headers: [ServerField("Cache-Control", "max-age=60")], body: .data(Data(request.path.utf8)))
        }
        defer { server.stop() }
        let session = session()
        for _ in 0..<2 { _ = try await session.data(from: server.address("/a")) }
        #expect(server.requestCount == 1)
        var only = URLRequest(url: try server.address("/never"))
        only.cachePolicy = .returnCacheDataDontLoad
        let request = only
        #expect(await code { try await session.data(for: request) } == .resourceUnavailable)

        final class Refusing: NSObject, URLSessionDataDelegate {
            let ends = Log<Bool>()
            let asked = Log<Int>()

            func urlSession(
                _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
            ) async -> CachedURLResponse? {
                asked.append(proposedResponse.data.count)
                return nil
            }

            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                ends.append(error == nil)
            }
        }
        let refusing = Refusing()
        let asking = URLSession(configuration: .ephemeral, delegate: refusing, delegateQueue: nil)
        defer { asking.invalidateAndCancel() }
        for count in 1...2 {
            asking.dataTask(with: try server.address("/bb")).resume()
            await refusing.ends.wait(for: count)
        }
        #expect(refusing.asked.elements == [3, 3] && server.requestCount == 3)
    }

    // U3.3
    @Test func `a pause is limited by the request's interval, or else by the configuration's, and the whole by the other`() async throws {
        configuration.timeoutIntervalForRequest = 0.3
        let silent = try server.address("/silent")
        let session = session()
        let start = ContinuousClock.now
        #expect(await code { try await session.data(from: silent) } == .timedOut)
        var request = URLRequest(url: try server.address("/delay/1000"))
        request.timeoutInterval = 20
        let patient = request
        #expect(await code { try await session.data(for: patient) } == nil)
        let whole = URLSessionConfiguration.ephemeral
        whole.timeoutIntervalForResource = 0.5
        let drip = try server.address("/drip?n=1000&ms=20")
        #expect(await code { try await URLSession(configuration: whole).data(from: drip) } == .timedOut)
        #expect(start.duration(to: .now) < .seconds(20))
    }

    // U2.1
    @Test func `a session lists its tasks, and forgets what it stores`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        session.sessionDescription = "mine"
        let data = session.dataTask(with: try server.address("/silent"))
        let download = session.downloadTask(with: try server.address("/silent"))
        let upload = session.uploadTask(with: URLRequest(url: try server.address("/silent")), from: Data())
        data.taskDescription = "first"
        data.resume()
        let (datas, uploads, downloads) = await session.tasks
        #expect(datas == [data] && uploads == [upload] && downloads == [download])
        #expect(await session.allTasks.map(\.taskIdentifier) == [1, 2, 3])
        #expect(data.state == .running && upload.state == .suspended && session.sessionDescription == "mine")
        for task in await session.allTasks { task.cancel() }
        #expect(await eventually { data.state == .completed && download.state == .completed })
        // At once: a task that has completed is none of the session's.
        #expect(await session.allTasks.isEmpty)
        _ = try await session.data(from: server.address("/cookies/set?a=1"))
        #expect(configuration.httpCookieStorage?.cookies?.count == 1)
        await session.reset()
        #expect(configuration.httpCookieStorage?.cookies?.isEmpty != false)
        await session.flush()
    }

    // U2.3
    @Test func `a suspended task waits, and a delayed one begins as its delegate decides`() async throws {
        final class Delaying: NSObject, URLSessionDataDelegate {
            let url: URL
            let ends = Log<String>()

            init(_ url: URL) { self.url = url }

            func urlSession(
                _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
            ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) {
                task.taskDescription == "cancel" ? (.cancel, nil) : (.useNewRequest, URLRequest(url: url))
            }

            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                ends.append("\(task.response?.url?.path ?? "none") \((error as? URLError)?.code.rawValue ?? 0)")
            }
        }
        let delaying = Delaying(try server.address("/json"))
        let session = session(delaying)
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: try server.address("/status/404"))
        task.earliestBeginDate = Date(timeIntervalSinceNow: 0.1)
        task.resume()
        await delaying.ends.wait(for: 1)
        let other = session.dataTask(with: try server.address("/status/404"))
        other.earliestBeginDate = Date(timeIntervalSinceNow: -1)
        other.taskDescription = "cancel"
        other.resume()
        await delaying.ends.wait(for: 2)
        #expect(delaying.ends.elements == ["/json 0", "none -999"])
        let gate = Gate()
        let holding = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("held")
        }
        defer { holding.stop() }
        let suspended = session.dataTask(with: try holding.address("/held"))
        suspended.resume()
        suspended.suspend()
        #expect(suspended.state == .suspended)
        gate.open()
        suspended.resume()
        await delaying.ends.wait(for: 3)
        #expect(delaying.ends.elements.last == "/held 0")
    }

    // U2.3
    @Test func `a delayed task that is cancelled is released before its date`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let ends = Log<Void>()
        weak var released: URLSessionDataTask?
        do {
            let task = session.dataTask(with: try server.address("/json")) { _, _, _ in ends.append(()) }
            released = task
            task.earliestBeginDate = .distantFuture
            task.resume()
            task.cancel()
        }
        await ends.wait(for: 1)
        #expect(await eventually { released == nil })
    }

    // U3.1
    @Test func `interim responses are told`() async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n")
            return .ok("done")
        }
        defer { server.stop() }
        final class Hearing: NSObject, URLSessionTaskDelegate {
            let fields = Log<String?>()

            func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse) {
                fields.append(response.value(forHTTPHeaderField: "Link"))
            }
        }
        let hearing = Hearing()
        _ = try await session().data(for: URLRequest(url: server.address("/")), delegate: hearing)
        await hearing.fields.wait(for: 1)
        #expect(hearing.fields.elements == ["</style.css>"])
    }

    // U3.9
    @Test func `URLs that can't be loaded are errors`() async throws {
        let session = session()
        for text in ["ftp://127.0.0.1/", "foo:bar", "/path"] {
            let url = try #require(URL(string: text))
            #expect(await code { try await session.data(from: url) } == .unsupportedURL, "\(text)")
        }
        var request = URLRequest(url: try server.address("/json"))
        request.url = nil
        let empty = request
        #expect(await code { try await session.data(for: empty) } == .badURL)
        request = URLRequest(url: try server.address("/json"))
        request.httpMethod = "GE T"
        let wrong = request
        #expect(await code { try await session.data(for: wrong) } != nil)
    }
}
