// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// MARK: - Descriptions

extension Request: CustomDebugStringConvertible, CustomReflectable {
    /// The request as a cURL command behind a `$ `, one option a line, without its secrets; see ``cURLDescription(redacting:)``.
    public var debugDescription: String { "$ " + cURLDescription() }

    /// The request as a command of the program curl, one option a line; a fixed sentence if there is none.
    ///
    /// Without redaction the command sends the same as the request when it is pasted into a POSIX shell, secrets included: do not log it
    /// where those may not be read. Of the body it has what is text up to 100,000 bytes, or a file's name; bodies out of streams and
    /// binary ones are left out. curl adds `User-Agent` and `Accept` to a request without them, and follows no redirects.
    ///
    /// - Parameter redacting: whether secrets read `<hidden>`, and control characters in quoted words are escaped; `true` by default. Secret
    ///   are credentials, cookies, and the header fields, query items and items of forms that are marked (``Redaction``). JSON and other
    ///   bodies are shown as they are.
    public func cURLDescription(redacting: Bool = true) -> String {
        guard let transfer = transferToDescribe else { return "curl command could not be created" }
        let command = CurlCommand(
            session.outgoing(transfer), credential: credentialToDescribe, redaction: redacting ? Redaction.current : nil)
        return command.lines.joined(separator: " \\\n\t")
    }

    /// The request in short and the response's status: what else is in it, such as a session's credentials, may be secret.
    public var customMirror: Mirror { .redacted(self, ["request": description]) }

    /// What the task sends; what it would send, unadapted, where there is none.
    private var transferToDescribe: TransferRequest? {
        if let task { return task.originalTransfer }
        guard let work = try? requestTask.get().original.work(in: session, adapter: nil), case .transfer(let transfer) = work else {
            return nil
        }
        return transfer
    }

    /// User and password that the request authenticates with when it is asked to, with a colon between them.
    ///
    /// A stored one counts whose realm is the host's name, as the server has not said another yet.
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
