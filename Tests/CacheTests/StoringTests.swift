// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1))) struct StoringTests {
    @Test(
        "which statuses are stored, without and with explicit freshness",
        arguments: [
            (200, true, true), (204, true, true), (301, true, true), (308, true, true), (404, true, true), (410, true, true),
            (302, false, true),
            (307, false, true), (400, false, true), (500, false, true), (503, false, true), (599, false, true), (299, false, true),
            (304, false, false), (401, false, false), (407, false, false), (206, false, false), (101, false, false),
        ])
    func statuses(status: Int, plain: Bool, explicit: Bool) {
        #expect((store([:], status: status) != nil) == plain)
        #expect((store(["Cache-Control": "max-age=60"], status: status) != nil) == explicit)
        #expect((store(["Expires": date(60)], status: status) != nil) == explicit)
    }

    @Test("no-store of either side is not stored")
    func noStore() {
        #expect(store(["Cache-Control": "no-store, max-age=60"]) == nil)
        #expect(store(["Cache-Control": "max-age=60"], for: get(["Cache-Control": "no-store"])) == nil)
        #expect(store(["Cache-Control": "no-store=\"x\", max-age=60"]) == nil)
    }

    @Test(
        "must-understand replaces no-store for statuses that are understood",
        arguments: [(200, true), (404, true), (599, false), (299, false)])
    func mustUnderstand(status: Int, isStored: Bool) {
        #expect((store(["Cache-Control": "must-understand, no-store, max-age=60"], status: status) != nil) == isStored)
        #expect((store(["Cache-Control": "must-understand, max-age=60"], status: status) != nil) == isStored)
    }

    @Test("responses to other methods are not stored", arguments: [HTTPMethod.head, .post, .put, .options])
    func methods(_ method: HTTPMethod) {
        #expect(store(["Cache-Control": "max-age=60"], for: get(method: method)) == nil)
    }

    @Test("hop-by-hop fields, fields that Connection names and cookies are not stored")
    func fields() throws {
        let stored = try #require(
            store([
                "Connection": "X-Hop, close", "X-Hop": "1", "Set-Cookie": "a=1", "Transfer-Encoding": "chunked", "Keep-Alive": "x",
                "X": "1",
            ]))
        #expect(stored.headers.map(\.name) == ["X"])
    }

    @Test(
        "unknown and obsolete fields are stored, and private does not matter, with or without a list",
        arguments: ["private", "private=\"X\""])
    func unknownFields(_ directive: String) throws {
        let fields: HTTPHeaders = ["Cache-Control": "max-age=60, \(directive)", "X": "1", "Warning": "110 - stale", "Pragma": "x"]
        let stored = try #require(store(fields))
        #expect(stored.headers == fields)
        #expect(CacheRules.decide(get(), [stored], now: start + 1).serves)
    }

    @Test("a 304 updates the stored fields but those of the content, and the times")
    func update() throws {
        let stored = try #require(
            store([
                "ETag": "\"a\"", "Cache-Control": "max-age=1", "Age": "9", "Content-Type": "text/a", "Content-Length": "3", "X": "old",
                "Y": "y",
            ]))
        let answer = received(
            [
                "ETag": "\"a\"", "Cache-Control": "max-age=60", "Content-Type": "text/b", "Content-Length": "0", "X": "new",
                "Set-Cookie": "a=1",
            ],
            status: 304, at: 100)
        let updated = try #require(StorageRules.updated(stored, by: answer, request: [:]))
        #expect(updated.headers["X"] == "new" && updated.headers["Y"] == "y" && updated.headers["Age"] == nil)
        #expect(
            updated.headers["Content-Type"] == "text/b" && updated.headers["Content-Length"] == "3" && updated.headers["Set-Cookie"] == nil)
        #expect(updated.remaining(at: start + 110) == 50)
    }

    @Test(
        "a 304 updates all fields but those of the stored bytes and of the connection",
        arguments: [
            ("Cache-Control", "max-age=5", true), ("Content-Disposition", "b", true), ("Content-Language", "b", true),
            ("Content-Location", "/b", true), ("Content-MD5", "b", true), ("Content-Security-Policy", "b", true),
            ("Content-Type", "text/b", true), ("Date", date(7), true), ("Expires", date(7), true), ("Link", "</b>", true),
            ("Set-Cookie2", "b", true), ("Vary", "B", true), ("X-Content-Foo", "b", true), ("X-Frame-Options", "deny", true),
            ("X-XSS-Protection", "0", true), ("Content-Encoding", "br", false), ("Content-Length", "7", false),
            ("Content-Range", "bytes 0-1/2", false), ("Connection", "close", false), ("Keep-Alive", "timeout=5", false),
            ("Proxy-Authenticate", "b", false), ("Proxy-Authentication-Info", "b", false), ("Set-Cookie", "b=1", false),
            ("TE", "trailers", false), ("Trailer", "X", false), ("Transfer-Encoding", "chunked", false), ("Upgrade", "h2c", false),
        ])
    func updatedField(name: String, value: String, isUpdated: Bool) throws {
        let stored = try #require(store(["Last-Modified": date(-9), "Cache-Control": "max-age=60"]))
        let updated = try #require(StorageRules.updated(stored, by: received([name: value], status: 304), request: [:]))
        #expect(updated.headers[name] == (isUpdated ? value : stored.headers[name]))
        // What the 304 does not have is kept.
        #expect(updated.headers["Last-Modified"] == date(-9))
    }

    @Test(
        "any final status with a lifetime is stored, others only if they are heuristically cacheable",
        arguments: [
            (200, true), (203, true), (204, true), (299, false), (300, true), (301, true), (302, false), (303, false), (307, false),
            (308, true), (400, false), (403, false), (404, true), (405, true), (410, true), (414, true), (499, false), (500, false),
            (501, true), (502, false), (503, false), (504, false), (599, false),
        ])
    func storedStatuses(_ status: Int, isHeuristic: Bool) {
        #expect(store(["Cache-Control": "max-age=60"], status: status) != nil)
        #expect(store(["Expires": date(60)], status: status) != nil)
        #expect((store(["Last-Modified": date(-1000)], status: status) != nil) == isHeuristic)
        #expect(store(["Last-Modified": date(-1000), "Cache-Control": "public"], status: status) != nil)
    }

    @Test(
        "a 304 for another representation updates nothing",
        arguments: [
            (["ETag": "\"a\""], ["ETag": "\"b\""], false), (["ETag": "\"a\""], ["ETag": "W/\"a\""], true), (["ETag": "\"a\""], [:], true),
            (["Last-Modified": date(-9)], ["ETag": "\"a\""], false), (["Last-Modified": date(-9)], ["Last-Modified": date(-8)], false),
            (["Last-Modified": date(-9)], ["Last-Modified": date(-9)], true), (["Last-Modified": date(-9)], [:], true),
        ] as [(HTTPHeaders, HTTPHeaders, Bool)])
    func otherRepresentation(_ stored: HTTPHeaders, _ answer: HTTPHeaders, isUpdated: Bool) throws {
        let stored = try #require(store(stored))
        #expect((StorageRules.updated(stored, by: received(answer, status: 304), request: [:]) != nil) == isUpdated)
    }

    @Test("a 304 may change the fields that select, and forbid storing")
    func selectionAfterUpdate() throws {
        let stored = try #require(store(["ETag": "\"a\"", "Cache-Control": "max-age=1"]))
        let answer = received(["Vary": "X", "Cache-Control": "max-age=60"], status: 304)
        let updated = try #require(StorageRules.updated(stored, by: answer, request: ["X": "1"]))
        #expect(CacheRules.decide(get(["X": "1"]), [updated], now: start + 1).serves)
        #expect(!CacheRules.decide(get(["X": "2"]), [updated], now: start + 1).serves)
        for headers: HTTPHeaders in [["Vary": "*"], ["Cache-Control": "no-store"]] {
            #expect(StorageRules.updated(stored, by: received(headers, status: 304), request: [:]) == nil)
        }
    }

    @Test(
        "a response to HEAD updates the stored one, or shows that it has changed",
        arguments: [
            (["ETag": "\"a\"", "X": "new"], true), (["ETag": "\"b\""], false), (["Content-Length": "4"], false),
            (["Content-Length": "3"], true),
            ([:], true),
        ] as [(HTTPHeaders, Bool)])
    func head(_ answer: HTTPHeaders, isUpdated: Bool) throws {
        let stored = try #require(store(["ETag": "\"a\"", "Content-Length": "3", "X": "old"]))
        let updated = StorageRules.headUpdate(stored, by: received(answer, at: 50), request: [:])
        #expect((updated != nil) == isUpdated)
        if answer["X"] != nil { #expect(updated?.headers["X"] == "new") }
        #expect(StorageRules.headUpdate(stored, by: received(answer, status: 404), request: [:]) == nil)
    }

    @Test(
        "URLs that are equivalent by RFC 9110, section 4.2.3, are one",
        arguments: [
            ("http://h/a?b#c", "http://h/a?b"), ("HTTP://H.Example/A", "http://h.example/A"), ("HTTP://h:80/", "http://h/"),
            ("https://h:443", "https://h/"), ("http://h:/x", "http://h/x"), ("http://h?q=A", "http://h/?q=A"),
            ("http://h:443/", "http://h:443/"), ("https://h:80/", "https://h:80/"), ("http://[::80]/", "http://[::80]/"),
            ("http://[::1]:80/", "http://[::1]/"), ("http://u@H/", "http://u@H/"), ("relative", "relative"), ("http://h#c", "http://h/"),
        ])
    func identity(_ url: String, _ same: String) {
        #expect(StorageRules.identity(of: url) == same && StorageRules.identity(of: same) == same)
    }

    @Test(
        "unsafe methods that succeed invalidate their URL, and those of the same origin that the response names",
        arguments: [
            (HTTPMethod.post, 200, [:], ["https://h/a"]), (.post, 303, ["Location": "/b"], ["https://h/a", "https://h/b"]),
            (.put, 204, ["Content-Location": "https://h/c#x"], ["https://h/a", "https://h/c"]),
            (.delete, 200, ["Location": "https://o/b"], ["https://h/a"]),
            (.put, 200, ["Location": "http://h/b"], ["https://h/a"]),
            (.put, 200, ["Location": "https://h/b"], ["https://h/a", "https://h/b"]),
            (.post, 500, ["Location": "/b"], []), (.post, 404, [:], []), (.get, 200, ["Location": "/b"], []), (.options, 200, [:], []),
            (HTTPMethod(rawValue: "M-SEARCH") ?? .get, 200, [:], ["https://h/a"]),
        ] as [(HTTPMethod, Int, HTTPHeaders, [String])])
    func invalidation(method: HTTPMethod, status: Int, headers: HTTPHeaders, urls: [String]) {
        let result = StorageRules.invalidation(by: received(headers, status: status), method: method, url: "https://h/a#f") { reference in
            URL(string: reference, relativeTo: URL(string: "https://h/a"))?.absoluteString
        }
        #expect(result.urls == urls && result.origin == nil)
    }

    @Test(
        "Clear-Site-Data removes what its origin has stored, over https",
        arguments: [
            ("\"cache\"", "https", true), ("\"cookies\", \"*\"", "https", true), ("\"cookies\"", "https", false), ("cache", "https", false),
            ("\"cache\"", "http", false),
        ])
    func clearSiteData(value: String, scheme: String, clears: Bool) {
        let result = StorageRules.invalidation(by: received(["Clear-Site-Data": value]), method: .get, url: "\(scheme)://h/a") { _ in nil }
        #expect((result.origin != nil) == clears && result.urls.isEmpty)
    }

    @Test("a stored response is decoded as it was encoded")
    func coding() throws {
        let stored = try #require(
            store(
                ["Cache-Control": "max-age=60", "Vary": "X", "ETag": "\"ä\"", "Y": "1", "y": "2"],
                for: get(["X": "1", "Authorization": "b"])))
        #expect(StoredResponse(decoding: stored.encoded) == stored)
        let part = try #require(StorageRules.beginning(of: stored, length: 3, total: 9))
        #expect(StoredResponse(decoding: part.encoded) == part && part != stored)
    }

    @Test("damaged bytes decode to another response or none, without a trap")
    func damage() throws {
        let bytes = [UInt8](try #require(store(["Cache-Control": "max-age=60", "Vary": "X"], for: get(["X": "1"]))).encoded)
        for index in bytes.indices {
            #expect(StoredResponse(decoding: Data(bytes[..<index])) == nil)
            for bit in 0..<8 {
                var damaged = bytes
                damaged[index] ^= 1 << bit
                _ = StoredResponse(decoding: Data(damaged))
            }
        }
        #expect(StoredResponse(decoding: Data(bytes + [0])) == nil)
    }
}
