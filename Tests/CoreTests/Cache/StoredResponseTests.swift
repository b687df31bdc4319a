// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct StoredResponseTests {
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

    private static func response(_ lines: String, delay: TimeInterval = 0, received: TimeInterval = 0) -> StoredResponse {
        let response = then.addingTimeInterval(received)
        return StoredResponse(
            statusCode: 200, headers: headers(lines), requestTime: response.addingTimeInterval(-delay), responseTime: response)
    }

    @Test(
        "the freshness lifetime is explicit, or heuristic from Last-Modified",
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
        #expect(Self.response(Self.date + "|" + lines).lifetime == seconds)
    }

    @Test("without Date, Expires is relative to the time of the response") func lifetimeWithoutDate() {
        #expect(Self.response("Expires: Sun, 06 Nov 1994 09:49:37 GMT").lifetime == 3600)
    }

    @Test(
        "the age is that of the response at arrival, plus the time since",
        arguments: [
            (date, 0.0, 0.0, 100.0, 100.0), (date, 0.0, 30.0, 100.0, 100.0), (date + "|Age: 50", 0.0, 0.0, 100.0, 150.0),
            (date + "|Age: 50", 7.0, 0.0, 100.0, 157.0), (date + "|Age: 5", 0.0, 30.0, 100.0, 100.0), ("", 0.0, 0.0, 100.0, 100.0),
            (date, 0.0, -3600.0, 100.0, 3700.0), (date + "|Age: -5", 0.0, 0.0, 100.0, 100.0), (date + "|Age: nan", 0.0, 0.0, 100.0, 100.0),
            (date, 0.0, 200.0, 100.0, 200.0),
        ])
    func ages(_ lines: String, _ delay: Double, _ received: Double, _ now: Double, _ age: Double) {
        #expect(Self.response(lines, delay: delay, received: received).age(at: Self.then.addingTimeInterval(now)) == age)
    }

    @Test(
        "fresh responses are served, stale ones revalidated",
        arguments: [
            ("Cache-Control: max-age=60", "", 59.0, "serve"), ("Cache-Control: max-age=60", "", 60.0, "reload"),
            ("Cache-Control: max-age=60|ETag: \"a\"", "", 60.0, "revalidate"), ("ETag: \"a\"", "", 0.0, "revalidate"),
            ("", "", 0.0, "reload"),
            ("Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT", "", 99.0, "serve"),
            ("Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT", "", 101.0, "revalidate"),
            ("Cache-Control: max-age=60, no-cache|ETag: \"a\"", "", 0.0, "revalidate"),
            ("Cache-Control: max-age=60, no-cache=\"x, y\"", "", 0.0, "reload"),
            ("Cache-Control: private, max-age=60", "", 0.0, "serve"),
            ("Cache-Control: max-age=60", "Cache-Control: no-cache", 0.0, "reload"),
            ("Cache-Control: max-age=60", "Pragma: no-cache", 0.0, "reload"),
            ("Cache-Control: max-age=60", "Cache-Control: max-age=10", 11.0, "reload"),
            ("Cache-Control: max-age=60", "Cache-Control: max-age=10", 10.0, "serve"),
            ("Cache-Control: max-age=60", "Cache-Control: min-fresh=30", 31.0, "reload"),
            ("Cache-Control: max-age=60", "Cache-Control: min-fresh=30", 29.0, "serve"),
            ("Cache-Control: max-age=60", "Cache-Control: max-stale", 6000.0, "serve"),
            ("Cache-Control: max-age=60", "Cache-Control: max-stale=10", 70.0, "serve"),
            ("Cache-Control: max-age=60", "Cache-Control: max-stale=10", 71.0, "reload"),
            ("Cache-Control: max-age=60", "Cache-Control: max-stale=0", 61.0, "reload"),
            ("Cache-Control: max-age=60, must-revalidate", "Cache-Control: max-stale", 61.0, "reload"),
        ])
    func uses(_ lines: String, _ request: String, _ now: Double, _ expected: String) {
        let use = Self.response(Self.date + "|" + lines).use(for: Self.headers(request), at: Self.then.addingTimeInterval(now))
        let name =
            switch use {
            case .serve: "serve"
            case .revalidate: "revalidate"
            case .reload: "reload"
            }
        #expect(name == expected)
    }

    @Test("a revalidation sends all validators") func confirmation() {
        let response = Self.response("ETag: W/\"a\"|Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT")
        #expect(
            response.revalidation == .revalidate(["If-None-Match": "W/\"a\"", "If-Modified-Since": "Sun, 06 Nov 1994 08:32:57 GMT"]))
    }

    @Test(
        "storable responses",
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
        #expect(StoredResponse.isStorable(head, request: Self.headers(request)) == expected)
    }

    @Test("hop-by-hop fields and cookies are not stored") func fields() {
        let kept = StoredResponse.storable(
            Self.headers("A: 1|Connection: close, B|B: 2|Set-Cookie: c=3|Transfer-Encoding: chunked|ETag: \"a\""))
        #expect(kept.map(\.name) == ["A", "ETag"])
    }

    @Test("a 304 updates fields, except those that describe the body") func update() {
        var response = Self.response("Age: 100|Cache-Control: max-age=1|Content-Length: 5|Content-Type: text/plain|ETag: \"a\"|X: old")
        let news = Self.headers("Cache-Control: max-age=60|Content-Length: 0|Content-Type: text/html|ETag: W/\"a\"|X: new|Set-Cookie: a=b")
        let now = Self.then.addingTimeInterval(1000)
        let isUpdated = response.update(with: news, requestTime: now, responseTime: now)
        #expect(isUpdated)
        #expect(response.headers.dictionary["Content-Length"] == "5")
        #expect(response.headers.dictionary["Content-Type"] == "text/plain")
        #expect(response.headers.dictionary["X"] == "new")
        #expect(response.headers.dictionary["Age"] == nil)
        #expect(response.headers.dictionary["Set-Cookie"] == nil)
        #expect(response.use(for: [:], at: now.addingTimeInterval(59)) == .serve)
        let isUpdatedByAnother = response.update(with: ["ETag": "\"b\""], requestTime: now, responseTime: now)
        #expect(!isUpdatedByAnother)
    }
}
