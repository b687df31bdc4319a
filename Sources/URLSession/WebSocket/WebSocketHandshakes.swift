// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading
import CurlewWebSocket

/// The handshakes of a WebSocket task: after a redirect, and after a challenge, another one is made on a connection of its own, while
/// messages to send wait.
final class WebSocketHandshakes: HandshakeLayer {
    private struct State {
        weak var task: URLSessionWebSocketTask?
        /// The request of the next connection, without the credentials of challenges.
        var next: URLRequest
        /// Whether it follows another one: adapters have no part in it.
        var isFollowUp = false
        /// What was sent on the last connection, without those.
        var sent: URLRequest?
        /// The response about which is to be decided.
        var rejection: WebSocketRejection?
        /// Whether no other connection follows.
        var isFinal = false
        var redirectCount = 0
        /// In their order, if a delegate gets the metrics.
        var exchanges: [HandshakeExchange] = []
        var authentication = HandshakeAuthentication()
    }

    /// What follows a rejection.
    private enum FollowUp {
        case none
        case request(URLRequest)
    }

    private let state: Lock<State>

    init(_ task: URLSessionWebSocketTask, _ request: URLRequest) {
        state = Lock(State(task: task, next: request))
    }

    private var task: URLSessionWebSocketTask? { state.withLock { $0.task } }

    // MARK: Connections

    /// Has another connection made after a response that may be followed.
    var reconnection: WebSocketReconnection {
        var policy = WebSocketReconnection(limit: nil, firstDelay: .zero) { [weak self] in self?.mayFollow($0) ?? false }
        policy.heedsRetryAfter = false
        return policy
    }

    private func mayFollow(_ error: any Error) -> Bool {
        guard case WebSocketError.handshakeRejected(let rejection) = error else { return false }
        return state.withLock { state in
            guard !state.isFinal, state.sent != nil, [301, 302, 303, 307, 308, 401].contains(rejection.response.statusCode) else {
                return false
            }
            state.rejection = rejection
            return true
        }
    }

    /// Returns the request of the next connection; asks delegates about it if it follows another one.
    func nextRequest() async throws -> URLRequest {
        let (first, rejection, sent) = state.withLock { ($0.next, $0.rejection.take(), $0.sent) }
        guard let rejection, let sent else { return first }
        guard let task else { throw CurlewError.cancelled }
        do {
            guard case .request(let next) = try await followUp(of: rejection.response, to: sent, task) else {
                throw WebSocketError.handshakeRejected(rejection)
            }
            state.withLock { state in
                state.next = next
                state.isFollowUp = true
            }
            task.values.withLock { $0.replacement = next }
            return next
        } catch {
            state.withLock { $0.isFinal = true }
            throw error
        }
    }

    // MARK: HandshakeLayer

    var owner: (any RequestOwner)? { task?.connectionOwner }

    func prepare(_ adapted: URLRequest, in session: Session) -> URLRequest {
        let (isFollowUp, next) = state.withLock { ($0.isFollowUp, $0.next) }
        var request = isFollowUp ? next : adapted
        // Foundation on Linux traps when a copied request without a URL is changed; such a request fails later.
        guard let url = request.url else { return request }
        request.removeHandshakeFields()
        if var parts = URLComponents(url: url, resolvingAgainstBaseURL: true), parts.percentEncodedFragment != nil {
            parts.percentEncodedFragment = nil
            request.url = parts.url ?? url
        }
        if !isFollowUp {
            for header in session.configuration.headers
            where request.value(forHTTPHeaderField: header.name) == nil && !header.isNamed("Accept-Encoding") {
                request.setValue(header.value, forHTTPHeaderField: header.name)
            }
        }
        return state.withLock { state in
            state.sent = request
            return state.authentication.authorize(request)
        }
    }

    func began(_ exchange: HandshakeExchange) { state.withLock { $0.exchanges.append(exchange) } }

    /// What was measured of the exchanges, until now if the last one has not ended.
    var measured: (metrics: TaskMetrics, records: [ExchangeRecord]) {
        let (exchanges, redirectCount) = state.withLock { ($0.exchanges.map(\.measured), $0.redirectCount) }
        let metrics = TaskMetrics(transactionMetrics: exchanges.map(\.metrics), redirectCount: redirectCount)
        return (metrics, exchanges.compactMap(\.record))
    }

    /// The handshake has succeeded.
    func accepted(_ head: ResponseHead, in session: Session) {
        noteAccepted(head, state.withLock { $0.sent }, in: session)
    }

    private func noteAccepted(_ head: ResponseHead, _ sent: URLRequest?, in session: Session) {
        guard let sent else { return }
        var authentication = state.withLock { $0.authentication }
        authentication.accepted(head, to: sent, in: session)
        state.withLock { $0.authentication = authentication }
    }

    // MARK: Decisions

    private func followUp(of head: ResponseHead, to sent: URLRequest, _ task: URLSessionWebSocketTask) async throws -> FollowUp {
        let session = task.session.curlew.session
        guard let response = sent.url.flatMap({ HTTPURLResponse(head, of: $0) }) else { return .none }
        if head.statusCode == 401 { return try await authenticated(head, response, sent, task) }
        noteAccepted(head, sent, in: session)
        let count = state.withLock { $0.redirectCount }
        guard let proposed = try session.redirected(sent, by: head, redirectCount: count) else { return .none }
        let chosen: URLRequest?? = try await CallWait<URLRequest??>.value { wait in
            task.ask(.redirection) { (delegate: any URLSessionTaskDelegate, task, answer: @escaping URLSessionTask.Answer<URLRequest?>) in
                delegate.urlSession(
                    task.session, task: task, willPerformHTTPRedirection: response, newRequest: proposed, completionHandler: answer)
            } answered: {
                wait.end(.success($0))
            }
        }
        guard let next = chosen ?? proposed else { return .none }
        state.withLock { $0.redirectCount += 1 }
        return .request(session.bounded(next, insteadOf: proposed))
    }

    /// Answers the first challenge that can be answered.
    private func authenticated(
        _ head: ResponseHead, _ response: HTTPURLResponse, _ sent: URLRequest, _ task: URLSessionWebSocketTask
    ) async throws -> FollowUp {
        let session = task.session.curlew.session
        let authentication = state.withLock { $0.authentication }
        for challenge in authentication.challenges(of: head, to: sent) {
            if state.withLock({ $0.authentication.renew(challenge) }) { return .request(sent) }
            let shown = Shown(authentication.shown(challenge, of: sent, response, in: session))
            let answer = try await CallWait<Shown<URLSessionTask.ChallengeAnswer>>.value { wait in
                task.answer(shown.value) { wait.end(.success(Shown(($0, $1)))) }
            }
            let (disposition, given) = answer.value
            let credential: URLCredential?
            switch disposition {
            case .cancelAuthenticationChallenge: throw CurlewError.cancelled
            case .rejectProtectionSpace: continue
            case .useCredential: credential = given
            default:
                // A credential that was refused would be refused again.
                guard shown.value.previousFailureCount == 0 else { return .none }
                guard let proposed = shown.value.proposedCredential else { continue }
                credential = proposed
            }
            if let credential, state.withLock({ $0.authentication.use(credential, for: challenge) }) { return .request(sent) }
            if disposition == .useCredential { return .none }
        }
        return .none
    }
}
