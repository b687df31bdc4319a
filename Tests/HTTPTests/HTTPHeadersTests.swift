// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP
import Testing

@Suite struct HTTPHeadersTests {
    private let repeated: HTTPHeaders = ["Accept": "a", "X-A": "1", "accept": "b"]

    @Test("fields keep their order, their spelling and their repetitions")
    func keepsOrder() {
        #expect(repeated.map(\.name) == ["Accept", "X-A", "accept"])
        #expect(repeated.map(\.value) == ["a", "1", "b"])
        #expect(repeated.count == 3)
        #expect(repeated[1] == HTTPHeader(name: "X-A", value: "1"))
    }

    @Test("fields are compared by their bytes")
    func bytes() {
        #expect(HTTPHeader(name: "A", value: "caf\u{E9}") != HTTPHeader(name: "A", value: "cafe\u{301}"))
        #expect(HTTPHeader(name: "A", value: "1") != HTTPHeader(name: "a", value: "1"))
        for value in ["", "short", String(repeating: "a long value ", count: 9), "\u{E9}\u{301}"] {
            let copy = String(decoding: Array(value.utf8), as: UTF8.self)
            #expect(HTTPHeader(name: "A", value: value) == HTTPHeader(name: "A", value: copy))
        }
    }

    @Test("all initializers create equal lists")
    func initializers() {
        let fields = [HTTPHeader(name: "A", value: "1"), HTTPHeader(name: "B", value: "2")]
        var appended = HTTPHeaders()
        appended.append(name: "A", value: "1")
        appended.append(fields[1])
        for headers in [["A": "1", "B": "2"], HTTPHeaders(fields), [fields[0], fields[1]], HTTPHeaders(["B": "2", "A": "1"])]
            as [HTTPHeaders]
        {
            #expect(headers == appended)
        }
    }

    @Test("a field is found case-insensitively", arguments: ["accept", "ACCEPT", "Accept"])
    func findsFields(_ name: String) {
        #expect(repeated.value(for: name) == "a, b")
        #expect(repeated[name] == "a, b")
        #expect(repeated.values(for: name) == ["a", "b"])
    }

    @Test("only ASCII letters are compared case-insensitively")
    func asciiCase() {
        let headers: HTTPHeaders = ["@": "1", "k": "2"]
        #expect(headers["`"] == nil)
        #expect(headers["\u{212A}"] == nil)
        #expect(headers["K"] == "2")
    }

    @Test("a missing field has no value")
    func missingField() {
        #expect(repeated["X-B"] == nil)
        #expect(repeated.values(for: "X-B").isEmpty)
        #expect(HTTPHeaders(["A": ""])["a"]?.isEmpty == true)
    }

    @Test("an update replaces the first field of the name and removes the others")
    func updates() {
        var headers = repeated
        headers.update(name: "ACCEPT", value: "c")
        #expect(headers == ["ACCEPT": "c", "X-A": "1"])
        headers.update(.userAgent("u"))
        #expect(headers == ["ACCEPT": "c", "X-A": "1", "User-Agent": "u"])
    }

    @Test("the subscript sets and removes")
    func subscriptSets() {
        var headers = repeated
        headers["accept"] = "c"
        headers["x-a"] = nil
        headers["x-b"] = nil
        #expect(headers == ["accept": "c"])
    }

    @Test("removing removes all fields of the name")
    func removes() {
        var headers = repeated
        headers.remove(name: "aCCEPT")
        #expect(headers == ["X-A": "1"])
    }

    @Test("merging replaces fields of the same name and keeps repetitions of the other list")
    func merges() {
        var headers = repeated
        headers.merge(["ACCEPT": "c", "Accept": "d", "X-B": "2"])
        #expect(headers == ["X-A": "1", "ACCEPT": "c", "Accept": "d", "X-B": "2"])
        headers.merge([:])
        #expect(headers.count == 4)
    }

    @Test("the dictionary joins repeated fields under the first spelling")
    func dictionary() {
        #expect(repeated.dictionary == ["Accept": "a, b", "X-A": "1"])
        #expect(HTTPHeaders().dictionary.isEmpty)
    }

    @Test("the description redacts credentials")
    func hidesSecrets() {
        let headers: HTTPHeaders = [
            .authorization(bearerToken: "s3cret"), HTTPHeader(name: "cookie", value: "s3cret"),
            HTTPHeader(name: "SET-COOKIE", value: "s3cret"),
            HTTPHeader(name: "Proxy-Authorization", value: "s3cret"), .accept("*/*"),
        ]
        #expect(!headers.description.contains("s3cret"))
        #expect(headers.description.hasSuffix("\nAccept: */*"))
        #expect(headers.description.hasPrefix("Authorization: <hidden>\n"))
    }

    @Test("a name that is not a token, or a value with a control character other than a tab, is invalid")
    func validity() {
        for (name, value) in [("A", ""), ("A", "é\t"), ("x-1", "a b"), ("A", " a ")] {
            #expect(HTTPHeader(name: name, value: value).isValid)
        }
        for (name, value) in [
            ("", "a"), ("A ", "a"), ("A:", "a"), ("Ä", "a"), ("A", "\r"), ("A", "a\nb"), ("A", "a\r\nb"), ("A", "\0"), ("A", "\u{1}"),
            ("A", "\u{7F}"),
        ] {
            #expect(!HTTPHeader(name: name, value: value).isValid, "\(name.debugDescription): \(value.debugDescription)")
        }
    }

    @Test("well-known fields have their names and values")
    func wellKnownFields() {
        #expect(HTTPHeader.authorization(username: "Aladdin", password: "open sesame").value == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        #expect(HTTPHeader.authorization(username: "é", password: "").value == "Basic w6k6")
        let fields: [HTTPHeader] = [
            .accept("a"), .acceptEncoding("b"), .acceptLanguage("c"), .authorization("d"), .authorization(bearerToken: "e"),
            .contentType("f"),
        ]
        #expect(
            fields.map { "\($0.name): \($0.value)" } == [
                "Accept: a", "Accept-Encoding: b", "Accept-Language: c", "Authorization: d", "Authorization: Bearer e", "Content-Type: f",
            ])
    }
}
