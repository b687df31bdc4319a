// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import CurlewWebSocket
import Testing

/// A mock with several features of the library at a time.
@Suite(.timeLimit(.minutes(1))) struct MockCrossTests {
    private let base = "https://api.example.org"

    private struct Token: AuthenticationCredential {
        let value: String
        var requiresRefresh: Bool { false }
    }

    private final class TokenAuthenticator: AsyncAuthenticator {
        let refreshes = Log<Void>()

        func apply(_ credential: Token, to urlRequest: inout URLRequest) {
            urlRequest.setValue("Bearer \(credential.value)", forHTTPHeaderField: "Authorization")
        }

        func credential(replacing expired: Token?, for manager: SessionManager) async throws -> Token {
            refreshes.append(())
            return Token(value: "new")
        }

        func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool {
            response.statusCode == 401
        }

        func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Token) -> Bool {
            urlRequest.value(forHTTPHeaderField: "Authorization") == "Bearer \(credential.value)"
        }
    }

    @Test("a redirect, a failure and a delayed retry on the way to a response") func redirectAndRetry() async throws {
        let clock = VirtualClock(.automatic)
        let mock = MockTransport(clock: clock)
        mock.stub("/old", respond: .redirect(to: "/new").delayed(by: .seconds(1)))
        mock.stub("/new", respond: .failure(.connectionLost), .status(503).header("Retry-After", "7"), .text("ok"))
        let manager = SessionManager(mock: mock, interceptor: RetryPolicy(jitter: { 1 }))
        let response = await manager.request("\(base)/old").validate().serializingString().response
        #expect(response.value == "ok")
        #expect(mock.requests.map(\.path) == ["/old", "/new", "/old", "/new", "/old", "/new"])
        // Three delays of the redirect, the first backoff, and what the server asked for.
        #expect(clock.elapsed > .seconds(10) && clock.elapsed < .seconds(12))
    }

    @Test("requests that fail together refresh a token once") func refresh() async throws {
        let mock = MockTransport()
        mock.stub(respond: .status(401))
        mock.stub("/**", headers: ["Authorization": "Bearer new"]) { .text($0.path) }
        let authenticator = TokenAuthenticator()
        let interceptor = AuthenticationInterceptor(authenticator: authenticator, credential: Token(value: "old"))
        let manager = SessionManager(mock: mock, interceptor: interceptor)
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 1...5 {
                group.addTask { try await manager.request("\(base)/\(number)").validate().serializingString().value }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(texts == ["/1", "/2", "/3", "/4", "/5"])
        #expect(authenticator.refreshes.count == 1)
    }

    @Test("cancelling in the delay before a retry ends the request, at no time") func cancelledDelay() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.failure(.connect), clock: clock)
        let manager = SessionManager(mock: mock, interceptor: Retrier { _, _, _ async in .retry(after: .seconds(3600)) })
        let request = manager.request("\(base)/")
        async let response = request.serializingData().response
        try await mock.waitForRequests(1)
        await clock.advance(by: .seconds(1))
        request.cancel()
        guard case CurlewError.cancelled? = await response.error else {
            Issue.record("not cancelled")
            return
        }
        await clock.advance(by: .seconds(3600))
        #expect(mock.requests.count == 1)
    }

    @Test("a cancelled download leaves no file, and its retry resumes after a delay") func download() async throws {
        let directory = try TemporaryDirectory()
        let clock = VirtualClock(.automatic)
        let bytes = GeneratedBody().data(count: 200_000)
        let mock = MockTransport(clock: clock)
        mock.stub(
            "/file", respond: .resource(bytes).inPieces(of: 50_000, every: .seconds(1)).failing(after: 100_000),
            .resource(bytes).inPieces(of: 50_000, every: .seconds(1)))
        mock.stub("/stalled", respond: .resource(bytes).stalling(after: 100_000))
        let manager = SessionManager(mock: mock, interceptor: Retrier { _, _, _ async in .retry(after: .seconds(10)) }) {
            $0.temporaryDirectory = directory.url
        }
        let target = directory.file("target")
        _ = try await manager.download("\(base)/file", to: target).validate().serializingURL().value
        #expect(try Data(contentsOf: target) == bytes)
        #expect(mock.requests[1].headers["Range"] == "bytes=100000-")
        #expect(clock.elapsed == .seconds(14))
        let stalled = manager.download(
            "\(base)/stalled", requestOptions: RequestOptions(deadline: .seconds(5)), to: directory.file("stalled"))
        #expect(await stalled.serializingURL().response.error != nil)
        #expect(clock.elapsed == .seconds(19))
        #expect(try contents(of: directory) == ["target"])
    }

    @Test("releasing the manager ends what is stalled, and the transport with it") func release() async throws {
        let mock = MockTransport(.stalled)
        var manager: SessionManager? = SessionManager(mock: mock)
        let error = Log<(any Error)?>()
        manager?.request("\(base)/").responseData { error.append($0.error) }
        try await mock.waitForRequests(1)
        manager = nil
        guard case CurlewError.sessionInvalidated?? = await error.first() else {
            Issue.record("not invalidated")
            return
        }
        let late = SessionManager(mock: mock)
        #expect(await late.request("\(base)/").serializingData().response.error != nil)
    }

    @Test("a WebSocket is served by a closure") func webSocket() async throws {
        let mock = MockTransport()
        let closed = Log<Bool>()
        mock.onStream("chat.example.org:443") { connection in
            let socket = try await connection.acceptWebSocket()
            await socket.send("welcome to \(socket.target)")
            await socket.ping()
            while let message = try await socket.receive() { await socket.send(message) }
            closed.append(true)
        }
        let manager = SessionManager(mock: mock)
        let socket = manager.webSocket("wss://chat.example.org/room?n=1")
        var messages = socket.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("welcome to /room?n=1"))
        try await socket.send("hello")
        #expect(try await messages.next() == .text("hello"))
        let bytes = GeneratedBody().data(count: 70_000)
        try await socket.send(bytes)
        #expect(try await messages.next() == .binary(bytes))
        _ = try await socket.close()
        #expect(await closed.first() == true)
        await #expect(throws: (any Error).self) { try await manager.webSocket("wss://other.example.org/").open() }
    }

    @Test("a transfer takes as many calls after a thousand others as the first one") func recording() async throws {
        let depths = Inbox<Int>()
        let transport = ScriptedTransport(keepsExchanges: false) { _ in .response() }
        transport.onStart { _ in depths.put(Thread.callStackReturnAddresses.count) }
        let observer = NoObserver()
        let request = TransferRequest(url: "https://api.example.org/")
        for id in 1...1_000 { transport.makeTransfer(request, id: id, observer: observer).start() }
        #expect(depths.count == 1_000 && Set(depths.all).count == 1)
        transport.shutDown()
    }
}

private final class NoObserver: TransferObserver {
    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction { .proceed }
    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }
    func transfer(_ id: Int, didSend count: Int64) {}
    func transfer(_ id: Int, didComplete completion: TransferCompletion) {}
}
