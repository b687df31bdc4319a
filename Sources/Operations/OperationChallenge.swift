// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// A server's question for credentials, or whether it is trusted. Answered once, by one of its methods; the first answer counts.
///
/// The connection waits for the answer. A challenge that nobody keeps and nobody has answered is cancelled.
public final class OperationChallenge: Sendable {
    /// What the server has to be answered.
    public enum Kind: Sendable {
        /// Whether what the server has shown is accepted; before the request is sent.
        case serverTrust(ServerTrust)
        /// A name and a password, in the scheme of Foundation's challenge (RFC 9110, section 11).
        case credential
    }

    enum Answer: Sendable {
        case use(URLCredential)
        case acceptServerTrust
        case continueWithout
        case performDefault
        case reject
        case cancel
    }

    /// What is asked.
    public let kind: Kind
    /// The challenge as Foundation has it; `nil` where a server's trust is in question.
    public let authenticationChallenge: URLAuthenticationChallenge?
    /// Who asks; in lower case.
    public let host: String
    /// How many answers of this kind the server has refused.
    public var previousFailureCount: Int { authenticationChallenge?.previousFailureCount ?? 0 }
    /// A credential that is at hand: the URL's, or one of the storage.
    public var proposedCredential: URLCredential? { authenticationChallenge?.proposedCredential }

    private let answer: Lock<(@Sendable (Answer) -> Void)?>

    init(kind: Kind, challenge: URLAuthenticationChallenge?, host: String, answer: @escaping @Sendable (Answer) -> Void) {
        self.kind = kind
        authenticationChallenge = challenge
        self.host = host
        self.answer = Lock(answer)
    }

    deinit {
        give(.cancel)
    }

    /// Answers with a credential. It says nothing about a server whose trust is in question: the operation's policy judges that.
    public func use(_ credential: URLCredential) { give(.use(credential)) }

    /// Accepts the server, whatever it has shown. Whoever accepts without looking lets anybody in between read and change everything.
    public func acceptServerTrust() { give(.acceptServerTrust) }

    /// Goes on without a credential: the server's refusal is the response. A server whose trust is in question is refused.
    public func continueWithoutCredential() { give(.continueWithout) }

    /// Does what is done without a closure: the operation's credential and policy.
    public func performDefaultHandling() { give(.performDefault) }

    /// Passes on to the next scheme that the server offers; after the last its refusal is the response.
    public func rejectProtectionSpace() { give(.reject) }

    /// Ends the operation, with `URLError.userCancelledAuthentication`.
    public func cancel() { give(.cancel) }

    private func give(_ value: Answer) {
        let answer = answer.withLock { answer in
            defer { answer = nil }
            return answer
        }
        answer?(value)
    }
}

// MARK: - CustomReflectable

extension OperationChallenge: CustomReflectable {
    /// Kind and host; not the credential that is at hand.
    public var customMirror: Mirror { .redacted(self, ["kind": kind, "host": Redaction.escaped(host)]) }
}
