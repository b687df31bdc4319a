// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What a host showed to prove who it is, to be judged before anything is sent to it.
public struct ServerTrust: Sendable, Hashable {
    /// The host that was asked for, as it stands in the URL, in lower case.
    public let host: String
    /// The port that was asked for.
    public let port: Int
    /// The host's own certificate, followed by the one that signed it, and so on: as far as the host sent them or anchors are known, and
    /// each signature is right.
    ///
    /// That proves no trust: neither is the last one known, nor are times and names checked. What the host sent beside this path is not in
    /// it, so that nobody passes by sending a certificate of somebody else along.
    public let certificates: [Certificate]
    /// All certificates that the host sent, as it sent them; the first one is its own.
    public let sentCertificates: [Certificate]
    /// What the session trusts.
    let anchors: TrustAnchors
    /// Whether TLS has found a stapled response of the issuer that says the certificate is good.
    package let hasGoodStapledResponse: Bool

    /// Makes a trust object of certificates that a host sent, its own first, to be held against the anchors of the system.
    public init(host: String, port: Int = 443, certificates: [Certificate]) {
        self.init(host: host, port: port, sent: certificates, path: nil, options: TLSOptions())
    }

    /// - Parameter path: the path as TLS has built it; `nil` builds one.
    init(host: String, port: Int, sent: [Certificate], path: [Certificate]?, options: TLSOptions) {
        self.host = host.comparableHost
        self.port = port
        sentCertificates = sent
        certificates = path ?? TrustAnchors(certificates: []).verify(sent).path
        anchors = TrustAnchors(options)
        hasGoodStapledResponse = options.requiresStapledResponse
    }

    /// Whether the certificates lead to an anchor, and are valid for TLS servers now (RFC 5280, section 6).
    ///
    /// May read files: not to be called where blocking does harm.
    ///
    /// - Parameters:
    ///   - anchors: the certificates to lead to, which need not be roots; `nil`, the default, for those that the session trusts.
    ///   - host: the host that the certificate has to name (RFC 9525); `nil`, the default, for any.
    public func isValid(anchors: [Certificate]? = nil, forHost host: String? = nil) -> Bool {
        validPath(anchors: anchors, forHost: host) != nil
    }

    /// The path to an anchor, the anchor included; `nil` if the certificates are not valid as ``isValid(anchors:forHost:)`` has it.
    package func validPath(anchors: [Certificate]? = nil, forHost host: String? = nil, revocationLists: String? = nil) -> [Certificate]? {
        if let host, sentCertificates.first?.isValid(forHost: host) != true { return nil }
        var anchors = anchors.map { TrustAnchors(certificates: $0) } ?? self.anchors
        anchors.revocationLists = revocationLists
        let (path, reason) = anchors.verify(sentCertificates)
        return reason == nil ? path : nil
    }

    /// The file of revocation lists that the session was given.
    package var revocationLists: String? { anchors.sessionRevocationLists }
}

// MARK: - CustomStringConvertible

extension ServerTrust: CustomStringConvertible {
    /// Host, port, and subject of its certificate.
    public var description: String {
        "\(host):\(port) (\(sentCertificates.first.map { "subject \($0.subject), issuer \($0.issuer)" } ?? "no certificate"))"
    }
}
