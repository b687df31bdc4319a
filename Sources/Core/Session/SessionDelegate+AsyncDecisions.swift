// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// The decisions of SessionDelegate's closures in `async` form. Each replaces the closure of the same decision, and is replaced by it.

extension SessionDelegate {
    /// Decides about each redirect that the session's ``RedirectPolicy`` allows, as ``taskWillPerformHTTPRedirection`` does: returns the
    /// request to follow it with, or `nil` to have the redirect itself as the response.
    ///
    /// Runs in the request's task, with the task-local values of the call that created the request, and is cancelled with it. An error that
    /// it throws fails the request. `nil` removes the closure. Set it before the session's first request.
    public func onRedirect(
        _ decide: (
            @Sendable (_ request: Request, _ response: HTTPURLResponse, _ proposed: URLRequest) async throws -> URLRequest?
        )?
    ) {
        decidesAsynchronously = decidesAsynchronously || decide != nil
        guard let decide else { return taskWillPerformHTTPRedirection = nil }
        taskWillPerformHTTPRedirection = { session, task, response, proposed, completion in
            guard let request = session.delegate?[task] else { return completion(proposed) }
            request.decide(of: task, otherwise: { completion(nil) }) { completion(try await decide(request, response, proposed)) }
        }
    }

    /// Answers the challenge of a server that asks for credentials (RFC 9110, section 11), as ``taskDidReceiveChallenge`` does.
    ///
    /// Runs in the request's task, with the task-local values of the call that created the request, and is cancelled with it. An error that
    /// it throws fails the request. `nil` removes the closure. Set it before the session's first request.
    public func onChallenge(
        _ decide: (@Sendable (_ request: Request, _ challenge: URLAuthenticationChallenge) async throws -> ChallengeDecision)?
    ) {
        decidesAsynchronously = decidesAsynchronously || decide != nil
        guard let decide else { return taskDidReceiveChallenge = nil }
        taskDidReceiveChallenge = { session, task, challenge, completion in
            guard let request = session.delegate?[task] else { return completion(.performDefaultHandling, nil) }
            let shown = ShownChallenge(challenge: challenge)
            request.decide(of: task, otherwise: { completion(.rejectProtectionSpace, nil) }) {
                switch try await decide(request, shown.challenge) {
                case .useCredential(let credential): completion(.useCredential, credential)
                case .performDefaultHandling: completion(.performDefaultHandling, nil)
                case .rejectProtectionSpace: completion(.rejectProtectionSpace, nil)
                case .cancel: completion(.cancelAuthenticationChallenge, nil)
                }
            }
        }
    }

    /// Decides whether a server is trusted, by the certificates that it has sent; see ``sessionDidReceiveChallenge`` for when and how
    /// often it is called, before which it is asked. An error that it throws rejects the server.
    ///
    /// Runs in a task of its own, as several requests may wait for the connection. `nil` removes the closure. Set it before the session's
    /// first request.
    public func onServerTrust(_ decide: (@Sendable (ServerTrust) async throws -> ServerTrustDecision)?) {
        closures.withLock { $0.serverTrustDecision = decide }
    }
}

/// A challenge, which its receiver does not change.
private struct ShownChallenge: @unchecked Sendable {
    let challenge: URLAuthenticationChallenge
}

extension Request {
    /// Runs an asynchronous decision in the request's task. If it throws, that becomes the request's error, and `otherwise` is called.
    fileprivate func decide(
        of task: SessionTask, otherwise: @escaping @Sendable () -> Void, _ decide: @escaping @Sendable () async throws -> Void
    ) {
        driver.runAsync { [driver] in
            do {
                try await decide()
            } catch {
                driver.fail(error)
                otherwise()
                task.endTransfer()
            }
        }
    }
}
