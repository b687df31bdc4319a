// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The condition of curl's option `--time-cond`: a date, or that of a file, behind a minus for documents that are older.
struct CurlTimeCondition: Sendable, Equatable {
    let date: Date
    let isOlder: Bool

    /// - Returns: `nil` for a text that is neither a date nor a file.
    init?(_ text: String) {
        isOlder = text.hasBytePrefix("-")
        let rest = String(isOlder ? text.dropFirstScalars() : text.hasBytePrefix("=") ? text.dropFirstScalars() : text[...])
        var status = stat()
        if let date = Self.date(rest) {
            self.date = date
        } else if stat(rest, &status) == 0 {
            date = Self.modification(status)
        } else {
            return nil
        }
    }

    static func modification(_ status: stat) -> Date {
        #if canImport(Darwin)
        Date(timeIntervalSince1970: Double(status.st_mtimespec.tv_sec))
        #else
        Date(timeIntervalSince1970: Double(status.st_mtim.tv_sec))
        #endif
    }

    /// The field that asks the server.
    var field: String { "\(isOlder ? "If-Unmodified-Since" : "If-Modified-Since"): \(Self.text(of: date))" }

    /// Whether a document of a date is to be written: the server may not know the field.
    func isMet(by lastModified: Date) -> Bool { isOlder ? lastModified <= date : lastModified > date }

    // MARK: Dates

    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    private static let days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

    /// A date in the preferred form of HTTP (RFC 9110, section 5.6.7).
    static func text(of date: Date) -> String {
        var parts = tm()
        var time = time_t(date.timeIntervalSince1970.rounded(.down))
        gmtime_r(&time, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let year = "\(parts.tm_year + 1900)"
        return "\(days[Int(parts.tm_wday)].capitalized), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)].capitalized) \(year) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
    }

    /// Reads the forms that curl does: the elements of HTTP's dates in any order, `20240131`, `2024-01-31`, and zones as `GMT`, `Z`, `EST`
    /// or `+0100`; `nil` for a text that is no date. Without a time it is midnight, without a zone it is UTC.
    static func date(_ text: String) -> Date? {
        var (year, month, day): (Int?, Int?, Int?)
        var clock = (hour: 0, minute: 0, second: 0)
        var (zone, hasClock): (Int?, Bool) = (nil, false)
        let words = text.splitScalars { $0 == " " || $0 == "," || $0 == "\t" }
        for word in words.flatMap(Self.parts) {
            let lower = word.lowercased()
            if let index = months.firstIndex(where: { Self.isName(lower, of: $0) }), month == nil {
                month = index + 1
            } else if days.contains(where: { Self.isName(lower, of: $0) }) {
                continue
            } else if word.unicodeScalars.contains(":") {
                let numbers = word.splitScalars(separator: ":", omittingEmptySubsequences: false).map { Int($0) }
                guard !hasClock, 2...3 ~= numbers.count, let hour = numbers[0], let minute = numbers[1],
                    let second = numbers[numbers.count - 1],
                    hour < 24, minute < 60, second <= 60
                else { return nil }
                clock = (hour, minute, numbers.count == 3 ? second : 0)
                hasClock = true
            } else if let offset = Self.zone(word), zone == nil, hasClock || Self.zones[lower] != nil {
                zone = offset
            } else if word.isAllDigits, let number = Int(word) {
                switch word.utf8.count {
                case 8 where year == nil && month == nil && day == nil:
                    (year, month, day) = (number / 10_000, number / 100 % 100, number % 100)
                case 1...2 where day == nil && (1...31).contains(number): day = number
                case 1...2 where year == nil: year = number + (number > 70 ? 1900 : 2000)
                case 4 where year == nil: year = number
                default: return nil
                }
            } else if let iso = Self.iso(word), year == nil {
                (year, month, day) = iso
            } else {
                return nil
            }
        }
        guard let year, let month, let day, (1...12).contains(month), (1...31).contains(day), (1583...9999).contains(year) else {
            return nil
        }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (Int32(year - 1900), Int32(month - 1), Int32(day))
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (Int32(clock.hour), Int32(clock.minute), Int32(clock.second))
        let time = timegm(&parts)
        // A day that the month has not got is normalized to one of the next.
        guard parts.tm_mday == Int32(day) else { return nil }
        return Date(timeIntervalSince1970: Double(Int(time) - (zone ?? 0) * 60))
    }

    private static func isName(_ word: String, of name: String) -> Bool {
        word.utf8.count >= 3 && word.hasBytePrefix(name) && word.utf8.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
    }

    /// The parts of `2024-01-31T10:00:00Z`, and of `06-Nov-94`.
    private static func parts(_ word: Substring) -> [Substring] {
        if word.utf8.first?.isASCIIDigit == true, word.unicodeScalars.contains(":"),
            let mark = word.unicodeScalars.firstIndex(where: { $0 == "T" || $0 == "t" })
        {
            let rest = word.suffix(afterScalarAt: mark)
            return [word[..<mark]] + parts(rest)
        }
        if word.utf8.first?.isASCIIDigit == true, word.unicodeScalars.contains(":"), word.hasByteSuffix("Z") {
            return [word.dropLast(), word.suffix(1)]
        }
        let pieces = word.splitScalars(separator: "-", omittingEmptySubsequences: false)
        return pieces.count == 3 && pieces[1].unicodeScalars.first?.properties.isAlphabetic == true ? pieces : [word]
    }

    private static func iso(_ word: Substring) -> (Int?, Int?, Int?)? {
        let numbers = word.splitScalars(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 3, numbers.allSatisfy(\.isAllDigits), numbers[0].count == 4 else { return nil }
        return (Int(numbers[0]), Int(numbers[1]), Int(numbers[2]))
    }

    private static let zones = [
        "gmt": 0, "utc": 0, "z": 0, "wet": 0, "bst": 60, "cet": 60, "cest": 120, "eet": 120, "eest": 180, "est": -300, "edt": -240,
        "cst": -360, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420,
    ]

    /// The minutes that a zone is ahead of UTC.
    private static func zone(_ word: Substring) -> Int? {
        if let known = zones[word.lowercased()] { return known }
        guard let sign = word.first, sign == "+" || sign == "-", word.dropFirst().isAllDigits, word.count == 5,
            let number = Int(word.dropFirst()), number % 100 < 60, number <= 1400
        else { return nil }
        return (number / 100 * 60 + number % 100) * (sign == "-" ? -1 : 1)
    }
}
