// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewCookies

@Suite(.timeLimit(.minutes(1))) struct HSTSTests {
    private static let now = Date(timeIntervalSince1970: 1_000_000_000)

    // MARK: The field

    @Test(
        "fields by RFC 6797, section 6.1",
        arguments: [
            ("max-age=100", 100, false), ("max-age=0", 0, false), ("MAX-AGE=100; IncludeSubDomains", 100, true),
            ("includeSubDomains;max-age=100", 100, true),
            ("max-age=\"100\"", 100, false), (" max-age = 100 ; includeSubDomains ", 100, true), (";;max-age=100;;", 100, false),
            ("max-age=100; preload", 100, false), ("max-age=100; other=\"a;b\\\"c\"; x", 100, false), ("max-age=\"1\\00\"", 100, false),
            ("max-age=99999999999999999999", 3_153_600_000, false), ("max-age=100;\tincludeSubDomains", 100, true),
            ("max-age=007", 7, false),
        ])
    func valid(_ text: String, _ age: Int, _ includesSubdomains: Bool) throws {
        let field = try #require(StrictTransportSecurity(text))
        #expect(field.maximumAge == age && field.includesSubdomains == includesSubdomains)
    }

    @Test(
        "an invalid field is ignored as a whole",
        arguments: [
            "", ";", "includeSubDomains", "max-age", "max-age=", "max-age=x", "max-age=-1", "max-age=1.5", "max-age=1 0", "max-age=\"100",
            "max-age=\"\"",
            "max-age=1; max-age=2", "max-age=1; includeSubDomains; includesubdomains", "max-age=1; includeSubDomains=1",
            "max-age=1, includeSubDomains",
            "max-age=1 includeSubDomains", "=1", "max-age=1; =x", "max-age=1; x=", "max-age=1; \"x\"", "max-age=1; x y", "max-age=\"1\\",
            "max-age=1; é",
        ])
    func invalid(_ text: String) {
        #expect(StrictTransportSecurity(text) == nil)
    }

    // MARK: Known hosts

    private func table(_ entries: (String, String)...) throws -> HSTSTable {
        var table = HSTSTable()
        for (host, field) in entries { try table.note(#require(StrictTransportSecurity(field)), from: host, now: Self.now) }
        return table
    }

    @Test(
        "a host is known itself, or by a domain above it with its subdomains (section 8.2)",
        arguments: [
            ("a.test", true), ("A.TEST", true), ("a.test.", true), ("sub.a.test", false), ("b.test", true), ("x.b.test", true),
            ("x.y.B.test", true),
            ("xb.test", false), ("test", false), ("", false), ("a.test:80", false), ("short.test", true), ("deep.short.test", true),
            ("sub.deep.short.test", true),
        ])
    func known(_ host: String, _ isKnown: Bool) throws {
        // The host's own entry does not end what a domain above it includes.
        let table = try table(
            ("a.test", "max-age=100"), ("b.test", "max-age=100; includeSubDomains"), ("short.test", "max-age=100; includeSubDomains"),
            ("deep.short.test", "max-age=100"))
        #expect(table.isKnown(host, now: Self.now) == isKnown)
        #expect(!table.isKnown(host, now: Self.now.addingTimeInterval(101)))
    }

    @Test("a newer field replaces an older one, and a max-age of 0 forgets the host") func updates() throws {
        var table = try table(("a.test", "max-age=100; includeSubDomains"), ("a.test", "max-age=200"))
        #expect(table.isKnown("a.test", now: Self.now.addingTimeInterval(150)))
        #expect(!table.isKnown("x.a.test", now: Self.now))
        try table.note(#require(StrictTransportSecurity("max-age=0; includeSubDomains")), from: "A.test", now: Self.now)
        #expect(table.records.isEmpty)
    }

    @Test(
        "a text that is no host is refused",
        arguments: ["https://example.org", "example.org:443", "example.org/", ".example.org", "*.example.org", "", "a b"])
    func texts(_ host: String) {
        #expect(throws: CurlewError.self) {
            try HSTSStore().set(HSTSHost(host: host, includesSubdomains: true, expirationDate: .distantFuture))
        }
    }

    @Test("addresses are never known", arguments: ["127.0.0.1", "::1", "[::1]", "1.2.3"]) func addresses(_ host: String) throws {
        #expect(try table((host, "max-age=100; includeSubDomains")).records.isEmpty)
    }

    @Test("only what changes more than the time a little is a change") func changes() throws {
        let table = try table(("a.test", "max-age=100000"))
        func isChanged(_ field: String, after seconds: Double = 0) throws -> Bool {
            try table.isChanged(by: #require(StrictTransportSecurity(field)), from: "a.test", now: Self.now.addingTimeInterval(seconds))
        }
        #expect(try !isChanged("max-age=100000"))
        #expect(try !isChanged("max-age=100000", after: 3600))
        #expect(try isChanged("max-age=100000", after: 3601))
        #expect(try isChanged("max-age=100000; includeSubDomains"))
        #expect(try isChanged("max-age=10"))
        #expect(try isChanged("max-age=0"))
        let empty = HSTSTable()
        #expect(try !empty.isChanged(by: #require(StrictTransportSecurity("max-age=0")), from: "a.test", now: Self.now))
        #expect(try !empty.isChanged(by: #require(StrictTransportSecurity("max-age=9")), from: "1.2.3.4", now: Self.now))
    }

    @Test(
        "URLs of known hosts (section 8.3)",
        arguments: [
            ("http://a.test", "https://a.test"), ("http://a.test/x?y#z", "https://a.test/x?y#z"), ("HTTP://A.test/", "https://A.test/"),
            ("http://a.test:80/", "https://a.test:443/"), ("http://a.test:080/", "https://a.test:443/"),
            ("http://a.test:8080/x:80", "https://a.test:8080/x:80"),
            ("http://a.test:443/", "https://a.test:443/"), ("http://a.test:/", "https://a.test:/"),
            ("http://user:80@a.test/", "https://user:80@a.test/"),
            ("http://user:pw@a.test:80", "https://user:pw@a.test:443"), ("http://a.test?x=http://b:80/", "https://a.test?x=http://b:80/"),
            ("ws://a.test/x", "wss://a.test/x"), ("ws://a.test:80/x", "wss://a.test:443/x"), ("http://sub.b.test/", "https://sub.b.test/"),
            ("https://a.test/", nil), ("wss://a.test/", nil), ("ftp://a.test/", nil), ("http://other.test/", nil),
            ("http://sub.a.test/", nil),
            ("http://1.2.3.4/", nil), ("http://[::1]:80/", nil), ("http:///x", nil), ("a.test", nil), ("", nil),
        ] as [(String, String?)])
    func upgrades(_ url: String, _ expected: String?) throws {
        let table = try table(("a.test", "max-age=100"), ("b.test", "max-age=100; includeSubDomains"))
        #expect(table.upgraded(url, now: Self.now) == expected)
        #expect(HSTSTable().upgraded(url, now: Self.now) == nil)
    }

    @Test("of too many hosts those that expire first are forgotten") func limit() {
        var table = HSTSTable()
        for number in 0...HSTSTable.limit {
            table.set(HSTSHost(host: "h\(number).test", expirationDate: Self.now.addingTimeInterval(Double(1 + number))), now: Self.now)
        }
        #expect(table.records.count == HSTSTable.limit)
        #expect(table.records["h0.test"] == nil && table.records["h\(HSTSTable.limit).test"] != nil)
    }

    // MARK: Files

    @Test("the file has curl's format, and what is not understood stays in it") func file() throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("hsts")
        let lines = [
            "# Your HSTS cache.", "a.test \"20991231 23:59:59\"", ".b.test \"unlimited\"", "broken \"2099\"",
            "c.test \"20990231 00:00:00\"",
        ]
        try directory.write(Data(lines.joined(separator: "\n").utf8), to: "hsts")
        let store = HSTSStore.file(file)
        #expect(try store.hosts().map(\.host) == ["a.test", "b.test"])
        #expect(try store.isKnown("x.b.test") && !store.isKnown("x.a.test"))
        try store.set(HSTSHost(host: "D.test.", includesSubdomains: true, expirationDate: Date(timeIntervalSince1970: 4_000_000_000)))
        try store.set(HSTSHost(host: "1.2.3.4", expirationDate: .distantFuture))
        #expect(try store.remove("a.test"))
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        for line in [".b.test \"unlimited\"", ".d.test \"20961002 07:06:40\"", lines[0], lines[3], lines[4]] {
            #expect(text.contains(line + "\n"))
        }
        #expect(!text.contains("a.test"))
        #expect(try HSTSStore.file(file).hosts() == store.hosts())
        #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
        try store.removeAll()
        #expect(try HSTSStore.file(file).hosts().isEmpty)
    }

    @Test("a file of another kind is left alone, and hosts count in memory") func otherFile() throws {
        let directory = try TemporaryDirectory()
        try directory.write(Data("{}\n".utf8), to: "hsts")
        let store = HSTSStore.file(directory.file("hsts"))
        let entry = HSTSHost(host: "a.test", expirationDate: .distantFuture)
        #expect(throws: CookieStoreError.unknownFormat(path: directory.file("hsts").path, line: 1)) { try store.set(entry) }
        #expect(store.knows("a.test") && store.lastError != nil)
        #expect(try Data(contentsOf: directory.file("hsts")) == Data("{}\n".utf8))
    }

    @Test("a store in memory answers for URLs") func memory() throws {
        let store = HSTSStore.memory
        try store.set(HSTSHost(host: "a.test", expirationDate: .distantFuture))
        #expect(try store.upgradedURL(of: "http://a.test/x")?.absoluteString == "https://a.test/x")
        #expect(try store.upgradedURL(of: "https://a.test/x") == nil)
        #expect(try !store.remove("b.test"))
        var dumped = ""
        dump(store, to: &dumped)
        #expect(!dumped.contains("a.test"))
    }
}
