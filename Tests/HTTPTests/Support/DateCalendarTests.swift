// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct DateCalendarTests {
    @Test(
        arguments: [
            ([1970, 1, 1, 0, 0, 0], 0), ([2000, 2, 29, 12, 0, 0], 951_825_600), ([2100, 3, 1, 0, 0, 0], 4_107_542_400),
            ([1601, 12, 31, 0, 0, 0], -11_613_024_000), ([1, 1, 1, 0, 0, 0], -62_135_596_800), ([0, 12, 31, 0, 0, 0], -62_135_683_200),
            ([0, 1, 1, 0, 0, 0], -62_167_219_200), ([9999, 12, 31, 23, 59, 59], 253_402_300_799),
            // A leap second.
            ([2016, 12, 31, 23, 59, 60], 1_483_228_800),
        ] as [([Int], Double)])
    func `a time of the calendar is a date`(parts: [Int], seconds: Double) {
        #expect(date(parts)?.timeIntervalSince1970 == seconds)
    }

    @Test(
        arguments: [
            [1970, 0, 1, 0, 0, 0], [1970, 13, 1, 0, 0, 0], [1970, 1, 0, 0, 0, 0], [1970, 4, 31, 0, 0, 0], [1900, 2, 29, 0, 0, 0],
            [1970, 1, 1, 24, 0, 0], [1970, 1, 1, 0, 60, 0], [1970, 1, 1, 0, 0, 61], [1970, 1, 1, -1, 0, 0], [-1, 1, 1, 0, 0, 0],
        ] as [[Int]])
    func `a time that does not exist is none`(parts: [Int]) {
        #expect(date(parts) == nil)
    }

    private func date(_ parts: [Int]) -> Date? {
        Date(utcYear: parts[0], month: parts[1], day: parts[2], hour: parts[3], minute: parts[4], second: parts[5])
    }
}
