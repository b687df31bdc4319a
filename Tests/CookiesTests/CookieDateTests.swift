// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation
import Testing

@testable import CurlewCookies

/// Dates by the algorithm of RFC 6265bis, section 5.1.1: one row for each of its steps, and for what may stand in the place of each.
@Suite(.timeLimit(.minutes(1))) struct CookieDateTests {
    /// 1994-11-06 08:49:37 UTC.
    private static let moment = 784_111_777.0

    @Test(
        "any order of the four tokens is the same date",
        arguments: [
            "08:49:37 6 Nov 1994", "08:49:37 Nov 6 1994", "6 08:49:37 Nov 1994", "6 Nov 08:49:37 1994", "6 Nov 1994 08:49:37",
            "Nov 6 1994 08:49:37", "Nov 08:49:37 6 1994", "6 1994 Nov 08:49:37", "Nov 6 08:49:37 1994", "6 1994 08:49:37 Nov",
        ])
    func order(_ text: String) {
        #expect(CookieDate.date(from: text)?.timeIntervalSince1970 == Self.moment)
    }

    @Test(
        "every delimiter of the grammar separates tokens",
        arguments: Array("\t !\"#$%&'()*+,-./;<=>?@[\\]^_`{|}~"))
    func delimiters(_ delimiter: Character) {
        let text = ["08:49:37", "06", "Nov", "1994"].joined(separator: String(delimiter))
        #expect(CookieDate.date(from: text)?.timeIntervalSince1970 == Self.moment)
    }

    @Test(
        "what is no delimiter joins tokens",
        arguments: ["08:49:37:06 Nov 1994", "08:49:37x06xNov 1994", "08:49:37\u{7F}06 Nov 1994", "08:49:37é06 Nov 1994"])
    func joined(_ text: String) {
        #expect(CookieDate.date(from: text) == nil)
    }

    @Test(
        "tokens may have more after their beginning, and others are skipped",
        arguments: [
            "Sunday 08:49:37 06 Nov 1994", "08:49:37GMT 06th November 1994AD", "08:49:37x5 06 Nov 1994", "08:49:37 06 NOVEMBRE 1994",
            "Thu, 06-Nov-1994 08:49:37 GMT (a comment)", "x y z 08:49:37 06 nov 1994 +0200", "8:49:37 6 Nov 1994",
            "08:49:37 06 Nov 94", "08:49:37 6x Nov 1994y", "08:49:37: 06 Nov 1994", "08:49:37 06 Nov 1994 09:00:00 07 Dec 1995",
        ])
    func extras(_ text: String) {
        #expect(CookieDate.date(from: text)?.timeIntervalSince1970 == Self.moment)
    }

    @Test(
        "a number is the day first and then the year",
        arguments: [
            ("00:00:00 Jan 10 11", "2011-01-10"), ("00:00:00 10 Jan 99", "1999-01-10"), ("00:00:00 1 Jan 69", "2069-01-01"),
            ("00:00:00 1 Jan 70", "1970-01-01"), ("00:00:00 1 Jan 00", "2000-01-01"), ("00:00:00 1 Jan 070", "1970-01-01"),
            ("00:00:00 1 Jan 0099", "1999-01-01"), ("00:00:00 1 Jan 1601", "1601-01-01"), ("00:00:00 29 Feb 2000", "2000-02-29"),
            ("00:00:00 1 Jan 9999", "9999-01-01"), ("00:00:00 2000 1 Jan 2001x 3", "2000-01-01"),
        ])
    func numbers(_ text: String, _ day: String) throws {
        let date = try #require(CookieDate.date(from: text))
        #expect(date.formatted(.iso8601.year().month().day()) == day)
    }

    @Test(
        "each month is known by three letters",
        arguments: zip(["jan", "FEB", "Mar", "aPr", "mAy", "juN", "July", "AUGUST", "sept", "octo", "nov.", "dece"], 1...12))
    func months(_ name: String, _ number: Int) throws {
        let date = try #require(CookieDate.date(from: "00:00:00 5 \(name) 2015"))
        #expect(date.formatted(.iso8601.month()) == (number < 10 ? "0\(number)" : "\(number)"))
    }

    @Test(
        "a date without a token, or with one out of range, is none",
        arguments: [
            "", " ", "6 Nov 1994", "08:49:37 Nov 1994", "08:49:37 6 1994", "08:49:37 6 Nov", "08:49 6 Nov 1994", "08:49:37 6 No 1994",
            "08:49:37 6 13 1994", "08:49:37 0 Nov 1994", "08:49:37 32 Nov 1994", "08:49:37 31 Nov 1994", "08:49:37 30 Feb 2000",
            "08:49:37 29 Feb 1900", "08:49:37 29 Feb 2001", "24:00:00 6 Nov 1994", "23:60:00 6 Nov 1994", "23:59:60 6 Nov 1994",
            "99:99:99 6 Nov 1994", "008:49:37 6 Nov 1994", "08:049:37 6 Nov 1994", "08:49:037 6 Nov 1994", ":49:37 6 Nov 1994",
            "08::37 6 Nov 1994", "08:49: 6 Nov 1994", "08.49.37 6 Nov 1994", "-08:49:37 6 Nov 1600", "08:49:37 6 Nov 1600",
            "08:49:37 6 Nov 0", "08:49:37 6 Nov 5", "08:49:37 6 Nov 19940", "08:49:37 006 Nov x", "08:49:37 \u{666} Nov 1994",
            "1994-11-06T08:49:37Z", "784111777", "08:49:37 6 Ñov 1994",
        ])
    func none(_ text: String) {
        #expect(CookieDate.date(from: text) == nil)
    }
}
