// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct AuthenticationInterceptorTests {
    private struct Token: AuthenticationCredential {
        let value: String
        let requiresRefresh: Bool
    }

    /// Fetches tokens from the server's `/token`, through a manager without an interceptor.
    private final class TokenFetcher: Authenticator {
        private let url: String
        private let refreshes = Lock(0)

        init(_ url: String) { self.url = url }

        var refreshCount: Int { refreshes.withLock { $0 } }

        func apply(_ credential: Token, to urlRequest: inout URLRequest) {
            urlRequest.setValue("Bearer \(credential.value)", forHTTPHeaderField: "Authorization")
        }

        func refresh(
            _ credential: Token, for manager: SessionManager, completion: @escaping @Sendable (Result<Token, any Error>) -> Void
        ) {
            refreshes.withLock { $0 += 1 }
            manager.request(url, method: .post).validate().responseString { response in
                completion(response.result.map { Token(value: $0, requiresRefresh: false) })
            }
        }

        func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool {
            response.statusCode == 401
        }

        func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Token) -> Bool {
            urlRequest.value(forHTTPHeaderField: "Authorization") == "Bearer \(credential.value)"
        }
    }

    /// Issues the token "fresh" at `/token` and accepts requests that carry it; rejects all others, once `refused` is open if it is given.
    private static func server(refused: Gate? = nil) throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            if request.path == "/token" { return .ok("fresh") }
            guard request.header("Authorization") != "Bearer fresh" else { return .ok("in") }
            refused?.wait()
            return .status(401)
        }
    }

    @Test("a credential that Foundation drops is an error, also without a refresh")
    func credentialWithLineBreak() async throws {
        let server = try Self.server()
        let interceptor = AuthenticationInterceptor(
            authenticator: TokenFetcher(server.url("/token")), credential: Token(value: "fresh\n", requiresRefresh: false))
        let response = await makeManager().request(server.url("/"), interceptor: interceptor).serializingString().response
        #expect(response.error as? AuthenticationError == .credentialNotApplied)
        #expect(server.requestCount == 0)
    }

    @Test("a hundred requests rejected at the same time trigger one refresh, and all succeed")
    func oneRefreshAfterRejections() async throws {
        let refused = Gate()
        let server = try Self.server(refused: refused)
        let fetcher = TokenFetcher(server.url("/token"))
        let manager = makeManager { $0.maximumConnectionsPerHost = 128 }
        let interceptor = AuthenticationInterceptor(
            authenticator: fetcher, credential: Token(value: "stale", requiresRefresh: false))
        let values = Log<String?>()
        let requests = (0..<100).map { _ in manager.request(server.url("/"), interceptor: interceptor).validate() }
        for request in requests { request.responseString { values.append($0.value) } }
        #expect(await refused.arrivals(100))
        refused.open()
        await values.wait(for: 100)
        #expect(values.elements == [String?](repeating: "in", count: 100))
        #expect(fetcher.refreshCount == 1)
        #expect(requests.allSatisfy { $0.retryCount == 1 })
        #expect(server.requestCount == 201)
        #expect(interceptor.credential?.value == "fresh")
    }

    @Test("requests that were queued with an old credential are rejected and retried once, after one refresh")
    func queuedRequests() async throws {
        let server = try Self.server()
        let fetcher = TokenFetcher(server.url("/token"))
        let manager = makeManager { $0.maximumConnectionsPerHost = 1 }
        let interceptor = AuthenticationInterceptor(
            authenticator: fetcher, credential: Token(value: "stale", requiresRefresh: false))
        let requests = (0..<20).map { _ in manager.request(server.url("/"), interceptor: interceptor).validate() }
        let values = await withTaskGroup(of: String?.self) { group in
            for request in requests { group.addTask { try? await request.serializingString().value } }
            return await group.reduce(into: [String?]()) { $0.append($1) }
        }
        #expect(values == [String?](repeating: "in", count: 20))
        #expect(fetcher.refreshCount == 1)
        #expect(requests.allSatisfy { $0.retryCount == 1 })
        // Each once with the old credential, as it was adapted when it was created, and once with the new one.
        let sent = server.requests.filter { $0.path == "/" }.map { $0.header("Authorization") ?? "" }
        #expect(sent.filter { $0 == "Bearer stale" }.count == 20 && sent.filter { $0 == "Bearer fresh" }.count == 20)
        #expect(server.requestCount == 41)
        // A request created after the refresh is sent once.
        #expect(try await manager.request(server.url("/"), interceptor: interceptor).validate().serializingString().value == "in")
        #expect(server.requestCount == 42)
    }

    @Test("a hundred requests with an expired credential wait for one refresh and are sent once")
    func oneRefreshForExpiredCredential() async throws {
        let server = try Self.server()
        let fetcher = TokenFetcher(server.url("/token"))
        let interceptor = AuthenticationInterceptor(
            authenticator: fetcher, credential: Token(value: "stale", requiresRefresh: true))
        let manager = makeManager()
        let values = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    try? await manager.request(server.url("/"), interceptor: interceptor).validate().serializingString().value
                }
            }
            return await group.reduce(into: [String?]()) { $0.append($1) }
        }
        #expect(values == [String?](repeating: "in", count: 100))
        #expect(fetcher.refreshCount == 1)
        #expect(server.requestCount == 101)
    }

    @Test("downloads and uploads are authenticated as well")
    func downloadsAndUploads() async throws {
        let directory = try TemporaryDirectory()
        let server = try Self.server()
        let manager = makeManager()
        for make in [
            { (interceptor: any RequestInterceptor) async -> Data? in
                await manager.upload(Data("body".utf8), to: server.url("/"), interceptor: interceptor).validate().serializingData()
                    .response.value
            },
            { interceptor in
                await manager.download(server.url("/"), interceptor: interceptor, to: directory.file("file")).validate()
                    .serializingData().response.value
            },
        ] {
            let fetcher = TokenFetcher(server.url("/token"))
            let interceptor = AuthenticationInterceptor(
                authenticator: fetcher, credential: Token(value: "stale", requiresRefresh: false))
            #expect(await make(interceptor) == Data("in".utf8))
            #expect(fetcher.refreshCount == 1)
        }
    }

    @Test("a refresh that the server rejects fails the request with that error")
    func rejectedRefresh() async throws {
        let server = try LoopbackServer { request, _ in .status(request.path == "/token" ? 403 : 401) }
        let interceptor = AuthenticationInterceptor(
            authenticator: TokenFetcher(server.url("/token")), credential: Token(value: "stale", requiresRefresh: false))
        let manager = makeManager()
        let response = await manager.request(server.url("/"), interceptor: interceptor).validate().serializingData().response
        #expect(response.error?.unacceptableStatus == 403)
        #expect(server.requestCount == 2)
    }
}
