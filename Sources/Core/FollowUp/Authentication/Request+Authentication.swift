// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension Request {
    /// Gives the request a name and a password for a server that asks for them: Basic (RFC 7617), Digest (RFC 7616) or NTLM.
    ///
    /// Nothing is sent before the server has asked with a 401. It may have done so already: the request waits for its first handler before
    /// it takes a 401 for its answer. Of several schemes the strongest is answered. If the server refuses the credential, its 401 is the
    /// response, without an error; so it is where the request was redirected to another origin, which gets nothing.
    ///
    /// - Parameter persistence: whether a credential that was accepted goes into the session's
    ///   ``SessionConfiguration/credentialStorage``, from where other requests take it; `permanent` lasts as long as that.
    @discardableResult
    public func authenticate(user: String, password: String, persistence: URLCredential.Persistence = .forSession) -> Self {
        authenticate(usingCredential: URLCredential(user: user, password: password, persistence: persistence))
    }

    /// Gives the request a credential for a server that asks for one, as ``authenticate(user:password:persistence:)`` does.
    ///
    /// An empty user name stands for the Kerberos tickets of the process, with which Negotiate (RFC 4559) is answered, and only then. The
    /// library of libcurl that does so talks to Kerberos on the session's event loop, which waits for it.
    @discardableResult
    public func authenticate(usingCredential credential: URLCredential) -> Self {
        driver.authenticate(with: credential)
        return self
    }

    /// The header field that carries a name and a password without being asked: Basic, base64 of UTF-8 (RFC 7617).
    ///
    /// `nil` when the name has a colon, or either has a control character.
    public class func authorizationHeader(user: String, password: String) -> (key: String, value: String)? {
        BasicAuthentication.authorization(user: user, password: password).map { ("Authorization", $0) }
    }

    /// The credential that the user has given.
    var credential: URLCredential? { driver.state.withLock { $0.authentication }?.credential }
}
