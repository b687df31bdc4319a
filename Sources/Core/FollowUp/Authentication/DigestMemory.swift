// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A user's answers to one Digest challenge, which count the uses of its nonce. Thread-safe.
final class DigestNonce: Sendable {
    let challenge: AnswerableChallenge
    private let domain: [String]
    private let session: Lock<DigestSession>

    init(_ session: DigestSession, to challenge: AnswerableChallenge) {
        self.challenge = challenge
        domain = session.challenge.domain
        self.session = Lock(session)
    }

    /// Returns the value of `Authorization` for a request.
    func authorization(method: String, target: String) -> String {
        session.withLock { $0.authorization(method: method, target: target) }
    }

    /// Replaces the nonce.
    func take(nextNonce: String) { session.withLock { $0.take(nextNonce: nextNonce) } }

    /// Whether the answers are those of a credential.
    func isOf(_ credential: URLCredential) -> Bool {
        let (user, password) = (credential.user ?? "", credential.password ?? "")
        return session.withLock { $0 }.isOf(user: user, password: password)
    }

    func isOfSameUser(as other: DigestNonce) -> Bool {
        let session = session.withLock { $0 }
        return session.isOfSameUser(as: other.session.withLock { $0 })
    }

    /// Whether the server wants the answers for a URI of its origin (RFC 7616, section 3.3, `domain`).
    fileprivate func covers(_ target: String, of origin: HTTPOrigin) -> Bool {
        domain.isEmpty
            || domain.contains { uri in
                if uri.hasBytePrefix("/") { return target.hasBytePrefix(uri) }
                return HTTPOrigin(url: uri) == origin && target.hasBytePrefix(TransferRequest(url: uri).target)
            }
    }
}

/// The nonces that servers have accepted, so that later requests of a session need no challenge (RFC 7616, section 3.6), and their bodies are
/// sent once. Thread-safe.
///
/// A request takes a nonce for itself, and returns it with the response: the server sees its counts in order, and one that is lost on the way
/// is not used again. Requests at the same time have nonces of their own.
final class DigestMemory: Sendable {
    /// The server to which a nonce belongs: only requests to it, by the same way, can use it.
    struct Space: Hashable, Sendable {
        let origin: HTTPOrigin
        private let routing: RoutingOptions
        private let host: String?

        /// `nil` without an origin.
        init?(_ request: TransferRequest) {
            guard let origin = HTTPOrigin(url: request.url) else { return nil }
            self.origin = origin
            routing = request.routing
            host = request.headers["Host"]
        }
    }

    /// The most servers whose nonces are kept; beyond it all are forgotten.
    static let mostSpaces = 64
    /// The most nonces of a server, those of all its users together; beyond it the oldest is forgotten.
    static let mostNonces = 16

    private let nonces = Lock([Space: [DigestNonce]]())

    /// The challenge of the latest nonce for a request; `nil` if there is none.
    func challenge(for request: TransferRequest) -> AnswerableChallenge? {
        guard let space = Space(request) else { return nil }
        let target = request.target
        return nonces.withLock { $0[space]?.last { $0.covers(target, of: space.origin) } }?.challenge
    }

    /// Takes the latest nonce of a credential for a request.
    func take(for request: TransferRequest, of credential: URLCredential) -> DigestNonce? {
        guard let space = Space(request) else { return nil }
        let target = request.target
        return nonces.withLock { nonces in
            guard let index = nonces[space]?.lastIndex(where: { $0.covers(target, of: space.origin) && $0.isOf(credential) }) else {
                return nil
            }
            return nonces[space]?.remove(at: index)
        }
    }

    /// Keeps a nonce that the server of a request has accepted.
    func keep(_ nonce: DigestNonce, for request: TransferRequest) {
        guard let space = Space(request) else { return }
        nonces.withLock { nonces in
            if nonces[space] == nil, nonces.count >= Self.mostSpaces { nonces = [:] }
            var kept = nonces[space, default: []]
            kept.removeAll { $0 === nonce }
            if kept.count >= Self.mostNonces { kept.removeFirst() }
            nonces[space] = kept + [nonce]
        }
    }

    /// Forgets the nonces of a user, of which the server has refused one: the others are older.
    func forget(like nonce: DigestNonce, for request: TransferRequest) {
        guard let space = Space(request) else { return }
        nonces.withLock { $0[space]?.removeAll { $0.isOfSameUser(as: nonce) } }
    }
}

extension RequestDriver {
    /// Waits with the first exchange to a server with a known nonce until it is clear whose request it is: a credential or a handler is
    /// attached, or ``handlerWait`` has passed. Returns `false` if there is nothing to wait for.
    func awaitsCredential(_ request: TransferRequest, _ digests: DigestMemory, _ next: @escaping @Sendable () -> Void) -> Bool {
        guard mayUseNonce(request), digests.challenge(for: request) != nil, request.urlCredential == nil else { return false }
        return wait(for: [.handler, .credential], atMost: Self.handlerWait) { _ in next() }
    }

    /// Answers the challenge that a server would send, if a nonce is known for the credential of the request.
    func useNonce(of digests: DigestMemory, for request: TransferRequest, as followUp: FollowUp.Kind?) {
        guard followUp != .authenticated, state.withLock({ $0.authentication?.answer == nil }), mayUseNonce(request),
            let challenge = digests.challenge(for: request), let origin = HTTPOrigin(url: request.url),
            let credential = knownCredential(for: request, origin, challenge), let nonce = digests.take(for: request, of: credential)
        else { return }
        authentication.answer = TaskAuthentication(nonce, of: origin, with: credential)
    }

    /// Whether a nonce may be used without asking: not where closures decide about challenges, or the program answers itself; nor for documents
    /// in a session with a cache, which would not find them under a field that is never the same.
    private func mayUseNonce(_ request: TransferRequest) -> Bool {
        request.headers["Authorization"] == nil && !(session.configuration.hasCache && request.isForDocument)
            && closures { $0.taskDidReceiveChallenge == nil }
    }

    /// The credential with which a challenge would be answered, as far as that is certain: a stored one is used where no other can be
    /// attached any more.
    private func knownCredential(for request: TransferRequest, _ origin: HTTPOrigin, _ challenge: AnswerableChallenge) -> URLCredential? {
        if let own = ownCredential(for: origin) ?? request.urlCredential { return own }
        return state.withLock { $0.isAwaited } ? session.storedCredential(for: challenge, of: origin) : nil
    }

    /// The request's credential, which is valid for its original origin only, not for one that it was redirected to.
    func ownCredential(for origin: HTTPOrigin) -> URLCredential? {
        guard settings?.options.withholdsCredentials != true, let url = task?.originalRequest?.url, HTTPOrigin(url) == origin else {
            return nil
        }
        return state.withLock { $0.authentication }?.credential
    }
}
