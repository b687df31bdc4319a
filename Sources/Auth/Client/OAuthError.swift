// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Why there are no tokens.
///
/// A request that could not be sent fails with its ``CurlewError``.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum OAuthError: Error, Sendable {
    /// The authorization server has refused, with an error of RFC 6749.
    case refused(OAuthRefusal)
    /// The user has to sign in again: there is no refresh token, or it is not accepted any more, for a reason of the server's, if there is one.
    case signInRequired(OAuthRefusal?)
    /// A refresh token was sent, and no answer has come: it may have been replaced. The next refresh sends it once more, if
    /// ``OAuthAuthenticator/Options/resendsRefreshToken``; otherwise it fails with ``signInRequired(_:)``.
    case refreshOutcomeUnknown(any Error)
    /// The response is not one of OAuth: its status, and what is wrong.
    case unexpectedResponse(statusCode: Int, reason: String)
    /// The access token is not bound to the client's key, although it was requested with a proof (RFC 9449, section 5).
    case unboundToken
    /// The server's metadata can't be found or used.
    case invalidMetadata(reason: String)
    /// The server's metadata names no endpoint of this kind.
    case missingEndpoint(String)
    /// The response to an authorization request is not for it, or not from the server to which it was sent; it may be an attack.
    case invalidCallback(reason: String)
    /// There was no answer in time: by the user, or to a renewal.
    case timedOut(after: Duration)
    /// Another process keeps the lock of a file of tokens.
    case locked(path: String)
    /// The file of tokens can't be read as such.
    case unreadableFile(path: String)

    /// Whether an error means that the server has refused, rather than that the outcome is unknown or the server could not be asked: for
    /// `isRefusal` of `FleetAuthenticator`.
    public static func isRefusal(_ error: any Error) -> Bool {
        switch error {
        case OAuthError.refused(let refusal): refusal.statusCode < 500 && refusal.code != .temporarilyUnavailable
        case OAuthError.signInRequired: true
        default: false
        }
    }
}

/// An error response of an authorization server (RFC 6749, sections 4.1.2.1 and 5.2).
public struct OAuthRefusal: Error, Sendable, Hashable {
    /// The code of an error. An open set: other specifications add codes.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The code as it is sent.
        public let rawValue: String

        /// Creates a code from its text.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The request lacks a parameter, or repeats one.
        public static let invalidRequest = Code(rawValue: "invalid_request")
        /// The client's authentication has failed.
        public static let invalidClient = Code(rawValue: "invalid_client")
        /// The code, the refresh token or the assertion is invalid, expired or revoked, or another client's.
        public static let invalidGrant = Code(rawValue: "invalid_grant")
        /// The client may not use the grant.
        public static let unauthorizedClient = Code(rawValue: "unauthorized_client")
        /// The server does not support the grant.
        public static let unsupportedGrantType = Code(rawValue: "unsupported_grant_type")
        /// The scope is unknown, or more than was granted.
        public static let invalidScope = Code(rawValue: "invalid_scope")
        /// The server does not support the response type.
        public static let unsupportedResponseType = Code(rawValue: "unsupported_response_type")
        /// The user or the server has refused the authorization.
        public static let accessDenied = Code(rawValue: "access_denied")
        /// The server has met an unexpected condition.
        public static let serverError = Code(rawValue: "server_error")
        /// The server is overloaded.
        public static let temporarilyUnavailable = Code(rawValue: "temporarily_unavailable")
        /// The resource is unknown or invalid (RFC 8707, section 2).
        public static let invalidTarget = Code(rawValue: "invalid_target")
        /// The user has not decided yet (RFC 8628, section 3.5).
        public static let authorizationPending = Code(rawValue: "authorization_pending")
        /// The same, and the client asks too often (RFC 8628, section 3.5).
        public static let slowDown = Code(rawValue: "slow_down")
        /// The code of the device has expired (RFC 8628, section 3.5).
        public static let expiredToken = Code(rawValue: "expired_token")
        /// The proof needs the nonce of the response (RFC 9449, section 8).
        public static let useDPoPNonce = Code(rawValue: "use_dpop_nonce")
    }

    /// The code.
    public let code: Code
    /// The server's explanation for developers (`error_description`); `nil` without one.
    public let explanation: String?
    /// The URL of a page about the error (`error_uri`); `nil` without one.
    public let pageURL: String?
    /// The response's status; 0 for a refusal by a redirect.
    public let statusCode: Int

    init(_ code: Code, explanation: String? = nil, pageURL: String? = nil, statusCode: Int = 0) {
        (self.code, self.explanation, self.pageURL, self.statusCode) = (code, explanation, pageURL, statusCode)
    }

    /// Reads the body of a response; `nil` if it is none of an error.
    init?(_ body: Data, statusCode: Int) {
        struct Members: Decodable {
            let error: String
            let error_description: String?
            let error_uri: String?
        }
        guard let members = try? JSONDecoder().decode(Members.self, from: body) else { return nil }
        self.init(Code(rawValue: members.error), explanation: members.error_description, pageURL: members.error_uri, statusCode: statusCode)
    }
}

// MARK: - Descriptions

extension OAuthRefusal: CustomStringConvertible, LocalizedError, CustomReflectable {
    /// The code and the explanation, without secrets and control characters.
    public var description: String {
        let text = [code.rawValue, explanation].compactMap(\.self).joined(separator: ": ")
        let shown = Redaction.escaped(Redaction.current.url(String(text.unicodeScalars.prefix(500))))
        return statusCode == 0 ? shown : "\(shown) (status \(statusCode))"
    }

    /// The same sentence.
    public var errorDescription: String? { description }

    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}

extension OAuthError: CustomStringConvertible, LocalizedError, CustomReflectable {
    /// What has failed, and why.
    public var description: String {
        switch self {
        case .refused(let refusal): "The authorization server has refused the request: \(refusal)."
        case .signInRequired(nil): "The user has to sign in: there is no refresh token that can be used."
        case .signInRequired(let refusal?): "The user has to sign in: the refresh token was refused: \(refusal)."
        case .refreshOutcomeUnknown(let error): "The refresh token was sent, and no answer has come: \(error)"
        case .unexpectedResponse(let status, let reason): "The authorization server's response, of status \(status), is not one: \(reason)."
        case .unboundToken: "The access token is not bound to the client's key."
        case .invalidMetadata(let reason): "The authorization server's metadata can't be used: \(reason)."
        case .missingEndpoint(let name): "The authorization server's metadata has no \(name)."
        case .invalidCallback(let reason): "The response to the authorization request is refused: \(reason)."
        case .timedOut(let time): "There was no answer within \(time)."
        case .locked(let path): "Another process keeps the lock of the tokens in \(path)."
        case .unreadableFile(let path): "The file \(path) has no tokens that can be read."
        }
    }

    /// The same sentence.
    public var errorDescription: String? { description }

    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}
