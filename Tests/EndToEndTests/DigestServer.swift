// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import Testing

/// A server that authenticates "user" with "password" by Digest (RFC 7616), and checks everything a client could get wrong.
final class DigestServer: Sendable {
    /// The server's challenge and behavior.
    struct Behavior: Sendable, CustomTestStringConvertible {
        var algorithm: String? = "MD5"
        var qop: String? = "auth"
        /// The number of requests for which a nonce is valid.
        var uses = 100
        var hashesUser = false
        var user = "user"
        var realm = #"loop, "back""#

        var testDescription: String { "\(algorithm ?? "none") \(qop ?? "none")" }
    }

    private struct State {
        var nonces: [String: Int] = [:]
        var last = 0
        var bodies: [Data] = []
    }

    let server: LoopbackServer
    private let state: Lock<State>

    init(_ behavior: Behavior = Behavior(), answer: @escaping @Sendable (ServerRequest) -> ServerResponse = { _ in .ok("welcome") }) throws
    {
        let state = Lock(State())
        self.state = state
        server = try LoopbackServer { request, _ in
            switch Self.verify(request, behavior, state) {
            case .welcome: return answer(request)
            case .refused(let isStale): return Self.challenge(behavior, state, isStale: isStale)
            case .wrong(let reason): return ServerResponse(status: 400, body: .data(Data(reason.utf8)))
            }
        }
    }

    func url(_ path: String) -> String { server.url(path) }

    private enum Verification {
        case welcome
        case refused(isStale: Bool)
        /// Credentials that no correct client sends.
        case wrong(String)
    }

    private static func hash(_ text: String, _ behavior: Behavior) -> String {
        (behavior.algorithm ?? "MD5").hasPrefix("SHA") ? SHA256.digest(of: text.utf8).hexDigits : MD5.digest(of: text.utf8).hexDigits
    }

    private static func challenge(_ behavior: Behavior, _ state: Lock<State>, isStale: Bool) -> ServerResponse {
        let nonce = state.withLock { state in
            state.last += 1
            state.nonces["nonce\(state.last)"] = 0
            return "nonce\(state.last)"
        }
        var fields = ["realm=\"\(behavior.realm.replacing("\"", with: "\\\""))\"", "nonce=\"\(nonce)\"", "opaque=\"opaque\""]
        if let algorithm = behavior.algorithm { fields.append("algorithm=\(algorithm)") }
        if let qop = behavior.qop { fields.append("qop=\"\(qop)\"") }
        if isStale { fields.append("stale=true") }
        if behavior.hashesUser { fields.append("userhash=true") }
        return ServerResponse(
            status: 401, headers: [ServerField("WWW-Authenticate", "Digest " + fields.joined(separator: ", "))],
            body: .data(Data("who are you".utf8)))
    }

    private static func verify(_ request: ServerRequest, _ behavior: Behavior, _ state: Lock<State>) -> Verification {
        guard let header = request.header("Authorization") else { return .refused(isStale: false) }
        guard header.hasPrefix("Digest ") else { return .wrong("no digest") }
        let given = parameters(String(header.dropFirst(7)))
        guard given["realm"] == behavior.realm, given["opaque"] == "opaque" else { return .wrong("realm or opaque: \(header)") }
        // To a proxy the request has the absolute form, and the URI is that of the server (RFC 7616, section 3.4.6).
        guard let uri = given["uri"], uri == request.target || request.target.hasPrefix("http://") && request.target.hasSuffix(uri) else {
            return .wrong("\(given["uri"] ?? "no URI") instead of \(request.target)")
        }
        guard given["algorithm"] == behavior.algorithm else { return .wrong("algorithm: \(header)") }
        guard (given["qop"] != nil) == (behavior.qop != nil) else { return .wrong("qop: \(header)") }
        let nonce = given["nonce"] ?? ""
        guard let uses = state.withLock({ $0.nonces[nonce] }) else { return .wrong("a nonce of its own") }
        let count = "0000000" + String(uses + 1, radix: 16)
        if behavior.qop != nil, given["nc"] != String(count.suffix(8)) { return .wrong("nc: \(header)") }
        state.withLock { $0.nonces[nonce] = uses + 1 }
        guard uses < behavior.uses else { return .refused(isStale: true) }
        let user = behavior.hashesUser ? hash("\(behavior.user):\(behavior.realm)", behavior) : behavior.user
        guard given["username"] == user, given["response"] == response(to: given, request, behavior) else {
            return .refused(isStale: false)
        }
        return .welcome
    }

    private static func response(to given: [String: String], _ request: ServerRequest, _ behavior: Behavior) -> String {
        let nonce = given["nonce"] ?? ""
        let clientNonce = given["cnonce"] ?? ""
        var secret = hash("\(behavior.user):\(behavior.realm):password", behavior)
        if behavior.algorithm?.hasSuffix("sess") == true { secret = hash("\(secret):\(nonce):\(clientNonce)", behavior) }
        let middle = behavior.qop == nil ? "" : "\(given["nc"] ?? ""):\(clientNonce):auth:"
        return hash("\(secret):\(nonce):\(middle)\(hash("\(request.method):\(given["uri"] ?? "")", behavior))", behavior)
    }

    /// Parses names and values of a parameter list, in which a quoted comma is not a separator.
    private static func parameters(_ text: String) -> [String: String] {
        var result: [String: String] = [:]
        var rest = text[...]
        while let equals = rest.firstIndex(of: "=") {
            let name = rest[..<equals].trimmingCharacters(in: [" ", ","])
            rest = rest[rest.index(after: equals)...]
            var value = ""
            if rest.first == "\"" {
                rest = rest.dropFirst()
                while let character = rest.popFirst(), character != "\"" {
                    value.append(character == "\\" ? rest.popFirst() ?? "\\" : character)
                }
            } else {
                value = String(rest.prefix { $0 != "," })
                rest = rest.drop { $0 != "," }
            }
            result[name] = value
        }
        return result
    }
}
