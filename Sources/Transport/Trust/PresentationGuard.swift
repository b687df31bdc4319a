// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// Decides during the handshake whether a host gets the client certificate, or notes that it has requested one.
///
/// The host's name, pins and policy are otherwise checked only after the handshake, when it has learned the client's identity. TLS asks the
/// guard if the host has requested a certificate, once the host's own are verified. Where a ``CertificateChooser`` has not chosen yet, the
/// guard then ends the handshake, and the connection is made again after the choice. The connection owns it, and may outlive the transfer
/// that has made it. For the event loop's thread only.
final class PresentationGuard {
    private weak var member: MultiMember?
    private let setUpCount: Int
    private let tls: TLSOptions
    private let host: String
    /// Whether there is no certificate, and one is to be chosen.
    private let asks: Bool

    private init(_ member: MultiMember) {
        asks = Self.asks(for: member)
        self.member = member
        setUpCount = member.setUpCount
        tls = member.tls
        host = HTTPOrigin(url: member.url)?.host.withoutZone ?? ""
    }

    /// Whether a connection may present a certificate, and something decides on it that is not verified in the handshake.
    static func isNeeded(for member: MultiMember, _ tls: TLSOptions, _ url: String) -> Bool {
        guard let certificate = tls.clientCertificate, certificate.isFor(url) else {
            return tls.trust != nil && isNeeded(to: member, tls, url)
        }
        return tls.verifiesHostName || !tls.publicKeyHashes.isEmpty || tls.trust?.needsCertificates == true
    }

    /// Whether a certificate was chosen, or is to be.
    private static func isNeeded(to member: MultiMember, _ tls: TLSOptions, _ url: String) -> Bool {
        guard tls.chooser(for: url) != nil else { return false }
        return member.choice.map { $0.certificate != nil } ?? true
    }

    /// Whether a connection that is being made to a member's host, and not to its proxy, is to be ended if a certificate is requested.
    private static func asks(for member: MultiMember) -> Bool {
        guard member.tls.chooser(for: member.url) != nil, member.choice == nil else { return false }
        // Of the two handshakes through an HTTPS proxy, that of the host is made in the tunnel.
        return member.proxy?.isSecure != true || 200..<300 ~= ccurlew_get_long(member.handle.raw, CURLINFO_HTTP_CONNECTCODE)
    }

    /// Makes a guard for a transfer or a stream, which OpenSSL's context owns.
    static let make: ccurlew_presentation_callback = { member in
        guard let member else { return ccurlew_presentation_guard() }
        let presentation = PresentationGuard(member.object(MultiMember.self))
        return ccurlew_presentation_guard(
            context: Unmanaged.passRetained(presentation).toOpaque(), asks: presentation.asks, may_present: PresentationGuard.mayPresent,
            release: PresentationGuard.release)
    }

    private static let mayPresent: @convention(c) (UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Bool = { context, session in
        guard let context, let session else { return false }
        return context.borrow(PresentationGuard.self) { $0.mayPresent(on: session) }
    }

    private static let release: @convention(c) (UnsafeMutableRawPointer?) -> Void = { context in
        if let context { Unmanaged<PresentationGuard>.fromOpaque(context).release() }
    }

    private func mayPresent(on session: UnsafeRawPointer) -> Bool {
        // Otherwise the host asks again, on a connection that was accepted before its first request.
        guard let member, member.setUpCount == setUpCount else { return true }
        // After the handshake, nothing is presented: the request may have been sent, and must not be sent again for that.
        guard !asks || member.isConnecting else { return true }
        var decision = decision(on: session, member.loop, group: member.group.number)
        if asks, case .trusted = decision, let question = member.certificateQuestion(on: session) { decision = .undecided(question) }
        member.note(decision)
        if case .trusted = decision { return true }
        return false
    }

    private func decision(on session: UnsafeRawPointer, _ loop: EventLoopThread, group: Int) -> TrustRegister.Decision {
        if tls.verifiesHostName, !ccurlew_tls_names(session, host) {
            return refusal("The host's certificate is not for \(host), so it gets no client certificate")
        }
        if !tls.publicKeyHashes.isEmpty, !hasPinnedKey(session) {
            return refusal("The host's public key is not pinned, so it gets no client certificate")
        }
        return tls.trust.map { loop.trust.evaluate(session, socket: -1, for: $0, tls, group: group) } ?? .trusted
    }

    private func refusal(_ reason: String) -> TrustRegister.Decision { .refused(tls.trust?.message(reason) ?? reason) }

    private func hasPinnedKey(_ session: UnsafeRawPointer) -> Bool {
        let sent = CertificateList()
        guard ccurlew_tls_sent_certificates(session, CertificateList.add, sent.context), let leaf = sent.certificates?.first else {
            return false
        }
        return tls.publicKeyHashes.contains(Data(SHA256.digest(of: leaf.publicKey.der)))
    }
}
