// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Testing

@Suite struct NoVarySearchTests {
    @Test("nested lists are invalid, and read without a recursion; long fields and many keys cost little")
    func deep() {
        for text in ["a=((1))", "a=" + String(repeating: "(", count: 60_000), "params=(\"a\" (\"b\"))"] {
            #expect(NoVarySearch(text) == nil)
        }
        let keys = (0..<1_000).map { "k\($0)" }.joined(separator: ",")
        #expect(NoVarySearch("key-order,\(keys),key-order=?0") == nil && NoVarySearch("\(keys),key-order") != nil)
        #expect(NoVarySearch(HTTPHeaders([HTTPHeader(name: "No-Vary-Search", value: "key-order")])) != nil)
        let long = String(repeating: " ", count: 9_000)
        #expect(NoVarySearch(HTTPHeaders([HTTPHeader(name: "No-Vary-Search", value: "key-order\(long)")])) == nil)
    }

    @Test(arguments: [
        ("key-order", "?b=1&a=2", "?a=2&b=1", true), ("key-order", "?a=1&a=2", "?a=2&a=1", false), ("key-order=?1", "?b&a", "?a&b", true),
        ("except=()", "?a=1", "", true), ("except=()", "", "?", true), ("params=(\"u\")", "?a=1&u=2", "?a=1", true),
        ("params=(\"u\")", "?a=1", "?a=2", false), ("params=(\"u\")", "?a=1&b=2", "?b=2&a=1", false),
        ("except=(\"a\")", "?a=1&x=9", "?a=1", true), ("except=(\"a\")", "?a=1", "?a=2", false), ("except=(\"a\")", "?x=1", "?y", true),
        ("params=(\"a b\")", "?a+b=1", "?a%20b=2", true), ("key-order, params=(\"u\");x=1", "?u=1&b=1&a=1", "?a=1&b=1", true),
        ("except=(\"x\"), key-order, unknown=?0", "?x=1&x=2&y=3", "?y&x=1&x=2", true),
        // What parsing makes equal (section 5.1).
        ("key-order", "?a=x", "?%61=%78", true), ("key-order", "?a=%f6", "?a=%ef%bf%bd", true), ("key-order", "?a=x&&&&", "?a=x", true),
        ("key-order", "?a=", "?a", true), ("key-order", "?a=%20", "?a=+", true), ("key-order", "?a=%4", "?a=%254", true),
        // No Unicode equivalence: composed and decomposed, and marks in another order.
        ("key-order", "?a=%C3%A9", "?a=e%CC%81", false), ("key-order", "?a=a%CC%A3%CC%87", "?a=a%CC%87%CC%A3", false),
        ("params=(\"%C3%A9\")", "?e%CC%81=1", "?e%CC%81=2", false), ("params=(\"%C3%A9+%E6%B0%97\")", "?%C3%A9%20%E6%B0%97=3", "", true),
        // What could be taken for a separator.
        ("key-order", "?a=1%26b=2", "?a=1&b=2", false), ("key-order", "?a=1:b=2", "?a=1&b=2", false),
        ("key-order", "?a%3D1=2", "?a=1%3D2", false),
    ])
    func `Queries are equivalent by what the field names`(field: String, first: String, second: String, areEquivalent: Bool) throws {
        let rule = try #require(NoVarySearch(["No-Vary-Search": field]))
        #expect(rule.areEquivalent("http://h/" + first, "http://h/" + second) == areEquivalent)
        #expect(rule.areEquivalent("http://h/" + second, "http://h/" + first) == areEquivalent)
    }

    @Test func `Only the query may differ`() throws {
        let rule = try #require(NoVarySearch("except=()"))
        for other in ["http://h/b?a", "http://g/a?a", "https://h/a?a", "http://h:81/a?a", "http://h/a/?a"] {
            #expect(!rule.areEquivalent("http://h/a?a", other))
        }
    }

    @Test(arguments: [
        "", "params=1", "key-order=(\"a\")", "key-order=\"x\"", "params=(\"a\"", "params=(a)", "params=\"a\"", "params=?0", "params=?1",
        "params", "params=?1, except=(\"x\")", "params=(\"a\"), except=(\"x\")", "params=(), except=()", "except=(a)", "except=\"a\"",
        "except=?1", "params=?2", "key-order,", "Params", "a=\"x", "params=(\"a\"), key-order=1",
        // Valid, and without an effect.
        "params=()", "key-order=?0", "unknown",
    ])
    func `A field that is invalid, or changes nothing, counts as absent`(_ field: String) {
        #expect(NoVarySearch(["No-Vary-Search": field]) == nil)
    }

    @Test func `All lines of the field count as one, and equal rules have one text`() throws {
        let lines: HTTPHeaders = ["No-Vary-Search": "params=(\"b\" \"a\" \"a\")", "no-vary-search": "key-order"]
        let rule = try #require(NoVarySearch(lines))
        let other = try #require(NoVarySearch("key-order, params=(\"a\" \"%62\")"))
        #expect(rule == other && rule.canonical == other.canonical)
        let different = try #require(NoVarySearch("key-order, except=(\"a\" \"b\")"))
        #expect(rule.canonical != different.canonical)
        let stored = try #require(store(HTTPHeaders(lines + [HTTPHeader(name: "Cache-Control", value: "max-age=60")])))
        #expect(stored.noVarySearch == rule)
        #expect(StoredResponse(decoding: stored.encoded)?.noVarySearch == rule)
    }

    @Test func `Hints keep the last four texts, and damaged ones are none`() {
        var hints = SearchHints()
        for text in ["a", "b", "a", "c", "d", "e"] { hints.add(text) }
        #expect(hints.texts == ["e", "d", "c", "a"])
        #expect(SearchHints(decoding: hints.encoded) == hints)
        for length in 0..<hints.encoded.count { #expect(SearchHints(decoding: hints.encoded.prefix(length)) == nil) }
        #expect(SearchHints(decoding: hints.encoded + [0]) == nil && SearchHints(decoding: Data([2, 0])) == nil)
    }
}
