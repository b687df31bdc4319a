// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A parsed `Set-Cookie` field (RFC 6265bis, section 5.6). ``CookieTable`` decides whether a host may set it.
///
/// Parses untrusted input, without knowing the connection, so that it can be fuzzed (`FuzzTests`, `set-cookie`).
package struct SetCookie: Equatable, Sendable {
    /// The prefixes of names with requirements.
    enum Prefix {
        case none
        case secure
        case host
    }

    /// The largest size of name and value together, in bytes; larger cookies are dropped.
    static let largestPair = 4096
    /// The largest value of an attribute, in bytes; an attribute with a larger one is ignored.
    static let largestAttribute = 1024
    /// The seconds to which `Max-Age` is clamped, so that the expiry date does not overflow.
    private static let longestAge = 100 * 365 * 86_400

    /// Empty for a cookie without an equals sign.
    package let name: String
    package let value: String
    /// In lower case, without a leading dot; empty for a dot alone, `nil` for the host that sets the cookie.
    package private(set) var domain: String?
    package private(set) var path: String?
    package private(set) var isSecure = false
    package private(set) var isHTTPOnly = false
    package private(set) var sameSite: Cookie.SameSite?
    package private(set) var maximumAge: Int?
    package private(set) var expires: Date?

    /// Parses a field value; `nil` for one without a name and a value, too large, or with control characters.
    package init?(_ text: String) {
        guard !Self.hasControls(text) else { return nil }
        let parts = text.parts(separatedBy: ";")
        let pair = parts[0].parts(separatedBy: "=", atMost: 2)
        (name, value) = pair.count == 2 ? (pair[0], pair[1]) : ("", pair[0])
        guard !name.isEmpty || !value.isEmpty, name.utf8.count + value.utf8.count <= Self.largestPair else { return nil }
        for part in parts.dropFirst() {
            let attribute = part.parts(separatedBy: "=", atMost: 2)
            apply(attribute[0].lowercased(), attribute.count > 1 ? attribute[1] : "")
        }
    }

    /// Sets an attribute; the last of repeated ones counts. Unknown ones, such as `Partitioned`, are ignored.
    private mutating func apply(_ attribute: String, _ value: String) {
        guard value.utf8.count <= Self.largestAttribute else { return }
        switch attribute {
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        case "path": path = value.utf8.first == UInt8(ascii: "/") ? value : nil
        case "domain":
            let bare = value.utf8.first == UInt8(ascii: ".") ? String(Substring(value.utf8.dropFirst())) : value
            domain = value.isEmpty ? nil : bare.lowercased()
        case "samesite": sameSite = Cookie.SameSite.allCases.first { $0.rawValue.lowercased() == value.lowercased() }
        case "expires": expires = CookieDate.date(from: value) ?? expires
        case "max-age": maximumAge = Self.seconds(value) ?? maximumAge
        default: break
        }
    }

    private static func seconds(_ text: String) -> Int? {
        let isNegative = text.hasBytePrefix("-")
        let digits = isNegative ? text.dropFirstScalars() : text[...]
        guard digits.isAllDigits else { return nil }
        return isNegative ? 0 : min(Int(digits) ?? longestAge, longestAge)
    }

    /// The expiry date; `Max-Age` has precedence over `Expires`. `nil` for a session cookie.
    package func expiry(now: Date) -> Date? {
        guard let maximumAge else { return expires }
        return maximumAge > 0 ? now.addingTimeInterval(Double(maximumAge)) : .distantPast
    }

    /// Whether attributes and scheme meet the requirements of the name's prefix, which is case-insensitive (RFC 6265bis, section 4.1.3).
    package func satisfiesPrefix(isSecureOrigin: Bool) -> Bool {
        let prefix = Self.prefix(of: name, value)
        // The field of a cookie without a name would look like one with the prefix.
        if name.isEmpty { return prefix == .none }
        return switch prefix {
        case .none: true
        case .secure: isSecure && isSecureOrigin
        case .host: isSecure && isSecureOrigin && domain == nil && path == "/"
        }
    }

    /// The prefix of a name; without one, that with which the value begins.
    static func prefix(of name: String, _ value: String) -> Prefix {
        let text = (name.isEmpty ? value : name).lowercased()
        return text.hasBytePrefix("__secure-") ? .secure : text.hasBytePrefix("__host-") ? .host : .none
    }

    /// Whether a text has a control character other than a tab.
    static func hasControls(_ text: String) -> Bool { text.utf8.contains { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F } }

    /// Whether a text begins or ends with a blank.
    static func isPadded(_ text: String) -> Bool {
        text.utf8.first?.isBlank == true || text.utf8.last?.isBlank == true
    }
}

extension String {
    /// The parts between the separators, without surrounding blanks.
    fileprivate func parts(separatedBy separator: Unicode.Scalar, atMost count: Int = .max) -> [String] {
        let separator = UInt8(ascii: separator)
        return utf8.split(separator: separator, maxSplits: count == .max ? .max : count - 1, omittingEmptySubsequences: false)
            .map { String(Substring($0).trimmingBlanks) }
    }
}
