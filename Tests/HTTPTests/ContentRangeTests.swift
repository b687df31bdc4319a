// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct ContentRangeTests {
    @Test(
        arguments: [
            ("bytes 0-4/10", .part(first: 0, last: 4, total: 10)), ("BYTES 9-9/10", .part(first: 9, last: 9, total: 10)),
            ("bytes 0-4/*", .part(first: 0, last: 4, total: nil)), ("bytes */10", .none(total: 10)), ("bytes */0", .none(total: 0)),
        ] as [(String, ContentRange)])
    func `a range is parsed`(text: String, range: ContentRange) {
        #expect(ContentRange(text) == range)
    }

    @Test(arguments: [
        "", "bytes", "items 0-4/10", "bytes=0-4/10", "bytes 4-0/10", "bytes 0-10/10", "bytes 0-4", "bytes -4/10", "bytes 0-/10",
        "bytes */*",
        "bytes 0-4/x", "bytes +0-4/10", "bytes 0-99999999999999999999/*", "bytes 0-9223372036854775807/*",
        // Blanks where the grammar has none, and several ranges.
        "bytes  0-4/10", "bytes 0 - 4/10", "bytes 0-4 / 10", "bytes\t0-4/10", " bytes 0-4/10", "bytes 0-4/10, bytes 0-4/10",
        "bytes 0-4,6-7/10", "bytes 0-4/10\u{301}",
    ])
    func `a range that is malformed is none`(text: String) {
        #expect(ContentRange(text) == nil)
    }
}
