// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The TLS settings of connections.
public struct TLSOptions: Sendable, Hashable {
    /// A TLS version; an older one is less. Later versions of the library may add one, so a `switch` needs a `default`.
    public enum Version: Int, Sendable, Hashable, OrderedByRawValue {
        /// TLS 1.0 (RFC 2246); deprecated by RFC 8996.
        case v1_0
        /// TLS 1.1 (RFC 4346); deprecated by RFC 8996.
        case v1_1
        /// TLS 1.2 (RFC 5246).
        case v1_2
        /// TLS 1.3 (RFC 8446).
        case v1_3
    }

    /// The oldest version accepted; TLS 1.2 by default (RFC 9325, section 3.1.1).
    public var minimumVersion: Version = .v1_2
    /// The newest version offered; `nil`, the default, for the newest supported one.
    public var maximumVersion: Version?
    /// Whether the host's certificate must lead to a trusted one; `true` by default. `false` permits a man in the middle to read
    /// everything.
    public var verifiesCertificateChain = true
    /// Whether the host's certificate must contain the host's name; `true` by default. `false` accepts any other host's certificate.
    ///
    /// The name is compared with the subject alternative names (RFC 9525, section 6.3), not with the common name.
    public var verifiesHostName = true
    /// Whether the host's certificate chain and name are verified: both ``verifiesCertificateChain`` and ``verifiesHostName``.
    public var verifiesServer: Bool {
        get { verifiesCertificateChain && verifiesHostName }
        set { (verifiesCertificateChain, verifiesHostName) = (newValue, newValue) }
    }
    /// Whether a body delimited by close has to be followed by TLS's close_notify (RFC 9112, section 9.8); `true` by default.
    ///
    /// Without close_notify, an attacker may have truncated the body. `false` is for old hosts that never send it.
    public var requiresCloseNotify = true
    /// Whether the host must staple an OCSP response saying that its certificate is not revoked (RFC 6066, section 8); `false` by default,
    /// because many hosts don't. It does not concern proxies, nor servers that resolve names.
    public var requiresStapledResponse = false
    /// A file of certificate revocation lists in PEM (RFC 5280, section 5); `nil`, the default, disables revocation checks.
    ///
    /// Every certificate of the chain is checked: the file must have a current list of each issuer, or the chain is rejected. Anchors must
    /// then be root certificates. The certificates of an HTTPS proxy and of a server that resolves names are checked as well.
    public var revocationListFile: String?
    /// SHA-256 hashes of public keys (`SubjectPublicKeyInfo`), one of which must be the host's (RFC 7469, section 2.4); empty, the default,
    /// for any key. Only the leaf's key is compared, not those of its issuers, and it is compared even if nothing else is verified.
    ///
    /// `openssl x509 -in server.pem -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256` prints the hash of a certificate.
    public var publicKeyHashes: Set<Data> = []
    /// Whether `SSL_CERT_FILE` or `CURL_CA_BUNDLE`, which has precedence, and `SSL_CERT_DIR` replace the file and the directory of the
    /// system's authorities, as they do for OpenSSL; `true` by default.
    ///
    /// The variables are read once, at the first connection, and not by a program that has other privileges than its user
    /// (`secure_getenv`). With a file that can't be read connections fail. As the system's, they are no part of a cache's partition.
    public var usesEnvironment = true
    /// Trusted certificates in PEM instead of the system's; `nil` by default. ``CertificateAuthorities/pem`` reads them from other forms.
    public var certificateAuthorities: Data?
    /// A file of trusted certificates in PEM instead of the system's; `nil` by default.
    ///
    /// Read again after a change, before the next exchange, which neither uses connections nor shares responses that the earlier authorities
    /// have vouched for.
    public var certificateAuthorityFile: String? { didSet { authorityContents = nil } }
    /// Authorities that are trusted in addition to the system's, or to those of ``certificateAuthorities`` or ``certificateAuthorityFile``;
    /// `nil`, the default, for none.
    public var additionalAuthorities: CertificateAuthorities?
    /// The certificate sent to hosts that request one, if they are the origin of a request or one of its ``ClientCertificate/origins``;
    /// `nil`, the default, for none.
    public var clientCertificate: ClientCertificate?
    /// Certificates in PEM that are the only authorities of hosts: pins. A proxy is verified by the authorities above.
    package var pinnedAuthorities: Data?
    /// What ``certificateAuthorityFile`` contained when it was read for an exchange; `nil` if it was not, or could not be.
    var authorityContents: AuthorityContents?
    /// Further requirements on the host's certificates.
    package var trust: TrustRequirement?

    /// Creates options with the defaults.
    public init() {}
}
