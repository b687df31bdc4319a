// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What a task has answered to challenges, and how that was taken: decides about repetition, and gives the credentials for each exchange.
///
/// Credentials are added to what goes out and never kept in the request, so that no redirect takes them elsewhere.
struct TaskAuthentication: Sendable {
    /// How the credentials travel.
    private enum Answer {
        case basic(String)
        case digest(DigestSession)
        case connection(ConnectionAuthentication)
    }

    /// How often a task answers challenges: a server that asks with another realm each time would go on for ever.
    static let limit = 10

    let origin: Origin
    let challenge: AnswerableChallenge
    let credential: URLCredential
    /// Whether the server has not said yet what it thinks of the credential.
    private var isPending = true
    /// How often credentials for this realm were refused.
    private(set) var failures: Int
    private let rounds: Int
    /// Whether the server forgot the nonce of the answer before.
    private var isRenewed: Bool
    private var answer: Answer

    /// The answer to a challenge; `nil` when the credential is none for it.
    ///
    /// - Parameters:
    ///   - previous: what the task has answered before.
    ///   - renewing: whether the server forgot the nonce, and nothing but that was wrong with the last answer.
    init?(
        _ challenge: AnswerableChallenge, of origin: Origin, with credential: URLCredential, after previous: TaskAuthentication?,
        renewing: Bool = false
    ) {
        guard let answer = Self.answer(challenge, credential) else { return nil }
        self.answer = answer
        self.origin = origin
        self.challenge = challenge
        self.credential = credential
        failures = previous?.failures(for: challenge, of: origin) ?? 0
        rounds = (previous?.rounds ?? 0) + 1
        isRenewed = renewing
    }

    private static func answer(_ challenge: AnswerableChallenge, _ credential: URLCredential) -> Answer? {
        let user = credential.user ?? ""
        let password = credential.password ?? ""
        switch challenge.scheme {
        case .basic: return BasicAuthentication.authorization(user: user, password: password).map { .basic($0) }
        case .digest(let challenge): return DigestSession(challenge, user: user, password: password).map { .digest($0) }
        case .ntlm where !user.isEmpty: return .connection(.ntlm(user: user, password: password))
        // Kerberos knows who the process is, and asks nobody for a name: one that was given would not count.
        case .negotiate where user.isEmpty: return .connection(.negotiate)
        case .ntlm, .negotiate: return nil
        }
    }

    // MARK: What the server says

    /// Whether the server refused nothing but the nonce, once: the same credential counts with a new one.
    func mayRenew(_ challenge: AnswerableChallenge, of origin: Origin) -> Bool {
        !isRenewed && challenge.isStale && isSameSpace(challenge, origin) && rounds < Self.limit
    }

    /// How often credentials for a challenge's realm have been refused by it; a challenge behind a pending answer is one more refusal.
    func failures(for challenge: AnswerableChallenge, of origin: Origin) -> Int {
        isSameSpace(challenge, origin) ? failures + (isPending ? 1 : 0) : 0
    }

    /// Whether another challenge may be answered at all.
    var mayGoOn: Bool { rounds < Self.limit }

    private func isSameSpace(_ challenge: AnswerableChallenge, _ origin: Origin) -> Bool {
        self.origin == origin && self.challenge.realm == challenge.realm
    }

    /// The server has answered with something else than a challenge; whether it thereby took the credential for the first time.
    mutating func accepted(_ head: ResponseHead, from url: String) -> Bool {
        guard Origin(url) == origin else { return false }
        if case .digest(var session) = answer, let next = nextNonce(head) {
            session.take(nextNonce: next)
            answer = .digest(session)
        }
        defer { (isPending, isRenewed, failures) = (false, false, 0) }
        return isPending
    }

    /// What the server wants to see next time (RFC 7616, section 3.5).
    private func nextNonce(_ head: ResponseHead) -> String? {
        guard head.contains("authentication-info"), let field = head.value(for: "Authentication-Info") else { return nil }
        // The field is a list of parameters, as behind a scheme.
        return AuthenticationChallenge.challenges(in: ["Info \(field)"]).first?.parameters["nextnonce"]
    }

    // MARK: What goes out

    /// The request with the credentials, if it goes where they are for.
    mutating func authorize(_ request: TransferRequest) -> TransferRequest {
        guard Origin(request.url) == origin else { return request }
        var result = request
        switch answer {
        case .basic(let value): result.headers["Authorization"] = value
        case .digest(var session):
            result.headers["Authorization"] = session.authorization(method: request.method.rawValue, target: request.target)
            answer = .digest(session)
        case .connection(let authentication):
            result.headers.remove(name: "Authorization")
            result.authentication = authentication
        }
        // libcurl would take what stands there for the credentials to use.
        result.url = result.url.droppingUserInfo
        return result
    }
}

extension TransferRequest {
    /// The path with the query, as libcurl sends it (RFC 9112, section 3.2.1).
    var target: String {
        guard let authority else { return "/" }
        let rest = url[authority.endIndex...].prefix { $0 != "#" }
        return rest.hasPrefix("/") ? String(rest) : "/" + rest
    }

    /// The URL's authority (RFC 3986, section 3.2).
    private var authority: Substring? {
        guard let start = url.firstRange(of: "://")?.upperBound else { return nil }
        return url[start...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    }

    /// Name and password of the URL (RFC 3986, section 3.2.1), which libcurl sends at once as Basic, asked or not.
    var urlCredential: URLCredential? {
        guard let parts = URLComponents(string: url), let user = parts.user else { return nil }
        return URLCredential(user: user, password: parts.password ?? "", persistence: .none)
    }
}
