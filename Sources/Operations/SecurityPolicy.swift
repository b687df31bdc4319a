// SPDX-License-Identifier: Apache-2.0

/// What a server has to show before anything is sent to it, for whatever host.
///
/// ``ServerTrustPolicy`` says the same of one host; this is AFNetworking's way to say it.
public struct SecurityPolicy: Sendable, Hashable, Codable {
    /// With what the server's certificates are compared.
    public enum PinningMode: Int, Sendable, Hashable, Codable {
        /// With nothing.
        case none = 0
        /// One of the chain has the public key of a pin.
        case publicKey = 1
        /// The chain is valid and leads to a pin; the pins are the only certificates trusted.
        case certificate = 2
    }

    /// What is compared.
    public var pinningMode: PinningMode
    /// The certificates, or those whose keys are compared; *any* of them is enough. Ignored in the mode `none`.
    public var pinnedCertificates: [Certificate]
    /// Whether a chain that is not valid is accepted; `false` by default. In the mode `certificate` it makes no difference.
    ///
    /// Where nothing is compared, in the mode `none` or without pins, every server is refused unless ``validatesDomainName`` is switched
    /// off as well: a certificate that anyone can make says nothing about a host. Switched off, the mode `none` accepts every server.
    public var allowInvalidCertificates = false
    /// Whether the certificate has to name the host; `true` by default.
    public var validatesDomainName = true

    /// The policy that compares nothing: what the system trusts is accepted.
    public init() {
        pinningMode = .none
        pinnedCertificates = []
    }

    /// Makes a policy with pins; by default the certificates of the main bundle.
    ///
    /// - Parameter pinnedCertificates: the pins. Without any, every server is refused.
    public init(pinningMode: PinningMode, pinnedCertificates: [Certificate]? = nil) {
        self.pinningMode = pinningMode
        self.pinnedCertificates = pinnedCertificates ?? (pinningMode == .none ? [] : Self.certificates(in: .main))
    }

    /// The certificates of a bundle: of its files with the extension `cer`, `crt`, `der` or `pem`. Reads files.
    public static func certificates(in bundle: Bundle) -> [Certificate] {
        ServerTrustPolicy.certificates(in: bundle)
    }

    /// The certificates of a directory, as of a bundle. Reads files.
    public static func certificates(in directory: URL) -> [Certificate] {
        ServerTrustPolicy.certificates(in: directory)
    }

    /// Whether the policy accepts what a server has shown. May read files.
    ///
    /// - Parameter domain: the host's name; `nil` leaves that out.
    public func evaluate(_ serverTrust: ServerTrust, forDomain domain: String?) -> Bool {
        var policy = self
        if domain == nil {
            // Whoever asks for the name has to say it where everything else is left open.
            if isContradictory { return false }
            policy.validatesDomainName = false
        }
        return policy.serverTrustPolicy.evaluate(serverTrust, forHost: domain ?? serverTrust.host)
    }

    /// Whether the policy asks for the host's name of a certificate that is neither valid nor compared with a pin: anyone can make one.
    private var isContradictory: Bool {
        allowInvalidCertificates && validatesDomainName && (pinningMode == .none || pinnedCertificates.isEmpty)
    }

    /// The same in the terms of the core.
    public var serverTrustPolicy: ServerTrustPolicy {
        // No pins: refuses everybody.
        let nobody = ServerTrustPolicy.pinCertificates(certificates: [], validateCertificateChain: false, validateHost: true)
        if isContradictory { return nobody }
        switch pinningMode {
        case .none: return allowInvalidCertificates ? .disableEvaluation : .performDefaultEvaluation(validateHost: validatesDomainName)
        case .publicKey:
            return .pinPublicKeys(
                publicKeys: pinnedCertificates.map(\.publicKey), validateCertificateChain: !allowInvalidCertificates,
                validateHost: validatesDomainName)
        case .certificate:
            guard !pinnedCertificates.isEmpty else { return nobody }
            return .pinCertificates(
                certificates: pinnedCertificates, validateCertificateChain: true, validateHost: validatesDomainName)
        }
    }

    // MARK: Codable

    private enum CodingKeys: String, CodingKey {
        case pinningMode, pinnedCertificates, allowInvalidCertificates, validatesDomainName
    }

    /// Reads a policy.
    ///
    /// - Throws: `DecodingError` where a pin is no certificate: leaving it out could open what it closes.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        pinningMode = try container.decode(PinningMode.self, forKey: .pinningMode)
        allowInvalidCertificates = try container.decode(Bool.self, forKey: .allowInvalidCertificates)
        validatesDomainName = try container.decode(Bool.self, forKey: .validatesDomainName)
        let pins = try container.decode([Data].self, forKey: .pinnedCertificates)
        pinnedCertificates = try pins.map { (der: Data) throws -> Certificate in
            guard let certificate = Certificate(der: der) else {
                let path = container.codingPath + [CodingKeys.pinnedCertificates]
                throw Swift.DecodingError.dataCorrupted(.init(codingPath: path, debugDescription: "A pin is no certificate."))
            }
            return certificate
        }
    }

    /// Writes the policy, the certificates in DER.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(pinningMode, forKey: .pinningMode)
        try container.encode(pinnedCertificates.map(\.der), forKey: .pinnedCertificates)
        try container.encode(allowInvalidCertificates, forKey: .allowInvalidCertificates)
        try container.encode(validatesDomainName, forKey: .validatesDomainName)
    }
}
