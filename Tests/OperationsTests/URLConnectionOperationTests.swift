// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import CurlewOperations
import CurlewTestSupport
import Dispatch
import Testing

@Suite(.timeLimit(.minutes(1))) struct URLConnectionOperationTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func operation(_ path: String, _ change: (inout URLRequest) -> Void = { _ in }) throws -> URLConnectionOperation {
        try URLConnectionOperation.make(server.url(path), change)
    }

    // MARK: State

    @Test("a queue runs an operation, which has its result when it has finished")
    func runsOnAQueue() async throws {
        let operation = try operation("/json")
        #expect(operation.isReady && operation.isAsynchronous && operation.shouldUseCredentialStorage)
        let body = try await makeQueue().value(of: operation)
        #expect(operation.isFinished && !operation.isExecuting && !operation.isReady)
        #expect(operation.response?.statusCode == 200)
        #expect(operation.error == nil)
        #expect(operation.responseData == body && body.count > 10)
        #expect(operation.responseString?.hasPrefix(#"{"name":"curlew""#) == true)
        #expect(operation.totalBytesRead == Int64(body.count))
    }

    @Test("the queue's limit applies, and a dependent operation starts after its dependency")
    func limitsAndDependencies() async throws {
        let running = Lock((now: 0, most: 0))
        let gate = Gate()
        let last = Lock<URLConnectionOperation?>(nil)
        let isBehind = Log<Bool>()
        let server = try LoopbackServer { request, connection in
            running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            if request.path == "/0" { isBehind.append(last.withLock { $0?.isFinished } ?? false) }
            connection.wait(until: gate)
            running.withLock { $0.now -= 1 }
            return .ok()
        }
        let session = makeSession()
        let operations = try (0..<8).map { try URLConnectionOperation.make(server.url("/\($0)"), session: session) }
        last.withLock { $0 = operations[7] }
        operations[0].addDependency(operations[7])
        let queue = makeQueue(3)
        queue.add(operations)
        #expect(!operations[0].isReady)
        #expect(await gate.arrivals(3))
        gate.open()
        for operation in operations { _ = try await operation.value }
        #expect(running.withLock { $0.most } == 3)
        #expect(isBehind.elements == [true])
    }

    @Test(
        "operations paused, resumed and archived from several threads at once all finish")
    func manyThreads() async throws {
        let session = makeSession()
        let operations = try (0..<60).map { try HTTPRequestOperation.make(server.url("/bytes/\(20_000 + $0)"), session: session) }
        let queue = makeQueue(4)
        queue.add(operations)
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    await offThePool {
                        for round in 0..<150 {
                            let operation = operations[(round * 7 + thread) % 60]
                            switch round % 5 {
                            case 0, 2: operation.pause()
                            case 4 where thread == 0: _ = operation.archive()
                            default: operation.resume()
                            }
                        }
                    }
                }
            }
        }
        for operation in operations { operation.resume() }
        for (index, operation) in operations.enumerated() {
            #expect(try await operation.value == GeneratedBody().data(count: 20_000 + index))
        }
    }

    @Test("observers receive states, and notifications of start and finish")
    func observers() async throws {
        let operation = try operation("/json")
        let log = Log<String>()
        let tokens = [URLConnectionOperation.didStartNotification, URLConnectionOperation.didFinishNotification].map { name in
            NotificationCenter.default.addObserver(forName: name, object: operation, queue: nil) { log.append($0.name.rawValue) }
        }
        defer { for token in tokens { NotificationCenter.default.removeObserver(token) } }
        let states = Log<OperationState>()
        operation.onStateChange = { states.append($0) }
        let stream = operation.states
        operation.start()
        var seen: [OperationState] = []
        for await state in stream { seen.append(state) }
        #expect(seen == [.ready, .executing, .finished])
        await states.wait(for: 2)
        #expect(states.elements == [.executing, .finished])
        await log.wait(for: 2)
        #expect(log.elements == ["start", "finish"].map { "com.alamofire.networking.operation.\($0)" })
    }

    // MARK: Cancelling

    enum Moment: CaseIterable {
        case ready, queued, queuedThenPaused, executing, pausedBeforeItsStart, pausedAfterItsStart
    }

    @Test("an operation cancelled at any moment finishes with the error and runs its completion closure", arguments: Moment.allCases)
    func cancel(_ moment: Moment) async throws {
        let operation = try operation("/silent")
        let completed = Log<Bool>()
        operation.completionBlock = { completed.append(true) }
        let queue = makeQueue(1)
        switch moment {
        case .ready:
            operation.cancel()
            #expect(!operation.isFinished)
            operation.start()
        case .queued:
            queue.isSuspended = true
            queue.addOperation(operation)
            operation.cancel()
            queue.isSuspended = false
        case .queuedThenPaused:
            queue.isSuspended = true
            queue.addOperation(operation)
            operation.cancel()
            operation.pause()
            #expect(!operation.isPaused)
            queue.isSuspended = false
        case .executing:
            queue.addOperation(operation)
            #expect(await server.waitForRequests(1))
            operation.cancel()
        case .pausedBeforeItsStart:
            operation.pause()
            queue.addOperation(operation)
            operation.cancel()
        case .pausedAfterItsStart:
            queue.addOperation(operation)
            #expect(await server.waitForRequests(1))
            operation.pause()
            operation.cancel()
        }
        await operation.waitForEnd()
        await completed.wait(for: 1)
        #expect(operation.isCancelled && operation.isFinished && !operation.isPaused)
        #expect(operation.urlErrorCode == .cancelled)
        let url = (operation.error as? URLError)?.userInfo[NSURLErrorFailingURLErrorKey] as? URL
        #expect(url == operation.request.url)
        #expect((operation.error as? URLError)?.userInfo[OperationErrorKey.request] as? URLRequest == operation.request)
        operation.cancel()
        operation.resume()
        #expect(operation.isFinished && completed.count == 1)
        _ = try await queue.value(of: self.operation("/json"))
    }

    @Test("an operation whose request can't be sent fails")
    func invalidRequest() async throws {
        let operation = try URLConnectionOperation.make("ftp://127.0.0.1/")
        await #expect(throws: URLError.self) { try await operation.run() }
        #expect(operation.urlErrorCode == .unsupportedURL)
    }

    // MARK: Pausing

    @Test("a paused operation stays in its queue and keeps its place; resumed, it starts over")
    func pauseAndResume() async throws {
        let server = try HalfServer()
        let operation = try URLConnectionOperation.make(server.url)
        let behind = try self.operation("/json")
        let queue = makeQueue(1)
        queue.add([operation, behind])
        await operation.received(0)
        operation.pause()
        operation.pause()
        #expect(operation.isPaused && !operation.isReady && !operation.isExecuting && !operation.isFinished)
        #expect(queue.operations.contains(operation) && !behind.isFinished)
        operation.resume()
        #expect(try await operation.value == HalfServer.body)
        #expect(server.requests.map { $0.header("Range") } == [nil, nil])
        _ = try await behind.value
        operation.pause()
        #expect(operation.isFinished)
    }

    @Test("an operation paused before its start waits for its queue again")
    func pausedBeforeItsStart() async throws {
        let operation = try operation("/json")
        operation.pause()
        let queue = makeQueue(1)
        queue.addOperation(operation)
        _ = try await queue.value(of: self.operation("/json")) as Data?
        #expect(operation.isPaused && server.requestCount == 1)
        operation.resume()
        _ = try await operation.value
    }

    // MARK: Completion

    @Test("the completion closure runs on its queue, in its group, and is released with its captures")
    func completion() async throws {
        final class Token: Sendable {}
        let operation = try operation("/json")
        let key = DispatchSpecificKey<Int>()
        let queue = DispatchQueue(label: "completion")
        queue.setSpecific(key: key, value: 7)
        let group = DispatchGroup()
        #expect(operation.completionQueue == nil && operation.completionGroup == nil)
        #expect(OperationSession.shared.configuration.callbackQueue.label == DispatchQueue.main.label)
        operation.completionQueue = queue
        operation.completionGroup = group
        let log = Log<Int?>()
        weak var token: Token?
        do {
            let held = Token()
            token = held
            operation.completionBlock = { [operation] in
                _ = held
                log.append(operation.isFinished ? DispatchQueue.getSpecific(key: key) : nil)
            }
        }
        #expect(token != nil)
        try await operation.run()
        await log.wait(for: 1)
        #expect(log.elements == [7])
        await withTrackedContinuation { continuation in group.notify(queue: queue) { continuation.resume() } }
        #expect(operation.completionBlock == nil && token == nil)
    }

    @Test(
        "completion closures run in the order of completion, and before dependent operations if requested",
        arguments: [false, true])
    func completionOrder(before: Bool) async throws {
        let session = makeSession()
        let log = Log<String>()
        let operations = try (0..<6).map { index in
            let operation = try HTTPRequestOperation.make(server.url("/json"), session: session)
            operation.completesBeforeDependents = before
            operation.setCompletionBlock(success: { _, _ in log.append("\(index)") }, failure: nil)
            return operation
        }
        let last = BlockOperation { log.append("last") }
        for operation in operations { last.addDependency(operation) }
        makeQueue(1).add(operations + [last])
        await log.wait(for: 7)
        #expect(log.elements.filter { $0 != "last" } == (0..<6).map { "\($0)" })
        if before { #expect(log.elements.last == "last") }
    }

    // MARK: Subclasses

    final class Recording: URLConnectionOperation, @unchecked Sendable {
        let calls = Log<String>()

        override func connection(willSend request: URLRequest, redirectResponse: HTTPURLResponse?) -> URLRequest? {
            calls.append("willSend \(redirectResponse?.statusCode ?? 0)")
            return super.connection(willSend: request, redirectResponse: redirectResponse)
        }

        override func connectionShouldUseCredentialStorage() -> Bool {
            calls.append("shouldUseCredentialStorage")
            return super.connectionShouldUseCredentialStorage()
        }

        override func connection(willSendRequestFor challenge: OperationChallenge) {
            calls.append("challenge")
            super.connection(willSendRequestFor: challenge)
        }

        override func connectionNeedNewBodyStream(for request: URLRequest) -> InputStream? {
            calls.append("needNewBodyStream")
            return InputStream(data: Data("body".utf8))
        }

        override func connection(didSendBodyData bytesWritten: Int64, totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64) {
            if calls.elements.last?.hasPrefix("didSendBodyData") != true { calls.append("didSendBodyData \(totalBytesExpectedToWrite)") }
            super.connection(
                didSendBodyData: bytesWritten, totalBytesWritten: totalBytesWritten, totalBytesExpectedToWrite: totalBytesExpectedToWrite)
        }

        override func connection(didReceive response: HTTPURLResponse) {
            calls.append("didReceiveResponse \(response.statusCode)")
            super.connection(didReceive: response)
        }

        override func connection(didReceive data: Data) {
            if calls.elements.last != "didReceiveData" { calls.append("didReceiveData") }
            super.connection(didReceive: data)
        }

        override func connection(willCache proposed: CachedURLResponse) -> CachedURLResponse? {
            calls.append("willCache")
            return super.connection(willCache: proposed)
        }

        override func connectionDidFinishLoading() {
            calls.append("didFinishLoading")
            super.connectionDidFinishLoading()
        }

        override func connection(didFailWithError error: any Error) {
            calls.append("didFail")
            super.connection(didFailWithError: error)
        }
    }

    @Test("the connection's methods are called in order, for an upload that has to be sent again")
    func connectionMethods() async throws {
        let server = try LoopbackServer { request, _ in
            if request.path == "/old" { return .redirect(to: "/new", status: 307) }
            guard request.header("Authorization") != nil else {
                return .status(401, headers: [ServerField("WWW-Authenticate", "Basic realm=\"x\"")])
            }
            return .ok(request.body)
        }
        let operation = try Recording.make(server.url("/old")) { request in
            request.httpMethod = "PUT"
            request.httpBodyStream = InputStream(data: Data("body".utf8))
        }
        operation.credential = URLCredential(user: "curlew", password: "x", persistence: .none)
        #expect(try await operation.run() == Data("body".utf8))
        let calls = operation.calls.elements.filter { !$0.hasPrefix("didSendBodyData") }
        #expect(
            calls == [
                "shouldUseCredentialStorage", "willSend 0", "willSend 307", "needNewBodyStream", "challenge", "needNewBodyStream",
                "didReceiveResponse 200", "didReceiveData", "didFinishLoading",
            ])
        #expect(operation.calls.elements.contains("didSendBodyData -1"))
        #expect(operation.inputStream != nil)
    }

    @Test("a failed operation is notified, and a cacheable response is passed to the cache method")
    func connectionMethodsOfFailureAndCache() async throws {
        let failing = try Recording.make(server.url("/reset"))
        await #expect(throws: URLError.self) { try await failing.run() }
        #expect(failing.calls.elements.suffix(2) == ["willSend 0", "didFail"])

        let (cache, server) = (URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil), try Self.cacheable())
        let session = makeSession { $0.urlCache = cache }
        let caching = try Recording.make(server.url("/"), session: session)
        try await caching.run()
        #expect(caching.calls.elements.contains("willCache"))
    }

    private static func cacheable() throws -> LoopbackServer {
        try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Cache-Control", "max-age=60")], body: .data(Data("kept".utf8)))
        }
    }

    // MARK: Closures

    @Test("the cache closure's response is stored, and none if it returns nil", arguments: [true, false])
    func cacheResponse(isKept: Bool) async throws {
        let server = try Self.cacheable()
        let session = makeSession { $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil) }
        for _ in 0..<2 {
            let operation = try URLConnectionOperation.make(server.url("/"), session: session)
            operation.setCacheResponseBlock { _, proposed in isKept ? proposed : nil }
            #expect(try await operation.run() == Data("kept".utf8))
        }
        #expect(server.requestCount == (isKept ? 1 : 2))
    }

    @Test("an operation whose session has a cache is answered from it the second time") func responseCache() async throws {
        let server = try Self.cacheable()
        let cache = ResponseCache.memory()
        let session = makeSession { $0.cache = cache }
        for number in 0..<3 {
            let operation = try URLConnectionOperation.make(server.url("/"), session: session)
            #expect(try await operation.run() == Data("kept".utf8))
            #expect((operation.response?.value(forHTTPHeaderField: "Age") != nil) == (number > 0))
        }
        // The cache is the configuration's: another session with it answers, too.
        let other = try URLConnectionOperation.make(server.url("/"), session: makeSession { $0.cache = cache })
        #expect(try await other.run() == Data("kept".utf8))
        #expect(server.requestCount == 1 && cache.statistics.hits == 3)
    }

    @Test("the redirect closure is called for the first request, too, and can decline a redirect")
    func redirectResponse() async throws {
        let log = Log<Int>()
        let operation = try operation("/redirect/2")
        operation.setRedirectResponseBlock { _, request, response in
            log.append(response?.statusCode ?? 0)
            return log.count < 3 ? request : nil
        }
        try await operation.run()
        #expect(log.elements == [0, 302, 302])
        #expect(operation.response?.statusCode == 302)

        let declined = try self.operation("/json")
        declined.setRedirectResponseBlock { _, _, _ in nil }
        await #expect(throws: URLError.self) { try await declined.run() }
        #expect(declined.urlErrorCode == .cancelled)
    }

    @Test("the redirect closure decides whether an upload's stream follows", arguments: [nil, "GET", "PUT"] as [String?])
    func redirectedStream(_ method: String?) async throws {
        let server = try LoopbackServer { request, _ in
            request.path == "/old" ? .redirect(to: "/new", status: 307) : .ok(Data("\(request.method) ".utf8) + request.body)
        }
        let operation = try URLConnectionOperation.make(server.url("/old")) { request in
            request.httpMethod = "PUT"
            request.httpBodyStream = InputStream(data: Data("secret".utf8))
        }
        operation.setRedirectResponseBlock { _, request, response in
            guard response != nil, let method else { return response == nil ? request : nil }
            var request = request
            request.httpMethod = method
            return request
        }
        await operation.runToEnd()
        // The stream can't be sent twice, which fails only the redirect that needs it.
        #expect((operation.error == nil) == (method != "PUT"))
        #expect(server.requests.map(\.body) == [Data("secret".utf8)] + (method == "GET" ? [Data()] : []))
        if method == nil { #expect(operation.response?.statusCode == 307) }
        if method == "GET" { #expect(operation.responseData == Data("GET ".utf8)) }
    }

    @Test("progress is reported in both directions; an unknown total is −1")
    func progress() async throws {
        let (up, down) = (Log<[Int64]>(), Log<[Int64]>())
        let operation = try operation("/body") { request in
            request.httpMethod = "POST"
            request.httpBody = Data(count: 100_000)
        }
        operation.setUploadProgressBlock { up.append([$0, $1, $2]) }
        operation.setDownloadProgressBlock { down.append([$0, $1, $2]) }
        try await operation.run()
        callbackQueue.sync {}
        #expect(up.elements.last?.dropFirst() == [100_000, 100_000])
        #expect(up.elements.reduce(0) { $0 + $1[0] } == 100_000)
        #expect(down.elements.last?.dropFirst() == [100_000, 100_000])
        #expect(down.elements.reduce(0) { $0 + $1[0] } == 100_000)

        let chunked = try self.operation("/chunked/5000")
        let unknown = Log<Int64>()
        chunked.setDownloadProgressBlock { unknown.append($2) }
        try await chunked.run()
        callbackQueue.sync {}
        #expect(Set(unknown.elements) == [-1])
    }

    @Test(
        "the charset determines the text encoding; UTF-8 without one, or for an unknown one",
        arguments: [
            ("text/plain; charset=iso-8859-1", String.Encoding.isoLatin1), ("text/plain", .utf8), ("text/plain; charset=none", .utf8),
        ])
    func stringEncoding(type: String, encoding: String.Encoding) async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Content-Type", type)], body: .data("é".data(using: encoding) ?? Data()))
        }
        let operation = try URLConnectionOperation.make(server.url("/"))
        try await operation.run()
        #expect(operation.responseStringEncoding == encoding && operation.responseString == "é")
    }

    @Test(
        "text is decoded in a charset that Foundation can't read, and in that of a byte order mark",
        arguments: [
            ("text/plain; charset=gbk", [0xC4, 0xE3], 0x8000_0631, "你"), ("text/plain; charset=gbk", [0xC4], 0x8000_0631, nil),
            ("text/plain; charset=gbk", [0xFF, 0xFE, 0xE9, 0], String.Encoding.utf16LittleEndian.rawValue, "é"),
            ("text/plain", [0xE9], String.Encoding.utf8.rawValue, nil),
        ] as [(String, [UInt8], UInt, String?)])
    func charsets(_ type: String, _ bytes: [UInt8], _ encoding: UInt, _ text: String?) async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Content-Type", type)], body: .data(Data(bytes)))
        }
        let operation = try URLConnectionOperation.make(server.url("/"))
        try await operation.run()
        #expect(operation.responseStringEncoding.rawValue == encoding && operation.responseString == text)
    }

    // MARK: Copies

    @Test("a copy is ready, and keeps everything except streams, completion closure and result", arguments: [false, true])
    func copies(isHTTP: Bool) async throws {
        let type = isHTTP ? HTTPRequestOperation.self : URLConnectionOperation.self
        let operation = try type.make(server.url("/body")) { request in
            request.httpMethod = "POST"
            request.httpBody = Data(count: 10)
        }
        let log = Log<String>()
        operation.setUploadProgressBlock { _, _, _ in log.append("up") }
        operation.setDownloadProgressBlock { _, _, _ in log.append("down") }
        operation.setRedirectResponseBlock { _, request, _ in
            log.append("redirect")
            return request
        }
        operation.completionQueue = callbackQueue
        operation.completionGroup = DispatchGroup()
        operation.userInfo = ["number": 1]
        operation.runLoopModes = [.default]
        operation.outputStream = OutputStream.toMemory()
        try await operation.run()
        callbackQueue.sync {}
        operation.completionBlock = {}
        (operation as? HTTPRequestOperation)?.responseSerializer = CompoundResponseSerializer([])
        let copy = try #require(operation.copy() as? URLConnectionOperation)
        #expect(Swift.type(of: copy) == type)
        if let copy = copy as? HTTPRequestOperation { #expect(copy.responseSerializer is CompoundResponseSerializer) }
        #expect(copy.isReady && copy.response == nil && copy.outputStream == nil && copy.completionBlock == nil)
        #expect(copy.completionQueue === callbackQueue && copy.completionGroup === operation.completionGroup)
        #expect(copy.userInfo["number"] as? Int == 1 && copy.runLoopModes == [.default] && copy.request == operation.request)
        let before = log.elements
        #expect(Set(before) == ["up", "down", "redirect"])
        #expect(try await copy.run() == Data(count: 10))
        callbackQueue.sync {}
        #expect(Set(log.elements.dropFirst(before.count)) == ["up", "down", "redirect"])
    }

    @Test("a copy keeps the cache and challenge closures", arguments: ["/cache", "/challenge"])
    func copiesOfDecisions(path: String) async throws {
        let server = try LoopbackServer { request, _ in
            guard request.path == "/cache" || request.header("Authorization") != nil else {
                return .status(401, headers: [ServerField("WWW-Authenticate", "Basic realm=\"x\"")])
            }
            return ServerResponse(status: 200, headers: [ServerField("Cache-Control", "max-age=60")], body: .data(Data("kept".utf8)))
        }
        let session = makeSession { $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil) }
        let operation = try URLConnectionOperation.make(server.url(path), session: session)
        let log = Log<String>()
        operation.setCacheResponseBlock { _, _ in
            log.append("/cache")
            return nil
        }
        operation.setWillSendRequestForAuthenticationChallengeBlock { _, challenge in
            log.append("/challenge")
            challenge.use(URLCredential(user: "curlew", password: "x", persistence: .none))
        }
        #expect(try await operation.duplicate().run() == Data("kept".utf8))
        // The response to the request with credentials may be stored, too.
        #expect(log.elements == (path == "/cache" ? ["/cache"] : ["/challenge", "/cache"]))
    }

    @Test("a copy does not send the rest of a stream that was read: it requests a new one, or fails")
    func copyOfAReadStream() async throws {
        let operation = try operation("/body") { $0.httpMethod = "POST" }
        operation.inputStream = InputStream(data: Data("streamed".utf8))
        try await operation.run()
        let copy = operation.duplicate()
        await copy.runToEnd()
        #expect(copy.urlErrorCode == .requestBodyStreamExhausted && server.requestCount == 1)
        let other = operation.duplicate()
        other.inputStream = InputStream(data: Data("again".utf8))
        #expect(try await other.run() == Data("again".utf8))
    }

    @Test("a cancelled task does not wait for a place in the queue")
    func cancelledWhileQueued() async throws {
        let operation = try operation("/json")
        let queue = makeQueue(1)
        queue.isSuspended = true
        let task = Task { try await queue.value(of: operation) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(operation.isCancelled && !operation.isFinished)
        queue.isSuspended = false
        _ = try await queue.value(of: self.operation("/json"))
        #expect(server.requestCount == 1 && operation.isFinished && operation.urlErrorCode == .cancelled)
    }

    @Test("operations run in a task group; cancelling a task cancels its operation")
    func taskGroup() async throws {
        let session = makeSession()
        let count = try await withThrowingTaskGroup(of: Int.self) { group in
            for index in 0..<8 {
                let operation = try URLConnectionOperation.make(server.url("/bytes/\(100 + index)"), session: session)
                group.addTask { try await operation.run().count }
            }
            return try await group.reduce(0, +)
        }
        #expect(count == 828)
        let silent = try URLConnectionOperation.make(server.url("/silent"), session: session)
        let task = Task { try await silent.run() }
        await silent.reach(.executing)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(silent.urlErrorCode == .cancelled && silent.isFinished)
    }
}
