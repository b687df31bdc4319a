// SPDX-License-Identifier: Apache-2.0
import CurlewServices
import Testing

@Suite(.timeLimit(.minutes(1)))
struct HTTPRouteTests {
    @Test(
        arguments: [
            (["users", 12, "posts"], "users/12/posts"),
            (["a/b", "ä ?", ""], "a%2Fb/%C3%A4%20%3F"),
            ([Optional("x") as Any, Optional<Int>.none as Any], "x"),
            ("api/v1/users", "api/v1/users"),
            ("/users/\("a/b")/\(7)x/", "users/a%2Fb/7x"),
            (["users"] + "posts/1", "users/posts/1"),
        ] as [(HTTPRoute, String)])
    func elementsBecomeEscapedSegments(_ route: HTTPRoute, _ expected: String) {
        #expect(route.description == expected)
    }

    @Test(arguments: [true, false])
    func builderCombinesParts(_ isNested: Bool) {
        let name = "a/b"
        let route = HTTPRoute {
            "api/v1"
            name
            7
            if isNested { ["x", "y"] }
            for number in 1...2 { number }
        }
        #expect(route.description == (isNested ? "api/v1/a%2Fb/7/x/y/1/2" : "api/v1/a%2Fb/7/1/2"))
    }
}
