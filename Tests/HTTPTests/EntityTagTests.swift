// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct EntityTagTests {
    @Test(arguments: [
        ("\"a\"", "\"a\"", true, true), ("\"\"", "\"\"", true, true), ("W/\"a\"", "\"a\"", false, true),
        ("W/W/\"a\"", "W/\"a\"", false, false),
        ("w/\"a\"", "w/\"a\"", false, false), ("a", "a", false, false), ("\"", "\"", false, false), ("\"a\"b\"", "\"a\"b\"", false, false),
        ("\"é\"", "\"é\"", false, false), ("\"a b\"", "\"a b\"", false, false), ("W/\u{301}\"a\"", "\u{301}\"a\"", false, false),
    ])
    func `a tag is weak or strong, and can be sent back or not`(tag: String, opaque: String, isStrong: Bool, isTag: Bool) {
        #expect(tag.opaqueTag.utf8.elementsEqual(opaque.utf8))
        #expect(tag.isStrongEntityTag == isStrong && tag.isEntityTag == isTag)
    }

    @Test func `the cache compares tags as they are sent, also without quotes`() throws {
        let (weak, strong, bare) = try (#require(EntityTag(" W/\"a\" ")), #require(EntityTag("\"a\"")), #require(EntityTag("a")))
        #expect(weak.isWeak && !strong.isWeak && !bare.isWeak && EntityTag(" ") == nil)
        #expect(weak.matchesWeakly(strong) && !weak.matchesStrongly(weak) && strong.matchesStrongly(strong) && bare.matchesStrongly(bare))
        #expect(!strong.matchesWeakly(bare))
        // Equal as text: the sign for kelvin, and a letter with its mark apart.
        #expect(!"\"\u{212A}\"".matchesWeakly("W/\"K\"") && !"\"\u{E9}\"".matchesWeakly("\"e\u{301}\""))
        #expect(EntityTag.list("\"a,b\", W/\"c\"")?.map(\.text) == ["\"a,b\"", "W/\"c\""] && EntityTag.list("*") == nil)
    }
}
