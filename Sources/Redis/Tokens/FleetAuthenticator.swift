// SPDX-License-Identifier: Apache-2.0
#if Redis
public import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// An authenticator whose credential is shared by a fleet: it is refreshed once, by one process, and used by all.
///
/// ```swift
/// let shared = FleetAuthenticator(ServiceAuthenticator(), client: redis, name: "service")
/// let manager = SessionManager(interceptor: AuthenticationInterceptor(authenticator: shared))
/// ```
///
/// A process that needs a credential takes the one on the server, if that is another one than it had. Otherwise it takes the lease of the
/// refresh, which it renews while it refreshes, and stores the result; the others wait for it. A holder that dies is replaced when its
/// lease ends; what it might store later is refused by its fencing number. With sentinels or a cluster, a lease and a credential are used
/// when a replica has them, for which the server waits half of ``RedisConfiguration/commandTimeout`` at most. A replica that does not
/// respond may be the master meanwhile, and the server be cut off: with ``Unavailability/fail`` each replica that sentinels or the cluster
/// may promote has to have them; otherwise the refresh does not begin, and what was stored is stored again. A refused refresh is recorded
/// on the server, and the others fail with ``FleetTokenError/refused(_:)``; one that fails otherwise is tried by the next process.
///
/// If the server is unavailable, ``whenUnavailable`` decides, after ``RedisConfiguration/commandTimeout`` at most. A credential whose refresh
/// succeeded but could not be stored is used by this process, which tries to store it until the lease ends. A fail-over that takes longer than
/// the lease may have another process refresh with what the first one has replaced.
///
/// Thread-safe.
public final class FleetAuthenticator<Base: AsyncAuthenticator>: AsyncAuthenticator where Base.Credential: Codable {
    /// The type of the credential.
    public typealias Credential = Base.Credential

    /// What happens while the server is unavailable.
    public enum Unavailability: Sendable, Hashable {
        /// The process refreshes by itself. With refresh tokens that are valid once, processes then replace each other's.
        case refreshLocally
        /// The requests that need a credential fail with ``RedisError``. The sentinels' users need `SENTINEL REPLICAS`.
        case fail
    }

    /// What applies and refreshes the credential.
    public let base: Base
    /// What happens while the server is unavailable.
    public let whenUnavailable: Unavailability
    /// How long a process waits for the refresh of another one; 30 seconds by default.
    public let maximumWait: Duration
    private let token: FleetToken
    private let format: ValueFormat
    private let refusalTime: Duration
    private let isRefusal: @Sendable (any Error) -> Bool
    /// The credential that this process has had from the server or given to it, and its generation.
    private let last = Lock<(value: Data, generation: Int)?>(nil)

    /// Creates an authenticator.
    ///
    /// - Parameters:
    ///   - base: applies and refreshes the credential.
    ///   - client: the server's client.
    ///   - name: the credential's name, the same in all processes that share it.
    ///   - lease: after which a holder that has died is replaced; 10 seconds by default. A living one renews it.
    ///   - sealedWith: the keys that seal the credential; `nil`, the default, to store it as it is.
    ///   - whenUnavailable: what happens while the server is unavailable; by default each process refreshes by itself.
    ///   - maximumWait: how long to wait for the refresh of another process; 30 seconds by default.
    ///   - refusalTime: how long a refusal counts; 30 seconds by default.
    ///   - isRefusal: whether an error of the base means that the refresh was refused, so that others need not try; by default any but a
    ///     failed transfer and a cancellation. Its text is passed to the others, and should have no secrets.
    public init(
        _ base: Base, client: RedisClient, name: String, lease: Duration = .seconds(10), sealedWith: SealingKeys? = nil,
        whenUnavailable: Unavailability = .refreshLocally, maximumWait: Duration = .seconds(30), refusalTime: Duration = .seconds(30),
        isRefusal: (@Sendable (any Error) -> Bool)? = nil
    ) {
        self.base = base
        self.whenUnavailable = whenUnavailable
        self.maximumWait = maximumWait
        self.refusalTime = refusalTime
        self.isRefusal = isRefusal ?? { isUsuallyRefusal($0) }
        token = FleetToken(client, name: name, lease: max(lease, .milliseconds(100)), needsReplica: whenUnavailable == .fail)
        format = ValueFormat(keys: sealedWith)
    }

    // MARK: Authenticator

    /// Applies the credential by the base.
    public func apply(_ credential: Credential, to urlRequest: inout URLRequest) { base.apply(credential, to: &urlRequest) }

    /// Returns what the base returns.
    public func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool
    {
        base.didRequest(urlRequest, with: response, failDueToAuthenticationError: error)
    }

    /// Returns what the base returns.
    public func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Credential) -> Bool {
        base.isRequest(urlRequest, authenticatedWith: credential)
    }

    /// Returns the fleet's credential, refreshed by this process or another one.
    ///
    /// - Throws: what the base throws, ``FleetTokenError``, or ``RedisError`` as ``whenUnavailable`` has it.
    public func credential(replacing expired: Credential?, for manager: SessionManager) async throws -> Credential {
        do {
            return try await shared(replacing: expired, for: manager)
        } catch let error as RedisError {
            guard whenUnavailable == .refreshLocally else { throw error }
            return try await base.credential(replacing: expired, for: manager)
        }
    }

    // MARK: Sharing

    /// Gives a credential to the fleet that was obtained otherwise, by a login for example; it counts as newer than the fleet's.
    public func share(_ credential: Credential) async throws {
        let value = try encoded(credential)
        let generation = try await token.share(try format.encode(value, for: token.key))
        last.withLock { $0 = (value, generation) }
    }

    /// Removes the fleet's credential, as at a logout. Processes that have it use it until it has to be refreshed.
    public func forget() async throws { try await token.forget() }

    private func encoded(_ credential: Credential) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try encoder.encode(credential)
    }

    private func decoded(_ data: Data) throws(RedisError) -> (value: Data, Credential) {
        let value = try format.decode(data, of: token.key)
        return (value, try credential(from: value))
    }

    private func credential(from value: Data) throws(RedisError) -> Credential {
        guard let credential = try? JSONDecoder().decode(Credential.self, from: value) else {
            throw .unreadableValue(key: token.key, .damaged)
        }
        return credential
    }

    private func shared(replacing expired: Credential?, for manager: SessionManager) async throws -> Credential {
        // What was obtained under a lease that has ended.
        var obtained: Credential?
        do {
            return try await shared(replacing: expired, for: manager, &obtained)
        } catch {
            // The one that it replaces may be valid no longer: it is this process' until the next refresh.
            guard let obtained else { throw error }
            return obtained
        }
    }

    private func shared(
        replacing expired: Credential?, for manager: SessionManager, _ obtained: inout Credential?
    ) async throws -> Credential {
        let old = try expired.map { try encoded($0) }
        var known = last.withLock { last in last?.value == old ? last?.generation ?? 0 : 0 }
        let deadline = MonotonicTime.now() + maximumWait.nanoseconds
        var pause: Nanoseconds = 5_000_000
        while true {
            switch try await token.claim(known: known) {
            case .use(let data, let generation):
                let (value, credential) = try decoded(data)
                last.withLock { $0 = (value, generation) }
                if value != old, !credential.requiresRefresh { return credential }
                known = generation
            case .fail(let reason): throw FleetTokenError.refused(reason)
            case .wait(let milliseconds):
                let now = MonotonicTime.now()
                guard now < deadline else { throw FleetTokenError.timedOut(after: maximumWait) }
                try await Task.sleep(nanoseconds: min(pause, deadline - now, Duration.milliseconds(max(milliseconds, 1)).nanoseconds))
                pause = min(pause * 2, 100_000_000)
            case .refresh(let fence, let data, let generation):
                // What a fail-over has lost, and this process has: the stored one may be valid no longer.
                let newer = last.withLock { last in last.flatMap { $0.generation > generation ? $0.value : nil } }
                let stored = try newer ?? data.map { try decoded($0).value }
                let current = try stored.map { try credential(from: $0) } ?? expired
                let new = if let obtained { obtained } else { try await refresh(current, fence, manager) }
                if try await store(new, fence) { return new }
                // Another process has the next lease, or the server has lost this one. Only what was stored later is newer: the one before
                // may be valid no longer.
                (obtained, known) = (new, fence)
            }
        }
    }

    /// Refreshes under a lease.
    private func refresh(_ current: Credential?, _ fence: Int, _ manager: SessionManager) async throws -> Credential {
        let renewal = Task { [token] in
            while true {
                try await Task.sleep(nanoseconds: token.lease.nanoseconds / 3)
                // Tried again: only the server knows whether the lease has ended.
                if (try? await token.renew(fence)) == false { return }
            }
        }
        defer { renewal.cancel() }
        do {
            return try await base.credential(replacing: current, for: manager)
        } catch {
            // If the server can't be reached, the lease ends by itself.
            if isRefusal(error) {
                try? await token.refuse(fence, String("\(error)".prefix(500)), for: refusalTime)
            } else {
                try? await token.release(fence)
            }
            throw error
        }
    }

    /// Stores what was obtained under a lease; `false` if another one was granted meanwhile, or the server does not know this one.
    private func store(_ credential: Credential, _ fence: Int) async throws -> Bool {
        let value = try encoded(credential)
        let stored = try format.encode(value, for: token.key)
        // Also if it can't be stored: it replaces what the server has.
        last.withLock { $0 = (value, fence) }
        do {
            return try await token.complete(fence, stored)
        } catch {
            // It is this process' until the lease can be completed, or the next refresh.
            Task { [token] in await token.completeLater(fence, stored) }
            return true
        }
    }
}

extension FleetAuthenticator: HeaderAuthenticator where Base: HeaderAuthenticator {
    /// Applies the credential by the base.
    public func apply(_ credential: Credential, to headers: inout HTTPHeaders) { base.apply(credential, to: &headers) }
}

/// Why a process has no credential of the fleet.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum FleetTokenError: Error, Sendable, Hashable {
    /// The refresh was refused to another process, with this error.
    case refused(String)
    /// Another process refreshes for longer than ``FleetAuthenticator/maximumWait``.
    case timedOut(after: Duration)
}

extension FleetTokenError: LocalizedError, CustomStringConvertible {
    /// The reason, as a sentence.
    public var description: String {
        switch self {
        case .refused(let reason): "Another process was refused the credential: \(reason)"
        case .timedOut(let time): "Another process has not refreshed the credential within \(time)."
        }
    }

    /// The same sentence.
    public var errorDescription: String? { description }
}

/// Whether an error says that a refresh was refused, rather than that it could not be asked for.
private func isUsuallyRefusal(_ error: any Error) -> Bool {
    switch error {
    case is CancellationError, is RedisError, CurlewError.transferFailed, CurlewError.cancelled, CurlewError.sessionInvalidated,
        CurlewError.sessionShutDown:
        false
    case CurlewError.responseValidationFailed(.unacceptableStatusCode(let code), _): (400..<500).contains(code) && code != 429
    default: true
    }
}
#endif
