// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading
import Dispatch

/// The transport configuration and the pooled connections that operations share.
///
/// Operations with equal security policies share connections; those with different ones do not. Retained by its operations.
public final class OperationSession: Sendable {
    /// The default session of operations, with Foundation's shared cookies, cache and credentials, and the main queue for callbacks.
    ///
    /// On Linux the main queue runs only under `RunLoop.main`, `dispatchMain()` or an asynchronous `@main`; other programs create a session
    /// with a different ``SessionConfiguration/callbackQueue``.
    public static let shared = OperationSession(configuration: SessionConfiguration(URLSessionConfiguration.default))

    /// The transport configuration. Callbacks without a queue of their own run on its ``SessionConfiguration/callbackQueue``.
    public let configuration: SessionConfiguration
    private let pools = Lock<[SecurityPolicy: ConnectionPool]>([:])

    /// Creates a session, which shares nothing with others.
    public init(configuration: SessionConfiguration = SessionConfiguration()) {
        self.configuration = configuration
    }

    /// Returns the pool for an operation; an operation that evaluates server trust itself has its own.
    func pool(for policy: SecurityPolicy, evaluator: ConnectionPool.TrustEvaluator?) -> ConnectionPool {
        if let evaluator { return ConnectionPool(configuration: configuration, trust: .customEvaluation(evaluator)) }
        return pools.withLock { pools in
            if let pool = pools[policy] { return pool }
            // The session configuration's TLS settings apply unless the policy sets anything.
            let trust = policy == SecurityPolicy() ? nil : policy.serverTrustPolicy
            let pool = ConnectionPool(configuration: configuration, trust: trust)
            pools[policy] = pool
            return pool
        }
    }
}

/// A session manager whose events are forwarded to the attempts that they belong to.
final class ConnectionPool: Sendable {
    typealias TrustEvaluator = @Sendable (ServerTrust, String) -> Bool

    /// One policy for all hosts.
    private final class SinglePolicyManager: ServerTrustPolicyManager, @unchecked Sendable {  // immutable
        private let policy: ServerTrustPolicy

        init(_ policy: ServerTrustPolicy) {
            self.policy = policy
            super.init(policies: [:])
        }

        override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? { policy }
    }

    private let manager: SessionManager
    /// The attempts by their requests, because a request has a task for each time that it is sent.
    private let attempts = Lock<[ObjectIdentifier: ConnectionAttempt]>([:])

    init(configuration: SessionConfiguration, trust: ServerTrustPolicy?) {
        manager = SessionManager(configuration: configuration, serverTrustPolicyManager: trust.map { SinglePolicyManager($0) })
        manager.startRequestsImmediately = false
        setClosures(of: manager.delegate)
    }

    /// Creates the request of an attempt, which receives its events from the time it is resumed.
    func makeRequest(_ urlRequest: URLRequest, with options: RequestOptions?, for attempt: ConnectionAttempt) -> DataRequest {
        // A `URLCache` stores no bodies of streamed requests.
        let isCacheable = manager.session.configuration.hasCache && urlRequest.isCacheable
        let request =
            isCacheable ? manager.request(urlRequest, options: options) : manager.streamRequest(urlRequest, options: options)
        attempts.withLock { $0[ObjectIdentifier(request)] = attempt }
        return request
    }

    func forget(_ request: DataRequest) {
        attempts.withLock { $0[ObjectIdentifier(request)] = nil }
    }

    private func setClosures(of delegate: SessionDelegate) {
        // The closures capture the dictionary, not the pool, which retains the delegate.
        let attempts = attempts
        let attempt: @Sendable (SessionTask) -> ConnectionAttempt? = { [weak delegate] task in
            guard let request = delegate?[task] else { return nil }
            return attempts.withLock { $0[ObjectIdentifier(request)] }
        }
        delegate.dataTaskDidReceiveResponse = { _, task, response, completion in
            guard let attempt = attempt(task) else { return completion(.cancel) }
            attempt.received(response) { completion($0 ? .allow : .cancel) }
        }
        delegate.taskWillPerformHTTPRedirection = { _, task, response, request, completion in
            guard let attempt = attempt(task) else { return completion(nil) }
            attempt.redirected(by: response, to: request, completion)
        }
        delegate.taskDidReceiveChallenge = { _, task, challenge, completion in
            guard let attempt = attempt(task) else { return completion(.cancelAuthenticationChallenge, nil) }
            attempt.challenged(challenge, completion)
        }
        delegate.taskNeedNewBodyStream = { _, task, completion in
            guard let attempt = attempt(task) else { return completion(nil) }
            attempt.needsBodyStream(completion)
        }
        delegate.taskDidSendBodyData = { _, task, now, total, expected in
            attempt(task)?.sent(now, total, expected)
        }
        delegate.dataTaskWillCacheResponse = { _, task, proposed, completion in
            guard let attempt = attempt(task) else { return completion(nil) }
            attempt.willCache(proposed, completion)
        }
    }
}

extension URLRequest {
    fileprivate var isCacheable: Bool {
        httpMethod ?? "GET" == "GET" && httpBody == nil && httpBodyStream == nil && value(forHTTPHeaderField: "Range") == nil
    }
}
