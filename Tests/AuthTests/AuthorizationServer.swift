// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport

/// An authorization server, and an API that accepts its tokens.
///
/// Refresh tokens are replaced with each use. What becomes of one that comes again is a server's kind.
final class AuthorizationServer: Sendable {
    enum Kind: Sendable, CaseIterable {
        /// All tokens of the sign-in are revoked (RFC 9700, section 4.14.2).
        case revokingFamily
        /// The token before the current one is accepted.
        case lenient
    }

    struct State {
        /// The forms sent to `/token`, with the fields of the request.
        var tokenRequests: [(form: [String: [String]], request: ServerRequest)] = []
        /// Access tokens that the API accepts.
        var valid: Set<String> = []
        var refreshToken = "r0"
        var earlierRefreshTokens: Set<String> = []
        var isRevoked = false
        var issued = 0
        /// The next responses of `/token`, in place of its own.
        var next: [@Sendable (ServerResponse) -> ServerResponse] = []
        var apiRequests = 0
        /// What waits at `/token`, if anything.
        var gate: Gate?
    }

    let state: Monitor<State>
    private let server: LoopbackServer

    /// - Parameters:
    ///   - kind: what becomes of a replaced refresh token.
    ///   - lifetime: that of access tokens in seconds.
    ///   - other: responds to other paths, and to tokens that are requested by other grants.
    init(
        _ kind: Kind = .revokingFamily, lifetime: Int = 3600,
        other: @escaping @Sendable (ServerRequest, [String: [String]]) throws -> ServerResponse? = { _, _ in nil }
    ) throws {
        let state = Monitor(State())
        self.state = state
        server = try LoopbackServer { request, connection in
            let form = Self.form(String(decoding: request.body, as: UTF8.self))
            if request.path == "/api" {
                let token = request.header("Authorization")?.split(separator: " ").last.map(String.init) ?? ""
                let isValid = state.update { state in
                    state.apiRequests += 1
                    return state.valid.contains(token)
                }
                return isValid ? .ok("data") : .status(401)
            }
            guard request.path == "/token" else { return try other(request, form) ?? .status(404) }
            if let gate = state.read({ $0.gate }) { connection.wait(until: gate) }
            state.update { $0.tokenRequests.append((form, request)) }
            let response =
                form["grant_type"] == ["refresh_token"]
                ? try Self.refresh(form["refresh_token"]?.first ?? "", kind, lifetime, state)
                : try other(request, form) ?? Self.tokens(lifetime, refreshToken: nil, state)
            let change = state.update { $0.next.isEmpty ? nil : $0.next.removeFirst() }
            return change?(response) ?? response
        }
    }

    func url(_ path: String = "") -> String { server.url(path) }
    var requests: [ServerRequest] { server.requests }
    func stop() { server.stop() }

    /// The forms that were sent to the token endpoint.
    var forms: [[String: [String]]] { state.read { $0.tokenRequests.map(\.form) } }

    /// Reads a form.
    static func form(_ text: String) -> [String: [String]] {
        var items: [String: [String]] = [:]
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1).map { String($0).removingPercentEncoding ?? "" }
            items[parts[0], default: []].append(parts.count > 1 ? parts[1] : "")
        }
        return items
    }

    static func error(_ code: String, status: Int = 400) throws -> ServerResponse {
        try .json(["error": code, "error_description": "because"], status: status)
    }

    private static func refresh(_ token: String, _ kind: Kind, _ lifetime: Int, _ state: Monitor<State>) throws -> ServerResponse {
        let isAccepted = state.update { state in
            let isOld = state.earlierRefreshTokens.contains(token)
            if isOld, kind == .revokingFamily {
                state.isRevoked = true
                state.valid = []
            }
            let isKnown = token == state.refreshToken || isOld
            guard isKnown, !state.isRevoked else { return false }
            state.earlierRefreshTokens = [token]
            state.refreshToken = "r\(state.issued + 1)"
            return true
        }
        guard isAccepted else { return try error("invalid_grant") }
        return try tokens(lifetime, refreshToken: state.read { $0.refreshToken }, state)
    }

    /// Issues an access token.
    static func tokens(_ lifetime: Int, refreshToken: String?, _ state: Monitor<State>) throws -> ServerResponse {
        struct Tokens: Encodable {
            let access_token: String
            let token_type = "bearer"
            let expires_in: Int
            let refresh_token: String?
        }
        let token = state.update { state in
            state.issued += 1
            state.valid.insert("a\(state.issued)")
            return "a\(state.issued)"
        }
        return try .json(Tokens(access_token: token, expires_in: lifetime, refresh_token: refreshToken))
    }
}
