// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct ServerRateLimitTests {
    /// Returns the known properties of a limit as text.
    private static func text(_ limit: ServerRateLimit) -> String {
        var parts = [limit.name]
        if let quota = limit.quota { parts.append("q\(quota)") }
        if limit.unit != "requests" { parts.append(limit.unit) }
        if let window = limit.window { parts.append("w\(window.seconds)") }
        if let remaining = limit.remaining { parts.append("r\(remaining)") }
        if let reset = limit.reset { parts.append("t\(reset.seconds)") }
        if let key = limit.partitionKey { parts.append(key.base64EncodedString()) }
        return parts.joined(separator: " ")
    }

    private static func limits(_ headers: HTTPHeaders) -> [String] { headers.rateLimits.map(text) }

    @Test(
        arguments: [
            // A1.4: examples of draft-ietf-httpapi-ratelimit-headers-11, sections 3.2 and 4.2.
            (["RateLimit-Policy": #""default";q=100;w=10"#], ["default q100 w10.0"]),
            (["RateLimit-Policy": #""permin";q=50;w=60,"perhr";q=1000;w=3600"#], ["permin q50 w60.0", "perhr q1000 w3600.0"]),
            (
                ["RateLimit-Policy": #""peruser";q=65535;qu="content-bytes";w=10;pk=:sdfjLJUOUH==:"#],
                ["peruser q65535 content-bytes w10.0 sdfjLJUOUA=="]
            ),
            (["RateLimit": #""default";r=50;t=30"#], ["default r50 t30.0"]),
            (["RateLimit": #""default";r=999;pk=:dHJpYWwxMjEzMjM=:"#], ["default r999 dHJpYWwxMjEzMjM="]),
            // Both fields, and lines.
            (
                [
                    "RateLimit-Policy": #""hour";q=1000;w=3600"#, "ratelimit": #""day";r=100;t=36000"#, "RateLimit": #""hour";r=7;t=5"#,
                    "RateLimit-Policy": #""day";q=5000;w=86400"#,
                ], ["hour q1000 w3600.0 r7 t5.0", "day q5000 w86400.0 r100 t36000.0"]
            ),
            // Of the same name, but another partition; twice.
            (
                ["RateLimit-Policy": #""a";q=1;pk=:AA==:, "a";q=2"#, "RateLimit": #""a";r=0, "a";r=1;pk=:AQ==:, "a";r=5"#],
                ["a q1 AA==", "a q2 r0", "a r1 AQ==", "a r5"]
            ),
            // A member that lacks what is required, or has it wrong.
            (["RateLimit": #""a";t=1, "b";r=-1, "c";r=1.5, "d";r="1", 5;r=1, ("e");r=1, f;r=0"#], ["f r0"]),
            (["RateLimit-Policy": #""a";w=1, "b";q=9;w=0, "c";q=9;w=x;qu=y;pk="z";more"#], ["b q9", "c q9"]),
            // A field that does not parse.
            (["RateLimit": #""a";r=1, "b;r=1"#], []), (["RateLimit": #""a";r=1,"#], []), (["RateLimit": "\"a\u{301}\";r=1"], []),
            (["RateLimit": "\"a\";\u{301}r=1"], []), (["RateLimit": "limit=100, remaining=50, reset=5"], []), ([:], []),
        ] as [(HTTPHeaders, [String])])
    func `the fields of the draft are read`(_ headers: HTTPHeaders, _ expected: [String]) {
        #expect(Self.limits(headers) == expected)
    }

    @Test(
        arguments: [
            // A1.4: seconds, seconds since 1970, and milliseconds since then.
            ("30", " q60 r58 t30.0"), ("999999999", " q60 r58 t999999999.0"), ("1372700873", " q60 r58 t73.0"),
            ("1372700873.25", " q60 r58 t73.25"), ("1372700873250", " q60 r58 t73.25"), ("1372700000", " q60 r58 t0.0"),
            ("soon", " q60 r58"), ("-1", " q60 r58"), ("1e9", " q60 r58"), ("\u{661}", " q60 r58"), ("1\u{301}", " q60 r58"),
            ("99999999999999999999", " q60 r58"),
        ] as [(String, String)])
    func `X-RateLimit-Reset is a number of seconds or a time`(_ reset: String, _ expected: String) {
        let headers: HTTPHeaders = [
            "Date": "Mon, 01 Jul 2013 17:46:40 GMT", "x-ratelimit-limit": "60", "X-RateLimit-Remaining": "58", "X-RateLimit-Reset": reset,
        ]
        #expect(Self.limits(headers) == [expected])
    }

    @Test(
        arguments: [
            (["X-Rate-Limit-Limit": "15", "X-Rate-Limit-Remaining": "14.0"], [" q15 r14"]),
            (["RateLimit-Limit": "100, 100;w=60;burst=10", "RateLimit-Remaining": "0", "RateLimit-Reset": "5"], [" q100 r0 t5.0"]),
            (["X-RateLimit-Remaining": "3", "RateLimit-Remaining": "4"], [" r3"]),
            (["X-RateLimit-Remaining": "3", "RateLimit": #""a";r=4"#], ["a r4"]),
            (["X-RateLimit-Limit": "many", "X-RateLimit-Reset": ""], []),
        ] as [(HTTPHeaders, [String])])
    func `the older fields are read`(_ headers: HTTPHeaders, _ expected: [String]) {
        #expect(Self.limits(headers) == expected)
    }

    @Test func `without a Date, a time is relative to now`() throws {
        let headers: HTTPHeaders = ["X-RateLimit-Reset": "\(Int(Date().timeIntervalSince1970) + 1_000)"]
        let reset = try #require(headers.rateLimits.first?.reset)
        #expect(reset > .seconds(500) && reset <= .seconds(1_000))
    }

    @Test func `limits are written`() {
        var (day, free) = (ServerRateLimit(name: "day \"1\""), ServerRateLimit(name: "free"))
        (day.quota, day.window, day.unit, day.remaining, day.reset) = (9, .seconds(60), "content-bytes", 1, .milliseconds(2_500))
        (free.remaining, free.partitionKey) = (0, Data([0]))
        var headers: HTTPHeaders = ["RateLimit": "x"]
        headers.rateLimits = [day, free]
        #expect(headers["RateLimit-Policy"] == #""day \"1\"";q=9;qu="content-bytes";w=60"#)
        #expect(headers["RateLimit"] == #""day \"1\"";r=1;t=2, "free";r=0;pk=:AA==:"#)
        day.reset = .seconds(2)
        #expect(headers.rateLimits == [day, free])
        day.name = "täglich"
        headers.rateLimits = [day]
        #expect(headers.isEmpty)
    }
}
