// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Authenticates requests with a credential, and refreshes an expired one: once, however many requests detect that.
///
/// Set it as a session's ``SessionManager/interceptor``, or pass it to single requests. Whether a request failed
/// because of its credential is checked only if its response is an error, as by ``DataRequest/validate()``. Requests created during a
/// refresh wait for the new credential; requests that failed with an older credential are retried with the current one.
///
/// A request is adapted when it is created, also if it then waits for a free connection. So when a server rejects a credential, every request
/// that was created with it is sent with it once, and after its own 401 a second time with the new one; there is one refresh for all of
/// them. With ``AuthenticationCredential/requiresRefresh`` a credential that has expired is replaced before requests are sent.
///
/// A refresh belongs to all who wait for it: a request that is cancelled or whose deadline passes ends its own wait only, and a deadline of
/// the task that needed the credential first does not bound the requests of the authenticator, which have the timeouts of their session.
///
/// Thread-safe. An interceptor may be shared by sessions.
public final class AuthenticationInterceptor<AuthenticatorType: Authenticator>: RequestInterceptor {
    /// The type of the credential.
    public typealias Credential = AuthenticatorType.Credential

    /// A limit on how often the credential is refreshed, beyond which requests fail with ``AuthenticationError/excessiveRefresh``.
    ///
    /// Without it a server that accepts no credential would cause an endless loop of refreshes.
    public struct RefreshWindow: Sendable, Hashable {
        /// The length of the window in seconds.
        package let interval: TimeInterval
        /// The most refreshes that begin in a window.
        package let maximumAttempts: Int

        /// Creates a window; 5 refreshes in 30 seconds by default.
        public init(interval: TimeInterval = 30, maximumAttempts: Int = 5) {
            self.interval = interval
            self.maximumAttempts = maximumAttempts
        }
    }

    private typealias Waiter = @Sendable (Result<Void, any Error>) -> Void

    private struct State {
        var credential: Credential?
        /// Counts credentials, so that a credential that has been replaced is not refreshed.
        var generation = 0
        /// The number of the refresh in flight.
        var refresh: Int?
        var lastRefresh = 0
        var refreshTimes: [TimeInterval] = []
        var waiters: [Waiter] = []
    }

    private enum Step {
        case proceed
        case wait
        case refresh(Int, Credential?)
        case fail(AuthenticationError)
    }

    fileprivate let authenticator: AuthenticatorType
    /// Whether the authenticator is an ``AsyncAuthenticator``, whose code runs in the requests' tasks.
    public let isAsynchronous: Bool
    private let refreshWindow: RefreshWindow?
    private let now: @Sendable () -> TimeInterval
    private let state: Lock<State>

    /// Creates an interceptor.
    ///
    /// - Parameters:
    ///   - authenticator: applies and refreshes credentials.
    ///   - credential: the initial credential; without one the authenticator is asked for it when the first request needs it
    ///     (``Authenticator/credential(for:completion:)``).
    ///   - refreshWindow: limits refreshes, by default to 5 in 30 seconds; `nil` for no limit.
    public convenience init(
        authenticator: AuthenticatorType, credential: Credential? = nil, refreshWindow: RefreshWindow? = RefreshWindow()
    ) {
        self.init(authenticator: authenticator, credential: credential, refreshWindow: refreshWindow) {
            ProcessInfo.processInfo.systemUptime
        }
    }

    init(
        authenticator: AuthenticatorType, credential: Credential?, refreshWindow: RefreshWindow?,
        now: @escaping @Sendable () -> TimeInterval
    ) {
        self.authenticator = authenticator
        isAsynchronous = authenticator is any AsyncAuthenticator
        self.refreshWindow = refreshWindow
        self.now = now
        state = Lock(State(credential: credential))
    }

    /// The credential; `nil` if there is none, as before a login or after a logout.
    ///
    /// Setting it during a refresh discards the result of that refresh; the waiting requests continue with the new credential.
    public var credential: Credential? {
        get { state.withLock { $0.credential } }
        set {
            let waiters = state.withLock { state in
                state.refresh = nil
                return Self.replace(newValue, in: &state)
            }
            for waiter in waiters { waiter(.success(())) }
        }
    }

    private static func replace(_ credential: Credential?, in state: inout State) -> [Waiter] {
        state.credential = credential
        state.generation += 1
        defer { state.waiters = [] }
        return state.waiters
    }

    // MARK: RequestAdapter

    /// Applies the credential to the request, which waits for the first credential, or for a refresh if the credential requires one.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        var adapted = urlRequest
        let credential = try usableCredential()
        authenticator.apply(credential, to: &adapted)
        guard adapted != urlRequest || authenticator.isRequest(adapted, authenticatedWith: credential) else {
            throw AuthenticationError.credentialNotApplied
        }
        return adapted
    }

    /// `self` if the authenticator is a ``HeaderAuthenticator``, else `nil`.
    public var headerAdapter: (any HeaderAdapter)? { self as? any HeaderAdapter }

    fileprivate func usableCredential() throws -> Credential {
        let (credential, generation, isRefreshing) = state.withLock { ($0.credential, $0.generation, $0.refresh != nil) }
        if let credential, !isRefreshing, !credential.requiresRefresh { return credential }
        throw PendingAdaptation(isAsynchronous: isAsynchronous) { [self] manager, done in refresh(generation, for: manager, done) }
    }

    // MARK: RequestRetrier

    /// Retries a request that failed because of its credential, once there is another credential; does not retry other failures.
    public func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        guard let urlRequest = request.request, let response = request.response,
            authenticator.didRequest(urlRequest, with: response, failDueToAuthenticationError: error)
        else { return completion(false, 0) }
        let (credential, generation) = state.withLock { ($0.credential, $0.generation) }
        if let credential, !authenticator.isRequest(urlRequest, authenticatedWith: credential) { return completion(true, 0) }
        let done: Waiter = { [weak request] result in
            if case .failure(let error) = result { request?.replaceError(with: error) }
            completion((try? result.get()) != nil, 0)
        }
        guard isAsynchronous else { return refresh(generation, for: manager, done) }
        // In the request's task, whose task-local values the authenticator's code inherits.
        request.driver.runAsync { [weak manager] in
            if let manager { self.refresh(generation, for: manager, done) }
        }
    }

    // MARK: Refreshing

    /// Refreshes the credential of a generation, unless it has been replaced or is being refreshed; calls `done` once that has completed.
    private func refresh(_ generation: Int, for manager: SessionManager, _ done: @escaping Waiter) {
        let time = now()
        let step = state.withLock { state -> Step in
            guard state.generation == generation else { return .proceed }
            guard state.refresh == nil else {
                state.waiters.append(done)
                return .wait
            }
            guard mayRefresh(at: time, &state) else { return .fail(.excessiveRefresh) }
            state.waiters.append(done)
            state.lastRefresh += 1
            state.refresh = state.lastRefresh
            return .refresh(state.lastRefresh, state.credential)
        }
        switch step {
        case .proceed: done(.success(()))
        case .wait: break
        case .fail(let error): done(.failure(error))
        case .refresh(let number, let credential):
            // Strong until the authenticator completes: requests wait for that, even if the session's adapter is replaced.
            let refreshed = { @Sendable result in self.refreshed(result, number: number) }
            SharedWork.begin {
                guard let credential else { return authenticator.credential(for: manager, completion: refreshed) }
                authenticator.refresh(credential, for: manager, completion: refreshed)
            }
        }
    }

    private func mayRefresh(at time: TimeInterval, _ state: inout State) -> Bool {
        guard let refreshWindow else { return true }
        state.refreshTimes.removeAll { $0 <= time - refreshWindow.interval }
        guard state.refreshTimes.count < refreshWindow.maximumAttempts else { return false }
        state.refreshTimes.append(time)
        return true
    }

    private func refreshed(_ result: Result<Credential, any Error>, number: Int) {
        let waiters = state.withLock { state -> [Waiter] in
            // A second call of the completion handler, or a refresh that was overtaken by a credential set by the program.
            guard state.refresh == number else { return [] }
            state.refresh = nil
            if case .success(let credential) = result { return Self.replace(credential, in: &state) }
            // A first credential that can't be obtained does not count as a refresh.
            if case .failure(AuthenticationError.missingCredential) = result, !state.refreshTimes.isEmpty {
                state.refreshTimes.removeLast()
            }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter(result.map { _ in }) }
    }
}

// MARK: - HeaderAdapter

extension AuthenticationInterceptor: HeaderAdapter where AuthenticatorType: HeaderAuthenticator {
    /// Applies the credential to the header fields of a request, which waits for the first credential, or for a refresh if the credential
    /// requires one.
    public func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) throws {
        authenticator.apply(try usableCredential(), to: &headers)
    }
}
