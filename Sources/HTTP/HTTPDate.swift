// SPDX-License-Identifier: Apache-2.0

/// Dates in header fields (RFC 9110, section 5.6.7).
package enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Parses a date in one of the three forms that recipients must accept; `nil` for any other text. The day name is ignored.
    ///
    /// - Parameter now: determines the century of a two-digit year: the latest one that is at most 50 years ahead.
    package static func date(from text: String, now: Date = Date()) -> Date? {
        let parts = text.splitScalars { $0 == " " || $0 == "," }.map(String.init)
        switch parts.count {
        // Sun, 06 Nov 1994 08:49:37 GMT
        case 6 where parts[5] == "GMT": return date(day: parts[1], month: parts[2], year: year(parts[3]), time: parts[4])
        // Sunday, 06-Nov-94 08:49:37 GMT
        case 4 where parts[3] == "GMT":
            let day = parts[1].splitScalars(separator: "-").map(String.init)
            guard day.count == 3 else { return nil }
            return date(day: day[0], month: day[1], year: shortYear(day[2], now: now), time: parts[2])
        // Sun Nov  6 08:49:37 1994
        case 5: return date(day: parts[2], month: parts[1], year: year(parts[4]), time: parts[3])
        default: return nil
        }
    }

    /// Returns a date in the preferred form, without fractions of a second; `nil` for a year that does not have four digits.
    package static func text(of date: Date) -> String? {
        var parts = tm()
        guard var time = time_t(exactly: date.timeIntervalSince1970.rounded(.down)), gmtime_r(&time, &parts) != nil,
            (-900..<8_100).contains(parts.tm_year)
        else { return nil }
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map(twoDigits).joined(separator: ":")
        let day = "\(twoDigits(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(parts.tm_year + 1_900)"
        return "\(days[Int(parts.tm_wday)]), \(day) \(clock) GMT"
    }

    private static func twoDigits(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private static func date(day: String, month: String, year: Int?, time: String) -> Date? {
        let clock = time.splitScalars(separator: ":", omittingEmptySubsequences: false).map { number($0, digits: 2...2) }
        guard let year, let day = number(day, digits: 1...2), let month = months.firstIndex(of: month), clock.count == 3,
            let hour = clock[0], let minute = clock[1], let second = clock[2]
        else { return nil }
        return Date(utcYear: year, month: month + 1, day: day, hour: hour, minute: minute, second: second)
    }

    private static func number(_ text: some StringProtocol, digits: ClosedRange<Int>) -> Int? {
        guard digits.contains(text.utf8.count), text.isAllDigits else { return nil }
        return Int(text)
    }

    private static func year(_ text: String) -> Int? { number(text, digits: 4...4) }

    private static func shortYear(_ text: String, now: Date) -> Int? {
        guard let short = number(text, digits: 2...2) else { return nil }
        // Precise enough to determine the century.
        let thisYear = 1970 + Int(now.timeIntervalSince1970 / 31_556_952)
        let year = thisYear / 100 * 100 + short
        return year > thisYear + 50 ? year - 100 : year
    }
}
