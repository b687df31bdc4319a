// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewCore
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct AsyncAuthenticatorTests {
    private enum Tenant {
        @TaskLocal static var current = "none"
    }

    private struct Token: AuthenticationCredential {
        let value: String

        var requiresRefresh: Bool { false }
    }

    /// Returns numbered tokens, once the gate is open.
    private final class TokenCounter: HeaderAuthenticator, AsyncAuthenticator {
        let gate = Gate()
        let error: TestError?
        /// The token to replace and the caller's tenant, for each call.
        let calls = Log<String>()
        /// Where tokens are asked for; `nil` for nowhere.
        let tokenURL: String?
        private let tokens = makeManager()

        init(error: TestError? = nil, tokenURL: String? = nil) {
            self.error = error
            self.tokenURL = tokenURL
        }

        func credential(replacing expired: Token?, for manager: SessionManager) async throws -> Token {
            calls.append("\(expired?.value ?? "first") for \(Tenant.current)")
            await gate.wait()
            if let error { throw error }
            if let tokenURL { _ = try await tokens.request(tokenURL).validate().serializingString().value }
            return Token(value: "\(calls.count)")
        }

        func apply(_ token: Token, to headers: inout HTTPHeaders) {
            headers["Authorization"] = "Bearer \(token.value)"
        }

        func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool {
            response.statusCode == 401
        }

        func isRequest(_ urlRequest: URLRequest, authenticatedWith token: Token) -> Bool {
            urlRequest.value(forHTTPHeaderField: "Authorization") == "Bearer \(token.value)"
        }
    }

    /// Answers with the credential of a request; rejects the first token at `/second`.
    private static func server() throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            let field = request.header("Authorization") ?? "none"
            return request.path == "/second" && field == "Bearer 1" ? .status(401) : .ok(field)
        }
    }

    private static func manager(_ authenticator: TokenCounter) -> SessionManager {
        let manager = makeManager()
        manager.interceptor = AuthenticationInterceptor(authenticator: authenticator)
        return manager
    }

    @Test("requests without a credential wait for the first one, which is asked for once")
    func firstCredential() async throws {
        let server = try Self.server()
        let authenticator = TokenCounter()
        let manager = Self.manager(authenticator)
        let tasks = (0..<100).map { _ in manager.request(server.url("/")).validate().serializingString() }
        authenticator.gate.open()
        for task in tasks { #expect(try await task.value == "Bearer 1") }
        #expect(authenticator.calls.elements == ["first for none"])
        #expect(server.requestCount == 100)
    }

    @Test("the authenticator has the context of the request that needs a credential first, at a refresh too")
    func context() async throws {
        let server = try Self.server()
        let authenticator = TokenCounter()
        authenticator.gate.open()
        let manager = Self.manager(authenticator)
        for (tenant, path) in [("blue", "/"), ("green", "/second")] {
            let request = Tenant.$current.withValue(tenant) { manager.request(server.url(path)).validate() }
            #expect(try await request.serializingString().value == (path == "/" ? "Bearer 1" : "Bearer 2"))
        }
        #expect(authenticator.calls.elements == ["first for blue", "1 for green"])
    }

    private struct TenantCarrier: ContextCarrier {
        func capture() -> String? { Tenant.current }
        func restore<Value>(_ tenant: String, around body: () throws -> Value) rethrows -> Value {
            try Tenant.$current.withValue(tenant, operation: body)
        }
    }

    /// An authenticator in closure form.
    private final class ClosureAuthenticator: HeaderAuthenticator {
        let tenants = Log<String>()

        func credential(for manager: SessionManager, completion: @escaping @Sendable (Result<Token, any Error>) -> Void) {
            tenants.append(Tenant.current)
            completion(.success(Token(value: "1")))
        }

        func refresh(
            _ credential: Token, for manager: SessionManager, completion: @escaping @Sendable (Result<Token, any Error>) -> Void
        ) {
            completion(.failure(TestError("no refresh")))
        }

        func apply(_ token: Token, to headers: inout HTTPHeaders) {
            headers["Authorization"] = "Bearer \(token.value)"
        }

        func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool {
            false
        }

        func isRequest(_ urlRequest: URLRequest, authenticatedWith token: Token) -> Bool { true }
    }

    @Test(
        "carriers restore the context around an authenticator in closure form, also beside asynchronous adapters", arguments: [true, false])
    func closureForm(_ isBesideAsyncAdapter: Bool) async throws {
        let server = try Self.server()
        let authenticator = ClosureAuthenticator()
        let manager = makeManager { $0.contextCarriers = [TenantCarrier()] }
        let yielding = CurlewCore.Adapter { request async in
            await Task.yield()
            return request
        }
        let interceptor = AuthenticationInterceptor(authenticator: authenticator)
        manager.interceptor = Interceptor(adapters: isBesideAsyncAdapter ? [yielding, interceptor] : [interceptor])
        let request = Tenant.$current.withValue("blue") { manager.request(server.url("/")) }
        #expect(try await request.serializingString().value == "Bearer 1")
        #expect(authenticator.tenants.elements == ["blue"])
    }

    @Test("a deadline of one of those who wait ends its own wait only, at a refresh too", arguments: [nil, Token(value: "0")])
    private func deadline(_ expired: Token?) async throws {
        let server = try LoopbackServer { request, _ in
            request.header("Authorization") == "Bearer 0" ? .status(401) : .ok(request.header("Authorization") ?? "none")
        }
        let authenticator = TokenCounter(tokenURL: server.url("/token"))
        let manager = makeManager()
        manager.interceptor = AuthenticationInterceptor(authenticator: authenticator, credential: expired)
        let request = { (options: RequestOptions?) in manager.request(server.url("/"), options: options).validate().serializingString() }
        let first = await withDeadline(.seconds(1)) { request(nil) }
        // It has begun the refresh, and is gone before that asks for the token.
        #expect(await eventually { authenticator.calls.count == 1 })
        let second = request(RequestOptions(deadline: .milliseconds(50)))
        let others = (0..<10).map { _ in request(nil) }
        for late in [first, second] {
            let error = await late.response.error as? CurlewError
            guard case .transferFailed(let failure)? = error else { return #expect(Bool(false), "\(String(describing: error))") }
            #expect(failure.kind == .deadline)
        }
        authenticator.gate.open()
        for other in others { #expect(try await other.value == "Bearer 1") }
        #expect(authenticator.calls.count == 1)
    }

    @Test("what the authenticator throws fails all requests that wait, and a cancelled one does not end the refresh")
    func failure() async throws {
        let server = try Self.server()
        let authenticator = TokenCounter(error: TestError("no token"))
        let manager = Self.manager(authenticator)
        let requests = (0..<5).map { _ in manager.request(server.url("/")) }
        requests[0].cancel()
        #expect(await requests[0].serializingData().response.error?.isCancelled == true)
        authenticator.gate.open()
        for request in requests.dropFirst() {
            await #expect(throws: TestError("no token")) { try await request.serializingData().value }
        }
        #expect(authenticator.calls.count == 1)
        #expect(server.requestCount == 0)
    }
}
