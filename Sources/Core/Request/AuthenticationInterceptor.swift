// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Authenticates requests with a credential, and refreshes an expired one: once, however many requests detect that.
///
/// Set it as a session's ``SessionManager/adapter`` and ``SessionManager/retrier``, or pass it to single requests. Whether a request failed
/// because of its credential is checked only if its response is an error, as by ``DataRequest/validate()``. Requests created during a
/// refresh wait for the new credential; requests that failed with an older credential are retried with the current one.
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
        public let interval: TimeInterval
        /// The most refreshes that begin in a window.
        public let maximumAttempts: Int

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
        case refresh(Int, Credential)
        case fail(AuthenticationError)
    }

    fileprivate let authenticator: AuthenticatorType
    private let refreshWindow: RefreshWindow?
    private let now: @Sendable () -> TimeInterval
    private let state: Lock<State>

    /// Creates an interceptor.
    ///
    /// - Parameters:
    ///   - authenticator: applies and refreshes credentials.
    ///   - credential: the initial credential; without one requests fail with ``AuthenticationError/missingCredential``.
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

    /// Applies the credential to the request, which waits for a refresh if the credential requires one.
    ///
    /// - Throws: ``AuthenticationError/missingCredential``.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        var adapted = urlRequest
        authenticator.apply(try usableCredential(), to: &adapted)
        return adapted
    }

    /// `self` if the authenticator is a ``HeaderAuthenticator``, else `nil`.
    public var headerAdapter: (any HeaderAdapter)? { self as? any HeaderAdapter }

    fileprivate func usableCredential() throws -> Credential {
        let (credential, generation, isRefreshing) = state.withLock { ($0.credential, $0.generation, $0.refresh != nil) }
        guard let credential else { throw AuthenticationError.missingCredential }
        guard isRefreshing || credential.requiresRefresh else { return credential }
        throw PendingAdaptation { [self] manager, done in refresh(generation, for: manager, done) }
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
        guard let credential else {
            request.replaceError(with: AuthenticationError.missingCredential)
            return completion(false, 0)
        }
        guard authenticator.isRequest(urlRequest, authenticatedWith: credential) else { return completion(true, 0) }
        refresh(generation, for: manager) { [weak request] result in
            if case .failure(let error) = result { request?.replaceError(with: error) }
            completion((try? result.get()) != nil, 0)
        }
    }

    // MARK: Refreshing

    /// Refreshes the credential of a generation, unless it has been replaced or is being refreshed; calls `done` once that has completed.
    private func refresh(_ generation: Int, for manager: SessionManager, _ done: @escaping Waiter) {
        let time = now()
        let step = state.withLock { state -> Step in
            guard state.generation == generation, let credential = state.credential else { return .proceed }
            guard state.refresh == nil else {
                state.waiters.append(done)
                return .wait
            }
            guard mayRefresh(at: time, &state) else { return .fail(.excessiveRefresh) }
            state.waiters.append(done)
            state.lastRefresh += 1
            state.refresh = state.lastRefresh
            return .refresh(state.lastRefresh, credential)
        }
        switch step {
        case .proceed: done(.success(()))
        case .wait: break
        case .fail(let error): done(.failure(error))
        // Strong until the authenticator completes: requests wait for that, even if the session's adapter is replaced.
        case .refresh(let number, let credential):
            authenticator.refresh(credential, for: manager) { self.refreshed($0, number: number) }
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
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter(result.map { _ in }) }
    }
}

// MARK: - HeaderAdapter

extension AuthenticationInterceptor: HeaderAdapter where AuthenticatorType: HeaderAuthenticator {
    /// Applies the credential to the header fields of a request, which waits for a refresh if the credential requires one.
    ///
    /// - Throws: ``AuthenticationError/missingCredential``.
    public func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) throws {
        authenticator.apply(try usableCredential(), to: &headers)
    }
}
