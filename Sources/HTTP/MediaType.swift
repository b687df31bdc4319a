// SPDX-License-Identifier: Apache-2.0

/// A media type or range without parameters (RFC 9110, sections 8.3.1 and 12.5.1).
package struct MediaType: Equatable {
    package let type: String
    package let subtype: String

    /// `nil` for a string without a slash.
    package init?(_ string: some StringProtocol) {
        let parts = Substring(string).mediaType.splitScalars(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        type = String(parts[0])
        subtype = String(parts[1])
    }

    /// Whether text of this type that names no other encoding itself has to be UTF-8: JSON (RFC 8259, section 8.1), its lines and
    /// sequences, XML (XML 1.0, section 4.3.3), event streams, and what is based on them (RFC 6839).
    var isUTF8: Bool {
        let format = subtype.splitScalars(separator: "+").last?.lowercased() ?? ""
        return ["json", "json-seq", "x-ndjson", "ndjson", "jsonl", "json-lines", "xml", "event-stream"].contains(format)
    }
}

extension StringProtocol where SubSequence == Substring {
    /// The media type or range of a field's value or member as it is written, without parameters and white space.
    package var mediaType: String { prefixScalars { $0 != ";" }.filterScalars { !$0.properties.isWhitespace } }
}

extension String {
    /// The parameters of a field's value (RFC 9110, section 5.6.6), by names in lower case; the first of each name counts.
    package var fieldParameters: [String: String] {
        var result: [String: String] = [:]
        var parser = FieldParser(self)
        parser.take { $0 != UInt8(ascii: ";") }
        while parser.skip(";") {
            let (name, argument) = parser.takeLooseParameter { $0 == UInt8(ascii: ";") }
            let key = name.lowercased()
            if result[key] == nil { result[key] = argument }
            parser.take { $0 != UInt8(ascii: ";") }
        }
        return result
    }
}
