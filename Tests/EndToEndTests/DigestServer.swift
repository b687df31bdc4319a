// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import Testing

/// A server that knows "user" with "password" by Digest (RFC 7616), and checks everything that a client may do wrong there.
final class DigestServer: Sendable {
    /// What the server asks for, and how it behaves.
    struct Manner: Sendable, CustomTestStringConvertible {
        var algorithm: String? = "MD5"
        var qop: String? = "auth"
        /// For how many requests a nonce is good.
        var uses = 100
        var hashesUser = false
        var user = "user"

        var testDescription: String { "\(algorithm ?? "none") \(qop ?? "none")" }
    }

    private struct State {
        var nonces: [String: Int] = [:]
        var last = 0
        var bodies: [Data] = []
    }

    let server: LoopbackServer
    private let state: Lock<State>

    init(_ manner: Manner = Manner(), answer: @escaping @Sendable (ServerRequest) -> ServerResponse = { _ in .ok("welcome") }) throws {
        let state = Lock(State())
        self.state = state
        server = try LoopbackServer { request, _ in
            switch Self.judge(request, manner, state) {
            case .welcome: return answer(request)
            case .refused(let isStale): return Self.challenge(manner, state, isStale: isStale)
            case .wrong(let reason): return ServerResponse(status: 400, body: .data(Data(reason.utf8)))
            }
        }
    }

    func url(_ path: String) -> String { server.url(path) }

    private enum Judgement {
        case welcome
        case refused(isStale: Bool)
        /// Something that no client may send.
        case wrong(String)
    }

    private static func hash(_ text: String, _ manner: Manner) -> String {
        (manner.algorithm ?? "MD5").hasPrefix("SHA") ? SHA256.digest(of: text.utf8).hexDigits : MD5.digest(of: text.utf8).hexDigits
    }

    private static func challenge(_ manner: Manner, _ state: Lock<State>, isStale: Bool) -> ServerResponse {
        let nonce = state.withLock { state in
            state.last += 1
            state.nonces["nonce\(state.last)"] = 0
            return "nonce\(state.last)"
        }
        var fields = ["realm=\"loop, \\\"back\\\"\"", "nonce=\"\(nonce)\"", "opaque=\"opaque\""]
        if let algorithm = manner.algorithm { fields.append("algorithm=\(algorithm)") }
        if let qop = manner.qop { fields.append("qop=\"\(qop)\"") }
        if isStale { fields.append("stale=true") }
        if manner.hashesUser { fields.append("userhash=true") }
        return ServerResponse(
            status: 401, headers: [ServerField("WWW-Authenticate", "Digest " + fields.joined(separator: ", "))],
            body: .data(Data("who are you".utf8)))
    }

    private static func judge(_ request: ServerRequest, _ manner: Manner, _ state: Lock<State>) -> Judgement {
        guard let header = request.header("Authorization") else { return .refused(isStale: false) }
        guard header.hasPrefix("Digest ") else { return .wrong("no digest") }
        let given = parameters(String(header.dropFirst(7)))
        guard given["realm"] == #"loop, "back""#, given["opaque"] == "opaque" else { return .wrong("realm or opaque: \(header)") }
        guard given["uri"] == request.target else { return .wrong("\(given["uri"] ?? "no URI") instead of \(request.target)") }
        guard given["algorithm"] == manner.algorithm else { return .wrong("algorithm: \(header)") }
        guard (given["qop"] != nil) == (manner.qop != nil) else { return .wrong("qop: \(header)") }
        let nonce = given["nonce"] ?? ""
        guard let uses = state.withLock({ $0.nonces[nonce] }) else { return .wrong("a nonce of its own") }
        if manner.qop != nil, given["nc"] != "0000000" + String(uses + 1, radix: 16) { return .wrong("nc: \(header)") }
        state.withLock { $0.nonces[nonce] = uses + 1 }
        guard uses < manner.uses else { return .refused(isStale: true) }
        let user = manner.hashesUser ? hash("\(manner.user):loop, \"back\"", manner) : manner.user
        guard given["username"] == user, given["response"] == response(to: given, request, manner) else { return .refused(isStale: false) }
        return .welcome
    }

    private static func response(to given: [String: String], _ request: ServerRequest, _ manner: Manner) -> String {
        let nonce = given["nonce"] ?? ""
        let clientNonce = given["cnonce"] ?? ""
        var secret = hash("\(manner.user):loop, \"back\":password", manner)
        if manner.algorithm?.hasSuffix("sess") == true { secret = hash("\(secret):\(nonce):\(clientNonce)", manner) }
        let middle = manner.qop == nil ? "" : "\(given["nc"] ?? ""):\(clientNonce):auth:"
        return hash("\(secret):\(nonce):\(middle)\(hash("\(request.method):\(request.target)", manner))", manner)
    }

    /// Names and values of a list of parameters; a comma in quotes is none between them.
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
