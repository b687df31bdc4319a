// SPDX-License-Identifier: Apache-2.0
#if HTTPTypes
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewHTTPTypes

/// Fields and methods, to swift-http-types and back.
@Suite struct ConversionTests {
    // MARK: Methods

    @Test(arguments: ["GET", "DELETE", "REPORT", "get", "M-SEARCH", "!#$%&'*+-.^_`|~"])
    func `a method is the same in both types`(_ token: String) throws {
        let method = try #require(HTTPMethod(rawValue: token))
        let other = try #require(HTTPRequest.Method(token))
        #expect(HTTPMethod(other) == method)
        #expect(HTTPRequest.Method(method) == other)
    }

    @Test func `both types accept the same tokens`() {
        for byte in UInt8.min...127 {
            let token = "G\(UnicodeScalar(byte))"
            #expect((HTTPMethod(rawValue: token) == nil) == (HTTPRequest.Method(token) == nil), "\(byte)")
        }
        #expect(HTTPRequest.Method("") == nil && HTTPMethod(rawValue: "") == nil)
    }

    // MARK: Fields

    @Test func `fields keep their order, their repetitions and the spelling of their names`() throws {
        let headers: HTTPHeaders = ["B": "1", "set-cookie": "a=1, x", "A": "", "b": "2", "Set-Cookie": "c"]
        let fields = try HTTPFields(headers)
        #expect(fields.map(\.name.rawName) == ["B", "set-cookie", "A", "b", "Set-Cookie"])
        #expect(fields.map(\.value) == ["1", "a=1, x", "", "2", "c"])
        #expect(fields[values: .setCookie] == ["a=1, x", "c"])
        #expect(HTTPHeaders(fields) == headers)
    }

    @Test func `cookies that were split for HTTP/2 become one field, in the place of the first`() {
        var fields: HTTPFields = [.cookie: "a=1", .accept: "*/*", .cookie: "b=2", .cookie: "c=3"]
        #expect(HTTPHeaders(fields) == ["Cookie": "a=1; b=2; c=3", "Accept": "*/*"])
        fields = [.accept: "*/*", .cookie: "a=1"]
        #expect(HTTPHeaders(fields) == ["Accept": "*/*", "Cookie": "a=1"])
    }

    @Test func `an indexing strategy does not change what is sent`() {
        var field = HTTPField(name: .authorization, value: "Bearer x")
        field.indexingStrategy = .disallow
        #expect(HTTPHeaders(HTTPFields([field])) == ["Authorization": "Bearer x"])
    }

    @Test func `a value that is not UTF-8 is decoded as ISO 8859-1`() {
        let fields = [HTTPField(name: .userAgent, value: [0x63, 0xE9]), HTTPField(name: .server, value: "é")]
        let headers = HTTPHeaders(HTTPFields(fields))
        #expect(headers["User-Agent"] == "cé")
        #expect(headers["Server"] == "é")
    }

    @Test(arguments: [HTTPHeader(name: "a b", value: ""), HTTPHeader(name: "", value: ""), HTTPHeader(name: "A", value: "b\r\nC: d")])
    func `an invalid field is an error and is not dropped`(_ header: HTTPHeader) {
        #expect { try HTTPFields([header]) } throws: {
            if case CurlewError.urlRequestValidationFailed(.invalidHeader(header.name), _) = $0 { true } else { false }
        }
    }

    @Test func `more fields than HTTPFields holds are an error`() throws {
        let header = HTTPHeader(name: "A", value: "1")
        #expect(try HTTPFields(HTTPHeaders(Array(repeating: header, count: 65_534))).count == 65_534)
        #expect(throws: CurlewError.self) { try HTTPFields(HTTPHeaders(Array(repeating: header, count: 65_535))) }
        // A server's are cut: a session whose limits are lifted must not trap.
        #expect(HTTPFields(received: HTTPHeaders(Array(repeating: header, count: 70_000))).count == 65_534)
    }

    @Test func `a received field whose name is not a token is omitted`() {
        let fields = HTTPFields(received: ["a b": "1", "Accept": "x\u{1}y"])
        #expect(fields == [.accept: "x y"])
    }

    // MARK: Responses

    @Test func `a status of four digits is an error`() {
        #expect(throws: CurlewError.self) { try HTTPResponse(ResponseHead(statusCode: 1000), url: "http://a.example/") }
        #expect(throws: CurlewError.self) { try HTTPResponse(ResponseHead(statusCode: -1), url: "http://a.example/") }
    }

    // MARK: Targets

    @Test(arguments: [
        ("https://a.example", "/b", "https://a.example/b"), ("https://a.example/", "/b", "https://a.example/b"),
        ("https://a.example/v1", "/b?c=%2F", "https://a.example/v1/b?c=%2F"),
        ("https://a.example:81/v1//", "/b", "https://a.example:81/v1/b"),
        ("https://a.example/v1?x=y#z", "/b", "https://a.example/v1/b"), ("https://a.example/%2Fv1/", "", "https://a.example/%2Fv1/"),
    ])
    func `a path is appended to that of the base URL`(_ base: String, _ path: String, _ url: String) throws {
        let request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: path)
        #expect(try request.target(relativeTo: URL(string: base)) == url)
    }

    @Test func `a request with an authority of its own does not use the base URL`() throws {
        let request = HTTPRequest(method: .get, scheme: "http", authority: "b.example", path: nil)
        #expect(try request.target(relativeTo: URL(string: "https://a.example/v1")) == "http://b.example/")
    }
}
#endif
