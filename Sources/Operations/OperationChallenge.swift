// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// A server's request for credentials, or the question whether the server is trusted. Call one of its methods once; later calls have no
/// effect.
///
/// The connection waits until then. A challenge that is released without a call is cancelled.
public final class OperationChallenge: Sendable {
    /// What the challenge is about.
    public enum Kind: Sendable {
        /// Whether the server's certificates are accepted; decided before the request is sent.
        case serverTrust(ServerTrust)
        /// A user and a password, for the scheme in Foundation's challenge (RFC 9110, section 11).
        case credential
    }

    enum Disposition: Sendable {
        case use(URLCredential)
        case acceptServerTrust
        case continueWithout
        case performDefault
        case reject
        case cancel
    }

    /// What the challenge is about.
    public let kind: Kind
    /// Foundation's challenge; `nil` for server trust.
    public let authenticationChallenge: URLAuthenticationChallenge?
    /// The host that sent the challenge, in lower case.
    public let host: String
    /// The number of credentials that the server has rejected.
    public var previousFailureCount: Int { authenticationChallenge?.previousFailureCount ?? 0 }
    /// The available credential: the URL's, or one from the storage.
    public var proposedCredential: URLCredential? { authenticationChallenge?.proposedCredential }

    private let completion: Lock<(@Sendable (Disposition) -> Void)?>

    init(kind: Kind, challenge: URLAuthenticationChallenge?, host: String, completion: @escaping @Sendable (Disposition) -> Void) {
        self.kind = kind
        authenticationChallenge = challenge
        self.host = host
        self.completion = Lock(completion)
    }

    deinit {
        complete(.cancel)
    }

    /// Sends a credential. It does not decide about server trust: the operation's security policy does.
    public func use(_ credential: URLCredential) { complete(.use(credential)) }

    /// Accepts the server regardless of its certificates. Without checking them, anyone on the path can read and change the traffic.
    public func acceptServerTrust() { complete(.acceptServerTrust) }

    /// Continues without a credential: the server's challenge response becomes the response. For server trust, rejects the server.
    public func continueWithoutCredential() { complete(.continueWithout) }

    /// Applies the default handling, as without a closure: the operation's credential and security policy.
    public func performDefaultHandling() { complete(.performDefault) }

    /// Tries the next scheme that the server offers; after the last one, its challenge response becomes the response.
    public func rejectProtectionSpace() { complete(.reject) }

    /// Fails the operation with `URLError.userCancelledAuthentication`.
    public func cancel() { complete(.cancel) }

    private func complete(_ disposition: Disposition) {
        let completion = completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
        completion?(disposition)
    }
}

// MARK: - CustomReflectable

extension OperationChallenge: CustomReflectable {
    /// Kind and host, without the proposed credential.
    public var customMirror: Mirror { .redacted(self, ["kind": kind, "host": Redaction.escaped(host)]) }
}
