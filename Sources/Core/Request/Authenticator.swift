// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// What requests are authenticated with, and what may have to be renewed: an OAuth 2 token, say (RFC 6749, section 1.5).
public protocol AuthenticationCredential {
    /// Whether the credential has to be refreshed before it is used again; for a token, whether it expires in the next few minutes.
    ///
    /// Asked for each request, on the thread that makes it, so it should be quick.
    var requiresRefresh: Bool { get }
}

/// Puts credentials into requests, and gets new ones, on behalf of an ``AuthenticationInterceptor``.
public protocol Authenticator: AnyObject, Sendable {
    /// The kind of credential.
    associatedtype Credential: AuthenticationCredential & Sendable

    /// Puts the credential into a request, usually as its `Authorization` header.
    func apply(_ credential: Credential, to urlRequest: inout URLRequest)

    /// Gets a new credential in place of one that has expired or was refused, and calls `completion` once, from any thread.
    ///
    /// Called on the session's queue. Everything that needs the credential waits for `completion`. A request made for this must not have
    /// the same interceptor: it would wait for itself. A failure fails all requests that wait, with that error.
    func refresh(
        _ credential: Credential, for manager: SessionManager, completion: @escaping @Sendable (Result<Credential, any Error>) -> Void)

    /// Whether a request failed because its credential was not accepted; for most servers, whether the status is 401.
    func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool

    /// Whether the request carries this very credential. `false` has it sent again with the current one, without a refresh; so it has to
    /// be `true` for a request that the credential was applied to.
    func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Credential) -> Bool
}

/// Why an ``AuthenticationInterceptor`` can't authenticate a request.
public enum AuthenticationError: Error, Sendable, Hashable {
    /// The interceptor has no credential.
    case missingCredential
    /// The credential was refreshed too often in too short a time, and not accepted for long.
    case excessiveRefresh
}

// MARK: - LocalizedError

extension AuthenticationError: LocalizedError {
    /// What went wrong, in a sentence.
    public var errorDescription: String? {
        switch self {
        case .missingCredential: "There is no credential to authenticate the request with."
        case .excessiveRefresh: "The credential was refreshed too often in too short a time."
        }
    }
}
