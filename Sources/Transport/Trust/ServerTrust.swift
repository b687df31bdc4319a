// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The certificates of a host, to be evaluated before anything is sent to it.
public struct ServerTrust: Sendable, Hashable {
    /// The requested host in the form in which it is connected to: in ASCII by IDNA, in lower case, without a trailing dot; an IPv4 address
    /// as four decimal numbers, an IPv6 address compressed and without brackets.
    public let host: String
    /// The requested port.
    public let port: Int
    /// The verified path: the leaf certificate, followed by its issuer, and so on, as far as the host sent them or the session's anchors have
    /// them, such as a root that is not sent, and each signature is valid.
    ///
    /// The path is not yet trusted: its last certificate need not be an anchor, and times and names are not checked. Other certificates
    /// that the host sent are not part of it, because a host may send certificates it does not own.
    public private(set) var certificates: [Certificate]
    /// All certificates that the host sent, in the order sent; the first one is the leaf.
    public let sentCertificates: [Certificate]
    /// The session's trust anchors.
    let anchors: TrustAnchors
    /// Whether TLS has verified a stapled OCSP response saying that the certificate is not revoked.
    package let hasGoodStapledResponse: Bool

    /// Creates a trust object from the certificates that a host sent, the leaf first, with the system's anchors, whose files it reads.
    public init(host: String, port: Int = 443, certificates: [Certificate]) {
        self = ServerTrust(host: host, port: port, sent: certificates, path: nil, options: TLSOptions()).withKnownIssuers()
    }

    /// - Parameter path: the path that TLS has built; `nil` builds one.
    init(host: String, port: Int, sent: [Certificate], path: [Certificate]?, options: TLSOptions) {
        self.host = host.comparableHost
        self.port = port
        sentCertificates = sent
        certificates = path ?? TrustAnchors(certificates: []).verify(sent).path
        anchors = TrustAnchors(options)
        hasGoodStapledResponse = options.requiresStapledResponse
    }

    /// Returns the trust object with the certificates of its path that only the anchors have. TLS adds them only where it verifies the chain.
    /// May read files.
    package func withKnownIssuers() -> ServerTrust {
        let path = anchors.verify(sentCertificates).path
        guard path.count > certificates.count, path.starts(with: certificates) else { return self }
        var trust = self
        trust.certificates = path
        return trust
    }

    /// Whether the certificates lead to an anchor, and are currently valid for TLS servers (RFC 5280, section 6).
    ///
    /// May read files, and so must not be called where blocking is harmful.
    ///
    /// - Parameters:
    ///   - anchors: the trust anchors, which need not be roots; `nil`, the default, for the session's.
    ///   - host: the host for which the certificate has to be valid (RFC 9525); `nil`, the default, for any.
    public func isValid(anchors: [Certificate]? = nil, forHost host: String? = nil) -> Bool {
        validPath(anchors: anchors, forHost: host) != nil
    }

    /// Returns the path to an anchor, the anchor included; `nil` if the certificates are not valid in the sense of
    /// ``isValid(anchors:forHost:)``.
    package func validPath(anchors: [Certificate]? = nil, forHost host: String? = nil, revocationLists: String? = nil) -> [Certificate]? {
        if let host, sentCertificates.first?.isValid(forHost: host) != true { return nil }
        var anchors = anchors.map { TrustAnchors(certificates: $0) } ?? self.anchors
        anchors.revocationLists = revocationLists
        let (path, reason) = anchors.verify(sentCertificates)
        return reason == nil ? path : nil
    }

    /// The session's file of certificate revocation lists.
    package var revocationLists: String? { anchors.sessionRevocationLists }
}

// MARK: - CustomStringConvertible

extension ServerTrust: LineConvertible {
    /// Host, port, and the subject and issuer of the leaf certificate.
    package var line: String {
        "\(host):\(port) (\(sentCertificates.first.map { "subject \($0.subject), issuer \($0.issuer)" } ?? "no certificate"))"
    }
}
