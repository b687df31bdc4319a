// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// What an exchange is sent with, and the request of its task does not keep.

extension RequestDriver {
    /// The last step before each exchange is sent: the first of an attempt, a redirect, an authenticated retry, a restart. Adds
    /// credentials for a challenge, cookies, the host's trust policy, and what instruments need to know of it, none of which is kept in the
    /// task's request: a redirect would take them to the next origin.
    func outgoing(_ request: TransferRequest, as followUp: FollowUp.Kind?, _ digests: DigestMemory? = nil) -> TransferRequest {
        if let digests { useNonce(of: digests, for: request, as: followUp) }
        let (authentication, deadline) = state.withLock { ($0.authentication, $0.deadline) }
        var outgoing = session.outgoing(authentication?.authorize(request) ?? request, ownedTask)
        if outgoing.hasUnboundCertificate, !mayPresentCertificate(to: outgoing.url, as: followUp) {
            outgoing.options.tls.clientCertificate = nil
        }
        if let deadline { add(deadline, to: &outgoing) }
        if isSigned { mark(&outgoing) }
        if recordsExchanges { recordExchange(outgoing) }
        if session.reportsExchanges { noteExchange(outgoing, reason(of: followUp)) }
        if session.isInstrumented || session.offersToClasses {
            outgoing.source = ExchangeSource(self, reason(of: followUp))
        } else if session.marksRetries, reason(of: followUp) == .retry {
            outgoing.source = ExchangeSource(self, .retry)
        }
        return outgoing
    }

    /// The same for a raw stream: adds the host's trust policy, and leaves out a client certificate that names no origins where the handshake
    /// was redirected to another one.
    func outgoing(_ request: StreamTransferRequest) -> StreamTransferRequest {
        var outgoing = session.outgoing(request, ownedTask)
        guard let first = settings?.options.certificateURL, let certificate = outgoing.options.tls.clientCertificate,
            certificate.origins == nil
        else { return outgoing }
        if !isSameOrigin("https://\(request.host.bracketed):\(request.port)", as: first) { outgoing.options.tls.clientCertificate = nil }
        return outgoing
    }

    /// Whether the last step before an exchange may take long: stores are in files, or a signer digests the body.
    func preparesOnQueue(_ request: @autoclosure () -> TransferRequest?) -> Bool {
        session.readsFiles || isSigned && signer?.digestsBody == true && request()?.isWithoutBody == false
    }

    /// Has an exchange signed that is sent to the origin of the request.
    private func mark(_ outgoing: inout TransferRequest) {
        let isOfOrigin = task?.originalTransfer.map { isSameOrigin(outgoing.url, as: $0.url) } ?? false
        outgoing.signing = isOfOrigin ? signer.map { RequestSigning($0, body: outgoing.body) } : nil
    }

    /// Adds the header field with the time that remains, to the origin of the request.
    private func add(_ deadline: RequestDeadline, to outgoing: inout TransferRequest) {
        guard let name = settings?.options.deadlineHeader, let original = task?.originalTransfer,
            isSameOrigin(outgoing.url, as: original.url)
        else { return }
        outgoing.setDeadline(deadline.deadline.headerValue, inField: name)
    }

    /// Whether an exchange may present a client certificate that names no origins: to the origin of the URL that the program has given.
    private func mayPresentCertificate(to url: String, as followUp: FollowUp.Kind?) -> Bool {
        let first = settings?.options.certificateURL
        guard followUp != nil || first != nil else { return true }
        guard let given = first ?? task?.originalTransfer?.url else { return false }
        return isSameOrigin(url, as: given)
    }

    private func isSameOrigin(_ url: String, as original: String) -> Bool {
        original == url || HTTPOrigin(url: session.hsts?.upgraded(original) ?? original) == HTTPOrigin(url: url)
    }
}

extension Session {
    /// The signer of a request with options.
    func signer(for options: RequestOptions?) -> (any ExchangeSigner)? {
        options?.withholdsCredentials == true ? nil : options?.signer ?? configuration.signer
    }
}
