// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A task's answer to a challenge, and whether it was accepted: limits authenticated retries, and adds the credentials to each exchange.
///
/// Credentials are added to what is sent and are never part of the request that redirects are made of, so that no redirect sends them to
/// another origin. None are sent before the server has sent a challenge, to this task or an earlier one.
struct TaskAuthentication: Sendable {
    /// How the credentials are sent.
    private enum Answer {
        case basic(String)
        case digest(DigestNonce)
        case connection(ConnectionAuthentication)
    }

    /// The largest number of challenges that a task answers, because a server could send another realm each time.
    static let limit = 10

    let origin: HTTPOrigin
    let challenge: AnswerableChallenge
    let credential: URLCredential
    /// Whether the server has neither accepted nor refused the credential yet.
    private var isPending = true
    /// The number of refused credentials for this realm.
    private(set) var failures: Int
    private let rounds: Int
    /// Whether this answer repeats the last one with a new nonce, because the old one had expired.
    private var isRenewed: Bool
    private var answer: Answer
    /// The nonce of an earlier task, until the server has accepted it in this one.
    private(set) var reusedNonce: DigestNonce?

    /// Answers a challenge; `nil` if the credential does not fit its scheme.
    ///
    /// - Parameters:
    ///   - previous: the task's last answer.
    ///   - renewing: whether the nonce of the last answer has expired, and nothing else was wrong with it.
    init?(
        _ challenge: AnswerableChallenge, of origin: HTTPOrigin, with credential: URLCredential, after previous: TaskAuthentication?,
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

    /// Answers the challenge of an earlier task again. A refusal is none of the credential's, as the nonce may have expired.
    init(_ nonce: DigestNonce, of origin: HTTPOrigin, with credential: URLCredential) {
        answer = .digest(nonce)
        self.origin = origin
        challenge = nonce.challenge
        self.credential = credential
        (isPending, failures, rounds, isRenewed) = (false, 0, 0, false)
        reusedNonce = nonce
    }

    private static func answer(_ challenge: AnswerableChallenge, _ credential: URLCredential) -> Answer? {
        let user = credential.user ?? ""
        let password = credential.password ?? ""
        switch challenge.scheme {
        case .basic: return BasicAuthentication.authorization(user: user, password: password).map { .basic($0) }
        case .digest(let digest):
            return DigestSession(digest, user: user, password: password).map { .digest(DigestNonce($0, to: challenge)) }
        case .ntlm where !user.isEmpty: return .connection(.ntlm(user: user, password: password))
        // Kerberos uses the tickets of the process: a user name would be ignored.
        case .negotiate where user.isEmpty: return .connection(.negotiate)
        case .ntlm, .negotiate: return nil
        }
    }

    // MARK: Responses

    /// Whether to repeat the credential with a new nonce: once, if only the nonce was refused.
    func mayRenew(_ challenge: AnswerableChallenge, of origin: HTTPOrigin) -> Bool {
        !isRenewed && challenge.isStale && isSameSpace(challenge, origin) && rounds < Self.limit
    }

    /// The number of refused credentials for a challenge's realm, including this challenge if it responds to a pending answer.
    func failures(for challenge: AnswerableChallenge, of origin: HTTPOrigin) -> Int {
        isSameSpace(challenge, origin) ? failures + (isPending ? 1 : 0) : 0
    }

    /// Whether another challenge may be answered: not beyond ``limit``.
    var mayAnswer: Bool { rounds < Self.limit }

    private func isSameSpace(_ challenge: AnswerableChallenge, _ origin: HTTPOrigin) -> Bool {
        self.origin == origin && self.challenge.realm == challenge.realm
    }

    /// Notes a response that is no challenge; returns whether the server has thereby accepted the credential for the first time.
    mutating func accepted(_ head: ResponseHead, from url: String) -> Bool {
        guard HTTPOrigin(url: url) == origin else { return false }
        if case .digest(let nonce) = answer, let next = nextNonce(head) { nonce.take(nextNonce: next) }
        reusedNonce = nil
        defer { (isPending, isRenewed, failures) = (false, false, 0) }
        return isPending
    }

    /// The nonce that the server has accepted; `nil` for other schemes.
    var nonce: DigestNonce? {
        if case .digest(let nonce) = answer { nonce } else { nil }
    }

    /// The nonce for the next exchange (`nextnonce`; RFC 7616, section 3.5).
    private func nextNonce(_ head: ResponseHead) -> String? {
        guard head.contains("authentication-info"), let field = head.value(for: "Authentication-Info") else { return nil }
        // The field is a list of parameters, as behind a scheme.
        return AuthenticationChallenge.challenges(in: ["Info \(field)"]).first?.parameters["nextnonce"]
    }

    // MARK: Requests

    /// Returns the request with the credentials, if they are for its origin.
    func authorize(_ request: TransferRequest) -> TransferRequest {
        guard HTTPOrigin(url: request.url) == origin else { return request }
        var result = request
        switch answer {
        case .basic(let value): result.headers["Authorization"] = value
        case .digest(let nonce):
            result.headers["Authorization"] = nonce.authorization(method: request.method.rawValue, target: request.target)
        case .connection(let authentication):
            result.headers.remove(name: "Authorization")
            result.authentication = authentication
        }
        // libcurl would use the credentials in the URL instead.
        result.url = result.url.droppingUserInfo
        return result
    }
}

extension TransferRequest {
    /// The path with the query, as libcurl sends it (RFC 9112, section 3.2.1).
    var target: String {
        if isServerWide { return "*" }
        guard let authority = url.authority else { return "/" }
        let rest = url[authority.endIndex...].prefixScalars { $0 != "#" }
        return rest.hasBytePrefix("/") ? String(rest) : "/" + rest
    }

    /// User name and password of the URL (RFC 3986, section 3.2.1), which libcurl sends as Basic without a challenge.
    var urlCredential: URLCredential? {
        guard let parts = URLComponents(string: url), let user = parts.user else { return nil }
        return URLCredential(user: user, password: parts.password ?? "", persistence: .none)
    }
}
