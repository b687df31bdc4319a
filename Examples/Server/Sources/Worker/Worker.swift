// SPDX-License-Identifier: Apache-2.0
import Curlew

// The guide «Curlew on the server» shows the code between the marks, here and in the other programs.

// snippet: token
struct Token: AuthenticationCredential, Decodable, Sendable {
    let value: String
    let expires: Date

    var requiresRefresh: Bool { expires.timeIntervalSinceNow < 60 }

    private enum CodingKeys: String, CodingKey {
        case value = "access_token"
        case lifetime = "expires_in"
    }

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        value = try fields.decode(String.self, forKey: .value)
        // In seconds from the response (RFC 6749, section 5.1).
        expires = Date(timeIntervalSinceNow: try fields.decode(Double.self, forKey: .lifetime))
    }
}

final class TokenAuthenticator: HeaderAuthenticator, AsyncAuthenticator {
    let url: String
    let tokens: SessionManager  // without the interceptor: a request for a token must not wait for a token

    init(url: String, tokens: SessionManager) {
        self.url = url
        self.tokens = tokens
    }

    func credential(replacing expired: Token?, for _: SessionManager) async throws -> Token {
        try await tokens.request(url, method: .post, options: RequestOptions(deadline: .seconds(5)))
            .validate().serializingDecodable(Token.self).value
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
// end

// snippet: worker
struct Worker {
    let url: String
    let manager: SessionManager

    init(url: String, configuration: SessionConfiguration = SessionConfiguration()) {
        self.url = url
        let authenticator = TokenAuthenticator(url: "\(url)/token", tokens: SessionManager(configuration: configuration))
        let interceptor = AuthenticationInterceptor(authenticator: authenticator)  // asks for the first token, too
        manager = SessionManager(configuration: configuration, interceptor: interceptor)
    }

    func result(of job: Int) async throws -> Int {
        // For all attempts together, with the delays between them and the wait for a token.
        let options = RequestOptions(deadline: .seconds(10), name: "GET /jobs/{id}")
        return try await manager.request("\(url)/jobs/\(job)", interceptor: RetryPolicy(), options: options)
            .validate().serializingDecodable(Int.self).value
    }
}
// end
