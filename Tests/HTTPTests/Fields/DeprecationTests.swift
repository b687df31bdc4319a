// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct DeprecationTests {
    @Test func `the example of RFC 8594 is read and written`() {
        // A1.4
        var headers: HTTPHeaders = ["Sunset": "Sat, 31 Dec 2018 23:59:59 GMT"]
        #expect(headers.sunset == Date(timeIntervalSince1970: 1_546_300_799))
        headers.sunset = headers.sunset
        // The day of the week in the RFC's example is wrong.
        #expect(headers["Sunset"] == "Mon, 31 Dec 2018 23:59:59 GMT")
        headers.sunset = nil
        #expect(headers.isEmpty && headers.sunset == nil)
    }

    @Test func `the example of RFC 9745 is read and written`() {
        // A1.4
        var headers: HTTPHeaders = ["Deprecation": "@1688169599", "Sunset": "Sun, 30 Jun 2024 23:59:59 GMT"]
        #expect(headers.deprecation == Date(timeIntervalSince1970: 1_688_169_599))
        #expect(headers.sunset == Date(timeIntervalSince1970: 1_719_791_999))
        headers.deprecation = Date(timeIntervalSince1970: -1.4)
        #expect(headers["Deprecation"] == "@-1")
        headers.deprecation = nil
        #expect(headers["Deprecation"] == nil)
    }

    @Test(
        arguments: [
            "true", "?1", "1688169599", "@1688169599.5", "@", "@1688169599, @1688169600", "Sun, 30 Jun 2024 23:59:59 GMT", "",
            "@1688169599\u{301}", "\u{301}@1688169599",
        ] as [String])
    func `what is no date is ignored`(_ text: String) {
        #expect(HTTPHeaders(["Deprecation": text]).deprecation == nil)
    }

    @Test(
        arguments: [
            "", "@1688169599", "2024-06-30", "Sun, 31 Jun 2024 23:59:59 GMT", "Sun, 30 Jun 2024 23:59:59 GMT\u{301}",
        ] as [String])
    func `what is no date of HTTP is ignored`(_ text: String) {
        #expect(HTTPHeaders(["Sunset": text]).sunset == nil)
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity, 1e300, -1e13] as [Double])
    func `a date that the field can't have removes it`(_ seconds: Double) {
        var headers: HTTPHeaders = ["Sunset": "Mon, 31 Dec 2018 23:59:59 GMT", "Deprecation": "@0"]
        let date = Date(timeIntervalSince1970: seconds)
        headers.sunset = date
        #expect(headers["Sunset"] == nil)
        headers.deprecation = date
        #expect(headers["Deprecation"] == (seconds == -1e13 ? "@-10000000000000" : nil))
    }

    @Test(
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (-0.5, "Wed, 31 Dec 1969 23:59:59 GMT"),
            (951_827_696.9, "Tue, 29 Feb 2000 12:34:56 GMT"), (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (253_402_300_800, nil), (-30_610_224_000, "Wed, 01 Jan 1000 00:00:00 GMT"), (-30_610_224_001, nil),
        ] as [(Double, String?)])
    func `dates are written in the preferred form`(_ seconds: Double, _ text: String?) {
        #expect(HTTPDate.text(of: Date(timeIntervalSince1970: seconds)) == text)
    }
}
