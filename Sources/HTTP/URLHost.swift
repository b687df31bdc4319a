// SPDX-License-Identifier: Apache-2.0

/// Validates and normalizes the hosts of URLs, in users' requests and in redirects.
package enum URLHost {
    /// The reason why a host is rejected.
    package enum ValidationError: Error {
        /// It contains a character not allowed in hosts, or is a name not allowed by IDNA.
        case invalid
        /// It is an internationalized name, and the system's Foundation lacks IDNA.
        case notConvertible

        /// The reason in a sentence.
        package var message: String {
            switch self {
            case .invalid:
                "The URL's host contains a character not allowed in hosts, or is not a valid internationalized name"
            case .notConvertible:
                "The URL's host is an internationalized name, which can't be converted without FoundationInternationalization"
            }
        }
    }

    /// The longest name, in bytes: DNS has none of more than 253 (RFC 1035, section 2.3.4), which may be written with more before it is
    /// converted. What is done for each label of a host is bounded by it.
    private static let longest = 1024

    /// Returns the host in ASCII, as it is resolved and sent in `Host`: percent-decoded, and an internationalized name converted by IDNA
    /// (RFC 5891; UTS 46).
    ///
    /// - Parameter host: a name or an IPv4 address, with or without percent-encoded UTF-8 (RFC 3986, section 3.2.2), or an IPv6 address in
    ///   brackets.
    package static func normalized(_ host: Substring) throws(ValidationError) -> String {
        if host.utf8.first == UInt8(ascii: "[") {
            guard isAddressLiteral(host.utf8.dropFirst()) else { throw .invalid }
            return String(host)
        }
        let bytes = host.utf8.percentDecoded
        guard !bytes.isEmpty, bytes.count <= longest, !bytes.contains(where: isForbidden), !hasEmptyLabel(bytes),
            !isAddressWithRoot(bytes), let name = String(validating: bytes, as: UTF8.self)
        else { throw .invalid }
        return bytes.allSatisfy { $0 < 0x80 } ? name : try converted(name)
    }

    /// The same for a host outside a URL, where an IPv6 address needs no brackets.
    package static func normalized(ofStream host: String) throws(ValidationError) -> String {
        guard host.utf8.contains(UInt8(ascii: ":")), host.utf8.first != UInt8(ascii: "[") else { return try normalized(host[...]) }
        _ = try normalized("[\(host.replacingScalars("%25", with: "%").replacingScalars("%", with: "%25"))]")
        return host
    }

    /// Converts a name with Foundation, which applies IDNA to the hosts of its URLs. Where it lacks the tables, it percent-encodes the name
    /// instead.
    private static func converted(_ name: String) throws(ValidationError) -> String {
        let url = URL(string: "http://\(name)/")
        guard let text = url?.absoluteString, text.hasBytePrefix("http://"), text.hasByteSuffix("/") else { throw .invalid }
        let host = text.dropFirst("http://".count).dropLast()
        guard !host.unicodeScalars.contains("%") else { throw .notConvertible }
        guard !host.isEmpty, host.utf8.allSatisfy({ $0 < 0x80 && !isForbidden($0) }), !hasEmptyLabel(Array(host.utf8)),
            !isAddressWithRoot(Array(host.utf8))
        else { throw .invalid }
        return String(host)
    }

    /// Whether a name has a label without characters, other than that of the root at its end: such a name is none of DNS (RFC 1035, section
    /// 3.1), and has no form in which it is compared.
    private static func hasEmptyLabel(_ name: [UInt8]) -> Bool {
        let labels = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return labels.dropLast(labels.count > 1 ? 1 : 0).contains(where: \.isEmpty)
    }

    /// The characters that the URL standard forbids in domains (https://url.spec.whatwg.org/#forbidden-domain-code-point), those that are
    /// not allowed in URLs (RFC 3986, appendix A), and those with which libcurl connects to no host. A percent sign remains only of an
    /// invalid escape.
    private static func isForbidden(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == 0x7F || "\"#%/:<>?@[\\]^`{|}!$&'()*+,;=".utf8.contains(byte)
    }

    /// Whether the bytes are an IPv6 address, optionally with a zone (RFC 6874), and its closing bracket. libcurl validates the address
    /// itself.
    private static func isAddressLiteral(_ bytes: Substring.UTF8View) -> Bool {
        guard bytes.last == UInt8(ascii: "]") else { return false }
        let address = bytes.dropLast().prefix { $0 != UInt8(ascii: "%") }
        let zone = bytes.dropLast().dropFirst(address.count)
        let isAddress = address.allSatisfy { $0.hexValue != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }
        guard isAddress, address.contains(UInt8(ascii: ":")) else { return false }
        return zone.isEmpty || (zone.starts(with: "%25".utf8) && zone.count > 3 && zone.dropFirst(3).allSatisfy(isUnreserved))
    }

    /// Whether a byte is an unreserved character (RFC 3986, section 2.3), of which the zone of an address consists, too.
    package static func isUnreserved(_ byte: UInt8) -> Bool {
        (byte.asciiLowercased >= UInt8(ascii: "a") && byte.asciiLowercased <= UInt8(ascii: "z"))
            || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")) || "-._~".utf8.contains(byte)
    }
}

extension String {
    /// A host as URLs have it: an IPv6 address in brackets (RFC 3986, section 3.2.2), everything else unchanged.
    package var bracketed: String { utf8.contains(UInt8(ascii: ":")) && !hasBytePrefix("[") ? "[\(self)]" : self }
}
