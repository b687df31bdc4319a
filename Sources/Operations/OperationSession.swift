// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// What operations share: how their requests travel, and the connections that are kept between them.
///
/// Operations with equal security policies share connections, those with different ones do not. Lives as long as an operation has it.
public final class OperationSession: Sendable {
    /// The session of operations that are given none: with the cookies, the cache and the credentials that Foundation shares, on the main
    /// queue.
    ///
    /// On Linux the main queue runs only under `RunLoop.main`, `dispatchMain()` or an asynchronous `@main`: other programs make a session
    /// with a ``SessionConfiguration/callbackQueue`` of their own.
    public static let shared = OperationSession(configuration: SessionConfiguration(URLSessionConfiguration.default))

    /// How the requests travel. Callbacks without a queue of their own come on its ``SessionConfiguration/callbackQueue``.
    public let configuration: SessionConfiguration
    private let pools = Lock<[SecurityPolicy: ConnectionPool]>([:])

    /// Makes a session; nothing of it is shared with others.
    public init(configuration: SessionConfiguration = SessionConfiguration()) {
        self.configuration = configuration
    }

    /// The connections for an operation; for one that judges servers itself, connections of its own.
    func pool(for policy: SecurityPolicy, judge: ConnectionPool.Judge?) -> ConnectionPool {
        if let judge { return ConnectionPool(configuration: configuration, trust: .customEvaluation(judge)) }
        return pools.withLock { pools in
            if let pool = pools[policy] { return pool }
            // What the configuration says of TLS holds where the policy says nothing.
            let trust = policy == SecurityPolicy() ? nil : policy.serverTrustPolicy
            let pool = ConnectionPool(configuration: configuration, trust: trust)
            pools[policy] = pool
            return pool
        }
    }
}

/// A manager of the core, whose events it brings to the operations that they concern.
final class ConnectionPool: Sendable {
    typealias Judge = @Sendable (ServerTrust, String) -> Bool

    /// One policy for whatever host.
    private final class EveryHost: ServerTrustPolicyManager, @unchecked Sendable {  // immutable
        private let policy: ServerTrustPolicy

        init(_ policy: ServerTrustPolicy) {
            self.policy = policy
            super.init(policies: [:])
        }

        override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? { policy }
    }

    private let manager: SessionManager
    private let attempts = Lock<[Int: ConnectionAttempt]>([:])

    init(configuration: SessionConfiguration, trust: ServerTrustPolicy?) {
        manager = SessionManager(configuration: configuration, serverTrustPolicyManager: trust.map { EveryHost($0) })
        manager.startRequestsImmediately = false
        setClosures(of: manager.delegate)
    }

    /// Makes the request of an attempt, which tells the attempt of what happens from when it is resumed.
    func makeRequest(_ urlRequest: URLRequest, for attempt: ConnectionAttempt) -> DataRequest {
        // Bodies of requests that say that they stream are not cached.
        let mayBeCached = manager.session.configuration.urlCache != nil && urlRequest.mayBeCached
        let request = mayBeCached ? manager.request(urlRequest) : manager.streamRequest(urlRequest)
        if let id = request.task?.taskIdentifier { attempts.withLock { $0[id] = attempt } }
        return request
    }

    func forget(_ request: DataRequest) {
        if let id = request.task?.taskIdentifier { attempts.withLock { $0[id] = nil } }
    }

    private func setClosures(of delegate: SessionDelegate) {
        // The dictionary, not the pool: that holds the delegate.
        let attempts = attempts
        @Sendable func attempt(_ task: SessionTask) -> ConnectionAttempt? { attempts.withLock { $0[task.taskIdentifier] } }
        delegate.dataTaskDidReceiveResponseWithCompletion = { _, task, response, completion in
            guard let attempt = attempt(task) else { return completion(.cancel) }
            attempt.received(response) { completion($0 ? .allow : .cancel) }
        }
        delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, task, response, request, completion in
            guard let attempt = attempt(task) else { return completion(nil) }
            attempt.redirected(by: response, to: request, completion)
        }
        delegate.taskDidReceiveChallengeWithCompletion = { _, task, challenge, completion in
            guard let attempt = attempt(task) else { return completion(.cancelAuthenticationChallenge, nil) }
            attempt.challenged(challenge, completion)
        }
        delegate.taskNeedNewBodyStreamWithCompletion = { _, task, completion in
            guard let attempt = attempt(task) else { return completion(nil) }
            attempt.needsBodyStream(completion)
        }
        delegate.taskDidSendBodyData = { _, task, now, total, expected in
            attempt(task)?.sent(now, total, expected)
        }
        delegate.dataTaskWillCacheResponseWithCompletion = { _, task, proposed, completion in
            guard let attempt = attempt(task) else { return completion(nil) }
            attempt.willCache(proposed, completion)
        }
    }
}

extension URLRequest {
    fileprivate var mayBeCached: Bool {
        httpMethod ?? "GET" == "GET" && httpBody == nil && httpBodyStream == nil && value(forHTTPHeaderField: "Range") == nil
    }
}
