// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// What follows the rejection of a WebSocket's handshake, for CurlewURLSession (`WebSocketHandshakes`), whose programs decide about it. The
// connection of a handshake is no transfer, whose responses the rules of redirects and challenges see.

extension Session {
    /// Returns the request that follows a redirect of a handshake, without the header fields that are not sent to another origin; `nil` if
    /// the response is no redirect. It has the scheme of a WebSocket if the other one has.
    ///
    /// - Parameters:
    ///   - request: what was sent, complete.
    ///   - redirectCount: the number of redirects that have been followed.
    /// - Throws: ``CurlewError/redirectFailed(reason:in:)``.
    package func redirected(_ request: URLRequest, by head: ResponseHead, redirectCount: Int) throws(CurlewError) -> URLRequest? {
        guard let transfer = TransferRequest(handshake: request) else { return nil }
        let next = try configuration.redirects.next(
            after: transfer, head.withHTTPLocation, redirectCount: redirectCount, rewindsBody: false, hsts: hsts)
        guard let next else { return nil }
        let usesSocketScheme = request.url?.absoluteString != transfer.url
        guard let url = URL(string: usesSocketScheme ? next.url.withSocketScheme : next.url) else { return nil }
        var result = request
        result.url = url
        for name in (request.allHTTPHeaderFields ?? [:]).keys where next.headers[name] == nil {
            result.setValue(nil, forHTTPHeaderField: name)
        }
        return result
    }

    /// Returns the request that a program has chosen for a redirect, without the credentials that it has taken over from the proposed one
    /// if it leads to another origin.
    package func bounded(_ chosen: URLRequest, insteadOf proposed: URLRequest) -> URLRequest {
        guard let url = chosen.url,
            HTTPOrigin(url: url.absoluteString.withHTTPScheme)
                != proposed.url.flatMap({ HTTPOrigin(url: $0.absoluteString.withHTTPScheme) })
        else { return chosen }
        var result = chosen
        for (name, value) in chosen.allHTTPHeaderFields ?? [:]
        where proposed.value(forHTTPHeaderField: name) == value
            && configuration.redirects.isCredential(HTTPHeader(name: name, value: value))
        {
            result.setValue(nil, forHTTPHeaderField: name)
        }
        return result
    }
}

/// The answers to the challenges of a handshake (RFC 9110, section 11): added to what is sent, and never a part of the request that
/// redirects are made of.
package struct HandshakeAuthentication: Sendable {
    /// A challenge of an origin.
    package struct Challenge: Sendable {
        let value: AnswerableChallenge
        let origin: HTTPOrigin
    }

    /// The largest number of challenges of a response that are considered, the strongest ones.
    private static let limit = 16

    private var answer: TaskAuthentication?

    package init() {}

    /// Returns the challenges of a response that can be answered, the strongest first. None if it is no 401, and once too many were
    /// answered. Those that authenticate a connection can't be: that of a rejected handshake has ended.
    package func challenges(of head: ResponseHead, to request: URLRequest) -> [Challenge] {
        guard head.statusCode == 401, answer?.mayAnswer ?? true, let url = request.url,
            let origin = HTTPOrigin(url: url.absoluteString.withHTTPScheme)
        else { return [] }
        let challenges = AuthenticationChallenge.challenges(in: head.headers.values(for: "WWW-Authenticate"))
        let known = AnswerableChallenge.ranked(challenges).filter { !$0.concernsConnection }
        return known.prefix(Self.limit).map { Challenge(value: $0, origin: origin) }
    }

    /// Answers a challenge with the last credential again, if only its nonce has expired.
    package mutating func renew(_ challenge: Challenge) -> Bool {
        guard let answer, answer.mayRenew(challenge.value, of: challenge.origin) else { return false }
        return take(challenge, answer.credential, renewing: true)
    }

    /// Answers a challenge; `false` if the credential does not fit its scheme.
    package mutating func use(_ credential: URLCredential, for challenge: Challenge) -> Bool { take(challenge, credential) }

    private mutating func take(_ challenge: Challenge, _ credential: URLCredential, renewing: Bool = false) -> Bool {
        let new = TaskAuthentication(challenge.value, of: challenge.origin, with: credential, after: answer, renewing: renewing)
        guard let new else { return false }
        answer = new
        return true
    }

    /// Returns the challenge as it is shown to programs.
    package func shown(_ challenge: Challenge, of request: URLRequest, _ response: HTTPURLResponse?, in session: Session)
        -> URLAuthenticationChallenge
    {
        let transfer = TransferRequest(handshake: request)
        let proposed = transfer?.urlCredential ?? session.storedCredential(for: challenge.value, of: challenge.origin)
        return URLAuthenticationChallenge(
            protectionSpace: challenge.origin.space(of: challenge.value), proposedCredential: proposed,
            previousFailureCount: failures(for: challenge, transfer), failureResponse: response, error: nil, sender: ChallengeSender())
    }

    private func failures(for challenge: Challenge, _ transfer: TransferRequest?) -> Int {
        if let answer { return answer.failures(for: challenge.value, of: challenge.origin) }
        // The handshake has sent the URL's user name and password already, as Basic.
        let wasSent = challenge.value.scheme == .basic && transfer?.urlCredential != nil && transfer?.headers["Authorization"] == nil
        return wasSent ? 1 : 0
    }

    /// Notes a response that is no challenge: it accepts the credential, which is stored. Not on the event loop's thread.
    package mutating func accepted(_ head: ResponseHead, to request: URLRequest, in session: Session) {
        guard head.statusCode != 401, let url = request.url?.absoluteString.withHTTPScheme, answer?.accepted(head, from: url) == true
        else { return }
        if let answer { session.store(answer) }
    }

    /// Returns the request with the credentials for its origin.
    package func authorize(_ request: URLRequest) -> URLRequest {
        guard let answer, let transfer = TransferRequest(handshake: request), answer.origin == HTTPOrigin(url: transfer.url),
            let value = answer.authorize(transfer).headers["Authorization"]
        else { return request }
        var result = request
        result.setValue(value, forHTTPHeaderField: "Authorization")
        return result
    }
}

extension TransferRequest {
    /// The handshake as a request over HTTP; `nil` without a URL.
    fileprivate init?(handshake request: URLRequest) {
        guard let url = request.url else { return nil }
        self.init(url: url.absoluteString.withHTTPScheme, method: .get, headers: HTTPHeaders(request.allHTTPHeaderFields ?? [:]))
    }
}

extension ResponseHead {
    /// The head with a `Location` whose scheme is not that of WebSockets, which some servers name.
    fileprivate var withHTTPLocation: ResponseHead {
        guard let location = value(for: "Location") else { return self }
        let changed = location.withHTTPScheme
        guard changed != location else { return self }
        var headers = headers
        headers["Location"] = changed
        return ResponseHead(statusCode: statusCode, headers: headers)
    }
}

extension String {
    /// The URL with `http` for `ws`, and `https` for `wss`.
    package var withHTTPScheme: String { replacingScheme(["ws": "http", "wss": "https"]) }

    /// The URL with `ws` for `http`, and `wss` for `https`.
    fileprivate var withSocketScheme: String { replacingScheme(["http": "ws", "https": "wss"]) }

    private func replacingScheme(_ schemes: [String: String]) -> String {
        guard let end = firstScalarRange(of: ":")?.lowerBound, let scheme = schemes[self[..<end].lowercased()] else { return self }
        return scheme + self[end...]
    }
}
