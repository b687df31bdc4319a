// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What a host has to show before anything is sent to it.
///
/// A session asks its ``ServerTrustPolicyManager`` for each host. What the policy refuses fails with
/// ``TransferFailure/Kind/serverCertificate`` in the phase ``TransferFailure/Phase/securing``; the message names policy, host and
/// certificate. (Alamofire 4 cancelled the request, as if its user had done so; with `CurlewAlamofire` the error is `URLError.cancelled`.)
/// A connection is judged once, when it is made.
///
/// A chain is *valid* if it leads to a certificate that the session trusts (``TLSOptions/certificateAuthorities`` or
/// ``TLSOptions/certificateAuthorityFile``, else those of the system) or to a pin, and is in order for TLS servers now.
@preconcurrency
public enum ServerTrustPolicy: Sendable {
    /// What is asked of revocation.
    public struct RevocationFlags: OptionSet, Sendable, Hashable {
        /// The flags as a number.
        public let rawValue: Int

        /// Makes flags of a number.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The host has to staple a response of the issuer that says the certificate is good (OCSP; RFC 6066, section 8). One that does not
        /// is refused; nobody else is asked.
        public static let stapledResponse = RevocationFlags(rawValue: 1 << 0)
        /// No certificate of the chain may be on the lists of ``TLSOptions/revocationListFile``; without such a file every host is refused.
        public static let revocationLists = RevocationFlags(rawValue: 1 << 1)
        /// Either of both: the lists where the session has a ``TLSOptions/revocationListFile``, else a stapled response. A host about which
        /// neither says anything is refused, as nothing else is asked.
        public static let anyAvailableMethod = RevocationFlags(rawValue: 1 << 2)
    }

    /// The chain is valid and, with `validateHost`, the certificate names the host.
    case performDefaultEvaluation(validateHost: Bool)
    /// As by default; and the certificates are not revoked, as far as the flags ask for that.
    case performRevokedEvaluation(validateHost: Bool, revocationFlags: RevocationFlags)
    /// With `validateCertificateChain` the chain is valid, and leads to one of these certificates, be it the host's own, one between or a
    /// root; they are the only ones trusted. Without, one of them is among ``ServerTrust/certificates``, byte by byte, be it expired or
    /// whatever. With `validateHost` the certificate names the host.
    case pinCertificates(certificates: [Certificate], validateCertificateChain: Bool, validateHost: Bool)
    /// One of these keys is that of a certificate of the chain, which is valid if `validateCertificateChain` asks for that. With
    /// `validateHost` the certificate names the host.
    case pinPublicKeys(publicKeys: [PublicKey], validateCertificateChain: Bool, validateHost: Bool)
    /// Anybody will do. Whoever sits in between can read and change everything.
    case disableEvaluation
    /// The closure decides alone, and gets the host. It runs on the session's queue, once for each chain that a host shows: what it has
    /// accepted counts as long as the session lives.
    case customEvaluation(@Sendable (_ serverTrust: ServerTrust, _ host: String) -> Bool)

    // MARK: Pins

    /// The certificates of a bundle: of its files with the extension `cer`, `crt`, `der` or `pem`, in whichever case, in DER or PEM.
    ///
    /// What can't be read, or is no certificate, is left out. By name of file. Reads files: not for a thread that must not block.
    public static func certificates(in bundle: Bundle = .main) -> [Certificate] {
        certificates(in: bundle.resourceURL ?? bundle.bundleURL)
    }

    /// The certificates of a directory, as of a bundle; not of the directories in it.
    public static func certificates(in directory: URL) -> [Certificate] {
        pinFiles(in: directory).flatMap { data in
            Certificate(der: data).map { [$0] } ?? Certificate.all(inPEM: data)
        }
    }

    /// The public keys of a bundle's certificates, and those that stand there in PEM by themselves.
    public static func publicKeys(in bundle: Bundle = .main) -> [PublicKey] {
        publicKeys(in: bundle.resourceURL ?? bundle.bundleURL)
    }

    /// The public keys of a directory, as of a bundle.
    public static func publicKeys(in directory: URL) -> [PublicKey] {
        certificates(in: directory).map(\.publicKey) + pinFiles(in: directory).flatMap { PublicKey.all(inPEM: $0) }
    }

    private static func pinFiles(in directory: URL) -> [Data] {
        let files = (try? FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: [.isRegularFileKey])) ?? []
        return files.sorted { $0.lastPathComponent < $1.lastPathComponent }.compactMap { file in
            guard ["cer", "crt", "der", "pem"].contains(file.pathExtension.lowercased()) else { return nil }
            // A pipe of that name would be waited for.
            let values = try? file.resolvingSymlinksInPath().resourceValues(forKeys: [.isRegularFileKey])
            return values?.isRegularFile == true ? try? Data(readingFrom: file) : nil
        }
    }

    // MARK: Evaluation

    /// Whether the policy accepts what a host has shown.
    ///
    /// For use in a ``customEvaluation(_:)`` that asks for more than one thing, and in tests: a session's own connections are judged while
    /// they are made. May read files. Of revocation it knows what the session does: a stapled response counts if
    /// ``TLSOptions/requiresStapledResponse`` had it checked.
    ///
    /// - Parameters:
    ///   - serverTrust: what the host has shown.
    ///   - host: the name that the certificate has to have, where the policy asks for that.
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
            return evaluate(serverTrust, host)
        }
    }
}

extension ServerTrust {
    /// Whether the host's certificate names the host, if there is one to be named.
    fileprivate func names(_ host: String?) -> Bool {
        host.map { sentCertificates.first?.isValid(forHost: $0) ?? false } ?? true
    }
}

/// Knows which policy a host is held to.
open class ServerTrustPolicyManager: @unchecked Sendable {  // immutable here; subclasses answer for their own state
    /// The policies by host.
    public let policies: [String: ServerTrustPolicy]
    private let comparable: [String: ServerTrustPolicy]

    /// Makes a manager of policies by host.
    ///
    /// Case doesn't matter, nor does the dot at the end of a full name. Of two keys for the same host one counts.
    public init(policies: [String: ServerTrustPolicy]) {
        self.policies = policies
        comparable = Dictionary(policies.map { ($0.comparableHost, $1) }) { first, _ in first }
    }

    /// The policy for a host; `nil` for none, which leaves it to the TLS options of the session.
    ///
    /// Override it for patterns of hosts. Asked for each request anew, and for each host that a redirect leads to, on the thread that starts
    /// the request or on the session's queue.
    ///
    /// - Parameter host: in lower case, without a dot at its end; an IPv6 address without brackets.
    open func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
        policies[host] ?? comparable[host.comparableHost]
    }
}
