// SPDX-License-Identifier: Apache-2.0

import CurlewEncoding
import CurlewHTTP
import Testing

@Suite struct URLRequestConvertibleTests {
    @Test("a request converts to itself")
    func requestIsItself() throws {
        let original = try request("https://example.org/a", .put)
        #expect(try original.asURLRequest() == original)
        #expect(original.urlRequest == original)
    }

    @Test("urlRequest is nil if the conversion throws")
    func urlRequestIsNil() {
        #expect(NoRequest().urlRequest == nil)
    }

    @Test("URL, method and headers are set")
    func makesRequest() throws {
        let request = try URLRequest(url: "https://example.org/a?b#c", method: .patch, headers: ["X-A": "1", "X-B": ""])
        #expect(request.url?.absoluteString == "https://example.org/a?b#c")
        #expect(request.httpMethod == "PATCH")
        #expect(request.allHTTPHeaderFields == ["X-A": "1", "X-B": ""])
    }

    @Test("headers are optional")
    func makesRequestWithoutHeaders() throws {
        let request = try URLRequest(url: "https://example.org/", method: .get)
        #expect(request.allHTTPHeaderFields ?? [:] == [:])
    }

    @Test("an invalid URL is rejected")
    func refusesBadURL() {
        let error = #expect(throws: CurlewError.self) { try URLRequest(url: "https://exam ple.org/", method: .get) }
        guard case .invalidURL = error else { return #expect(Bool(false), "not invalidURL but \(String(describing: error))") }
    }

    @Test("repeated fields are merged, joined by a comma and a space, under the first spelling")
    func joinsRepeatedFields() throws {
        let headers: HTTPHeaders = ["Accept": "text/html", "X-A": "1", "accept": "text/plain", "ACCEPT": "*/*"]
        let request = try request(headers: headers)
        #expect(request.value(forHTTPHeaderField: "Accept") == "text/html, text/plain, */*")
        #expect(request.allHTTPHeaderFields == headers.dictionary)
    }

    @Test("repeated cookies are joined by a semicolon")
    func joinsCookies() throws {
        let request = try request(headers: ["Cookie": "a=1", "cookie": "b=2"])
        #expect(request.value(forHTTPHeaderField: "Cookie") == "a=1; b=2")
    }

    @Test(
        "an invalid header is an error, not dropped",
        arguments: [("X A", "1"), ("", "1"), ("X:", "1"), ("X-A", "1\r\nX-B: 2"), ("X-A", "1\n"), ("X-A", "\u{0}"), ("Ä", "1")])
    func refusesInvalidHeaders(_ name: String, _ value: String) {
        let error = #expect(throws: CurlewError.self) { try request(headers: ["X-Good": "1", name: value]) }
        guard case .urlRequestValidationFailed(.invalidHeader(name), _) = error else {
            return #expect(Bool(false), "not invalidHeader but \(String(describing: error))")
        }
    }

    @Test(
        "methods keep their spelling, except for Foundation's five", arguments: ["patch", "Options", "query", "m-search", "PURGE"])
    func methodKeepsSpelling(_ name: String) throws {
        let method = try #require(HTTPMethod(rawValue: name))
        #expect(try request("https://example.org/", method).httpMethod == name)
    }
}
