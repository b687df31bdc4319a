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
public protocol Authenticator: AnyObject, Sendable {
    /// The type of the credential.
    associatedtype Credential: AuthenticationCredential & Sendable

    /// Applies the credential to a request, usually as its `Authorization` field.
    func apply(_ credential: Credential, to urlRequest: inout URLRequest)

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
            urlRequest.setValue(value, forHTTPHeaderField: name)
        }
    }
}

/// Why an ``AuthenticationInterceptor`` can't authenticate a request.
public enum AuthenticationError: Error, Sendable, Hashable {
    /// The interceptor has no credential.
    case missingCredential
    /// The credential was refreshed more often than the interceptor's refresh window allows.
    case excessiveRefresh
}

// MARK: - LocalizedError

extension AuthenticationError: LocalizedError {
    /// A sentence that describes the error.
    public var errorDescription: String? {
        switch self {
        case .missingCredential: "The request was not sent: the authentication interceptor has no credential."
        case .excessiveRefresh: "The credential was not refreshed again: the limit of the interceptor's refresh window is reached."
        }
    }
}
