// SPDX-License-Identifier: Apache-2.0
import Curlew
import ExampleServer
import Synchronization

struct Token: AuthenticationCredential, Decodable, Sendable {
    let value: String
    let expires: Date

    var requiresRefresh: Bool { expires.timeIntervalSinceNow < 60 }
}

/// Puts the token into header fields; gets the first one, and another one when it expires or the API rejects it.
final class TokenAuthenticator: HeaderAuthenticator, AsyncAuthenticator {
    let tokenURL: String
    /// Without the interceptor: a request for a token must not wait for a token.
    private let manager = SessionManager(configuration: .worker)

    init(tokenURL: String) {
        self.tokenURL = tokenURL
    }

    func credential(replacing expired: Token?, for _: SessionManager) async throws -> Token {
        try await manager.request(tokenURL, method: .post, options: RequestOptions(deadline: .seconds(5))).validate()
            .serializingDecodable(Token.self).value
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

extension SessionConfiguration {
    static var worker: SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        return configuration
    }
}

/// Works off jobs against an API whose tokens expire: each job has a deadline for all its attempts, and one refresh serves all jobs that
/// need one.
@main
enum Program {
    static func main() async throws {
        let api = try API()
        let authenticator = TokenAuthenticator(tokenURL: api.server.url("/token"))
        let manager = SessionManager(configuration: .worker)
        // For all requests of the session: without a first token, which the authenticator is asked for once.
        manager.interceptor = AuthenticationInterceptor(authenticator: authenticator)

        let done = try await withThrowingTaskGroup(of: Int.self) { group in
            for job in 1...20 {
                group.addTask {
                    let options = RequestOptions(deadline: .seconds(10), interceptor: RetryPolicy(), name: "GET /jobs/{id}")
                    return try await manager.request(api.server.url("/jobs/\(job)"), options: options).validate()
                        .serializingDecodable(Int.self).value
                }
            }
            var done = 0
            for try await job in group { done += job }
            return done
        }
        guard done == (1...20).reduce(0, +), api.counts.tokens == 2 else {
            throw TestError("\(done), \(api.counts.tokens) tokens")
        }
        print("20 jobs done with two tokens")
    }
}

/// An API that rejects the first token that it gave out, and is overloaded for a moment at each fifth job.
struct API {
    final class Counts: Sendable {
        private let state = Mutex((tokens: 0, refused: Set<String>()))

        /// How many tokens were given out.
        var tokens: Int { state.withLock { $0.tokens } }

        /// Returns the token's number.
        func addToken() -> Int {
            state.withLock { state in
                state.tokens += 1
                return state.tokens
            }
        }

        /// Returns whether the job was not refused before.
        func refuse(_ job: String) -> Bool { state.withLock { $0.refused.insert(job).inserted } }
    }

    let server: LoopbackServer
    let counts = Counts()

    init() throws {
        server = try LoopbackServer { [counts] request, _ in
            if request.path == "/token" {
                let number = counts.addToken()
                let expires = Date(timeIntervalSinceNow: 3600).timeIntervalSinceReferenceDate
                return ServerResponse(status: 200, body: .data(Data(#"{"value": "\#(number)", "expires": \#(expires)}"#.utf8)))
            }
            guard request.header("Authorization") == "Bearer 2" else { return .status(401) }
            let job = request.path.components(separatedBy: "/").last ?? ""
            if job.hasSuffix("5"), counts.refuse(job) {
                return ServerResponse(status: 503, headers: [ServerField("Retry-After", "0")])
            }
            return ServerResponse(status: 200, body: .data(Data(job.utf8)))
        }
    }
}
