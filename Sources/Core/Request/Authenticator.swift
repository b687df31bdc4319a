// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A credential of requests that can be refreshed, such as an OAuth 2 token (RFC 6749, section 1.5).
public protocol AuthenticationCredential {
    /// Whether the credential must be refreshed before its next use; for a token, whether it expires within the next few minutes.
    ///
    /// Read for each request, on the thread that creates it, so it must not block.
    var requiresRefresh: Bool { get }
}

/// Applies credentials to requests, and refreshes them, for an ``AuthenticationInterceptor``.
///
/// Only ``credential(for:completion:)`` has a default. An ``AsyncAuthenticator`` obtains credentials in `async` code, a
/// ``HeaderAuthenticator`` needs no `URLRequest` to apply them.
public protocol Authenticator: AnyObject, Sendable {
    /// The type of the credential.
    associatedtype Credential: AuthenticationCredential & Sendable

    /// Applies the credential to a request, usually as its `Authorization` field.
    ///
    /// A request that this leaves as it is, and which ``isRequest(_:authenticatedWith:)`` says has no credential, fails with
    /// ``AuthenticationError/credentialNotApplied``: Foundation on Linux drops a field whose value has a line break.
    func apply(_ credential: Credential, to urlRequest: inout URLRequest)

    /// Obtains a credential where the interceptor has none, such as the first one, and calls `completion` once, on any thread. By default
    /// it fails with ``AuthenticationError/missingCredential``.
    ///
    /// Called on the session's queue, once, however many requests wait, under the same conditions as
    /// ``refresh(_:for:completion:)``.
    func credential(for manager: SessionManager, completion: @escaping @Sendable (Result<Credential, any Error>) -> Void)

    /// Obtains a replacement for a credential that has expired or was rejected, and calls `completion` once, on any thread.
    ///
    /// Called on the session's queue. All requests that need the credential wait for `completion`. A request made for the refresh must not
    /// have the same interceptor, or it deadlocks. A failure fails all waiting requests with that error.
    func refresh(
        _ credential: Credential, for manager: SessionManager, completion: @escaping @Sendable (Result<Credential, any Error>) -> Void)

    /// Returns whether a request failed because its credential was rejected; for most servers, whether the status is 401.
    func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool

    /// Returns whether the request has this credential; must be `true` after ``apply(_:to:)``. With `false` the request is retried with the
    /// current credential, without a refresh.
    func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Credential) -> Bool
}

extension Authenticator {
    /// Fails with ``AuthenticationError/missingCredential``.
    public func credential(for manager: SessionManager, completion: @escaping @Sendable (Result<Credential, any Error>) -> Void) {
        completion(.failure(AuthenticationError.missingCredential))
    }
}

/// An ``Authenticator`` in `async` form, which obtains the first credential as well as its replacements.
///
/// ```swift
/// final class ServiceAuthenticator: HeaderAuthenticator, AsyncAuthenticator {
///     let tokens = SessionManager()  // without the interceptor, for which the request would wait
///
///     func credential(replacing expired: Token?, for manager: SessionManager) async throws -> Token {
///         try await tokens.request(tokenURL, method: .post, parameters: ["refresh": expired?.refresh ?? ""])
///             .validate().serializingDecodable(Token.self).value
///     }
///     …
/// }
/// ```
///
/// Requirements of ``Authenticator`` in closure form have defaults, which call ``credential(replacing:for:)``.
public protocol AsyncAuthenticator: Authenticator {
    /// Obtains a credential: the first one, or a replacement for one that has expired or was rejected.
    ///
    /// Called once, however many requests wait, in a task of its own, which has the task-local values of the request that was the first to
    /// need it but for its ``Deadline/current``, and is not cancelled with that request. A request made here must not have the same
    /// interceptor, or it deadlocks. An error fails all waiting requests.
    ///
    /// - Parameters:
    ///   - expired: the credential to replace; `nil` if there is none.
    ///   - manager: the manager of the request that was the first to need it.
    func credential(replacing expired: Credential?, for manager: SessionManager) async throws -> Credential
}

extension AsyncAuthenticator {
    /// Calls ``credential(replacing:for:)`` without a credential.
    public func credential(for manager: SessionManager, completion: @escaping @Sendable (Result<Credential, any Error>) -> Void) {
        obtain(replacing: nil, for: manager, completion)
    }

    /// Calls ``credential(replacing:for:)`` with the credential.
    public func refresh(
        _ credential: Credential, for manager: SessionManager, completion: @escaping @Sendable (Result<Credential, any Error>) -> Void
    ) {
        obtain(replacing: credential, for: manager, completion)
    }

    private func obtain(
        replacing expired: Credential?, for manager: SessionManager,
        _ completion: @escaping @Sendable (Result<Credential, any Error>) -> Void
    ) {
        Task {
            do { completion(.success(try await credential(replacing: expired, for: manager))) } catch { completion(.failure(error)) }
        }
    }
}

/// An authenticator that applies credentials to header fields only, so that its ``AuthenticationInterceptor`` needs no `URLRequest`.
public protocol HeaderAuthenticator: Authenticator {
    /// Applies the credential to the header fields of a request, usually as `Authorization`.
    func apply(_ credential: Credential, to headers: inout HTTPHeaders)
}

extension HeaderAuthenticator {
    /// Applies the credential to the header fields of a `URLRequest`.
    public func apply(_ credential: Credential, to urlRequest: inout URLRequest) {
        var headers = HTTPHeaders(urlRequest.allHTTPHeaderFields ?? [:])
        apply(credential, to: &headers)
        for (name, value) in headers.dictionary where urlRequest.value(forHTTPHeaderField: name) != value {
            urlRequest.setField(name, value)
        }
    }
}

/// Why an ``AuthenticationInterceptor`` can't authenticate a request. Later versions may add cases, so a `switch` needs a `default`.
public enum AuthenticationError: Error, Sendable, Hashable {
    /// The interceptor has no credential.
    case missingCredential
    /// The credential was refreshed more often than the interceptor's refresh window allows.
    case excessiveRefresh
    /// The authenticator has applied the credential to the request, which is unchanged. Foundation on Linux drops a header field whose value
    /// has a line break, such as a token that was read from a file with its last line feed.
    case credentialNotApplied
}

// MARK: - LocalizedError

extension AuthenticationError: LocalizedError {
    /// A sentence that describes the error.
    public var errorDescription: String? {
        switch self {
        case .missingCredential: "The request was not sent: the authentication interceptor has no credential."
        case .excessiveRefresh: "The credential was not refreshed again: the limit of the interceptor's refresh window is reached."
        case .credentialNotApplied:
            "The request was not sent: the authenticator left it without the credential, which may have a line break."
        }
    }
}
