// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// An X.509 certificate (RFC 5280): its bytes, and what they say. Nothing is checked: neither signature nor time.
///
/// Two certificates are equal if their bytes are.
public struct Certificate: Sendable {
    /// A name beside the subject's (RFC 5280, section 4.2.1.6).
    public enum AlternativeName: Sendable, Hashable {
        /// A host's name, or a pattern for some, as `*.example.org`.
        case dnsName(String)
        /// An IP address as text, as `192.0.2.1` or `2001:db8::1`.
        case ipAddress(String)
        /// An address of electronic mail.
        case emailAddress(String)
        /// A URI.
        case uri(String)
        /// A name of another kind, in DER.
        case other(Data)
    }

    /// All of the certificate in DER.
    public let der: Data
    /// Whose certificate it is, in the form of RFC 4514, as `CN=www.example.org,O=Example,C=US`; may be empty.
    public let subject: String
    /// The subject's common name; `nil` without one. It says nothing of a host: see ``isValid(forHost:)``.
    public let commonName: String?
    /// Who signed it, in the form of ``subject``.
    public let issuer: String
    /// The number that the issuer gave it, big-endian.
    public let serialNumber: Data
    /// The moment from which on it is valid.
    public let notBefore: Date
    /// The moment until which it is valid.
    public let notAfter: Date
    /// The subject's key.
    public let publicKey: PublicKey
    /// The names beside the subject's; empty without.
    public let alternativeNames: [AlternativeName]

    /// Takes a certificate in DER; `nil` if it is none, or if something follows it.
    public init?(der: Data) {
        do {
            var reader = DERReader([UInt8](der)[...])
            var fields = try Fields(from: reader.enter())
            try reader.end()
            try fields.parseExtensions()
            self.init(der: der, fields: fields)
        } catch {
            return nil
        }
    }

    /// Takes the first certificate of a text in PEM (RFC 7468, section 5); `nil` if there is none.
    public init?(pem: Data) {
        guard let certificate = Certificate.all(inPEM: pem).first else { return nil }
        self = certificate
    }

    /// The certificates of a text in PEM, those that are none left out.
    public static func all(inPEM pem: Data) -> [Certificate] {
        PEM.blocks(["CERTIFICATE", "X509 CERTIFICATE"], in: pem).compactMap { Certificate(der: $0) }
    }

    private init(der: Data, fields: Fields) {
        // A copy of its own, whose indices begin at 0.
        self.der = Data(der)
        subject = fields.subject.description
        commonName = fields.subject.commonName
        issuer = fields.issuer.description
        serialNumber = fields.serialNumber
        (notBefore, notAfter) = fields.validity
        publicKey = fields.publicKey
        alternativeNames = fields.alternativeNames
    }

    /// The certificate in PEM, one line break at its end.
    public var pem: Data { PEM.block("CERTIFICATE", der) }
}

// MARK: - Hashable

extension Certificate: Hashable {
    /// Whether the bytes are the same.
    public static func == (lhs: Certificate, rhs: Certificate) -> Bool { lhs.der == rhs.der }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(der) }
}

// MARK: - Parsing

/// What a certificate says, in its order (RFC 5280, section 4.1).
private struct Fields {
    let serialNumber: Data
    let issuer: DistinguishedName
    let validity: (notBefore: Date, notAfter: Date)
    let subject: DistinguishedName
    let publicKey: PublicKey
    private(set) var alternativeNames: [Certificate.AlternativeName] = []
    private let extensions: DERReader?

    init(from certificate: DERReader) throws(DERReader.Malformed) {
        var certificate = certificate
        var body = try certificate.enter()
        _ = try certificate.next(.sequence)
        _ = try certificate.next(.bitString)
        try certificate.end()

        try body.skip(.contextSpecific(0, isConstructed: true))  // the version
        let number = try body.next(.integer).contents
        guard !number.isEmpty else { throw DERReader.Malformed() }
        serialNumber = Data(number)
        _ = try body.next(.sequence)  // the signature's algorithm, again
        issuer = try DistinguishedName(from: body.next(.sequence))
        var times = try body.enter()
        guard let notBefore = try times.next().date, let notAfter = try times.next().date else { throw DERReader.Malformed() }
        validity = (notBefore, notAfter)
        subject = try DistinguishedName(from: body.next(.sequence))
        publicKey = try PublicKey(from: body.next(.sequence))
        try body.skip(.contextSpecific(1))
        try body.skip(.contextSpecific(2))
        guard !body.isAtEnd else {
            extensions = nil
            return
        }
        var wrapper = try body.enter(.contextSpecific(3, isConstructed: true))
        extensions = try wrapper.enter()
        try wrapper.end()
        try body.end()
    }

    mutating func parseExtensions() throws(DERReader.Malformed) {
        guard var extensions else { return }
        while !extensions.isAtEnd {
            var entry = try extensions.enter()
            let identifier = try entry.next(.objectIdentifier).objectIdentifier
            try entry.skip(.boolean)  // whether it is critical
            let value = try entry.next(.octetString).contents
            try entry.end()
            guard identifier == "2.5.29.17" else { continue }
            var reader = DERReader(value)
            var names = try reader.enter()
            try reader.end()
            while !names.isAtEnd { alternativeNames.append(Certificate.AlternativeName(from: try names.next())) }
        }
    }
}

extension Certificate.AlternativeName {
    fileprivate init(from element: DERReader.Element) {
        switch element.tag {
        case .contextSpecific(1): self = .emailAddress(element.contents.latin1)
        case .contextSpecific(2): self = .dnsName(element.contents.latin1)
        case .contextSpecific(6): self = .uri(element.contents.latin1)
        case .contextSpecific(7):
            self = IPAddress(bytes: element.contents).map { .ipAddress($0.description) } ?? .other(Data(element.bytes))
        default: self = .other(Data(element.bytes))
        }
    }
}
