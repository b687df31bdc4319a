// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1))) struct CacheKeyTests {
    @Test(arguments: [
        (["a", "bc"], ["ab", "c"]), (["a"], ["a", ""]), (["1:a"], ["a"]), (["1:a,1:b"], ["a", "b"]), ([], [""]), (["é"], ["e\u{301}"]),
        (["Url:x Argument:y", ""], ["Url:x", "Argument:y"]),
    ])
    func differentTextsGiveDifferentKeys(_ one: [String], _ other: [String]) {
        #expect(CacheKey(one) != CacheKey(other))
        #expect(CacheKey(one).digest != CacheKey(other).digest)
    }

    @Test func digestCoversStringsAndLengths() {
        #expect(String(decoding: CacheKey("GET", "ü").bytes, as: UTF8.self) == "3:GET,2:ü,")
        // Computed with Python's hashlib.
        #expect(CacheKey("abc").digest == "d7863618cccd3bb7b6a1e37bb28ab7d01db8c49467a3e497e630f325b4fabf74")
    }

    @Test("a key's bytes give its strings", arguments: [[], [""], ["a", "bc"], ["1:a,", "é", ""]])
    func parts(_ parts: [String]) {
        #expect(CacheKey(bytes: CacheKey(parts).bytes).parts == parts)
    }

    @Test("other bytes are no key", arguments: ["a", "1:", "1:a", "2:a,", ":a,", "-1:,", "x:a,", "1:a,1"])
    func invalid(_ text: String) {
        #expect(CacheKey(bytes: Data(text.utf8)).parts == nil)
    }
}
