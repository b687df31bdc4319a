// SPDX-License-Identifier: Apache-2.0
import CurlewServices
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct HTTPBodyTests {
    private struct User: Encodable {
        var firstName = "Ada"
    }

    private func request(_ body: any HTTPBody) throws -> URLRequest {
        var request = URLRequest(url: try "http://127.0.0.1/".asURL())
        try body.add(to: &request)
        return request
    }

    private func text(_ body: any HTTPBody) throws -> String? {
        try request(body).httpBody.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func jsonIsInSnakeCaseByDefault() throws {
        #expect(try text(HTTPData.JSON(User())) == #"{"first_name":"Ada"}"#)
        #expect(try text(HTTPData.JSON(User(), encoder: JSONEncoder())) == #"{"firstName":"Ada"}"#)
        #expect(try request(HTTPData.JSON(User())).value(forHTTPHeaderField: "Content-Type") == "application/json")
    }

    @Test func emptyBodyLeavesTheRequestWithoutOne() throws {
        let request = try request(HTTPData.Empty())
        #expect(request.httpBody == nil && request.allHTTPHeaderFields?.isEmpty != false)
    }

    @Test(arguments: [(MIMEType.png, "image/png"), (.jpeg, "image/jpeg"), ("image/webp", "image/webp")])
    func imageSetsItsContentType(_ type: MIMEType, _ expected: String) throws {
        let request = try request(HTTPData.Image(type, Data([1, 2])))
        #expect(request.httpBody == Data([1, 2]))
        #expect(request.value(forHTTPHeaderField: "Content-Type") == expected)
    }

    @Test(
        arguments: [
            (HTTPData.URLEncoded(["b": "x y&ü%", "a": [1, 2], "t": true]), "a%5B%5D=1&a%5B%5D=2&b=x%20y%26%C3%BC%25&t=1"),
            (HTTPData.URLEncoded(["a": [1, 2], "t": true], arrayEncoding: .noBrackets, boolEncoding: .literal), "a=1&a=2&t=true"),
            (HTTPData.URLEncoded(dictionaryLiteral: ("b", 1), ("a", "+")), "b=1&a=%2B"),
            (HTTPData.URLEncoded { ("q", "ü") }, "q=%C3%BC"),
        ] as [(HTTPData.URLEncoded, String)])
    func formIsEscapedOnce(_ body: HTTPData.URLEncoded, _ expected: String) throws {
        #expect(try text(body) == expected)
        let type = try request(body).value(forHTTPHeaderField: "Content-Type")
        #expect(type == "application/x-www-form-urlencoded; charset=utf-8")
    }

    @Test func multipartBodyHasItsParts() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("cur-lew".utf8), to: "call.txt")
        let body = HTTPData.Multipart {
            MultipartPart.text("species", "Numenius")
            MultipartPart.file("call", file)
            if file.isFileURL { MultipartPart.data("raw", Data("x".utf8), fileName: "x.bin", mimeType: "application/x-test") }
        }
        let request = try request(body)
        let type = try #require(request.value(forHTTPHeaderField: "Content-Type"))
        let parts = try MultipartBody(try #require(request.httpBody), contentType: type).parts
        #expect(parts.map(\.text) == ["Numenius", "cur-lew", "x"])
        #expect(
            parts.map { $0.header("Content-Disposition") } == [
                "form-data; name=\"species\"", "form-data; name=\"call\"; filename=\"call.txt\"",
                "form-data; name=\"raw\"; filename=\"x.bin\"",
            ])
        #expect(parts.map { $0.header("Content-Type") } == [nil, "text/plain", "application/x-test"])
        #expect(body.description == "<form of species, call, raw>")
    }

    private func body(_ kind: Int) -> any HTTPBody { built(kind) }

    @HTTPBodyBuilder private func built(_ kind: Int) -> any HTTPBody {
        switch kind {
        case 0: HTTPData.Empty()
        case 1: HTTPData.JSON(["a": 1])
        default: if kind == 2 { HTTPData.Raw(nil, Data("raw".utf8)) }
        }
    }

    @Test(arguments: [(0, nil), (1, #"{"a":1}"#), (2, "raw"), (3, nil)] as [(Int, String?)])
    func builderSelectsABody(_ kind: Int, _ expected: String?) throws {
        #expect(try text(body(kind)) == expected)
    }

    @Test func descriptionsAreTruncatedAndRedacted() {
        let long = HTTPData.JSON(["a": String(repeating: "x", count: 3000)])
        #expect(long.description.count == 1001 && long.description.hasPrefix("{\n  \"a\" : \"xxx"))
        #expect(HTTPData.URLEncoded(["password": "secret"]).description == "<form, 15 bytes>")
    }
}
