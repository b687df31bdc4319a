// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// MARK: - Descriptions

extension Request: CustomDebugStringConvertible, RedactedReflectable {
    /// The request as a redacted cURL command after a `$ `, one option per line; see ``cURLDescription(redacting:)``.
    public var debugDescription: String { "$ " + cURLDescription() }

    /// Returns the request as a `curl` command, one option per line; `curl command could not be created` for a request without a URL.
    ///
    /// Without redaction the command sends the same request when pasted into a POSIX shell, secrets included: do not log it where those may
    /// not be read. A body is included if it is text of up to 100,000 bytes, or a file, by its name; binary bodies and those of streams are
    /// omitted. curl adds `User-Agent` and `Accept` to a request without them, and does not follow redirects.
    ///
    /// - Parameter redacting: whether secrets are replaced by `<hidden>`, and control characters in quoted words are escaped; `true` by
    ///   default. Secrets are credentials, cookies, and the header fields, query items, form items and members of JSON in
    ///   ``Redaction``. Other bodies are not redacted.
    public func cURLDescription(redacting: Bool = true) -> String {
        guard let transfer = transferToDescribe else { return "curl command could not be created" }
        let command = CurlCommand(
            session.outgoing(transfer), credential: credentialToDescribe, redaction: redacting ? Redaction.current : nil)
        return command.lines.joined(separator: " \\\n\t")
    }

    /// Shows the request in short and the response's status, as other parts, such as a session's credentials, may be secret.
    package var shownParts: KeyValuePairs<String, Any> { ["request": description] }

    /// The task's original request; without a task, the request as it would be sent without adapters.
    private var transferToDescribe: TransferRequest? {
        if let task { return task.originalTransfer }
        guard let work = try? requestTask.get().original.work(in: session, adapted: nil), case .transfer(let transfer) = work else {
            return nil
        }
        return transfer
    }

    /// The credential with which the request answers a challenge, as `user:password`.
    ///
    /// A stored credential is found if its realm is the host's name, because the server's realm is unknown before a challenge.
    private var credentialToDescribe: String? {
        let url = originalURLToDescribe
        let space = url?.host.map { host in
            URLProtectionSpace(
                host: host, port: url?.port ?? 0, protocol: url?.scheme, realm: host,
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        }
        let stored = space.flatMap { session.configuration.credentialStorage?.credential(forAnyOf: [$0]) }
        guard let credential = stored ?? credential, let user = credential.user, !user.isEmpty else { return nil }
        return "\(user):\(credential.password ?? "")"
    }

    private var originalURLToDescribe: URL? { (transferToDescribe?.url).flatMap { URL(string: $0) } }
}
