// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite(.timeLimit(.minutes(1)))
struct WebLinkTests {
    /// Returns the links of a field as text: the target, then the parameters.
    private func parsed(_ field: String) -> [String] {
        WebLink.parse([field]).map { link in
            ([link.target] + link.parameters.map { "\($0.name)=\($0.value)" }).joined(separator: "|")
        }
    }

    @Test(arguments: [
        // RFC 8288, section 3.5.
        (
            #"<http://example.com/TheBook/chapter2>; rel="previous"; title="previous chapter""#,
            ["http://example.com/TheBook/chapter2|rel=previous|title=previous chapter"]
        ),
        (#"</>; rel="http://example.net/foo""#, ["/|rel=http://example.net/foo"]),
        (##"</terms>; rel="copyright"; anchor="#foo""##, ["/terms|rel=copyright|anchor=#foo"]),
        (
            #"</TheBook/chapter2>; rel="previous"; title*=UTF-8'de'letztes%20Kapitel, </TheBook/chapter4>; rel="next"; title*=UTF-8'de'n%c3%a4chstes%20Kapitel"#,
            ["/TheBook/chapter2|rel=previous|title*=letztes Kapitel", "/TheBook/chapter4|rel=next|title*=nächstes Kapitel"]
        ),
        (
            #"<http://example.org/>; rel="start http://example.net/relation/other""#,
            ["http://example.org/|rel=start http://example.net/relation/other"]
        ),
        // Without quotation marks, and with white space where it is allowed.
        ("<a>;rel=next", ["a|rel=next"]),
        ("  <a>\t; REL = next ,, <b> ; x", ["a|rel=next", "b|x="]),
        // Commas and semicolons inside quotation marks.
        (#"<a?x=1,2;3>; title="one, \"two\"; <three>"; rel=next, <b>"#, [#"a?x=1,2;3|title=one, "two"; <three>|rel=next"#, "b"]),
        (#"<>; rel=self"#, ["|rel=self"]),
        // A syntax error ends the field.
        ("", []), ("next", []), ("<a>; rel=next, b; rel=prev, <c>", ["a|rel=next"]), ("<a", []),
        (#"<a>; title="open, <b>"#, ["a|title=open, <b>"]), ("<a>;;rel=x", ["a|rel=x"]),
        // A combining accent does not hide the separator before it.
        ("<a>; t=\"\u{301}x\"; rel=\u{301}y, <b>;\u{301}=z", ["a|t=\u{301}x|rel=\u{301}y", "b|\u{301}=z"]),
        ("<a>; t*=UTF-8'de'%zz", ["a"]), ("<a>; t*=ISO-8859-1''%E4; t=x", ["a|t=x"]),
    ])
    func linksAreParsed(_ field: String, _ expected: [String]) {
        #expect(parsed(field) == expected)
    }

    @Test func relationsAreThoseOfTheFirstRelInLowercase() {
        let link = WebLink.parse([#"<a>; rel="Next LAST"; rel=prev"#]).first
        #expect(link?.relations == ["next", "last"])
        #expect(link?.hasRelation("NEXT") == true && link?.hasRelation("prev") == false)
    }

    @Test func linksOfAllFieldsAreIncluded() {
        let header: HTTPHeaders = ["link": "<a>; rel=prev", "Link": "<b>; rel=next, <c>"]
        #expect(header.links.map(\.target) == ["a", "b", "c"])
    }

    @Test(arguments: [
        ("?page=2", "https://h/x/y?page=2"), ("/z", "https://h/z"), ("//g/", "https://g/"), ("http://i/", "http://i/"),
        ("//eve:pw@g/", "https://g/"), ("https://eve@h/z", "https://h/z"), ("http://@i/", "http://i/"), ("/a@b", "https://h/a@b"),
    ])
    func targetsResolveAgainstTheResponseURL(_ target: String, _ expected: String) throws {
        let base = try "https://h/x/y?page=1".asURL()
        #expect(WebLink.parse(["<\(target)>"]).first?.url(relativeTo: base)?.absoluteString == expected)
    }

    @Test func parametersHaveNames() throws {
        // A1.4
        let field = #"<b>; rel=next; title=old; title*=UTF-8'de'n%c3%a4chstes; hreflang=de; hreflang=en; type="text/html"; anchor="/a""#
        let link = try #require(HTTPHeaders(["Link": field]).links.first)
        #expect(link.title == "nächstes" && link.languages == ["de", "en"] && link.mediaType == "text/html" && link.anchor == "/a")
        #expect(HTTPHeaders(["Link": "<b>; title=old; title*=x"]).links.first?.title == "old")
    }

    @Test func relationsAreSeparatedByScalarsAndComparedInASCII() {
        // A combining mark after a space, the sign for kelvin.
        let link = WebLink.parse(["<a>; rel=\"next \u{301}last LIN\u{212A}\"; re\u{6C}=x"]).first
        #expect(link?.relations.map { Array($0.unicodeScalars).count } == [4, 5, 4])
        #expect(link?.hasRelation("next") == true && link?.hasRelation("link") == false && link?.hasRelation("last") == false)
    }

    @Test(arguments: [
        #"<http://example.com/TheBook/chapter2>; rel="previous"; title="previous chapter""#, #"<>; rel="self"; x, <b>"#,
        #"</c?x=1,2;3>; title*=UTF-8''n%C3%A4chstes%20%27Kapitel%27; rel="next"; a="\"\\;,""#,
    ])
    func linksAreWrittenAsTheyAreRead(_ field: String) {
        var headers: HTTPHeaders = ["Link": field, "link": "<z>"]
        let links = headers.links
        headers.links = links
        #expect(headers.links == links && headers.values(for: "Link") == [field + ", <z>"])
        headers.links = []
        #expect(headers.isEmpty)
    }

    @Test func aTargetCannotEndItself() {
        var headers = HTTPHeaders()
        headers.links = [WebLink(target: "/a>; rel=next", parameters: [.init(name: "REL", value: "prev")])]
        #expect(headers["Link"] == #"</a%3E; rel=next>; rel="prev""#)
    }
}
