// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A subject or issuer (RFC 5280, section 4.1.2.4), as text.
struct DistinguishedName {
    /// The form of RFC 4514, such as `CN=www.example.org,O=Example,C=US`: the most specific part first.
    let description: String
    /// The most specific common name; `nil` if there is none.
    let commonName: String?

    init(from element: DERReader.Element) throws(DERReader.Malformed) {
        var reader = DERReader(element.contents)
        var parts: [String] = []
        var commonName: String?
        while !reader.isAtEnd {
            var set = try reader.enter(.set)
            var attributes: [String] = []
            while !set.isAtEnd {
                let attribute = try Attribute(from: set.next(.sequence))
                attributes.append(attribute.description)
                if attribute.type == "CN" { commonName = attribute.value.string }
            }
            parts.append(attributes.joined(separator: "+"))
        }
        description = parts.reversed().joined(separator: ",")
        self.commonName = commonName
    }

    private struct Attribute {
        /// The attribute types with names in RFC 4514 (section 3); other types are written as numbers.
        private static let names = [
            "2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET", "2.5.4.10": "O", "2.5.4.11": "OU",
            "0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC",
        ]

        let type: String
        let value: DERReader.Element

        init(from element: DERReader.Element) throws(DERReader.Malformed) {
            var reader = DERReader(element.contents)
            guard let identifier = try reader.next(.objectIdentifier).objectIdentifier else { throw DERReader.Malformed() }
            type = Self.names[identifier] ?? identifier
            value = try reader.next()
            try reader.end()
        }

        var description: String {
            // The value of a numeric type is written in DER (RFC 4514, section 2.4).
            guard type.first?.isNumber == false, let string = value.string else {
                return "\(type)=#" + value.bytes.hexDigits
            }
            return "\(type)=" + string.escapedForName
        }
    }
}

extension String {
    /// The string escaped as a value (RFC 4514, section 2.4); control characters as numbers, because descriptions are logged.
    fileprivate var escapedForName: String {
        let scalars = Array(unicodeScalars)
        return scalars.indices.map { index -> String in
            let scalar = scalars[index]
            let isAtEdge = index == 0 || index == scalars.count - 1
            if scalar.isControlInText { return String(scalar).utf8.map { "\\" + $0.hexDigits }.joined() }
            if #",+"\<>;"#.unicodeScalars.contains(scalar) || (scalar == " " && isAtEdge) || (scalar == "#" && index == 0) {
                return "\\\(scalar)"
            }
            return String(scalar)
        }.joined()
    }
}
