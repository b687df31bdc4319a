// SPDX-License-Identifier: Apache-2.0
import CLoopback

/// A certificate authority for tests, with a key that exists in memory only, and the certificates that it issues.
///
/// ```swift
/// let authority = try CertificateAuthority()
/// let server = try LoopbackServer(tls: ServerTLS(authority.issue())) { _, _ in .ok("secure") }
/// configuration.tls.certificateAuthorities = authority.certificate
/// ```
///
/// Made by the OpenSSL of the process, or of the system, without any program. A value; keys are on the curve P-256.
public struct CertificateAuthority: Sendable {
    /// What a certificate may be used for.
    public enum Usage: Sendable, Hashable {
        /// For TLS servers.
        case server
        /// For TLS clients.
        case client
    }

    fileprivate let identity: ServerIdentity
    /// What is sent after a certificate that this issues: nothing for a root, which clients know.
    private let sentChain: String

    /// Creates an authority, valid for a day.
    ///
    /// - Parameter name: its common name.
    /// - Throws: ``TLSError`` if OpenSSL is not there.
    public init(name: String = "Loopback Test Authority") throws {
        identity = try Self.make(name, names: [], usage: nil, isAuthority: true, from: -86_400, until: 86_400, issuer: nil)
        sentChain = ""
    }

    private init(intermediate: ServerIdentity) {
        identity = intermediate
        sentChain = intermediate.chain
    }

    /// The authority's certificate in PEM, to be trusted by clients.
    public var certificate: Data { Data(identity.chain.utf8) }

    /// The certificate in PEM.
    var pem: String { identity.chain }

    /// Issues a certificate, with its key.
    ///
    /// - Parameters:
    ///   - names: the names and IP addresses of the host; of a client, by default those of the loopback.
    ///   - usage: what it is for.
    ///   - validity: from when until when it is valid, relative to now; by default since a day, for a day. An earlier end makes an expired one.
    /// - Throws: ``TLSError`` if a name is invalid.
    public func issue(
        _ names: String..., usage: Usage = .server, validity: Range<Duration> = .seconds(-86_400) ..< .seconds(86_400)
    ) throws -> ServerIdentity {
        let names = names.isEmpty ? ["localhost", "127.0.0.1", "::1"] : names
        let issued = try Self.make(
            names[0], names: names, usage: usage == .server ? "serverAuth" : "clientAuth", isAuthority: false,
            from: Int(validity.lowerBound.components.seconds), until: Int(validity.upperBound.components.seconds), issuer: identity)
        return ServerIdentity(chain: issued.chain + sentChain, key: issued.key)
    }

    /// Issues a certificate for a server that has a common name only, and no alternative names.
    package func issue(commonName: String) throws -> ServerIdentity {
        let issued = try Self.make(
            commonName, names: [], usage: "serverAuth", isAuthority: false, from: -86_400, until: 86_400, issuer: identity)
        return ServerIdentity(chain: issued.chain + sentChain, key: issued.key)
    }

    /// Issues the certificate of an authority below this one, whose certificates come with a chain.
    public func issueIntermediate(name: String = "Loopback Test Intermediate") throws -> CertificateAuthority {
        let issued = try Self.make(name, names: [], usage: nil, isAuthority: true, from: -86_400, until: 86_400, issuer: identity)
        return CertificateAuthority(intermediate: ServerIdentity(chain: issued.chain + sentChain, key: issued.key))
    }

    private static func make(
        _ commonName: String, names: [String], usage: String?, isAuthority: Bool, from: Int, until: Int, issuer: ServerIdentity?
    ) throws -> ServerIdentity {
        let list = names.map { $0.isAddress ? "IP:\($0)" : "DNS:\($0)" }.joined(separator: ",")
        // Commas and line breaks are the syntax of the list.
        guard !names.contains(where: { $0.contains(",") || $0.contains("\n") }) else { throw TLSError("a name contains a comma") }
        var (certificate, key): (UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<CChar>?)
        let reason = commonName.withCString { commonName in
            withOptionalCString(names.isEmpty ? nil : list) { names in
                withOptionalCString(usage) { usage in
                    // The issuer's own certificate is the first of its chain.
                    withOptionalCString(issuer?.chain) { issuerCertificate in
                        withOptionalCString(issuer?.key) { issuerKey in
                            var wanted = cloopback_certificate(
                                common_name: commonName, names: names, usage: usage, is_authority: isAuthority, valid_from: from,
                                valid_until: until, serial: .random(in: 1...UInt64(Int64.max)), issuer: issuerCertificate,
                                issuer_key: issuerKey)
                            return cloopback_make_certificate(&wanted, &certificate, &key)
                        }
                    }
                }
            }
        }
        if let reason { throw TLSError(String(cString: reason)) }
        defer {
            free(certificate)
            free(key)
        }
        guard let certificate, let key else { throw TLSError("out of memory") }
        return ServerIdentity(chain: String(cString: certificate), key: String(cString: key))
    }
}

/// A certificate with its chain and its key, in PEM.
public struct ServerIdentity: Sendable, Hashable {
    /// The certificates, the own one first.
    public let chain: String
    /// The key.
    public let key: String

    /// Creates an identity from PEM texts, such as the contents of files.
    public init(chain: String, key: String) {
        self.chain = chain
        self.key = key
    }
}

// MARK: - Descriptions

extension ServerIdentity: CustomStringConvertible, CustomReflectable {
    /// The number of its certificates; the key is left out.
    public var description: String { "an identity with \(chain.components(separatedBy: "-----BEGIN").count - 1) certificates" }

    /// The chain only.
    public var customMirror: Mirror { Mirror(self, children: ["chain": chain], displayStyle: .struct) }
}

/// The TLS of a ``LoopbackServer``.
public struct ServerTLS: Sendable {
    /// A version of TLS.
    public enum Version: Int32, Sendable, Comparable {
        /// RFC 5246.
        case v1_2 = 0x0303
        /// RFC 8446.
        case v1_3 = 0x0304

        /// Whether `lhs` is the older version.
        public static func < (lhs: Version, rhs: Version) -> Bool { lhs.rawValue < rhs.rawValue }
    }

    /// The certificate, its chain and its key.
    public var identity: ServerIdentity
    /// The authority of which clients have to present a certificate; `nil`, the default, for no client authentication.
    public var clientAuthority: CertificateAuthority?
    /// Whether a client without a certificate is refused; `true` by default.
    package var requiresClientCertificate = true
    /// The lowest version; `nil`, the default, for OpenSSL's own.
    public var minimumVersion: Version?
    /// The highest version; `nil`, the default, for OpenSSL's own.
    public var maximumVersion: Version?

    /// Creates settings with an identity.
    public init(_ identity: ServerIdentity, clientAuthority: CertificateAuthority? = nil) {
        self.identity = identity
        self.clientAuthority = clientAuthority
    }

    /// Settings with a new authority and a certificate for the loopback's names.
    ///
    /// - Throws: ``TLSError`` if OpenSSL is not there.
    public static func throwAway() throws -> (tls: ServerTLS, authority: CertificateAuthority) {
        let authority = try CertificateAuthority()
        return (ServerTLS(try authority.issue()), authority)
    }

    /// Whether the OpenSSL that this needs is there: in the process, as that of libcurl, or on the system.
    public static var isAvailable: Bool { cloopback_has_openssl() }
}

/// Why TLS is not possible, or a certificate could not be made.
public struct TLSError: LocalizedError, Sendable, Hashable, CustomStringConvertible {
    /// The reason.
    public let description: String

    /// The same text.
    public var errorDescription: String? { description }

    init(_ description: String) {
        self.description = description
    }
}

extension String {
    /// Whether the text is an IPv4 or IPv6 address.
    fileprivate var isAddress: Bool {
        var address = in6_addr()
        return inet_pton(AF_INET6, self, &address) == 1 || inet_pton(AF_INET, self, &address) == 1
    }
}

func withOptionalCString<Result>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
    guard let text else { return body(nil) }
    return text.withCString { body($0) }
}
