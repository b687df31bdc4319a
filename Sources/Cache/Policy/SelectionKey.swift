// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Which requests a stored response may serve: the fields that its `Vary` names, with a fingerprint of their values in the request that it
/// answered (RFC 9111, section 4.1).
///
/// `Authorization` is always among the fields, unless the response is `public`: a response for one user is never served to another one of
/// the same program. A fingerprint, because values may be secrets.
package struct SelectionKey: Sendable, Hashable {
    /// The names of the request's fields, sorted and in lower case.
    package let names: [String]
    /// The SHA-256 digest of the values; empty if the request had none of the fields.
    package let fingerprint: [UInt8]

    /// Creates a key from its parts.
    package init(names: [String], fingerprint: [UInt8]) {
        self.names = names
        self.fingerprint = fingerprint
    }

    /// The key of a response to a request; `nil` for `Vary: *`, which no request matches.
    package init?(response: HTTPHeaders, isPublic: Bool, request: HTTPHeaders) {
        var names: [String] = isPublic ? [] : ["authorization"]
        for field in response where field.name.utf8.count == 4 && field.isNamed("Vary") {
            for member in FieldParser.members(of: field.value) {
                guard member != "*" else { return nil }
                names.append(member.lowercased())
            }
        }
        self.names = names.count < 2 ? names : Set(names).sorted()
        fingerprint = Self.fingerprint(self.names, request)
    }

    /// Whether a request has the same values.
    package func matches(_ request: HTTPHeaders) -> Bool {
        if fingerprint.isEmpty, names.count <= 1 {
            // The usual case, without a digest: no request field is named but `Authorization`, or none at all.
            guard let name = names.first else { return true }
            return !request.contains { $0.isNamed(name) }
        }
        return Self.fingerprint(names, request) == fingerprint
    }

    private static func fingerprint(_ names: [String], _ request: HTTPHeaders) -> [UInt8] {
        var text = ""
        var hasValue = false
        for name in names {
            // A field that is absent differs from an empty one.
            let values = request.values(for: name)
            hasValue = hasValue || !values.isEmpty
            text += "\(name)=\(values.isEmpty ? "-" : "+" + normalized(values, of: name))\n"
        }
        return hasValue ? Array(SHA256.digest(of: Data(text.utf8))) : []
    }

    /// The fields whose values are lists, in which empty members and whitespace mean nothing (RFC 9110, section 5.6.1).
    private static let lists: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection", "expect", "forwarded", "if-match",
        "if-none-match", "pragma", "prefer", "te", "upgrade", "via", "x-forwarded-for",
    ]

    /// The values of a field's lines: of a field that is known to be a list as one list with equal whitespace, so that requests that say the
    /// same match (section 4.1); of others, credentials among them, byte by byte, each with its length.
    ///
    /// In the fields of content negotiation, members are also compared without their case and ordered by weight, which is all that their order
    /// can mean (RFC 9110, section 12.4.2).
    private static func normalized(_ values: [String], of name: String) -> String {
        guard lists.contains(name) else { return values.map { "\($0.utf8.count):\($0)" }.joined() }
        var members = values.flatMap { FieldParser.members(of: $0) }.map(String.init)
        guard ["accept", "accept-charset", "accept-encoding", "accept-language"].contains(name) else {
            return members.joined(separator: ",")
        }
        members = members.map { $0.lowercased().filterScalars { $0 != " " && $0 != "\t" } }
        let weighted = members.enumerated().map { (weight: weight(of: $1), place: $0, member: $1) }
        return weighted.sorted { $0.weight == $1.weight ? $0.place < $1.place : $0.weight > $1.weight }.map(\.member).joined(separator: ",")
    }

    private static func weight(of member: String) -> Double {
        guard let parameter = member.splitScalars(separator: ";").dropFirst().last(where: { $0.hasBytePrefix("q=") }) else { return 1 }
        return Double(parameter.dropFirstScalars(2)) ?? 1
    }
}
