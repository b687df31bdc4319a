// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CurlewServices

@Suite(.timeLimit(.minutes(1)))
struct ServiceURLTests {
    struct Case: Sendable {
        var base: String
        var isSecure: Bool? = true
        var routes: HTTPRoute = []
        var query: HTTPQuery = [:]
        var expected: String
    }

    @Test(arguments: [
        Case(base: "api.example.org", expected: "https://api.example.org"),
        Case(base: "localhost:8080/v1", isSecure: false, routes: ["users"], expected: "http://localhost:8080/v1/users"),
        Case(base: "http://api.example.org", expected: "https://api.example.org"),
        Case(base: "https://api.example.org", isSecure: false, expected: "http://api.example.org"),
        Case(base: "http://api.example.org/", isSecure: nil, routes: ["a", 1], expected: "http://api.example.org/a/1"),
        Case(base: "//api.example.org/b", isSecure: nil, routes: "c", expected: "https://api.example.org/b/c"),
        Case(base: "api.example.org/?u=http://x", expected: "https://api.example.org/?u=http://x"),
        Case(base: "https://h/p?key=1&q=a%26b", query: ["page": 2], expected: "https://h/p?key=1&q=a%26b&page=2"),
        Case(base: "https://h/p?page=1&x=2", query: ["page": 2], expected: "https://h/p?x=2&page=2"),
        Case(base: "https://h", query: ["q": "ä&b=c d", "t": true], expected: "https://h?q=%C3%A4%26b%3Dc%20d&t=true"),
    ])
    func partsFormAURL(_ row: Case) throws {
        let url = try ServiceURL.make(row.base, isSecure: row.isSecure, routes: row.routes, query: row.query)
        #expect(url.absoluteString == row.expected)
    }

    @Test func streamsHaveTheirOwnSchemes() throws {
        let schemes = (plain: "ws", secure: "wss")
        let urls = try [true, false].map {
            try ServiceURL.make("http://h/chat", isSecure: $0, schemes: schemes, routes: [], query: [:]).absoluteString
        }
        #expect(urls == ["wss://h/chat", "ws://h/chat"])
    }

    @Test(
        arguments: [
            ("", []), ("a b", []), ("ftp://h", []), ("https://", []), ("h", ["..", "admin"]), ("h", "a/./b"),
        ] as [(String, HTTPRoute)])
    func invalidPartsAreRejected(_ base: String, _ routes: HTTPRoute) {
        let error = #expect(throws: ServiceError.self) { try ServiceURL.make(base, isSecure: nil, routes: routes, query: [:]) }
        #expect(error?.name == "invalidURL")
    }
}

@Suite(.timeLimit(.minutes(1)))
struct HTTPQueryTests {
    @Test(
        arguments: [
            (["b": 1, "a": "x y", "n": nil], "b=1&a=x%20y"),
            (["tag": 1, "tag": 2], "tag=1&tag=2"),
            (["a": 1, "b": 2] + ["a": 3], "b=2&a=3"),
            (HTTPQuery(["b": 1, "a": 2]), "a=2&b=1"),
            (["flag": Optional(true) as Any], "flag=true"),
        ] as [(HTTPQuery, String)])
    func itemsKeepTheirOrderAndRightReplacesLeft(_ query: HTTPQuery, _ expected: String) {
        #expect(query.description == expected)
    }

    @Test(arguments: [("curlew", "page=1&q=curlew&sort=name&tag=a&tag=b"), (nil, "page=1&all=1&tag=a&tag=b")] as [(String?, String)])
    func builderCombinesItems(_ term: String?, _ expected: String) {
        let query = HTTPQuery {
            ["page": 1]
            if let term {
                ("q", term)
                HTTPQuery.Item(name: "sort", value: "name")
            } else {
                ["all": 1]
            }
            ("none", nil)
            for tag in ["a", "b"] { ("tag", tag) }
        }
        #expect(query.description == expected)
    }
}

@Suite(.timeLimit(.minutes(1)))
struct ServiceHeaderTests {
    @Test func namesIgnoreCaseAndRightReplacesLeft() {
        let sum: HTTPHeaders = ["accept": "a", "X-Api-Key": "1"] + [.accept("b"), .contentType(.json)]
        #expect(Array(sum) == [.apiKey("1"), .accept("b"), HTTPHeader(name: "Content-Type", value: "application/json")])
    }

    @HTTPHeadersBuilder private func header(_ token: String?) -> HTTPHeaders {
        HTTPHeader.acceptLanguage("de")
        if let token { HTTPHeader.authorization(bearerToken: token) } else { ["X-Guest": "1"] }
        for number in 1...2 { ["X-Number": "\(number)"] }
    }

    @Test(
        arguments: [
            ("t", ["Accept-Language: de", "Authorization: Bearer t", "X-Number: 1", "X-Number: 2"]),
            (nil, ["Accept-Language: de", "X-Guest: 1", "X-Number: 1", "X-Number: 2"]),
        ] as [(String?, [String])])
    func builderCombinesFields(_ token: String?, _ expected: [String]) {
        #expect(header(token).map { "\($0.name): \($0.value)" } == expected)
    }
}
