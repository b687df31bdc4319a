// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewCookies

@Suite(.timeLimit(.minutes(1))) struct CookieStoreTests {
    private let directory: TemporaryDirectory
    private let file: URL

    init() throws {
        directory = try TemporaryDirectory()
        file = directory.file("cookies.txt")
    }

    private var later: Date { Date(timeIntervalSince1970: (Date().timeIntervalSince1970 + 1e6).rounded()) }

    private func cookie(_ name: String, _ value: String = "1", domain: String = "example.org") -> Cookie {
        Cookie(name: name, value: value, domain: domain, expirationDate: later)
    }

    private var text: String { get throws { String(decoding: try Data(contentsOf: file), as: UTF8.self) } }

    // MARK: In memory

    @Test("cookies are set, listed, selected and removed") func editing() throws {
        let store = CookieStore.memory
        try store.set(cookie("a"))
        try store.set(Cookie(name: "b", value: "2", domain: "Example.ORG", isHostOnly: false, path: "/x"))
        #expect(try store.cookies().map(\.name) == ["a", "b"])
        #expect(try store.cookies(for: "http://www.example.org/x").map(\.name) == ["b"])
        #expect(try store.cookies(for: "http://example.org/x").map(\.name) == ["b", "a"])
        #expect(try store.cookies(for: "data:x").isEmpty)
        try store.removeSessionCookies()
        #expect(try store.cookies().map(\.name) == ["a"])
        #expect(try store.remove(cookie("a").id))
        #expect(try !store.remove(cookie("a").id))
        for name in ["c", "d", "e"] { try store.set(cookie(name)) }
        #expect(try store.remove { $0.name < "e" } == 2)
        try store.removeAll()
        #expect(try store.cookies().isEmpty)
        #expect(store.lastError == nil && !store.hasFile)
    }

    @Test(
        "a cookie that no host could set is refused, with the reason",
        arguments: [
            Cookie(name: "", value: "", domain: "example.org"), Cookie(name: "a=b", value: "1", domain: "example.org"),
            Cookie(name: "a", value: "1;2", domain: "example.org"), Cookie(name: "a", value: "1\r\nx: y", domain: "example.org"),
            Cookie(name: "a", value: "1", domain: ""), Cookie(name: "a", value: "1", domain: ".example.org"),
            Cookie(name: "a", value: "1", domain: "exa mple.org"),
            Cookie(name: "a", value: "1", domain: "example.org", path: "x"), Cookie(name: " a", value: "1", domain: "example.org"),
            Cookie(name: "a", value: "1", domain: "org", isHostOnly: false),
            Cookie(name: "a", value: "1", domain: "1.2.3.4", isHostOnly: false),
            Cookie(name: "__Secure-a", value: "1", domain: "example.org"),
            Cookie(name: "__Host-a", value: "1", domain: "example.org", path: "/a", isSecure: true),
            Cookie(name: "", value: "__Host-a", domain: "example.org", isSecure: true),

            Cookie(name: "a", value: String(repeating: "x", count: 4096), domain: "example.org"),
        ])
    func invalid(_ cookie: Cookie) throws {
        let store = CookieStore.memory
        let error = #expect(throws: CookieStoreError.self) { try store.set(cookie) }
        guard case .invalidCookie(cookie.name, let reason)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(!reason.isEmpty && error?.errorDescription?.contains(reason) == true)
        #expect(try store.cookies().isEmpty)
    }

    @Test("descriptions and reflection do not show values") func redaction() throws {
        let cookie = cookie("name", "secret")
        var dumped = ""
        dump(cookie, to: &dumped)
        #expect(!"\(cookie)\(dumped)\(String(reflecting: cookie))".contains("secret"))
        let store = CookieStore.memory
        try store.set(cookie)
        dump(store, to: &dumped)
        #expect(!dumped.contains("secret"))
    }

    // MARK: In a file

    @Test("persistent cookies are in the file, with access for the owner only, and session cookies in memory") func inFile() throws {
        let store = CookieStore.file(file)
        #expect(try store.cookies().isEmpty)
        try store.set(cookie("a"))
        try store.set(Cookie(name: "session", value: "1", domain: "example.org"))
        #expect(try store.cookies().map(\.name) == ["a", "session"])
        #expect(try CookieStore.file(file).cookies().map(\.name) == ["a"])
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(try contents(of: directory) == [".cookies.txt.lock", "cookies.txt"])
        #expect(try text.hasPrefix("# Netscape HTTP Cookie File\n"))
    }

    @Test("session cookies are kept if that is wanted") func sessionCookies() throws {
        try CookieStore.file(file, keepsSessionCookies: true).set(Cookie(name: "session", value: "1", domain: "example.org"))
        let read = try CookieStore.file(file).cookies()
        #expect(read.map(\.name) == ["session"] && read.allSatisfy { !$0.isPersistent })
    }

    @Test("everything that a cookie has is the same after reading") func roundTrip() throws {
        let store = CookieStore.file(file)
        try store.set(cookie("plain"))
        try store.set(
            Cookie(
                name: "all", value: "\"a b\"=é\t%09", domain: "example.org", isHostOnly: false, path: "/x\ty%", isSecure: true,
                isHTTPOnly: true,
                sameSite: .lax, expirationDate: later))
        // Characters that combine with the one before them, which is escaped.
        try store.set(Cookie(name: "a\t\u{36F}b", value: "%09\u{301}%25\u{301}\t\u{36F}%", domain: "example.org", expirationDate: later))
        try store.set(Cookie(name: "", value: "=nameless", domain: "example.org", expirationDate: later))
        try store.set(Cookie(name: "empty", value: "", domain: "::1", expirationDate: later))
        let read = try CookieStore.file(file).cookies()
        #expect(try read == store.cookies())
        #expect(read.count == 5)
    }

    @Test("a store sees what another one of the file does, without being asked to") func sharing() throws {
        let (first, second) = (CookieStore.file(file), CookieStore.file(file))
        try first.set(cookie("a"))
        #expect(try second.cookies().map(\.name) == ["a"])
        try second.set(cookie("b"))
        try first.set(cookie("c"))
        try second.remove(cookie("a").id)
        #expect(try first.cookies().map(\.name) == ["b", "c"])
        try second.set(cookie("c", "changed"))
        #expect(try first.cookies(for: "http://example.org/").map(\.value) == ["1", "changed"])
        try FileManager.default.removeItem(at: file)
        #expect(try first.cookies().isEmpty)
    }

    @Test("missing directories are created, and a link to the file stays one") func places() throws {
        let nested = directory.url.appendingPathComponent("a/b/cookies.txt")
        try CookieStore.file(nested).set(cookie("a"))
        try FileManager.default.createSymbolicLink(at: file, withDestinationURL: nested)
        try CookieStore.file(file).set(cookie("b"))
        #expect(try CookieStore.file(nested).cookies().map(\.name) == ["a", "b"])
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: file.path) == nested.path)
    }

    @Test("expired cookies are dropped from the file") func expiry() throws {
        let now = Lock(Date(timeIntervalSince1970: 1_000_000_000))
        let store = CookieStore(place: SharedFile(file), keepsSessionCookies: false, limits: .init()) { now.withLock { $0 } }
        for (name, seconds) in [("a", 10.0), ("b", 1000.0)] {
            try store.set(Cookie(name: name, value: "1", domain: "example.org", expirationDate: now.withLock { $0 + seconds }))
        }
        now.withLock { $0 += 100 }
        #expect(try store.cookies().map(\.name) == ["b"])
        try store.set(Cookie(name: "c", value: "1", domain: "example.org", expirationDate: now.withLock { $0 + 10 }))
        #expect(try !text.contains("\ta\t1"))
        #expect(try text.contains("\tb\t1"))
    }

    // MARK: Damaged files

    @Test("lines that are not understood stay in the file, and the others count") func damagedLines() throws {
        let lines = ["# Netscape HTTP Cookie File", "# a comment", "garbage", "example.org\tFALSE\t/\tFALSE\t0\tsession\t1", "x\ty"]
        try directory.write(Data((lines.joined(separator: "\r\n") + "\n\u{FF}").utf8) + Data([0xFF, 0x00]), to: "cookies.txt")
        let store = CookieStore.file(file)
        #expect(try store.cookies().map(\.name) == ["session"])
        try store.set(cookie("a"))
        #expect(store.lastError == nil)
        let written = try Data(contentsOf: file)
        for line in ["# a comment\n", "\ngarbage\n", "\nx\ty\n"] { #expect(written.range(of: Data(line.utf8)) != nil) }
        #expect(written.range(of: Data([0xFF, 0x00])) != nil)
        // A session cookie of another program stays, too, until it is removed.
        #expect(try CookieStore.file(file).cookies().map(\.name).sorted() == ["a", "session"])
        try store.removeSessionCookies()
        #expect(try CookieStore.file(file).cookies().map(\.name) == ["a"])
    }

    @Test(
        "a file of another kind is left alone, and the cookies count in memory",
        arguments: ["{\"cookies\": []}", "\u{7F}ELF\0\0", "example.org\tFALSE\t/\tFALSE\t0\ta\t1\nnonsense\n"])
    func otherFile(_ contents: String) throws {
        try directory.write(Data(contents.utf8), to: "cookies.txt")
        let store = CookieStore.file(file)
        let error = #expect(throws: CookieStoreError.self) { try store.set(cookie("a")) }
        #expect(error == .unknownFormat(path: file.path, line: contents.hasPrefix("example") ? 2 : 1))
        #expect(store.lastError as? CookieStoreError == error)
        #expect(store.send(to: try #require(CookieOrigin(try "http://example.org/".asURL())), isCrossSite: false).map(\.name) == ["a"])
        #expect(try text == contents)
        // Once it is out of the way, what could not be written is.
        try FileManager.default.removeItem(at: file)
        try store.synchronize()
        #expect(store.lastError == nil)
        #expect(try CookieStore.file(file).cookies().map(\.name) == ["a"])
    }

    @Test("a file without a header is read if all of its lines are cookies") func headerless() throws {
        try directory.write(Data("example.org\tFALSE\t/\tFALSE\t0\ta\t1\n\n# x\n".utf8), to: "cookies.txt")
        #expect(try CookieStore.file(file).cookies().map(\.name) == ["a"])
    }

    @Test("what is no regular file is an error, and so is a place that can't be written") func unusable() throws {
        #expect(throws: CocoaError.self) { try CookieStore.file(directory.url).cookies() }
        try directory.write(Data(), to: "plain")
        let below = CookieStore.file(directory.url.appendingPathComponent("plain/cookies.txt"))
        #expect(throws: (any Error).self) { try below.set(cookie("a")) }
        #expect(below.lastError != nil)
    }

    @Test("a lock that another process keeps is an error in the end") func locked() throws {
        try CookieStore.file(file).set(cookie("a"))
        let descriptor = open(directory.file(".cookies.txt.lock").path, O_RDWR)
        defer { close(descriptor) }
        #expect(flock(descriptor, LOCK_EX) == 0)
        let store = CookieStore(place: SharedFile(file, lockTimeout: .milliseconds(1)), keepsSessionCookies: false, limits: .init())
        #expect(throws: CookieStoreError.locked(path: file.path)) { try store.set(cookie("b")) }
        // Readers don't wait.
        #expect(try store.cookies().map(\.name) == ["a", "b"])
        #expect(flock(descriptor, LOCK_UN) == 0)
        try store.synchronize()
        #expect(try CookieStore.file(file).cookies().map(\.name) == ["a", "b"])
    }

    // MARK: Netscape's format

    @Test(
        "lines of cookies.txt",
        arguments: [
            ("example.org\tFALSE\t/\tFALSE\t0\ta\t1", "a=1 example.org/ host session"),
            (".example.org\tTRUE\t/x\tTRUE\t4102444800\ta\t1", "a=1 example.org/x domain secure 4102444800"),
            ("#HttpOnly_example.org\tFALSE\t/\tFALSE\t0\ta\t1", "a=1 example.org/ host session http-only"),
            ("example.org\tTRUE\t/\tfalse\t0\ta\t1\r", "a=1 example.org/ domain session"),
            ("example.org\tFALSE\t/\tFALSE\t0\ta", "a= example.org/ host session"),
            ("example.org\tFALSE\t/\tFALSE\t4102444800.25\ta\tb\tc", "a=b\tc example.org/ host 4102444801"),
            ("example.org\tFALSE\t/\tFALSE\t0\t\tvalue", "=value example.org/ host session"),
            ("EXAMPLE.org\tFALSE\t/\tFALSE\t0\ta\t", "a= example.org/ host session"),
            ("example.org\tFALSE\t/\tFALSE\t99999999999999999999\ta\t1", "a=1 example.org/ host 253402300799"),
            ("org\tTRUE\t/\tFALSE\t0\ta\t1", nil),
            ("example.org\tFALSE\t/\tFALSE\t-1\ta\t1", nil), ("example.org\tFALSE\t/\tFALSE\tx\ta\t1", nil),
            ("example.org\tMAYBE\t/\tFALSE\t0\ta\t1", nil),
            ("example.org\tFALSE\t\tFALSE\t0\ta\t1", nil), ("example.org FALSE / FALSE 0 a 1", nil), ("\tFALSE\t/\tFALSE\t0\ta\t1", nil),
            ("example.org\tFALSE\t/\tFALSE\t0\ta;b\t1", nil), ("example.org\tFALSE\t/\tFALSE\t0\t\t", nil),
            ("example.org\tFALSE\t/\tFALSE\t0\t__Host-a\t1", nil),
        ] as [(String, String?)])
    func lines(_ line: String, _ expected: String?) throws {
        let store = CookieStore.memory
        let result = try store.importNetscape("# Netscape HTTP Cookie File\n\(line)\n")
        let found = try store.cookies().map { cookie in
            let words: [String?] = [
                "\(cookie.name)=\(cookie.value)", cookie.domain + cookie.path, cookie.isHostOnly ? "host" : "domain",
                cookie.isSecure ? "secure" : nil,
                cookie.expirationDate.map { "\(Int64($0.timeIntervalSince1970))" } ?? "session", cookie.isHTTPOnly ? "http-only" : nil,
            ]
            return words.compactMap { $0 }.joined(separator: " ")
        }
        #expect(found == [expected].compactMap { $0 })
        #expect(result == CookieStore.Import(count: found.count, invalidLines: expected == nil ? [2] : []))
    }

    @Test("what is exported is imported, in its order") func export() throws {
        let (first, second) = (CookieStore.memory, CookieStore.memory)
        for name in ["z", "a", "m"] { try first.set(cookie(name)) }
        try first.set(Cookie(name: "s", value: "1", domain: "example.org", sameSite: .strict))
        let exported = try first.exportNetscape()
        #expect(try second.importNetscape(exported) == CookieStore.Import(count: 4, invalidLines: []))
        #expect(try second.cookies(for: "http://example.org/").map(\.name) == ["z", "a", "m", "s"])
        #expect(try second.cookies().last?.sameSite == .strict)
        #expect(
            try second.importNetscape("x\n\nexample.org\tFALSE\t/\tFALSE\t1\told\t1\n") == CookieStore.Import(count: 0, invalidLines: [1]))
    }

    @Test("curl reads the file, and the store what curl writes", .enabled(if: ChildProcess.path(of: "curl") != nil))
    func curl() async throws {
        let store = CookieStore.file(file)
        try store.set(cookie("a", "1", domain: "127.0.0.1"))
        try store.set(Cookie(name: "h", value: "2", domain: "127.0.0.1", isHTTPOnly: true, sameSite: .lax, expirationDate: later))
        let server = try LoopbackServer { request, _ in
            ServerResponse(
                status: 200, headers: [ServerField("Set-Cookie", "c=3; Max-Age=1000")],
                body: .data(Data((request.header("Cookie") ?? "").utf8)))
        }
        defer { server.stop() }
        let (status, output) = try await ChildProcess("curl", "-sS", "--noproxy", "*", "-b", file.path, "-c", file.path, server.url("/"))
            .finish()
        #expect(status == 0)
        #expect(output.joined().split(separator: "; ").sorted() == ["a=1", "h=2"])
        #expect(try store.cookies().map(\.name).sorted() == ["a", "c", "h"])
    }
}
