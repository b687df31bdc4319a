// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct AuthenticationInterceptorTests {
    private struct Token: AuthenticationCredential, Equatable {
        let name: String
        var requiresRefresh = false
    }

    /// Bearer tokens; the test completes the refreshes.
    private final class Tokens: Authenticator {
        typealias Completion = @Sendable (Result<Token, any Error>) -> Void

        let refreshes = Inbox<(Token, Completion)>()
        let asked = Inbox<Void>()
        let answer: Lock<Result<Token, any Error>?>

        init(_ answer: Result<Token, any Error>? = nil) { self.answer = Lock(answer) }

        func apply(_ credential: Token, to urlRequest: inout URLRequest) {
            urlRequest.setValue("Bearer \(credential.name)", forHTTPHeaderField: "Authorization")
        }

        func refresh(_ credential: Token, for manager: SessionManager, completion: @escaping Completion) {
            refreshes.put((credential, completion))
            if let answer = answer.withLock({ $0 }) { completion(answer) }
        }

        func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool {
            asked.put(())
            return response.statusCode == 401
        }

        func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Token) -> Bool {
            urlRequest.value(forHTTPHeaderField: "Authorization") == "Bearer \(credential.name)"
        }
    }

    private typealias Interceptor = AuthenticationInterceptor<Tokens>

    /// Accepts one token only.
    private static func server(accepting token: String) -> MockTransport {
        MockTransport { request in request.headers["Authorization"] == "Bearer \(token)" ? .response(200, [:], "in") : .response(401) }
    }

    private static func manager(_ mock: MockTransport, _ interceptor: Interceptor) -> SessionManager {
        let manager = SessionManager(mock: mock)
        manager.adapter = interceptor
        manager.retrier = interceptor
        return manager
    }

    @Test("the credential is applied to each request")
    func applies() async {
        let mock = Self.server(accepting: "a")
        let tokens = Tokens()
        defer { tokens.refreshes.empty() }
        let manager = Self.manager(mock, Interceptor(authenticator: tokens, credential: Token(name: "a")))
        #expect(await manager.request("http://mock/").validate().serializingString().response.value == "in")
        #expect(tokens.refreshes.all.isEmpty)
        #expect(mock.started.count == 1)
    }

    @Test("a rejected credential is refreshed, and the request retried with the new one")
    func refreshes() async {
        let mock = Self.server(accepting: "b")
        let tokens = Tokens(.success(Token(name: "b")))
        defer { tokens.refreshes.empty() }
        let interceptor = Interceptor(authenticator: tokens, credential: Token(name: "a"))
        let manager = Self.manager(mock, interceptor)
        let request = manager.request("http://mock/").validate()
        #expect(await request.serializingString().response.value == "in")
        #expect(request.retryCount == 1)
        #expect(interceptor.credential == Token(name: "b"))
        #expect(tokens.refreshes.all.map(\.0) == [Token(name: "a")])
    }

    @Test("other failures are not retried")
    func otherFailures() async {
        let tokens = Tokens(.success(Token(name: "b")))
        defer { tokens.refreshes.empty() }
        for answer in [[MockTransport.Step].response(403), .failure()] {
            let mock = MockTransport { _ in answer }
            let manager = Self.manager(mock, Interceptor(authenticator: tokens, credential: Token(name: "a")))
            #expect(await manager.request("http://mock/").validate().serializingData().response.error != nil)
            #expect(mock.started.count == 1)
        }
        #expect(tokens.refreshes.all.isEmpty)
    }

    @Test("requests that fail together share one refresh")
    func singleFlight() async {
        let mock = MockTransport()
        let tokens = Tokens()
        defer { tokens.refreshes.empty() }
        let manager = Self.manager(mock, Interceptor(authenticator: tokens, credential: Token(name: "a")))
        let values = Inbox<String?>()
        for _ in 0..<20 { manager.request("http://mock/").validate().responseString { values.put($0.value) } }
        for exchange in await mock.started.first(20) { exchange.respond(401) }
        let (_, completion) = await tokens.refreshes[0]
        _ = await tokens.asked.first(20)
        manager.settle()
        completion(.success(Token(name: "b")))
        for exchange in await mock.started.first(40).dropFirst(20) {
            #expect(exchange.request.headers["Authorization"] == "Bearer b")
            exchange.respond(200, [:], "in")
        }
        #expect(await values.first(20) == [String?](repeating: "in", count: 20))
        #expect(tokens.refreshes.count == 1)
    }

    @Test("a request that failed with an older credential is retried without a refresh")
    func olderCredential() async {
        let mock = MockTransport()
        let tokens = Tokens()
        defer { tokens.refreshes.empty() }
        let interceptor = Interceptor(authenticator: tokens, credential: Token(name: "a"))
        let manager = Self.manager(mock, interceptor)
        async let value = manager.request("http://mock/").validate().serializingString().response.value
        let first = await mock.started[0]
        interceptor.credential = Token(name: "b")
        first.respond(401)
        let second = await mock.started[1]
        #expect(second.request.headers["Authorization"] == "Bearer b")
        second.respond(200, [:], "in")
        #expect(await value == "in")
        #expect(tokens.refreshes.all.isEmpty)
    }

    @Test("a failed refresh fails all waiting requests with its error")
    func failedRefresh() async {
        let mock = MockTransport()
        let tokens = Tokens()
        defer { tokens.refreshes.empty() }
        let manager = Self.manager(mock, Interceptor(authenticator: tokens, credential: Token(name: "a")))
        let errors = Inbox<UserError?>()
        for _ in 0..<5 { manager.request("http://mock/").validate().responseData { errors.put($0.error as? UserError) } }
        for exchange in await mock.started.first(5) { exchange.respond(401) }
        let (_, completion) = await tokens.refreshes[0]
        _ = await tokens.asked.first(5)
        manager.settle()
        completion(.failure(UserError(number: 7)))
        #expect(await errors.first(5) == [UserError?](repeating: UserError(number: 7), count: 5))
        #expect(mock.started.count == 5)
        #expect(tokens.refreshes.count == 1)
    }

    @Test("requests wait for a required refresh, which does not count as a retry", arguments: [true, false])
    func expired(_ asOwnInterceptor: Bool) async {
        let mock = Self.server(accepting: "b")
        let tokens = Tokens()
        defer { tokens.refreshes.empty() }
        let interceptor = Interceptor(authenticator: tokens, credential: Token(name: "a", requiresRefresh: true))
        let manager = asOwnInterceptor ? SessionManager(mock: mock) : Self.manager(mock, interceptor)
        let requests = (0..<5).map { _ in manager.request("http://mock/", interceptor: asOwnInterceptor ? interceptor : nil).validate() }
        let values = Inbox<String?>()
        for request in requests { request.responseString { values.put($0.value) } }
        let (_, completion) = await tokens.refreshes[0]
        manager.settle()
        #expect(mock.started.count == 0)
        completion(.success(Token(name: "b")))
        #expect(await values.first(5) == [String?](repeating: "in", count: 5))
        #expect(tokens.refreshes.count == 1)
        #expect(mock.started.count == 5)
        #expect(requests.map(\.retryCount) == [0, 0, 0, 0, 0])
    }

    @Test("a request that is not started at once does not start after a refresh", arguments: [true, false])
    func startsWhenTold(_ early: Bool) async {
        let mock = Self.server(accepting: "b")
        let tokens = Tokens()
        defer { tokens.refreshes.empty() }
        let manager = SessionManager(mock: mock)
        manager.startRequestsImmediately = false
        manager.adapter = Interceptor(authenticator: tokens, credential: Token(name: "a", requiresRefresh: true))
        let request = manager.request("http://mock/").validate()
        async let value = request.serializingString().response.value
        let (_, completion) = await tokens.refreshes[0]
        #expect(request.delegate.error == nil)
        if early { request.resume() }
        completion(.success(Token(name: "b")))
        #expect(await eventually { request.task != nil })
        manager.settle()
        #expect(mock.started.count == (early ? 1 : 0))
        request.resume()
        #expect(await value == "in")
        #expect(mock.started.count == 1)
    }

    @Test("a request created during a refresh waits for it")
    func duringRefresh() async {
        let mock = Self.server(accepting: "b")
        let tokens = Tokens()
        defer { tokens.refreshes.empty() }
        let manager = Self.manager(mock, Interceptor(authenticator: tokens, credential: Token(name: "a")))
        async let first = manager.request("http://mock/").validate().serializingString().response.value
        let (_, completion) = await tokens.refreshes[0]
        let request = manager.request("http://mock/").validate()
        #expect(request.task == nil)
        async let second = request.serializingString().response.value
        manager.settle()
        completion(.success(Token(name: "b")))
        #expect(await first == "in")
        #expect(await second == "in")
        #expect(mock.started.count == 3)
    }

    @Test("retriers are called for a failed refresh, and the waiting is not observable")
    func failedFirstRefresh() async {
        let mock = Self.server(accepting: "b")
        let tokens = Tokens(.failure(UserError(number: 1)))
        defer { tokens.refreshes.empty() }
        let asked = Inbox<any Error>()
        let manager = SessionManager(mock: mock)
        let interceptor = Interceptor(authenticator: tokens, credential: Token(name: "a", requiresRefresh: true))
        manager.retrier = Retrying { _, error, completion in
            asked.put(error)
            tokens.answer.withLock { $0 = .success(Token(name: "b")) }
            completion(true, 0)
        }
        let request = manager.request("http://mock/", interceptor: interceptor).validate()
        #expect(await request.serializingString().response.value == "in")
        #expect(asked.all.map { $0 as? UserError } == [UserError(number: 1)])
        #expect(request.retryCount == 1)
        #expect(tokens.refreshes.count == 2)
    }

    @Test("without a retrier a failed refresh fails the request with its error")
    func failedWithoutRetrier() async {
        let tokens = Tokens(.failure(UserError(number: 2)))
        defer { tokens.refreshes.empty() }
        let manager = SessionManager(mock: .answering(200))
        manager.adapter = Interceptor(authenticator: tokens, credential: Token(name: "a", requiresRefresh: true))
        let response = await manager.request("http://mock/").serializingData().response
        #expect(response.error as? UserError == UserError(number: 2))
        #expect(response.request?.url?.absoluteString == "http://mock/")
    }

    @Test("requests without a credential fail with missingCredential, before and after sending")
    func missingCredential() async {
        let mock = MockTransport()
        let interceptor = Interceptor(authenticator: Tokens())
        let manager = Self.manager(mock, interceptor)
        let unsent = await manager.request("http://mock/").serializingData().response.error
        #expect(unsent as? AuthenticationError == .missingCredential)
        interceptor.credential = Token(name: "a")
        async let error = manager.request("http://mock/").validate().serializingData().response.error
        let exchange = await mock.started[0]
        interceptor.credential = nil
        exchange.respond(401)
        #expect(await error as? AuthenticationError == .missingCredential)
    }

    @Test("the refresh window limits refreshes")
    func excessiveRefresh() async {
        let clock = Lock(0.0)
        let mock = MockTransport.answering(401)
        let tokens = Tokens(.success(Token(name: "a")))
        defer { tokens.refreshes.empty() }
        let interceptor = Interceptor(
            authenticator: tokens, credential: Token(name: "a"), refreshWindow: .init(interval: 30, maximumAttempts: 3)
        ) { clock.withLock { $0 } }
        let manager = Self.manager(mock, interceptor)
        let error = await manager.request("http://mock/").validate().serializingData().response.error
        #expect(error as? AuthenticationError == .excessiveRefresh)
        #expect(tokens.refreshes.count == 3)
        #expect(mock.started.count == 4)
        clock.withLock { $0 = 31 }
        _ = await manager.request("http://mock/").validate().serializingData().response
        #expect(tokens.refreshes.count == 6)
    }

    @Test("a credential set during a refresh replaces its result; late and repeated completions are ignored")
    func setDuringRefresh() async {
        let mock = Self.server(accepting: "new")
        let tokens = Tokens()
        defer { tokens.refreshes.empty() }
        let interceptor = Interceptor(authenticator: tokens, credential: Token(name: "a"))
        let manager = Self.manager(mock, interceptor)
        async let value = manager.request("http://mock/").validate().serializingString().response.value
        let (_, completion) = await tokens.refreshes[0]
        interceptor.credential = Token(name: "new")
        #expect(await value == "in")
        completion(.success(Token(name: "late")))
        completion(.failure(UserError()))
        #expect(interceptor.credential == Token(name: "new"))
    }

    @Test("a request waiting for a credential can be cancelled, and fails with its session", arguments: [true, false])
    func endsWhileWaiting(_ cancels: Bool) async {
        let tokens = Tokens()
        defer { tokens.refreshes.empty() }
        let manager = SessionManager(mock: .answering(200))
        manager.adapter = Interceptor(authenticator: tokens, credential: Token(name: "a", requiresRefresh: true))
        let request = manager.request("http://mock/")
        async let error = request.serializingData().response.error
        let (_, completion) = await tokens.refreshes[0]
        if cancels { request.cancel() } else { manager.invalidateAndCancel() }
        #expect(cancels ? isCancelled(await error) : isInvalidated(await error))
        completion(.success(Token(name: "b")))
        manager.settle()
        #expect(request.task == nil)
    }

    @Test("a request cancelled before it waits fails as cancelled")
    func cancelledBefore() async {
        let tokens = Tokens()
        defer { tokens.refreshes.empty() }
        let manager = SessionManager(mock: .answering(200))
        manager.adapter = Interceptor(authenticator: tokens, credential: Token(name: "a", requiresRefresh: true))
        manager.session.queue.suspend()
        let request = manager.request("http://mock/")
        request.cancel()
        manager.session.queue.resume()
        #expect(isCancelled(await request.serializingData().response.error))
        #expect(tokens.refreshes.all.isEmpty)
    }
}
