// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Testing

@Suite struct CacheDateTests {
    @Test(
        "the three forms of a date are read, in any case",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun Nov 06 08:49:37 1994",
            "sun, 06 Nov 1994 08:49:37 GMT", "SUN, 06 NOV 1994 08:49:37 gmt", "Sun, 06 nOV 1994 08:49:37 Gmt",
            "SUNDAY, 06-nov-94 08:49:37 gmt", "sun nov  6 08:49:37 1994",
        ])
    func valid(_ text: String) {
        #expect(CacheDate.seconds(from: text) == start)
    }

    @Test(
        "another form is no date, so that a response with it is stale",
        arguments: [
            "", "0", "-1", "Sun 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 AEST", "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 1994 08:49:37", "Sun,  06 Nov 1994 08:49:37 GMT", "Sun, 06  Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994  08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ", " Sun, 06 Nov 1994 08:49:37 GMT",
            "Foo, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT", "Thu, 18 Aug 50, 2025", "Sund, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMTX",
            "Sün, 06 Nov 1994 08:49:37 GMT", "06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
        ])
    func invalid(_ text: String) {
        #expect(CacheDate.seconds(from: text) == nil)
        #expect(!decide(["Expires": text], after: -1).serves)
    }

    @Test("dates beyond 32 bits are read") func far() {
        #expect(CacheDate.seconds(from: "Fri, 31 Dec 9999 23:59:59 GMT") == 253_402_300_799)
        #expect(decide(["Expires": "Mon, 08 Feb 2106 06:28:17 GMT"], after: 1).serves)
    }
}
