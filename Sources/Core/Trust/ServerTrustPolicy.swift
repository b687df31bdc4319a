// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// How a server's certificates are evaluated before a request is sent to it.
///
/// A session gets the policy for each host from its ``Session/serverTrustPolicyManager``. A request to a server that the policy
/// rejects fails with ``TransferFailure/Kind/serverCertificate`` in the phase ``TransferFailure/Phase/securing``; the message names policy,
/// host and certificate. (Alamofire 4 cancelled the request; with `CurlewAlamofire` the error is `URLError.cancelled`.) A connection is
/// evaluated once, when it is made.
///
/// A chain is *valid* if it leads to a certificate that the session trusts (``TLSOptions/certificateAuthorities`` or
/// ``TLSOptions/certificateAuthorityFile``, else those of the system) or to a pin, and all its certificates are currently valid for a TLS
/// server.
///
/// Later versions may add policies, so a `switch` needs a `default`.
@preconcurrency
public enum ServerTrustPolicy: Sendable {
    /// How revocation is checked.
    public struct RevocationFlags: OptionSet, Sendable, Hashable {
        /// The flags as a bit mask.
        public let rawValue: Int

        /// Creates flags from a bit mask.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The server must staple an OCSP response that reports its certificate as good (RFC 6066, section 8). A server that does not is
        /// rejected; no OCSP responder is queried.
        public static let stapledResponse = RevocationFlags(rawValue: 1 << 0)
        /// No certificate of the chain may be on the lists of ``TLSOptions/revocationListFile``; without that file every server fails.
        public static let revocationLists = RevocationFlags(rawValue: 1 << 1)
        /// Either of the two: the lists if the session has a ``TLSOptions/revocationListFile``, else a stapled response. A server about
        /// which neither says anything is rejected, as no OCSP responder is queried.
        public static let anyAvailableMethod = RevocationFlags(rawValue: 1 << 2)
    }

    /// The chain is valid and, with `validateHost`, the certificate names the host.
    case performDefaultEvaluation(validateHost: Bool)
    /// As ``performDefaultEvaluation(validateHost:)``, and no certificate is revoked according to the checks in the flags.
    case performRevokedEvaluation(validateHost: Bool, revocationFlags: RevocationFlags)
    /// With `validateCertificateChain` the chain is valid and leads to one of these certificates (leaf, intermediate or root), which are
    /// the only trust anchors, also of a server that resolves the host's name (``TransferOptions/dohURL``), but not of a proxy. Without it
    /// one of them is in ``ServerTrust/certificates``, byte for byte, even if it has expired. With `validateHost` the certificate names the
    /// host.
    case pinCertificates(certificates: [Certificate], validateCertificateChain: Bool, validateHost: Bool)
    /// A certificate of the chain has one of these keys; with `validateCertificateChain` the chain is valid. With `validateHost` the
    /// certificate names the host.
    case pinPublicKeys(publicKeys: [PublicKey], validateCertificateChain: Bool, validateHost: Bool)
    /// Every server is accepted: an attacker on the network path can read and change all traffic.
    case disableEvaluation
    /// The closure alone decides. It runs on the session's queue, while the transfer waits without a connection, once for each chain that a
    /// host sends: what it accepts is remembered by host and chain until the leaf expires, at most for a day; with several loops
    /// (``SessionConfiguration/loops``), by each of them. What it rejects is evaluated again with the next connection. The closure is given
    /// the host in normal form, as ``ServerTrustPolicyManager/serverTrustPolicy(forHost:)`` is.
    case customEvaluation(@Sendable (_ serverTrust: ServerTrust, _ host: String) -> Bool)

    // MARK: Pins

    /// Returns the certificates of a bundle: of its files with the extension `cer`, `crt`, `der` or `pem`, in any case, in DER or PEM.
    ///
    /// Sorted by file name. Files that can't be read or hold no certificate are skipped. Reads files, which blocks.
    public static func certificates(in bundle: Bundle = .main) -> [Certificate] {
        certificates(in: bundle.resourceURL ?? bundle.bundleURL)
    }

    /// Returns the certificates of a directory like those of a bundle, without subdirectories.
    public static func certificates(in directory: URL) -> [Certificate] {
        pinFiles(in: directory).flatMap { data in
            Certificate(der: data).map { [$0] } ?? Certificate.all(inPEM: data)
        }
    }

    /// Returns the public keys of a bundle's certificates, and those of its PEM files that hold public keys.
    public static func publicKeys(in bundle: Bundle = .main) -> [PublicKey] {
        publicKeys(in: bundle.resourceURL ?? bundle.bundleURL)
    }

    /// Returns the public keys of a directory like those of a bundle.
    public static func publicKeys(in directory: URL) -> [PublicKey] {
        certificates(in: directory).map(\.publicKey) + pinFiles(in: directory).flatMap { PublicKey.all(inPEM: $0) }
    }

    private static func pinFiles(in directory: URL) -> [Data] {
        let files = (try? FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: [.isRegularFileKey])) ?? []
        return files.sorted { $0.lastPathComponent < $1.lastPathComponent }.compactMap { file in
            guard ["cer", "crt", "der", "pem"].contains(file.pathExtension.lowercased()) else { return nil }
            // Only regular files: opening a named pipe would block.
            let values = try? file.resolvingSymlinksInPath().resourceValues(forKeys: [.isRegularFileKey])
            return values?.isRegularFile == true ? try? Data(readingFrom: file) : nil
        }
    }

    // MARK: Evaluation

    /// Returns whether the policy accepts a server's certificates.
    ///
    /// For a ``customEvaluation(_:)`` that combines policies, and for tests; a session evaluates its connections when they are made.
    /// May read files. Revocation is checked as by the session: a stapled response counts if ``TLSOptions/requiresStapledResponse`` had it
    /// verified.
    ///
    /// - Parameters:
    ///   - serverTrust: the server's certificates.
    ///   - host: the name that the certificate must have if the policy validates the host.
    public func evaluate(_ serverTrust: ServerTrust, forHost host: String) -> Bool {
        switch self {
        case .performDefaultEvaluation(let validateHost):
            return serverTrust.isValid(forHost: validateHost ? host : nil)
        case .performRevokedEvaluation(let validateHost, let flags):
            let usesAnyList = flags.contains(.anyAvailableMethod) && serverTrust.revocationLists != nil
            let needsStaple = flags.contains(.stapledResponse) || flags.contains(.anyAvailableMethod) && !usesAnyList
            if needsStaple, !serverTrust.hasGoodStapledResponse { return false }
            let usesLists = flags.contains(.revocationLists) || usesAnyList
            if usesLists, serverTrust.revocationLists == nil { return false }
            let lists = usesLists ? serverTrust.revocationLists : nil
            return serverTrust.validPath(forHost: validateHost ? host : nil, revocationLists: lists) != nil
        case .pinCertificates(let pins, let validateChain, let validateHost):
            let host = validateHost ? host : nil
            if validateChain { return !pins.isEmpty && serverTrust.isValid(anchors: pins, forHost: host) }
            return serverTrust.names(host) && serverTrust.certificates.contains { pins.contains($0) }
        case .pinPublicKeys(let pins, let validateChain, let validateHost):
            let host = validateHost ? host : nil
            let path = validateChain ? serverTrust.validPath(forHost: host) : serverTrust.names(host) ? serverTrust.certificates : nil
            return path?.contains { pins.contains($0.publicKey) } ?? false
        case .disableEvaluation:
            return true
        case .customEvaluation(let evaluate):
            return evaluate(serverTrust.withKnownIssuers(), host)
        }
    }
}

extension ServerTrust {
    /// Whether the leaf certificate names the host; `true` without a host.
    fileprivate func names(_ host: String?) -> Bool {
        host.map { sentCertificates.first?.isValid(forHost: $0) ?? false } ?? true
    }
}

/// Maps hosts to their trust policies.
///
/// ```swift
/// let manager = ServerTrustPolicyManager(policies: [
///     "api.example.org": .pinPublicKeys(publicKeys: keys, validateCertificateChain: true, validateHost: true),
///     "*.cdn.example.org": .pinCertificates(certificates: pins, validateCertificateChain: true, validateHost: true),
/// ])
/// ```
///
/// A key is the name or the address of a host, without scheme and port, or `*.` and a name: the hosts with exactly one label before that
/// name, but not the name itself. A host's own key has precedence. Hosts are compared in the form in which they are connected to, so that
/// every spelling of a host finds its policy: `bücher.example` and `xn--bcher-kva.example`, capitals, a trailing dot, `127.1` and
/// `127.0.0.1`, `::1` and `[0:0:0:0:0:0:0:1]`.
///
/// A key that can match no host (`https://example.org`, `example.org:443`, an empty one) would leave the host that is meant without its
/// policy: it is in ``unusableKeys``, and with such a key every request over TLS fails with ``TransferFailure/Kind/configuration`` before it
/// connects.
open class ServerTrustPolicyManager: @unchecked Sendable {  // immutable here; subclasses must synchronize their own state
    /// The policies by host, with the keys as given.
    public let policies: [String: ServerTrustPolicy]
    /// The keys of ``policies`` that match no host, sorted; empty if the manager can be used.
    ///
    /// In a subclass they have no effect: it may match them itself.
    public let unusableKeys: [String]
    private let hosts: [String: ServerTrustPolicy]
    /// By the name below the wildcard.
    private let wildcards: [String: ServerTrustPolicy]

    /// Creates a manager from policies by host.
    ///
    /// Of several keys for one host, the one that is its normal form counts, else the first in alphabetical order. Never fails: see
    /// ``unusableKeys``.
    public init(policies: [String: ServerTrustPolicy]) {
        var (hosts, wildcards, unusable): ([String: ServerTrustPolicy], [String: ServerTrustPolicy], [String]) = ([:], [:], [])
        for (key, policy) in policies.sorted(by: { $0.key < $1.key }) {
            let isWildcard = key.utf8.starts(with: "*.".utf8)
            let name = isWildcard ? String(key.dropFirstScalars(2)) : key
            guard let host = URLHost.comparable(ifValid: name), !host.utf8.contains(UInt8(ascii: "*")),
                !isWildcard || !CookieRules.isAddress(host)
            else {
                unusable.append(key)
                continue
            }
            if isWildcard {
                if wildcards[host] == nil || name == host { wildcards[host] = policy }
            } else if hosts[host] == nil || name == host {
                hosts[host] = policy
            }
        }
        self.policies = policies
        self.hosts = hosts
        self.wildcards = wildcards
        unusableKeys = unusable
    }

    /// Returns the policy for a host; `nil` to apply the session's TLS options.
    ///
    /// Override it for other patterns of hosts. Called for each request, and for each follow-up to another host, on the thread that starts
    /// the request or on the session's queue.
    ///
    /// - Parameter host: a session passes it in normal form: in ASCII by IDNA, in lower case, without a trailing dot; an IPv4 address as
    ///   four decimal numbers, an IPv6 address compressed and without brackets. This implementation takes any spelling.
    open func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
        let host = host.comparableHost
        if let policy = hosts[host] { return policy }
        guard !wildcards.isEmpty, let dot = host.utf8.firstIndex(of: UInt8(ascii: ".")), dot > host.startIndex else { return nil }
        return wildcards[String(host[host.utf8.index(after: dot)...])]
    }

    /// Why no server can be evaluated; `nil` if one can.
    var defect: String? {
        guard let key = unusableKeys.first, type(of: self) == ServerTrustPolicyManager.self else { return nil }
        return
            "The key \"\(key)\" of ServerTrustPolicyManager matches no host: write the name or address of a host, without scheme and port, "
            + "or *.example.org for the hosts one label below example.org"
    }
}
