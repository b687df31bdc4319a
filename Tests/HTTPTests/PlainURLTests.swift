// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite(.timeLimit(.minutes(1))) struct PlainURLTests {
    @Test(
        "ordinary URLs need no parsing",
        arguments: [
            "http://localhost", "https://example.org/", "http://127.0.0.1:8080/a/b-c_d~e.txt", "https://x.y/search?q=a+b&r=1,2",
            "http://h:1/", "http://h:65535/", "http://-h-/", "https://h/@me:x",
        ])
    func plain(_ url: String) throws {
        #expect(PlainURL.isPlain(url))
        #expect(try url.asURL().absoluteString == url)
    }

    @Test(
        "other URLs are left to the parser",
        arguments: [
            "", "h", "http", "http:", "http:/", "http://", "http:///path", "https", "HTTP://h/", "ftp://h/", "httpx://h/", "http://h:/",
            "http://h:0/", "http://h:65536/", "http://h:99999999999999999999/", "http://h:8a/", "http://user@h/", "http://[::1]/",
            "http://h?q", "http://h/#f", "http://h/?a?b", "http://h/ ", "http://h/%41", "http://h/\u{E9}", "http://h\u{E9}/", "http://h/\0",
            "http://h/\r\nX: y", "http://h/\"", "http://h/a;b", "http://h/[1]", "http://h/a\\b",
            "http://a.h./", "http://127.0.0.1./", "http://127.1.:80/",
            "http://a..b/", "http://h../", "http://.h/", "http://./", "http://" + String(repeating: "a.", count: 127) + "b/",
        ])
    func others(_ url: String) {
        #expect(!PlainURL.isPlain(url))
    }
}
