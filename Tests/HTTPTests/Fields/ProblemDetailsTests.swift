// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct ProblemDetailsTests {
    private static let json = "application/problem+json"

    private static func problem(_ text: String, _ type: String? = json) -> ProblemDetails? {
        ProblemDetails(Data(text.utf8), contentType: type)
    }

    @Test func `the examples of RFC 9457 are decoded`() throws {
        // A1.3: section 3.
        let credit = try #require(
            Self.problem(
                """
                {"type": "https://example.com/probs/out-of-credit", "title": "You do not have enough credit.",
                 "detail": "Your current balance is 30, but that costs 50.", "instance": "/account/12345/msgs/abc",
                 "balance": 30, "accounts": ["/account/12345", "/account/67890"]}
                """))
        #expect(credit.type == "https://example.com/probs/out-of-credit" && credit.title == "You do not have enough credit.")
        #expect(credit.detail == "Your current balance is 30, but that costs 50." && credit.instance == "/account/12345/msgs/abc")
        #expect(credit.status == nil)
        #expect(credit.members == ["balance": .integer(30), "accounts": .array([.string("/account/12345"), .string("/account/67890")])])
        let validation = try #require(
            Self.problem(
                """
                {"type": "https://example.net/validation-error", "title": "Your request is not valid.", "status": 422,
                 "errors": [{"detail": "must be a positive integer", "pointer": "#/age"}]}
                """))
        #expect(validation.status == 422)
        let error: [String: JSONValue] = ["detail": .string("must be a positive integer"), "pointer": .string("#/age")]
        #expect(validation.members == ["errors": .array([.object(error)])])
    }

    @Test(
        arguments: [
            "{}", #"{"type": null, "status": "403", "title": 1, "detail": ["x"], "instance": {}}"#, #"{"status": 1.5, "x": 1e999}"#,
            #"{"status": true}"#,
        ] as [String])
    func `members of other types are ignored`(_ text: String) {
        // A1.3: section 3.1.
        #expect(Self.problem(text) == ProblemDetails())
        #expect(Self.problem(text)?.type == "about:blank")
    }

    @Test(
        arguments: [
            (json, .json), ("Application/Problem+JSON; charset=utf-8", .json), (" application/problem+json ;x", .json),
            ("application/problem+xml", .xml), ("APPLICATION/problem+XML;charset=x", .xml), ("application/json", nil),
            ("text/problem+json", nil), ("application/problem+jsonx", nil), ("application/problem", nil), ("", nil), (nil, nil),
            ("application/problem+json\u{301}", nil), ("application\u{301}/problem+json", nil), ("application/problem+json\u{37E}", nil),
        ] as [(String?, ProblemDetails.Format?)])
    func `the type is compared without case and parameters`(_ type: String?, _ format: ProblemDetails.Format?) {
        // A1.3: XML is recognized by its name, and not decoded.
        #expect(ProblemDetails.Format(contentType: type) == format)
        #expect((Self.problem("{}", type) == nil) == (format != .json))
    }

    @Test(arguments: ["", "[]", "null", "\"x\"", "{", "{\"type\": }", "<problem/>", "\u{301}{}"] as [String])
    func `a body that is no object is none`(_ text: String) {
        #expect(Self.problem(text) == nil)
    }

    @Test func `names are compared by their scalars`() throws {
        // The first name has a combining mark, and is another one.
        let problem = try #require(Self.problem("{\"title\u{301}\": \"a\", \"Title\": \"b\", \"title\": \"c\"}"))
        #expect(problem.title == "c" && problem.members == ["title\u{301}": .string("a"), "Title": .string("b")])
    }

    @Test func `members that are nested too deeply are ignored alone`() throws {
        func nested(_ depth: Int) -> String { String(repeating: "[", count: depth) + String(repeating: "]", count: depth) }
        let problem = try #require(Self.problem(#"{"title": "a", "deep": \#(nested(64)), "flat": \#(nested(63))}"#))
        #expect(problem.title == "a" && problem.members.keys.sorted() == ["flat"])
    }

    @Test func `details are encoded as they are decoded`() throws {
        var problem = ProblemDetails()
        (problem.type, problem.status, problem.title, problem.detail) = ("/credit", 403, "No credit", "Balance \"30\"")
        problem.members = [
            "a": .null, "b": .bool(true), "c": .number(0.5), "d": .object(["e": .array([.integer(1), .string("é")])]), "type": .integer(5),
        ]
        let body = try JSONEncoder().encode(problem)
        problem.members["type"] = nil
        #expect(ProblemDetails(body, contentType: Self.json) == problem)
    }

    @Test func `a refused response's error has its problem details`() throws {
        // A1.3
        func error(_ body: String, _ type: String?) -> CurlewError {
            let request = FailedRequest(url: "http://h/", statusCode: 403, contentType: type, bodyData: Data(body.utf8))
            return .responseValidationFailed(reason: .unacceptableStatusCode(code: 403), in: request)
        }
        #expect(error(#"{"title": "No"}"#, Self.json).problemDetails?.title == "No")
        #expect(error(#"{"title": "No"}"#, "application/json").problemDetails == nil)
        #expect(error("<problem/>", "application/problem+xml").problemDetails == nil)
        #expect(CurlewError.cancelled.problemDetails == nil)
    }
}
