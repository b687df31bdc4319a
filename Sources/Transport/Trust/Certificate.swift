// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// An X.509 certificate (RFC 5280): its bytes and its parsed fields. Neither its signature nor its validity is checked.
///
/// Two certificates are equal if their bytes are.
public struct Certificate: Sendable {
    /// A subject alternative name (RFC 5280, section 4.2.1.6).
    public enum AlternativeName: Sendable, Hashable {
        /// A host's name, or a wildcard such as `*.example.org`.
        case dnsName(String)
        /// An IP address as text, such as `192.0.2.1` or `2001:db8::1`.
        case ipAddress(String)
        /// An email address.
        case emailAddress(String)
        /// A URI.
        case uri(String)
        /// A name of another type, in DER.
        case other(Data)
    }

    /// The whole certificate in DER.
    public let der: Data
    /// The subject in the form of RFC 4514, such as `CN=www.example.org,O=Example,C=US`; may be empty.
    public let subject: String
    /// The subject's common name; `nil` if it has none. Not a host's name: see ``isValid(forHost:)``.
    public let commonName: String?
    /// The issuer, in the form of ``subject``.
    public let issuer: String
    /// The serial number assigned by the issuer, big-endian.
    public let serialNumber: Data
    /// The beginning of the validity period.
    public let notBefore: Date
    /// The end of the validity period.
    public let notAfter: Date
    /// The subject's key.
    public let publicKey: PublicKey
    /// The subject alternative names; empty if there are none.
    public let alternativeNames: [AlternativeName]

    /// Parses a certificate in DER; `nil` if it is malformed or followed by further bytes.
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

    /// Parses the first certificate of a text in PEM (RFC 7468, section 5); `nil` if there is none.
    public init?(pem: Data) {
        guard let certificate = Certificate.all(inPEM: pem).first else { return nil }
        self = certificate
    }

    /// All certificates of a text in PEM; blocks that are not certificates are skipped.
    public static func all(inPEM pem: Data) -> [Certificate] {
        PEM.blocks(["CERTIFICATE", "X509 CERTIFICATE"], in: pem).compactMap { Certificate(der: $0) }
    }

    private init(der: Data, fields: Fields) {
        // Copied, so that its indices begin at 0.
        self.der = Data(der)
        subject = fields.subject.description
        commonName = fields.subject.commonName
        issuer = fields.issuer.description
        serialNumber = fields.serialNumber
        (notBefore, notAfter) = fields.validity
        publicKey = fields.publicKey
        alternativeNames = fields.alternativeNames
    }

    /// The certificate in PEM, with a line break at its end.
    public var pem: Data { PEM.block("CERTIFICATE", der) }
}

// MARK: - Hashable

extension Certificate: ComparedByKey {
    package var comparisonKey: Data { der }
}

// MARK: - Parsing

/// The certificate's fields, in their order (RFC 5280, section 4.1).
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
        _ = try body.next(.sequence)  // the signature algorithm, repeated
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
            try entry.skip(.boolean)  // the critical flag
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
