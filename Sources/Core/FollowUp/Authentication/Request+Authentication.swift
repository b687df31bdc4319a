// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension Request {
    /// Sets a user name and a password for the origin's challenge: Basic (RFC 7617), Digest (RFC 7616) or NTLM.
    ///
    /// Nothing is sent before the server has sent a challenge with a 401: to this request, or, for Digest, to an earlier one of the session
    /// and the same user. Its nonce is used again (RFC 7616, section 3.6), so that a body is sent once. For that, a request to such a
    /// server starts with its first handler or credential, at most 100 milliseconds late. Set the credential before handlers.
    ///
    /// A challenge received before this call is answered too, because a 401 waits for the request's first handler, at most a second. Of
    /// several schemes the strongest is answered. If the server refuses the credential, the response is its 401, without an error; so it is
    /// after a redirect to another origin, which does not get the credential.
    ///
    /// - Parameter persistence: whether an accepted credential is stored in the session's ``SessionConfiguration/credentialStorage``, where
    ///   other requests find it; `permanent` lasts as long as that storage.
    @discardableResult
    public func authenticate(user: String, password: String, persistence: URLCredential.Persistence = .forSession) -> Self {
        authenticate(usingCredential: URLCredential(user: user, password: password, persistence: persistence))
    }

    /// Sets a credential for the origin's challenge, as ``authenticate(user:password:persistence:)`` does.
    ///
    /// An empty user name means the Kerberos tickets of the process: Negotiate (RFC 4559) is answered with these only. libcurl's Kerberos
    /// library blocks the session's event loop while it obtains one.
    @discardableResult
    public func authenticate(usingCredential credential: URLCredential) -> Self {
        driver.authenticate(with: credential)
        return self
    }

    /// Returns the header field that sends a user name and a password without a challenge: Basic, base64 of UTF-8 (RFC 7617).
    ///
    /// `nil` if the name has a colon, or either has a control character.
    public class func authorizationHeader(user: String, password: String) -> (key: String, value: String)? {
        BasicAuthentication.authorization(user: user, password: password).map { ("Authorization", $0) }
    }

    /// The credential that the user has set.
    var credential: URLCredential? { driver.state.withLock { $0.authentication }?.credential }
}
