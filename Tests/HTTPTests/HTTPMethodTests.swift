// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP
import Testing

@Suite struct HTTPMethodTests {
    @Test("the standard's methods have their names")
    func names() {
        let methods: [HTTPMethod] = [.options, .get, .head, .post, .put, .patch, .delete, .trace, .connect, .query]
        let names = ["OPTIONS", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "QUERY"]
        #expect(methods.map(\.rawValue) == names)
        #expect(methods.map(\.description) == names)
        #expect(names.map(HTTPMethod.init) == methods)
    }

    @Test("methods are case-sensitive")
    func caseSensitive() {
        #expect(HTTPMethod(rawValue: "get") != .get)
        #expect(HTTPMethod(rawValue: "get")?.rawValue == "get")
    }

    @Test("a token is a method", arguments: ["PURGE", "M-SEARCH", "a", "1", "!#$%&'*+-.^_`|~"])
    func tokens(_ name: String) {
        #expect(HTTPMethod(rawValue: name)?.rawValue == name)
    }

    @Test(
        "text that is not a token is not a method",
        arguments: [
            "", " ", "GET ", "G ET", "GET\r\n", "GET\0", "G:T", "G/T", "GÉT", "\u{212A}", "(a)", "a,b", "\"a\"", "{", "\u{7F}", "@", "[",
            "=",
        ])
    func noTokens(_ name: String) {
        #expect(HTTPMethod(rawValue: name) == nil)
    }

    @Test("methods that may be repeated are the idempotent ones")
    func idempotence() {
        for method in [HTTPMethod.get, .head, .options, .trace, .put, .delete, .query] { #expect(method.isIdempotent, "\(method)") }
        for method in [HTTPMethod.post, .patch, .connect] { #expect(!method.isIdempotent, "\(method)") }
        for name in ["PURGE", "get"] { #expect(HTTPMethod(rawValue: name)?.isIdempotent == false) }
    }
}
