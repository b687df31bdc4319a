// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Authenticates requests with a credential, and refreshes it when it has expired: once, however many requests find that out.
///
/// Give it to a session as its ``SessionManager/adapter`` and its ``SessionManager/retrier``, or to single requests. Requests that fail
/// for the credential are asked about only if their response is an error, as by ``DataRequest/validate()``. Those that come while it is
/// being refreshed wait for the new one; those that failed with an older one are sent again with the current one.
///
/// All members may be used from any thread. The interceptor may serve several sessions.
public final class AuthenticationInterceptor<AuthenticatorType: Authenticator>: RequestInterceptor {
    /// The kind of credential.
    public typealias Credential = AuthenticatorType.Credential

    /// How often a credential may be refreshed: what goes beyond that fails with ``AuthenticationError/excessiveRefresh``, so that a
    /// server that accepts no credential is not asked for ever.
    public struct RefreshWindow: Sendable, Hashable {
        /// The length of the window in seconds.
        public let interval: TimeInterval
        /// How many refreshes may begin in a window of that length.
        public let maximumAttempts: Int

        /// Makes a window; 5 refreshes in 30 seconds by default.
        public init(interval: TimeInterval = 30, maximumAttempts: Int = 5) {
            self.interval = interval
            self.maximumAttempts = maximumAttempts
        }
    }

    private typealias Waiter = @Sendable (Result<Void, any Error>) -> Void

    private struct State {
        var credential: Credential?
        /// Counts credentials, so that nobody refreshes one that is gone.
        var generation = 0
        /// The refresh under way.
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

    /// Makes an interceptor.
    ///
    /// - Parameters:
    ///   - authenticator: applies and refreshes credentials.
    ///   - credential: the first one; without one requests fail with ``AuthenticationError/missingCredential``.
    ///   - refreshWindow: how often it may be refreshed; `nil` for no limit.
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

    /// The credential; `nil` when there is none, as before a login and after a logout.
    ///
    /// Setting it takes the place of a refresh under way, whose result is then dropped: the requests that wait go on with this one.
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

    /// Puts the credential into the request. One that has to be refreshed first has the request wait for that.
    ///
    /// - Throws: ``AuthenticationError/missingCredential``.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        var adapted = urlRequest
        authenticator.apply(try usableCredential(), to: &adapted)
        return adapted
    }

    /// The interceptor itself, if its authenticator is a ``HeaderAuthenticator``.
    public var headerAdapter: (any HeaderAdapter)? { self as? any HeaderAdapter }

    fileprivate func usableCredential() throws -> Credential {
        let (credential, generation, isRefreshing) = state.withLock { ($0.credential, $0.generation, $0.refresh != nil) }
        guard let credential else { throw AuthenticationError.missingCredential }
        guard isRefreshing || credential.requiresRefresh else { return credential }
        throw PendingAdaptation { [self] manager, done in refresh(generation, for: manager, done) }
    }

    // MARK: RequestRetrier

    /// Has a request tried again that failed for its credential, when there is another one; all others are left as they are.
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

    /// Refreshes the credential of that number, unless that is done or being done; calls back when there is another one.
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
        // Held until it answers: requests wait for that, even if the session has another adapter by then.
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
            // A second answer, or one that somebody's new credential has overtaken.
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
    /// Puts the credential into the header fields. One that has to be refreshed first has the request wait for that.
    ///
    /// - Throws: ``AuthenticationError/missingCredential``.
    public func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) throws {
        authenticator.apply(try usableCredential(), to: &headers)
    }
}
