// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct HTTPPriorityTests {
    @Test(
        arguments: [
            // A1.4: examples of RFC 9218, sections 4 and 5, and defaults written out.
            ("u=5, i", 5, true), ("u=0", 0, nil), ("i", nil, true), ("u=3,i=?0", 3, false), ("u=1, i=?0", 1, false),
            // Unknown, out of range, of another type.
            ("u=8", nil, nil), ("u=-1, i", nil, true), ("u=2.0", nil, nil), ("u=\"1\"", nil, nil), ("i=1, u=2", 2, nil),
            ("x=(1 2), u=7;y", 7, nil), ("u=(1)", nil, nil), ("u=1, u=4", 4, nil), ("", nil, nil),
        ] as [(String, Int?, Bool?)])
    func `parameters are read`(_ text: String, _ urgency: Int?, _ isIncremental: Bool?) {
        #expect(HTTPHeaders(["Priority": text]).priority == HTTPPriority(urgency: urgency, isIncremental: isIncremental))
    }

    @Test(arguments: ["u", "u=", "U=1", "u=1,", "u=1 i", "u=1\u{301}", "u\u{301}=1", "u=1, \u{212A}"] as [String])
    func `a field that does not parse is ignored`(_ text: String) {
        let priority = HTTPHeaders(["Priority": text]).priority
        // A key alone is the boolean true, which is no urgency.
        #expect(priority == nil || (text == "u" && priority == HTTPPriority()))
    }

    @Test(
        arguments: [
            (HTTPPriority(urgency: 5, isIncremental: true), "u=5, i"), (HTTPPriority(isIncremental: false), "i=?0"),
            (HTTPPriority(urgency: 9), "u=7"), (HTTPPriority(urgency: -2), "u=0"), (HTTPPriority(), nil),
        ] as [(HTTPPriority, String?)])
    func `a priority is written`(_ priority: HTTPPriority, _ text: String?) {
        var headers: HTTPHeaders = ["Priority": "u=1"]
        headers.priority = priority
        #expect(headers["Priority"] == text)
    }

    @Test func `without the field there is none`() {
        #expect(HTTPHeaders().priority == nil)
    }
}
