// SPDX-License-Identifier: Apache-2.0

extension Date {
    /// Creates a time in UTC by the Gregorian calendar, of year 0 or later; `nil` if there is no such time. Second 60, a leap second, is the
    /// first one of the next minute.
    ///
    /// Not by Foundation's `Calendar`, which costs more, nor by `timegm`, which takes a time that does not exist for another one.
    package init?(utcYear year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard year >= 0, (1...12).contains(month), (1...lengths[month - 1]).contains(day), (0..<24).contains(hour),
            (0..<60).contains(minute), (0...60).contains(second)
        else { return nil }
        let yearsBefore = year - 1
        let daysBefore = year == 0 ? -366 : yearsBefore * 365 + yearsBefore / 4 - yearsBefore / 100 + yearsBefore / 400
        // There are 719,162 days between January 1 of the years 1 and 1970.
        let days = daysBefore + lengths.prefix(month - 1).reduce(0, +) + day - 1 - 719_162
        self.init(timeIntervalSince1970: Double(days * 86_400 + hour * 3600 + minute * 60 + second))
    }
}
