// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Creates URLs from user input.
enum RequestURL {
    /// Returns the URL with its scheme and the query items.
    static func make(_ text: String, items: [RequestItem]) throws(UsageError) -> String {
        let query = items.compactMap { item -> String? in
            guard case .query(let name, let value) = item else { return nil }
            return "\(escaped(name))=\(escaped(value))"
        }
        let url = adding(query, to: repaired(withScheme(text)))
        if let start = url.firstScalarRange(of: "://"),
            url[start.upperBound..<endOfAuthority(url)].splitScalars(separator: "@", omittingEmptySubsequences: false).count > 2
        {
            throw UsageError("an @ in a user's name or password is written %40: \(shown(url))")
        }
        guard let parsed = try? url.asURL() else { throw UsageError("invalid URL: \(shown(url))") }
        guard ["http", "https"].contains(parsed.scheme?.lowercased()) else {
            throw UsageError("the scheme is not http or https: \(shown(url))")
        }
        guard parsed.host?.isEmpty == false else { throw UsageError("the URL has no host: \(shown(url))") }
        return url
    }

    /// Completes a URL: `:8080/path` is on localhost; addresses of this machine get `http`, all others `https`.
    private static func withScheme(_ text: String) -> String {
        if text.containsScalars(of: "://"), text.prefixScalars(while: { $0 != "/" && $0 != "?" && $0 != "#" }).hasByteSuffix(":") {
            return text
        }
        if text.hasBytePrefix("//") { return withScheme(String(text.dropFirstScalars(2))) }
        if text.hasBytePrefix(":"), !text.hasBytePrefix("::") {
            let rest = text.dropFirstScalars()
            let port = rest.prefixScalars { $0 != "/" && $0 != "?" && $0 != "#" }
            // `:8080@host` would lead elsewhere.
            if port.utf8.allSatisfy({ $0.isASCIIDigit }) { return "http://localhost" + (port.isEmpty ? "" : ":") + rest }
        }
        return (isLocal(text) ? "http://" : "https://") + text
    }

    private static func isLocal(_ text: String) -> Bool {
        let authority = text.prefixScalars { $0 != "/" && $0 != "?" && $0 != "#" }
        let place = authority.splitScalars(separator: "@", omittingEmptySubsequences: false).last ?? ""
        if place.hasBytePrefix("[") { return place.hasBytePrefix("[::1]") }
        let host = place.prefixScalars { $0 != ":" }.lowercased()
        if host == "localhost" || host.hasByteSuffix(".localhost") { return true }
        let numbers = host.splitScalars(separator: ".", omittingEmptySubsequences: false)
        return numbers.count == 4 && numbers[0] == "127" && numbers.allSatisfy { UInt8($0) != nil }
    }

    /// Percent-encodes what a URL can't have behind the host: spaces, letters of other scripts, quotes, brackets, and a percent sign that
    /// encodes nothing.
    private static func repaired(_ url: String) -> String {
        let start = endOfAuthority(url)
        let tail = Array(url[start...].utf8)
        var repaired: [UInt8] = []
        for (index, byte) in tail.enumerated() {
            let isStray =
                byte == UInt8(ascii: "%") && !(index + 2 < tail.count && tail[(index + 1)...(index + 2)].allSatisfy(isHexadecimal))
            if isAllowed(byte), !isStray {
                repaired.append(byte)
            } else {
                let digits = Array("0123456789ABCDEF".utf8)
                repaired += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return repaired.count == tail.count ? url : url[..<start] + String(decoding: repaired, as: UTF8.self)
    }

    /// Whether a byte may stand in a path, a query or a fragment (RFC 3986, section 3).
    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: "-._~:/?#@!$&'()*+,;=%".utf8.contains(byte)
        }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool { Character(UnicodeScalar(byte)).isHexDigit }

    /// The end of scheme, user, host and port.
    static func endOfAuthority(_ url: String) -> String.Index {
        let start = url.firstScalarRange(of: "://")?.upperBound ?? url.startIndex
        return url[start...].unicodeScalars.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? url.endIndex
    }

    /// Removes the segments `.` and `..` of the path, as curl does (RFC 3986, section 5.2.4).
    static func withoutDotSegments(_ url: String) -> String {
        let start = endOfAuthority(url)
        let path = url[start...].prefixScalars { $0 != "?" && $0 != "#" }
        guard path.containsScalars(of: "/.") else { return url }
        var segments: [Substring] = []
        let given = path.splitScalars(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for (number, segment) in given.enumerated() {
            let isLast = number == given.count - 1
            switch segment {
            case ".", "..":
                if segment == "..", !segments.isEmpty { segments.removeLast() }
                if isLast { segments.append("") }
            default: segments.append(segment)
            }
        }
        return url[..<start] + "/" + segments.joined(separator: "/") + url[path.endIndex...]
    }

    static func adding(_ items: [String], to url: String) -> String {
        guard !items.isEmpty else { return url }
        let end = url.unicodeScalars.firstIndex(of: "#") ?? url.endIndex
        let base = url[..<end]
        let separator = base.unicodeScalars.contains("?") ? (base.hasByteSuffix("?") || base.hasByteSuffix("&") ? "" : "&") : "?"
        return base + separator + items.joined(separator: "&") + url[end...]
    }

    /// Percent-encodes all but the unreserved characters (RFC 3986, section 2.3).
    static func escaped(_ text: String) -> String {
        let unreserved = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? text
    }

    /// The same of bytes that need not be text.
    static func escaped(_ bytes: Data) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                result.append(byte)
            case _ where "-._~".utf8.contains(byte): result.append(byte)
            default: result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    static func hasUserInfo(_ url: String) -> Bool {
        guard let slashes = url.firstScalarRange(of: "//") else { return false }
        return url[slashes.upperBound...].prefixScalars { $0 != "/" && $0 != "?" && $0 != "#" }.unicodeScalars.contains("@")
    }

    /// The user's name in a URL, with the password if it has one: what stands before the host, without percent-encoding.
    static func user(of url: String) -> String? {
        guard let slashes = url.firstScalarRange(of: "//") else { return nil }
        let authority = url[slashes.upperBound...].prefixScalars { $0 != "/" && $0 != "?" && $0 != "#" }
        guard let at = authority.unicodeScalars.lastIndex(of: "@"), at > authority.startIndex else { return nil }
        let text = authority[..<at]
        // A colon that is encoded is part of the name.
        return text.unicodeScalars.contains(":") ? String(text) : text.removingPercentEncoding
    }

    /// Returns the URL for display: without user name, password and query, as the query may contain secrets too.
    static func shown(_ url: String) -> String {
        let text = url.prefixScalars { $0 != "?" && $0 != "#" }
        guard let slashes = text.firstScalarRange(of: "//") else { return String(text) }
        let authority = text[slashes.upperBound...].prefixScalars { $0 != "/" }
        guard let at = authority.unicodeScalars.lastIndex(of: "@") else { return String(text) }
        return String(text[..<slashes.upperBound] + text.suffix(afterScalarAt: at))
    }
}
