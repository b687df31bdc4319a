// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct HTTPOriginTests {
    @Test(
        "scheme, host and port of a URL",
        arguments: [
            ("http://example.org", "http", "example.org", 80), ("HTTPS://Example.ORG/Path?q=:1", "https", "example.org", 443),
            ("https://example.org:8443?x", "https", "example.org", 8443), ("ws://u:p@host:9/#f", "ws", "host", 9),
            ("wss://a@b:c@host/", "wss", "host", 443), ("http://[::1]:8080/", "http", "::1", 8080),
            ("http://[FE80::1]", "http", "fe80::1", 80),
            ("ftp://host:21/", "ftp", "host", 21), ("http://host:/", "http", "host", 80), ("http://höst/", "http", "höst", 80),
        ])
    func origins(_ url: String, _ scheme: String, _ host: String, _ port: Int) {
        #expect(HTTPOrigin(url: url) == HTTPOrigin(scheme: scheme, host: host, port: port))
    }

    @Test(
        "texts without an origin",
        arguments: [
            "", "/path", "host:80", "http:/host", "http://", "http://:80/", "http://user@/", "ftp://host/", "http://host:x/",
            "http://host:65536/", "http://host:+80/", "http://host:-0/", "http://[::1", "http://[::1]x/", "://host/",
        ])
    func others(_ url: String) {
        #expect(HTTPOrigin(url: url) == nil)
    }

    @Test(
        "an origin is described as a URL, without its scheme's port",
        arguments: [
            ("HTTPS://Example.ORG:443/Path", "https://example.org"), ("http://127.1:8080", "http://127.0.0.1:8080"),
            ("ws://[::1]:80/", "ws://[::1]"), ("wss://[::1]:80/", "wss://[::1]:80"), ("ftp://host:21/", "ftp://host:21"),
        ])
    func description(_ url: String, _ expected: String) {
        #expect(HTTPOrigin(url: url)?.description == expected)
    }
}
