// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP
import Testing

@Suite struct URLConvertibleTests {
    @Test(
        "a string that is a URL is unchanged",
        arguments: [
            "https://example.org", "https://u:p@example.org:8443/a%20b/../c?d=e&f=%C3%A9#g", "http://[::1]/",
            "http://xn--bcher-kva.example/",
            "http://example.org/?q=a+b", "HTTP://EXAMPLE.org/", "/relative", "//example.org/",
        ])
    func strings(_ string: String) throws {
        #expect(try string.asURL().absoluteString == string)
    }

    @Test(
        "a string that is not a URL is rejected, not repaired",
        arguments: [
            "", " ", "http://example.org/a b", " http://example.org/", "http://example.org/\n", "http://bücher.example/",
            "http://example.org/é",
            "http://example.org/%zz", "http://example.org/%", "http://example.org/|", "http://example.org/?a=[]", "http://example.org/{id}",
            "http://example.org/#a#b", "http://example.org/\"", "http://example.org/\\", "http://example.org/\0",
            "http://example.org:port/",
            "http://[::1", "http://exa mple.org/", "http://<host>/", "http://u:p w@example.org/",
        ])
    func noURLs(_ string: String) {
        let error = #expect(throws: CurlewError.self) { try string.asURL() }
        guard case .invalidURL(let refused, _) = error else {
            return #expect(Bool(false), "not invalidURL but \(String(describing: error))")
        }
        #expect(refused as? String == string)
    }

    @Test("a URL is itself")
    func urls() throws {
        let url = try #require(URL(string: "b", relativeTo: URL(string: "http://a/")))
        #expect(try url.asURL() == url)
    }

    @Test("components return their URL, or throw an error")
    func components() throws {
        var components = URLComponents()
        components.scheme = "http"
        components.host = "example.org"
        components.path = "/é"
        #expect(try components.asURL().absoluteString == "http://example.org/%C3%A9")
        components.path = "no slash"
        let error = #expect(throws: CurlewError.self) { try components.asURL() }
        guard case .invalidURL(let refused, _) = error else {
            return #expect(Bool(false), "not invalidURL but \(String(describing: error))")
        }
        #expect(refused is URLComponents)
    }
}
