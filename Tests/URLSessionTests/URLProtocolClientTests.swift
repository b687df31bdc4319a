// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import Dispatch
import Testing

/// Notes what it is told and asked.
private final class Recorder: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
    let events = Inbox<String>()
    let responses = Inbox<URLResponse>()
    let ends = Inbox<URLError?>()
    let answer: (URLSession.AuthChallengeDisposition, URLCredential?)
    let redirect: @Sendable (URLRequest) -> URLRequest?

    init(
        answer: (URLSession.AuthChallengeDisposition, URLCredential?) = (.performDefaultHandling, nil),
        redirect: @escaping @Sendable (URLRequest) -> URLRequest? = { $0 }
    ) {
        self.answer = answer
        self.redirect = redirect
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        responses.put(response)
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        events.put("data \(String(decoding: data, as: UTF8.self))")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let marker = URLProtocol.property(forKey: "marker", in: request) as? String ?? "-"
        events.put("redirect \(response.statusCode) \(request.httpMethod ?? "") \(request.url?.path ?? "") \(marker)")
        completionHandler(redirect(request))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        events.put("challenge \(challenge.protectionSpace.realm ?? "")")
        completionHandler(answer.0, answer.1)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        events.put("file \((try? String(contentsOf: location, encoding: .utf8)) ?? "")")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        ends.put(error.map { $0 as? URLError ?? URLError(.unknown) })
    }
}

/// Notes how a challenge is answered.
private final class Sender: NSObject, URLAuthenticationChallengeSender {
    let answered: @Sendable (String) -> Void

    init(_ answered: @escaping @Sendable (String) -> Void) {
        self.answered = answered
    }

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) { answered("use \(credential.user ?? "")") }
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { answered("continue") }
    func cancel(_ challenge: URLAuthenticationChallenge) { answered("cancel") }
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) { answered("default") }
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) { answered("reject") }
}

@Suite(.timeLimit(.minutes(1))) struct URLProtocolClientTests {
    private func url(_ host: String, _ path: String = "/") throws -> URL { try #require(URL(string: "http://\(host)\(path)")) }

    // MARK: Responses

    // U1.3
    @Test func `the task's response is the object that the class has made`() async throws {
        let made = Inbox<URLResponse>()
        let (host, _) = ScriptedProtocol.script { loader in
            guard let url = URL(string: "other:thing") else { return }
            let response = URLResponse(url: url, mimeType: "text/plain", expectedContentLength: 5, textEncodingName: "utf-8")
            made.put(response)
            loader.client?.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .notAllowed)
            loader.client?.urlProtocol(loader, didLoad: Data("plain".utf8))
            loader.client?.urlProtocolDidFinishLoading(loader)
        }
        let (data, response) = try await scriptedSession().data(from: url(host))
        #expect(data == Data("plain".utf8))
        #expect(response === made.all.first && !(response is HTTPURLResponse))
        let recorder = Recorder()
        let session = scriptedSession(delegate: recorder)
        defer { session.invalidateAndCancel() }
        let task = try session.dataTask(with: url(host))
        task.resume()
        #expect(await recorder.ends[0] == nil)
        #expect(recorder.responses.all.first === made.all.last && task.response === made.all.last)
    }

    @Test func `pieces reach the delegate one by one`() async throws {
        let (host, _) = ScriptedProtocol.script { loader in
            guard let url = loader.request.url else { return }
            let response = URLResponse(url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
            loader.client?.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .notAllowed)
            for piece in ["a", "b", "c"] { loader.client?.urlProtocol(loader, didLoad: Data(piece.utf8)) }
            loader.client?.urlProtocolDidFinishLoading(loader)
        }
        let recorder = Recorder()
        let session = scriptedSession(delegate: recorder)
        defer { session.invalidateAndCancel() }
        try session.dataTask(with: url(host)).resume()
        #expect(await recorder.ends[0] == nil)
        #expect(recorder.events.all == ["data a", "data b", "data c"])
    }

    @Test func `a class's error is the task's`() async throws {
        let (host, _) = ScriptedProtocol.script { $0.client?.urlProtocol($0, didFailWithError: TestError("of the class")) }
        let error = await #expect(throws: (any Error).self) { _ = try await scriptedSession().data(from: url(host)) }
        #expect("\(try #require(error))".contains("of the class"))
    }

    @Test func `a load that finishes without a response fails the task`() async throws {
        let (host, _) = ScriptedProtocol.script { $0.client?.urlProtocolDidFinishLoading($0) }
        await #expect(throws: URLError.self) { _ = try await scriptedSession().data(from: url(host)) }
    }

    @Test func `a stored response that a class has validated is the response`() async throws {
        let (host, _) = ScriptedProtocol.script { loader in
            guard let url = loader.request.url,
                let response = HTTPURLResponse(url: url, statusCode: 203, httpVersion: nil, headerFields: nil)
            else { return }
            loader.client?.urlProtocol(loader, cachedResponseIsValid: CachedURLResponse(response: response, data: Data("stored".utf8)))
        }
        let (data, response) = try await scriptedSession().data(from: url(host))
        #expect(data == Data("stored".utf8) && (response as? HTTPURLResponse)?.statusCode == 203)
    }

    @Test func `uploads and downloads are loaded by classes, too`() async throws {
        let (host, _) = ScriptedProtocol.script { $0.respond("got \($0.body)") }
        let recorder = Recorder()
        let session = scriptedSession(delegate: recorder)
        defer { session.invalidateAndCancel() }
        var request = try URLRequest(url: url(host))
        session.downloadTask(with: request).resume()
        #expect(await recorder.ends[0] == nil)
        #expect(recorder.events.all == ["file got none"])
        request.httpMethod = "PUT"
        session.uploadTask(with: request, from: Data("bytes".utf8)).resume()
        #expect(await recorder.ends.first(2).last == .some(nil))
        #expect(recorder.events.all.last == "data got data:bytes")
        let (file, response) = try await session.download(from: url(host))
        defer { try? FileManager.default.removeItem(at: file) }
        #expect(try String(contentsOf: file, encoding: .utf8) == "got none" && (response as? HTTPURLResponse)?.statusCode == 200)
    }

    // MARK: Redirects

    private func redirecting(_ change: @escaping @Sendable (inout URLRequest) -> Void = { _ in }) -> String {
        ScriptedProtocol.script { loader in
            guard let url = loader.request.url else { return }
            guard url.path == "/start" else {
                let marker = URLProtocol.property(forKey: "marker", in: loader.request) as? String ?? "-"
                let field = loader.request.value(forHTTPHeaderField: "X-New") ?? "-"
                return loader.respond("\(loader.request.httpMethod ?? "") \(url.path) \(marker) \(field) \(loader.body)")
            }
            var next = loader.request
            next.url = URL(string: "/end", relativeTo: url)?.absoluteURL
            change(&next)
            guard let response = HTTPURLResponse(url: url, statusCode: 307, httpVersion: nil, headerFields: ["Location": "/elsewhere"])
            else { return }
            loader.client?.urlProtocol(loader, wasRedirectedTo: next, redirectResponse: response)
        }.host
    }

    @Test func `a redirect by a class leads to the request that it gives, by way of the delegate`() async throws {
        let host = redirecting { request in
            request.setValue("1", forHTTPHeaderField: "X-New")
            request.httpMethod = "PUT"
            request.httpBody = Data("new".utf8)
        }
        let recorder = Recorder()
        let session = scriptedSession(delegate: recorder)
        defer { session.invalidateAndCancel() }
        let request = try URLRequest(url: url(host, "/start")).with("kept", forKey: "marker")
        let task = session.dataTask(with: request)
        task.resume()
        #expect(await recorder.ends[0] == nil)
        #expect(recorder.events.all == ["redirect 307 PUT /end kept", "data PUT /end kept 1 data:new"])
        #expect(task.currentRequest?.url?.path == "/end" && task.originalRequest?.url?.path == "/start")
    }

    @Test func `a delegate may refuse a class's redirect, or change it`() async throws {
        let host = redirecting()
        let refusing = Recorder { _ in nil }
        let refused = scriptedSession(delegate: refusing)
        defer { refused.invalidateAndCancel() }
        let task = try refused.dataTask(with: url(host, "/start"))
        task.resume()
        #expect(await refusing.ends[0] == nil)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 307)
        let changing = Recorder { request in
            var other = request
            other.url = request.url?.deletingLastPathComponent().appendingPathComponent("changed")
            return try? other.with("chosen", forKey: "marker")
        }
        let session = scriptedSession(delegate: changing)
        defer { session.invalidateAndCancel() }
        try session.dataTask(with: url(host, "/start")).resume()
        #expect(await changing.ends[0] == nil)
        #expect(changing.events.all.last == "data GET /changed chosen - none")
    }

    @Test func `a class can't redirect without end`() async throws {
        let (host, script) = ScriptedProtocol.script { loader in
            guard let url = loader.request.url else { return }
            let response = URLResponse(url: url, mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
            loader.client?.urlProtocol(loader, wasRedirectedTo: loader.request, redirectResponse: response)
        }
        let error = await #expect(throws: URLError.self) { _ = try await scriptedSession().data(from: url(host)) }
        #expect(error?.code == .httpTooManyRedirects)
        #expect(script.offered.count == 21)
    }

    // MARK: Challenges

    private func challenging() -> String {
        ScriptedProtocol.script { loader in
            let space = URLProtectionSpace(
                host: "h", port: 80, protocol: NSURLProtectionSpaceHTTP, realm: "class",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            let shown = LoaderBox(loader)
            let challenge = URLAuthenticationChallenge(
                protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: nil,
                sender: Sender { shown.value.respond($0) })
            loader.client?.urlProtocol(loader, didReceive: challenge)
        }.host
    }

    @Test func `the task's delegate answers a class's challenge through its sender`() async throws {
        let url = try url(challenging())
        let credential = URLCredential(user: "me", password: "secret", persistence: .none)
        let answers: [(URLSession.AuthChallengeDisposition, URLCredential?, String)] = [
            (.useCredential, credential, "use me"), (.useCredential, nil, "continue"), (.cancelAuthenticationChallenge, nil, "cancel"),
            (.rejectProtectionSpace, nil, "reject"), (.performDefaultHandling, nil, "default"),
        ]
        for (disposition, credential, expected) in answers {
            let recorder = Recorder(answer: (disposition, credential))
            let (data, _) = try await scriptedSession().data(from: url, delegate: recorder)
            #expect(String(decoding: data, as: UTF8.self) == expected)
            #expect(recorder.events.all == ["challenge class"])
        }
        #expect(try await scriptedSession().data(from: url).0 == Data("default".utf8))
    }

    // MARK: The end

    @Test func `stopLoading is called once, also for a cancelled task`() async throws {
        let started = Inbox<Int>()
        let (host, script) = ScriptedProtocol.script { loader in started.put(loader.task?.taskIdentifier ?? 0) }
        let session = scriptedSession()
        let task = try session.dataTask(with: url(host))
        task.resume()
        #expect(await started[0] == task.taskIdentifier)
        task.cancel()
        #expect(await script.stopped.first(1).count == 1)
        #expect(await eventually { task.state == .completed })
        #expect((task.error as? URLError)?.code == .cancelled)
        let target = try url(host)
        let awaited = Task { try await session.data(from: target) }
        _ = await started[1]
        awaited.cancel()
        await #expect(throws: URLError.self) { _ = try await awaited.value }
        #expect(await script.stopped.first(2).count == 2)
        let last = try session.dataTask(with: url(host))
        last.resume()
        _ = await started[2]
        session.invalidateAndCancel()
        #expect(await script.stopped.first(3).count == 3)
    }

    // U3.3
    @Test func `a class that reports nothing for the request's timeout fails the task`() async throws {
        let (host, script) = ScriptedProtocol.script { _ in }
        var request = try URLRequest(url: url(host))
        request.timeoutInterval = 0.05
        let error = await #expect(throws: URLError.self) { _ = try await scriptedSession().data(for: request) }
        #expect(error?.code == .timedOut)
        #expect(await script.stopped.first(1).count == 1)
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [ScriptedProtocol.self]
        configuration.timeoutIntervalForResource = 0.05
        let whole = await #expect(throws: URLError.self) {
            _ = try await URLSession(configuration: configuration).data(from: url(host))
        }
        #expect(whole?.code == .timedOut)
    }

    @Test func `a class that waits for a stream's bytes is freed when its task is cancelled`() async throws {
        let read = Inbox<Int>()
        let started = Inbox<Int>()
        let (host, _) = ScriptedProtocol.script { loader in
            guard let stream = loader.request.httpBodyStream else { return }
            stream.open()
            started.put(1)
            let shown = StreamBox(value: stream)
            Thread.detachNewThread {
                var buffer = [UInt8](repeating: 0, count: 10)
                read.put(shown.value.read(&buffer, maxLength: 10))
            }
        }
        let input = EndlessStream()
        defer { input.end() }
        var request = try URLRequest(url: url(host))
        request.httpMethod = "POST"
        request.httpBodyStream = input
        let task = scriptedSession().dataTask(with: request)
        task.resume()
        _ = await started[0]
        task.cancel()
        #expect(await read[0] <= 0)
    }

    private struct StreamBox: @unchecked Sendable {
        let value: InputStream
    }

    /// A stream whose bytes do not come.
    private final class EndlessStream: InputStream {
        private let wait = DispatchSemaphore(value: 0)

        init() { super.init(data: Data()) }

        override var hasBytesAvailable: Bool { true }
        override func open() {}
        override func close() {}
        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
            wait.wait()
            return 0
        }

        func end() { wait.signal() }
    }
}
