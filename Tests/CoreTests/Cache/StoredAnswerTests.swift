// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct StoredAnswerTests {
    /// Sunday, 06 Nov 1994 08:49:37 GMT.
    private static let then = Date(timeIntervalSince1970: 784_111_777)
    private static let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT"

    private static func headers(_ lines: String) -> HTTPHeaders {
        HTTPHeaders(
            lines.split(separator: "|").map { line in
                let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                return HTTPHeader(name: parts[0], value: parts.count > 1 ? parts[1] : "")
            })
    }

    private static func answer(_ lines: String, delay: TimeInterval = 0, received: TimeInterval = 0) -> StoredAnswer {
        let response = then.addingTimeInterval(received)
        return StoredAnswer(
            statusCode: 200, headers: headers(lines), requestTime: response.addingTimeInterval(-delay), responseTime: response)
    }

    @Test(
        "the server says how long an answer is fresh, or its last change lets one guess",
        arguments: [
            ("Cache-Control: max-age=60", 60.0), ("cache-control: public, MAX-AGE=\"60\"", 60.0), ("Cache-Control: max-age=0", 0.0),
            ("Cache-Control: max-age=60, max-age=10", 60.0), ("Cache-Control: max-age=x", 0.0), ("Cache-Control: max-age=-1", 0.0),
            ("Cache-Control: max-age=99999999999999999999999", 2_147_483_648.0), ("Cache-Control: s-maxage=60", 0.0),
            ("Cache-Control: max-age=60|Expires: Sun, 06 Nov 1994 09:49:37 GMT", 60.0), ("Expires: Sun, 06 Nov 1994 09:49:37 GMT", 3600.0),
            ("Expires: 0", 0.0), ("Expires: Sun, 06 Nov 1994 07:49:37 GMT", 0.0), ("", 0.0), ("Cache-Control: public", 0.0),
            ("Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT", 100.0), ("Last-Modified: Sat, 06 Nov 1993 08:49:37 GMT", 86_400.0),
            ("Last-Modified: Mon, 07 Nov 1994 08:49:37 GMT", 0.0), ("Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT|Expires: 0", 0.0),
        ])
    func lifetimes(_ lines: String, _ seconds: Double) {
        #expect(Self.answer(Self.date + "|" + lines).lifetime == seconds)
    }

    @Test("without a date Expires counts from when the answer came") func lifetimeWithoutDate() {
        #expect(Self.answer("Expires: Sun, 06 Nov 1994 09:49:37 GMT").lifetime == 3600)
    }

    @Test(
        "an answer's age is what it had when it came, and the time since",
        arguments: [
            (date, 0.0, 0.0, 100.0, 100.0), (date, 0.0, 30.0, 100.0, 100.0), (date + "|Age: 50", 0.0, 0.0, 100.0, 150.0),
            (date + "|Age: 50", 7.0, 0.0, 100.0, 157.0), (date + "|Age: 5", 0.0, 30.0, 100.0, 100.0), ("", 0.0, 0.0, 100.0, 100.0),
            (date, 0.0, -3600.0, 100.0, 3700.0), (date + "|Age: -5", 0.0, 0.0, 100.0, 100.0), (date + "|Age: nan", 0.0, 0.0, 100.0, 100.0),
            (date, 0.0, 200.0, 100.0, 200.0),
        ])
    func ages(_ lines: String, _ delay: Double, _ received: Double, _ now: Double, _ age: Double) {
        #expect(Self.answer(lines, delay: delay, received: received).age(at: Self.then.addingTimeInterval(now)) == age)
    }

    @Test(
        "fresh answers are given, stale ones confirmed",
        arguments: [
            ("Cache-Control: max-age=60", "", 59.0, "give"), ("Cache-Control: max-age=60", "", 60.0, "pass"),
            ("Cache-Control: max-age=60|ETag: \"a\"", "", 60.0, "confirm"), ("ETag: \"a\"", "", 0.0, "confirm"), ("", "", 0.0, "pass"),
            ("Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT", "", 99.0, "give"),
            ("Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT", "", 101.0, "confirm"),
            ("Cache-Control: max-age=60, no-cache|ETag: \"a\"", "", 0.0, "confirm"),
            ("Cache-Control: max-age=60, no-cache=\"x, y\"", "", 0.0, "pass"),
            ("Cache-Control: private, max-age=60", "", 0.0, "give"), ("Cache-Control: max-age=60", "Cache-Control: no-cache", 0.0, "pass"),
            ("Cache-Control: max-age=60", "Pragma: no-cache", 0.0, "pass"),
            ("Cache-Control: max-age=60", "Cache-Control: max-age=10", 11.0, "pass"),
            ("Cache-Control: max-age=60", "Cache-Control: max-age=10", 10.0, "give"),
            ("Cache-Control: max-age=60", "Cache-Control: min-fresh=30", 31.0, "pass"),
            ("Cache-Control: max-age=60", "Cache-Control: min-fresh=30", 29.0, "give"),
            ("Cache-Control: max-age=60", "Cache-Control: max-stale", 6000.0, "give"),
            ("Cache-Control: max-age=60", "Cache-Control: max-stale=10", 70.0, "give"),
            ("Cache-Control: max-age=60", "Cache-Control: max-stale=10", 71.0, "pass"),
            ("Cache-Control: max-age=60", "Cache-Control: max-stale=0", 61.0, "pass"),
            ("Cache-Control: max-age=60, must-revalidate", "Cache-Control: max-stale", 61.0, "pass"),
        ])
    func uses(_ lines: String, _ request: String, _ now: Double, _ expected: String) {
        let use = Self.answer(Self.date + "|" + lines).use(for: Self.headers(request), at: Self.then.addingTimeInterval(now))
        let name =
            switch use {
            case .give: "give"
            case .confirm: "confirm"
            case .pass: "pass"
            }
        #expect(name == expected)
    }

    @Test("a confirmation names all that the answer is known by") func confirmation() {
        let answer = Self.answer("ETag: W/\"a\"|Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT")
        #expect(
            answer.confirmation == .confirm(["If-None-Match": "W/\"a\"", "If-Modified-Since": "Sun, 06 Nov 1994 08:32:57 GMT"]))
    }

    @Test(
        "what may be stored",
        arguments: [
            (200, "", "", true), (200, "Cache-Control: no-store", "", false), (200, "", "Cache-Control: no-store", false),
            (200, "Cache-Control: private", "", true), (200, "Cache-Control: no-cache", "", true), (200, "Vary: *", "", false),
            (200, "Vary: Accept, *", "", false), (200, "Vary: Accept", "", true), (206, "Cache-Control: max-age=60", "", false),
            (304, "Cache-Control: max-age=60", "", false), (401, "Cache-Control: max-age=60", "", false), (301, "", "", true),
            (404, "", "", true),
            (302, "", "", false), (302, "Cache-Control: max-age=60", "", true), (500, "", "", false), (503, "Expires: 0", "", true),
        ])
    func storing(_ status: Int, _ response: String, _ request: String, _ expected: Bool) {
        let head = ResponseHead(statusCode: status, headers: Self.headers(response))
        #expect(StoredAnswer.mayStore(head, request: Self.headers(request)) == expected)
    }

    @Test("fields of one exchange are not kept") func fields() {
        let kept = StoredAnswer.storable(
            Self.headers("A: 1|Connection: close, B|B: 2|Set-Cookie: c=3|Transfer-Encoding: chunked|ETag: \"a\""))
        #expect(kept.map(\.name) == ["A", "ETag"])
    }

    @Test("a confirmation renews what it says, and leaves what describes the body") func update() {
        var answer = Self.answer("Age: 100|Cache-Control: max-age=1|Content-Length: 5|Content-Type: text/plain|ETag: \"a\"|X: old")
        let news = Self.headers("Cache-Control: max-age=60|Content-Length: 0|Content-Type: text/html|ETag: W/\"a\"|X: new|Set-Cookie: a=b")
        let now = Self.then.addingTimeInterval(1000)
        let isUpdated = answer.update(with: news, requestTime: now, responseTime: now)
        #expect(isUpdated)
        #expect(answer.headers.dictionary["Content-Length"] == "5")
        #expect(answer.headers.dictionary["Content-Type"] == "text/plain")
        #expect(answer.headers.dictionary["X"] == "new")
        #expect(answer.headers.dictionary["Age"] == nil)
        #expect(answer.headers.dictionary["Set-Cookie"] == nil)
        #expect(answer.use(for: [:], at: now.addingTimeInterval(59)) == .give)
        let isUpdatedByAnother = answer.update(with: ["ETag": "\"b\""], requestTime: now, responseTime: now)
        #expect(!isUpdatedByAnother)
    }
}
