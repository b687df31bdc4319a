// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How TLS connections are set up.
public struct TLSOptions: Sendable, Hashable {
    /// A TLS version.
    public enum Version: Int, Sendable, Hashable, Comparable {
        /// TLS 1.0 (RFC 2246); deprecated by RFC 8996.
        case v1_0
        /// TLS 1.1 (RFC 4346); deprecated by RFC 8996.
        case v1_1
        /// TLS 1.2 (RFC 5246).
        case v1_2
        /// TLS 1.3 (RFC 8446).
        case v1_3

        /// Whether `lhs` is the older one.
        public static func < (lhs: Version, rhs: Version) -> Bool { lhs.rawValue < rhs.rawValue }
    }

    /// The oldest version accepted; TLS 1.2 by default (RFC 9325, section 3.1.1).
    public var minimumVersion: Version = .v1_2
    /// The newest version offered; `nil`, the default, for the newest known.
    public var maximumVersion: Version?
    /// Whether the host's certificate has to lead to a trusted one; `true` by default. `false` lets anybody in between read along.
    public var verifiesCertificateChain = true
    /// Whether the host's certificate has to name the host; `true` by default. `false` takes any other host's for it.
    ///
    /// What counts are the alternative names (RFC 9525, section 6.3), not the common name.
    public var verifiesHostName = true
    /// Whether the host's certificate chain and name are checked: both ``verifiesCertificateChain`` and ``verifiesHostName``.
    public var verifiesServer: Bool {
        get { verifiesCertificateChain && verifiesHostName }
        set { (verifiesCertificateChain, verifiesHostName) = (newValue, newValue) }
    }
    /// Whether a body that only the connection's end frames has to be ended by TLS's closing alert (RFC 9112, section 9.8); `true` by
    /// default.
    ///
    /// Without the alert anybody in between may have cut the body short. `false` is for old hosts that never send it.
    public var requiresClosingAlert = true
    /// Whether the host has to staple its issuer's word that the certificate is not revoked (OCSP; RFC 6066, section 8); `false` by default,
    /// as many hosts don't.
    public var requiresStapledResponse = false
    /// A file of revocation lists in PEM (RFC 5280, section 5); `nil`, the default, asks none.
    ///
    /// Every certificate of the chain is held to them: there has to be a current list of each issuer, or the chain is refused. An anchor
    /// has to be a root then.
    public var revocationListFile: String?
    /// SHA-256 hashes of public keys (`SubjectPublicKeyInfo`) of which the host's has to be one (RFC 7469, section 2.4); empty, the default,
    /// for any. Only the host's own key counts, not those above it, and also where nothing else is checked.
    public var publicKeyHashes: Set<Data> = []
    /// Trusted certificates in PEM instead of the system's; `nil` by default.
    public var certificateAuthorities: Data?
    /// A file of trusted certificates in PEM instead of the system's; `nil` by default.
    public var certificateAuthorityFile: String?
    /// What is shown to hosts that ask for a certificate; `nil`, the default, for nothing.
    public var clientCertificate: ClientCertificate?
    /// What the certificates have to be beyond that.
    package var trust: TrustRequirement?

    /// Makes options with the defaults.
    public init() {}
}
