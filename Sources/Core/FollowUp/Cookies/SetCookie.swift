// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A parsed `Set-Cookie` field (RFC 6265, section 5.2). ``CookieJar`` decides whether a host may set it.
///
/// Parses untrusted input, without knowing the connection, so that it can be fuzzed (`FuzzTests`, `set-cookie`).
struct SetCookie: Equatable {
    /// The largest size of name and value together, in bytes; larger cookies are dropped (RFC 6265, section 6.1).
    private static let largestPair = 4096
    /// The largest value of an attribute, in bytes; an attribute with a larger one is ignored.
    private static let largestAttribute = 1024
    /// The seconds to which `Max-Age` is clamped, so that the expiry date does not overflow.
    private static let longestAge = 100 * 365 * 86_400

    let name: String
    let value: String
    /// In lower case, without a leading dot.
    private(set) var domain: String?
    private(set) var path: String?
    private(set) var isSecure = false
    private(set) var isHTTPOnly = false
    private(set) var maximumAge: Int?
    private(set) var expires: Date?

    /// Parses a field value; `nil` for one without a name, too large, or with control characters.
    init?(_ text: String) {
        guard !text.utf8.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) else { return nil }
        let parts = text.parts(separatedBy: ";")
        let pair = parts[0].parts(separatedBy: "=", atMost: 2)
        guard pair.count == 2, !pair[0].isEmpty, pair[0].utf8.count + pair[1].utf8.count <= Self.largestPair else { return nil }
        (name, value) = (pair[0], pair[1])
        for part in parts.dropFirst() {
            let attribute = part.parts(separatedBy: "=", atMost: 2)
            apply(attribute[0].lowercased(), attribute.count > 1 ? attribute[1] : "")
        }
    }

    /// Sets an attribute; the last of repeated ones counts.
    private mutating func apply(_ attribute: String, _ value: String) {
        guard value.utf8.count <= Self.largestAttribute else { return }
        switch attribute {
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        case "path": path = value.hasPrefix("/") ? value : nil
        case "domain" where !value.isEmpty: domain = (value.hasPrefix(".") ? String(value.dropFirst()) : value).lowercased()
        case "expires": expires = CookieDate.date(from: value) ?? expires
        case "max-age": maximumAge = Self.seconds(value) ?? maximumAge
        default: break
        }
    }

    private static func seconds(_ text: String) -> Int? {
        let isNegative = text.hasPrefix("-")
        let digits = isNegative ? text.dropFirst() : text[...]
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return isNegative ? 0 : min(Int(digits) ?? longestAge, longestAge)
    }

    /// The expiry date; `Max-Age` has precedence over `Expires`. `nil` for a session cookie.
    func expiry(now: Date) -> Date? {
        guard let maximumAge else { return expires }
        return maximumAge > 0 ? now.addingTimeInterval(Double(maximumAge)) : .distantPast
    }

    /// Whether attributes and scheme meet the requirements of the name's prefix, which is case-insensitive (RFC 6265bis, section 4.1.3).
    func satisfiesPrefix(isSecureOrigin: Bool) -> Bool {
        let name = name.lowercased()
        if name.hasPrefix("__secure-") { return isSecure && isSecureOrigin }
        if name.hasPrefix("__host-") { return isSecure && isSecureOrigin && domain == nil && path == "/" }
        return true
    }
}

/// The lenient date parser for `Set-Cookie` (RFC 6265, section 5.1.1).
enum CookieDate {
    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    /// Parses a date; `nil` if time, day, month or year is missing or out of range.
    static func date(from text: String) -> Date? {
        var time: [Int]?
        var day: Int?
        var month: Int?
        var year: Int?
        for token in text.utf8.split(whereSeparator: isDelimiter).map({ String(Substring($0)) }) {
            if time == nil, let clock = clock(token) {
                time = clock
            } else if day == nil, let number = number(token, digits: 1...2) {
                day = number
            } else if month == nil, let index = months.firstIndex(of: token.prefix(3).lowercased()) {
                month = index
            } else if year == nil, let number = number(token, digits: 2...4) {
                year = number < 70 ? number + 2000 : number < 100 ? number + 1900 : number
            }
        }
        guard let time, let day, let month, let year, year >= 1601, time[0] < 24, time[1] < 60, time[2] < 60 else { return nil }
        return date(year, month, day, time)
    }

    private static func date(_ year: Int, _ month: Int, _ day: Int, _ time: [Int]) -> Date? {
        var parts = tm()
        parts.tm_year = Int32(year - 1900)
        parts.tm_mon = Int32(month)
        parts.tm_mday = Int32(day)
        parts.tm_hour = Int32(time[0])
        parts.tm_min = Int32(time[1])
        parts.tm_sec = Int32(time[2])
        let seconds = timegm(&parts)
        // `timegm` normalizes a day beyond the month's end to one of the next month.
        return parts.tm_mday == Int32(day) ? Date(timeIntervalSince1970: Double(seconds)) : nil
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        byte == 0x09 || (0x20...0x2F).contains(byte) || (0x3B...0x40).contains(byte) || (0x5B...0x60).contains(byte)
            || (0x7B...0x7E).contains(byte)
    }

    /// Hours, minutes and seconds: one or two digits each; only the seconds may be followed by other characters.
    private static func clock(_ token: String) -> [Int]? {
        let parts = token.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, parts.prefix(2).allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }) else { return nil }
        let numbers = parts.compactMap { number($0, digits: 1...2) }
        return numbers.count == 3 ? numbers : nil
    }

    /// The leading number of a token; `nil` unless the number of digits is in the range.
    private static func number(_ token: String, digits: ClosedRange<Int>) -> Int? {
        let number = token.utf8.prefix { (0x30...0x39).contains($0) }
        return digits.contains(number.count) ? Int(Substring(number)) : nil
    }
}

extension String {
    /// The parts between the separators, without surrounding blanks.
    fileprivate func parts(separatedBy separator: Unicode.Scalar, atMost count: Int = .max) -> [String] {
        let separator = UInt8(ascii: separator)
        return utf8.split(separator: separator, maxSplits: count == .max ? .max : count - 1, omittingEmptySubsequences: false)
            .map { part in
                let start = part.firstIndex { $0 != 0x20 && $0 != 0x09 } ?? part.endIndex
                let end = part.lastIndex { $0 != 0x20 && $0 != 0x09 }.map { part.index(after: $0) } ?? start
                return String(Substring(part[start..<end]))
            }
    }
}
