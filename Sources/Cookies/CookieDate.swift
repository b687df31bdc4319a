// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The lenient date parser for `Set-Cookie` (RFC 6265bis, section 5.1.1).
package enum CookieDate {
    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"].map { Array($0.utf8) }

    /// Parses a date; `nil` if time, day, month or year is missing or out of range.
    package static func date(from text: String) -> Date? {
        var time: [Int]?
        var day: Int?
        var month: Int?
        var year: Int?
        for token in text.utf8.split(whereSeparator: isDelimiter) {
            if time == nil, let clock = clock(token) {
                time = clock
            } else if day == nil, let number = number(token, digits: 1...2) {
                day = number
            } else if month == nil, let index = months.firstIndex(of: token.prefix(3).map(\.asciiLowercased)) {
                month = index
            } else if year == nil, let number = number(token, digits: 2...4) {
                year = number < 70 ? number + 2000 : number < 100 ? number + 1900 : number
            }
        }
        guard let time, let day, let month, let year, year >= 1601, time[2] < 60 else { return nil }
        return Date(utcYear: year, month: month + 1, day: day, hour: time[0], minute: time[1], second: time[2])
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        byte == 0x09 || (0x20...0x2F).contains(byte) || (0x3B...0x40).contains(byte) || (0x5B...0x60).contains(byte)
            || (0x7B...0x7E).contains(byte)
    }

    /// Hours, minutes and seconds: one or two digits each; only the seconds may be followed by other characters.
    private static func clock(_ token: Substring.UTF8View) -> [Int]? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts.prefix(2).allSatisfy({ $0.allSatisfy(\.isASCIIDigit) }) else { return nil }
        let numbers = parts.compactMap { number($0, digits: 1...2) }
        return numbers.count == 3 ? numbers : nil
    }

    /// The leading number of a token; `nil` unless the number of digits is in the range.
    private static func number(_ token: Substring.UTF8View, digits: ClosedRange<Int>) -> Int? {
        let number = token.prefix { $0.isASCIIDigit }
        return digits.contains(number.count) ? Int(Substring(number)) : nil
    }
}
