// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The URL or reference without the user name and password of its authority (RFC 3986, sections 3.2.1 and 4.1).
    ///
    /// For URLs given by a peer, and for those whose credentials are sent in another way. In contrast to ``withoutUserInfo``, which is for
    /// messages, nothing after the authority is changed.
    package var droppingUserInfo: String {
        guard let authority, let at = authority.utf8.lastIndex(of: UInt8(ascii: "@")) else { return self }
        return String(self[..<authority.startIndex] + self[utf8.index(after: at)...])
    }

    /// The absolute URL with its host normalized (``URLHost``); unchanged if it has no authority.
    package func normalizingHost() throws(URLHost.ValidationError) -> String {
        guard let host else { return self }
        let normalized = try URLHost.normalized(host)
        return normalized == host ? self : String(self[..<host.startIndex]) + normalized + self[host.endIndex...]
    }

    /// A reference given by a peer as bytes, of which those that are invalid in a URL where they stand (RFC 3986, section 3) are
    /// percent-encoded, one by one. Foundation's parser would then encode all escapes again.
    private init(repairing bytes: [UInt8]) {
        let valid = String(escaping: bytes) { index in
            let byte = bytes[index]
            return byte == UInt8(ascii: "%") ? Self.isEscape(bytes[index...].prefix(3)) : Self.isURLByte(byte)
        }
        // Brackets belong to addresses, and the first number sign begins the fragment.
        let start = valid.authority?.endIndex ?? valid.startIndex
        let rest = Array(valid.utf8[start...])
        let mark = rest.firstIndex(of: UInt8(ascii: "#"))
        let escaped = String(escaping: rest) { index in
            rest[index] == UInt8(ascii: "#") ? index == mark : !"[]".utf8.contains(rest[index])
        }
        self = "\(valid[..<start])\(escaped)"
    }

    /// A URL or reference given by the program, with the characters after its authority percent-encoded that are invalid there. Foundation's
    /// parser would then encode its escapes, too.
    package var encodingInvalidCharacters: String {
        let start = authority?.endIndex ?? startIndex
        return "\(self[..<start])\(String(repairing: Array(utf8[start...])))"
    }

    /// Whether it is clear where ``encodingInvalidCharacters`` has to encode characters, and as what: there is an authority, and no control
    /// character, none beyond ASCII, which may be composed or decomposed, no backslash, which browsers read as a slash, and no percent sign
    /// without two hexadecimal digits.
    var isUnambiguousURL: Bool {
        let bytes = Array(utf8)
        return authority != nil
            && bytes.indices.allSatisfy { index in
                switch bytes[index] {
                case ..<0x20, 0x7F..., UInt8(ascii: "\\"): false
                case UInt8(ascii: "%"): Self.isEscape(bytes[index...].prefix(3))
                default: true
                }
            }
    }

    /// Bytes as text, percent-encoded but for those at the indices for which the predicate is true, which must be ASCII.
    package init(escaping bytes: [UInt8], unless isValid: (Int) -> Bool) {
        self = bytes.indices.map { index in
            let byte = bytes[index]
            return isValid(index) ? String(UnicodeScalar(byte)) : "%" + byte.hexDigits.uppercased()
        }.joined()
    }

    /// Whether bytes are a percent sign with two hexadecimal digits.
    private static func isEscape(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.count == 3 && bytes.dropFirst().allSatisfy { $0.hexValue != nil }
    }

    private static func isURLByte(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && !#""<>\^`{|}"#.utf8.contains(byte)
    }

    /// The absolute URL with user name and password of another one, as they stand there; unchanged if that has none.
    package func withUserInfo(of other: String) -> String {
        guard let start = authorityStart, let authority = other.authority, let at = authority.utf8.lastIndex(of: UInt8(ascii: "@"))
        else { return self }
        return "\(self[..<start])\(other[authority.startIndex...at])\(self[start...])"
    }

    /// Resolves a reference given by a peer against a URL (RFC 3986, section 5.2.2), without user name and password; `nil` if the result is
    /// not a URL.
    ///
    /// The reference is repaired: bytes that are invalid in a URL are percent-encoded. Dot segments are also removed from absolute
    /// references, which Foundation leaves unchanged.
    package func resolved(against base: URL) -> URL? { Self.resolve(utf8, against: base) }

    /// The same for a reference in bytes that need not be UTF-8.
    package static func resolve(_ bytes: some Collection<UInt8>, against base: URL) -> URL? {
        String(repairing: Array(bytes)).resolvedAsIs(against: base)
    }

    private func resolvedAsIs(against base: URL) -> URL? {
        guard let url = URL(string: droppingUserInfo, relativeTo: base)?.absoluteURL else { return nil }
        // Without a path of its own the reference has that of the base, whose dot segments may be intended.
        guard let first = utf8.first, first != UInt8(ascii: "?"), first != UInt8(ascii: "#") else { return url }
        let text = url.absoluteString
        guard let authority = text.authority else { return url }
        let path = Substring(text.utf8[authority.endIndex...].prefix { !"?#".utf8.contains($0) })
        let clean = path.removingDotSegments
        return clean == path ? url : URL(string: "\(text[..<path.startIndex])\(clean)\(text[path.endIndex...])")
    }

    // By bytes: a delimiter followed by a combining character is another `Character`.

    /// The authority (RFC 3986, section 3.2); `nil` if there is none.
    package var authority: Substring? {
        guard let start = authorityStart else { return nil }
        return Substring(utf8[start...].prefix { !"/?#".utf8.contains($0) })
    }

    /// The host within the authority, with any brackets.
    var host: Substring? {
        guard let authority else { return nil }
        let start = authority.utf8.lastIndex(of: UInt8(ascii: "@")).map { utf8.index(after: $0) } ?? authority.startIndex
        let rest = authority.utf8[start...]
        guard rest.first == UInt8(ascii: "[") else { return Substring(rest.prefix { $0 != UInt8(ascii: ":") }) }
        return Substring(rest.firstIndex(of: UInt8(ascii: "]")).map { rest[...$0] } ?? rest)
    }

    /// The start of the authority: after the two slashes at the start of the reference, or after its scheme.
    private var authorityStart: Index? {
        let scheme = utf8.prefix { !":/?#".utf8.contains($0) }
        var rest = utf8[scheme.endIndex...]
        if rest.first == UInt8(ascii: ":") {
            rest.removeFirst()
        } else if !scheme.isEmpty {
            return nil
        }
        return rest.starts(with: "//".utf8) ? rest.index(rest.startIndex, offsetBy: 2) : nil
    }
}

extension Substring {
    /// The absolute URL with the segments `.` and `..` removed from its path (RFC 3986, section 5.2.4).
    fileprivate var removingDotSegments: String {
        guard containsScalars(of: "/.") else { return String(self) }
        let segments = splitScalars(separator: "/", omittingEmptySubsequences: false).dropFirst()
        var result: [Substring] = []
        for (index, segment) in zip(segments.indices, segments) {
            guard segment == "." || segment == ".." else {
                result.append(segment)
                continue
            }
            if segment == "..", !result.isEmpty { result.removeLast() }
            // A dot segment at the end leaves a trailing slash.
            if index == segments.endIndex - 1 { result.append("") }
        }
        return "/" + result.joined(separator: "/")
    }
}
