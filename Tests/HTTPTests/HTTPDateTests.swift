// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct HTTPDateTests {
    @Test(
        "all three forms are parsed",
        arguments: ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"])
    func forms(_ text: String) {
        #expect(HTTPDate.date(from: text) == Date(timeIntervalSince1970: 784_111_777))
    }

    @Test(
        "days are counted through leap years and centuries",
        arguments: [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0), ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
            ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400), ("Wed, 31 Dec 2025 23:59:59 GMT", 1_767_225_599),
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800), ("Mon, 31 Dec 1601 00:00:00 GMT", -11_613_024_000),
        ])
    func calendar(_ text: String, _ seconds: Double) {
        #expect(HTTPDate.date(from: text)?.timeIntervalSince1970 == seconds)
    }

    @Test(
        "a two-digit year is in the nearest fitting century", arguments: [("26", 2026), ("70", 2070), ("77", 1977), ("99", 1999)])
    func shortYears(_ short: String, _ year: Int) {
        let now = Date(timeIntervalSince1970: 1_790_000_000)  // in 2026
        let date = HTTPDate.date(from: "Monday, 01-Jun-\(short) 00:00:00 GMT", now: now)
        #expect(date == HTTPDate.date(from: "Mon, 01 Jun \(year) 00:00:00 GMT"))
        #expect(date != nil)
    }

    @Test(
        "text that is not a date is rejected",
        arguments: [
            "", " ", "now", "GMT", "120", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 29 Feb 1900 00:00:00 GMT", "Sun, 06 Nox 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 99999999999999999999 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37:00 GMT",
            "Sunday, 06-Nov 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun, ٠٦ Nov 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
        ])
    func noDates(_ text: String) {
        #expect(HTTPDate.date(from: text) == nil)
    }
}
