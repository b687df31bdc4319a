// SPDX-License-Identifier: Apache-2.0

/// What a server's certificates are checked for before anything is sent, for all hosts.
///
/// AFNetworking's form of ``ServerTrustPolicy``, which applies to one host.
public struct SecurityPolicy: Sendable, Hashable, Codable {
    /// What the server's certificates are compared with.
    public enum PinningMode: Int, Sendable, Hashable, Codable {
        /// Nothing: certificates are not pinned.
        case none = 0
        /// The public keys of the pins: one certificate of the chain has to have one of them.
        case publicKey = 1
        /// The pins themselves: the chain has to be valid and lead to a pin, and only pins are trusted.
        case certificate = 2
    }

    /// What is compared.
    public var pinningMode: PinningMode
    /// The pinned certificates, or the certificates of the pinned keys; *any* match is enough. Ignored in the mode `none`.
    public var pinnedCertificates: [Certificate]
    /// Whether an invalid chain is accepted; `false` by default. It has no effect in the mode `certificate`.
    ///
    /// Where nothing is compared, in the mode `none` or without pins, every server is rejected unless ``validatesDomainName`` is `false` as
    /// well: a certificate that anyone can make proves nothing about a host. If it is `false`, the mode `none` accepts every server.
    public var allowInvalidCertificates = false
    /// Whether the certificate has to name the host; `true` by default.
    public var validatesDomainName = true

    /// Creates a policy without pins, which accepts the certificates that the system trusts.
    public init() {
        pinningMode = .none
        pinnedCertificates = []
    }

    /// Creates a policy with pins; by default the certificates in the main bundle.
    ///
    /// - Parameters:
    ///   - pinningMode: what is compared with the pins.
    ///   - pinnedCertificates: the pins. Without any, every server is rejected.
    public init(pinningMode: PinningMode, pinnedCertificates: [Certificate]? = nil) {
        self.pinningMode = pinningMode
        self.pinnedCertificates = pinnedCertificates ?? (pinningMode == .none ? [] : Self.certificates(in: .main))
    }

    /// Returns the certificates in a bundle: from its files with the extension `cer`, `crt`, `der` or `pem`. Reads files.
    public static func certificates(in bundle: Bundle) -> [Certificate] {
        ServerTrustPolicy.certificates(in: bundle)
    }

    /// Returns the certificates in a directory, as for a bundle. Reads files.
    public static func certificates(in directory: URL) -> [Certificate] {
        ServerTrustPolicy.certificates(in: directory)
    }

    /// Whether the policy accepts a server's certificates. May read files.
    ///
    /// - Parameters:
    ///   - serverTrust: the certificates that the server has sent.
    ///   - domain: the host's name; `nil` skips its check.
    public func evaluate(_ serverTrust: ServerTrust, forDomain domain: String?) -> Bool {
        var policy = self
        if domain == nil {
            // Without a name to check, nothing at all would be verified.
            if isContradictory { return false }
            policy.validatesDomainName = false
        }
        return policy.serverTrustPolicy.evaluate(serverTrust, forHost: domain ?? serverTrust.host)
    }

    /// Whether the policy checks the host's name in a certificate that is neither valid nor compared with a pin, which anyone can make.
    private var isContradictory: Bool {
        allowInvalidCertificates && validatesDomainName && (pinningMode == .none || pinnedCertificates.isEmpty)
    }

    /// The equivalent policy of Core.
    package var serverTrustPolicy: ServerTrustPolicy {
        // Without pins, every server is rejected.
        let rejectAll = ServerTrustPolicy.pinCertificates(certificates: [], validateCertificateChain: false, validateHost: true)
        if isContradictory { return rejectAll }
        switch pinningMode {
        case .none: return allowInvalidCertificates ? .disableEvaluation : .performDefaultEvaluation(validateHost: validatesDomainName)
        case .publicKey:
            return .pinPublicKeys(
                publicKeys: pinnedCertificates.map(\.publicKey), validateCertificateChain: !allowInvalidCertificates,
                validateHost: validatesDomainName)
        case .certificate:
            guard !pinnedCertificates.isEmpty else { return rejectAll }
            return .pinCertificates(
                certificates: pinnedCertificates, validateCertificateChain: true, validateHost: validatesDomainName)
        }
    }

    // MARK: Codable

    private enum CodingKeys: String, CodingKey {
        case pinningMode, pinnedCertificates, allowInvalidCertificates, validatesDomainName
    }

    /// Decodes a policy.
    ///
    /// - Throws: `DecodingError` if a pin is not a certificate: skipping it could weaken the policy.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        pinningMode = try container.decode(PinningMode.self, forKey: .pinningMode)
        allowInvalidCertificates = try container.decode(Bool.self, forKey: .allowInvalidCertificates)
        validatesDomainName = try container.decode(Bool.self, forKey: .validatesDomainName)
        let pins = try container.decode([Data].self, forKey: .pinnedCertificates)
        pinnedCertificates = try pins.map { (der: Data) throws -> Certificate in
            guard let certificate = Certificate(der: der) else {
                let path = container.codingPath + [CodingKeys.pinnedCertificates]
                throw Swift.DecodingError.dataCorrupted(.init(codingPath: path, debugDescription: "A pin is not a certificate in DER."))
            }
            return certificate
        }
    }

    /// Encodes the policy, with the certificates in DER.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(pinningMode, forKey: .pinningMode)
        try container.encode(pinnedCertificates.map(\.der), forKey: .pinnedCertificates)
        try container.encode(allowInvalidCertificates, forKey: .allowInvalidCertificates)
        try container.encode(validatesDomainName, forKey: .validatesDomainName)
    }
}
