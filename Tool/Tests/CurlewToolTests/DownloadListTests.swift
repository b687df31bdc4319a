// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// `curlew dl` with lists, digests and what a connection needs.
@Suite(.timeLimit(.minutes(2))) struct DownloadListTests {
    private static let hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    private static var digest: Data? { DownloadList.digest(hello) }

    private static func entries(_ text: String) throws -> [DownloadList.Entry] {
        let folder = try TemporaryDirectory()
        return try DownloadList.entries(of: folder.write(Data(text.utf8), to: "list").path).map { entry in
            var entry = entry
            entry.place = nil
            return entry
        }
    }

    @Test("a list has mirrors, names and digests") func lists() throws {
        let text = "# files\nhttp://a/x http://b/x\tc\r\n  out=sub/y\n\tchecksum=sha-256=\(Self.hello)\n\nhttp://d/z\n"
        #expect(
            try Self.entries(text) == [
                DownloadList.Entry(urls: ["http://a/x", "http://b/x", "c"], name: "sub/y", sha256: Self.digest),
                DownloadList.Entry(urls: ["http://d/z"]),
            ])
    }

    @Test("a Metalink has files with their digests, and URLs by priority") func metalinks() throws {
        let text = """
            \u{FEFF}<?xml version="1.0" encoding="UTF-8"?>
            <!-- a comment > -->
            <metalink xmlns="urn:ietf:params:xml:ns:metalink">
              <published>2026-01-01T00:00:00Z</published>
              <file name='a &amp; b.iso'>
                <size>5</size>
                <identity>x</identity>
                <hash type="md5">00</hash>
                <hash type="sha-256">\(Self.hello)</hash>
                <pieces length="10" type="sha-256"><hash>00</hash></pieces>
                <url priority="9">http://far/a</url>
                <url priority="1" location="de">http://near/a?x=1&amp;y=&#x32;</url>
                <url>ftp://old/a</url>
                <metaurl mediatype="torrent">http://t/</metaurl>
              </file>
              <m:file name="c"><url><![CDATA[https://h/c]]></url><empty/></m:file>
            </metalink>
            """
        #expect(
            try Self.entries(text) == [
                DownloadList.Entry(urls: ["http://near/a?x=1&y=2", "http://far/a"], name: "a & b.iso", sha256: Self.digest),
                DownloadList.Entry(urls: ["https://h/c"], name: "c"),
            ])
    }

    @Test(
        "what is wrong with a list is named",
        arguments: [
            (" out=x\nhttp://a/", "line 1 of LIST has an option, and there is no URL before it"),
            ("http://a/\n out=../x", "line 2 of LIST has the file name \"../x\", which leads elsewhere or is hidden"),
            ("http://a/\n out=/etc/x", "line 2 of LIST has the file name \"/etc/x\", which leads elsewhere or is hidden"),
            ("http://a/\n out=a/.ssh", "line 2 of LIST has the file name \"a/.ssh\", which leads elsewhere or is hidden"),
            ("http://a/\n dir=x", "line 2 of LIST has an option that is neither out= nor checksum="),
            ("http://a/\n checksum=md5=00", "line 2 of LIST needs checksum=sha-256= with 64 hexadecimal digits"),
            ("<metalink></metalink>", "the Metalink LIST can't be read: it has no file"),
            ("<html>", "the Metalink LIST can't be read: <html> is no element of a Metalink"),
            ("<!DOCTYPE x [<!ENTITY a \"b\">]>", "the Metalink LIST can't be read: declarations of types are not supported"),
            ("<metalink><file name=\"../x\">", "the Metalink LIST has the file name \"../x\", which leads elsewhere or is hidden"),
            ("<metalink><file name=\"x\">", "the Metalink LIST can't be read: <file> has no end"),
            ("<metalink><file name=\"x\"></metalink>", "the Metalink LIST can't be read: </metalink> does not close what is open"),
            (
                "<metalink><file name=\"x\"><url>ftp://a</url></file></metalink>",
                "the Metalink LIST can't be read: \"x\" has no URL of http or https"
            ),
            ("<metalink><a b=\"&c;\"/></metalink>", "the Metalink LIST can't be read: &c; is not known"),
            (String(repeating: "<metalink>", count: 40), "the Metalink LIST can't be read: <metalink> is no element of a Metalink"),
        ] as [(String, String)])
    func wrongLists(_ text: String, _ message: String) throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(Data(text.utf8), to: "list").path
        let error = #expect(throws: UsageError.self) { try DownloadList.entries(of: file) }
        #expect(error?.message == message.replacingOccurrences(of: "LIST", with: file.quoted))
    }

    @Test("files of digests are read in the forms of sha256sum and BSD") func digests() throws {
        let folder = try TemporaryDirectory()
        let text = "# c\n\(Self.hello)  a b\n\(Self.hello.uppercased()) *./c\nSHA256 (d (e)) = \(Self.hello)\n\\\(Self.hello)  f\\\\ng\n"
        let file = try folder.write(Data(text.utf8), to: "sums").path
        let found = try DownloadList.digests(of: file)
        #expect(Set(found.keys) == ["a b", "c", "d (e)", "f\\ng"] && found.values.allSatisfy { $0 == Self.digest })
        try folder.write(Data("\(Self.hello) a\n\(String(repeating: "0", count: 64)) ./a\n".utf8), to: "sums")
        #expect(throws: UsageError("line 2 of \(file.quoted) has another digest of \"a\" than an earlier one")) {
            try DownloadList.digests(of: file)
        }
        try folder.write(Data("abc  x\n".utf8), to: "sums")
        #expect(throws: UsageError("line 1 of \(file.quoted) has no SHA-256 digest and name")) { try DownloadList.digests(of: file) }
    }

    @Test("downloads are named and verified by their list, or by a file of digests") func downloads() async throws {
        let server = try LoopbackServer { request, _ in request.path == "/bad" ? .ok("other") : .ok("hello") }
        let folder = try TemporaryDirectory()
        let list = try folder.write(
            Data("\(server.url("/x"))\n out=sub/y\n checksum=sha-256=\(Self.hello)\n\(server.url("/z"))\n".utf8), to: "list"
        ).path
        let result = try await ToolRun.run("dl", "-i", list, "-d", folder.file("to").path)
        #expect(result.status == 0, "\(result.error)")
        #expect(result.error.contains("sub/y: 5 B") && result.error.contains("sha-256 verified"))
        #expect(try Data(contentsOf: folder.file("to/sub/y")) == Data("hello".utf8))
        #expect(try Data(contentsOf: folder.file("to/z")) == Data("hello".utf8))
        let sums = try folder.write(Data("\(Self.hello)  a\n\(Self.hello)  bad\n".utf8), to: "sums").path
        let good = try await ToolRun.run("dl", "--checksum-file", sums, "-d", folder.file("to").path, server.url("/a"))
        #expect(good.status == 0 && good.error.contains("verified"), "\(good.error)")
        let bad = try await ToolRun.run("dl", "--checksum-file", sums, "-d", folder.file("to").path, "--retry", "0", server.url("/bad"))
        #expect(bad.status == 9 && !FileManager.default.fileExists(atPath: folder.file("to/bad").path))
        // One digest alone is that of every file.
        let bare = try folder.write(Data("\(Self.hello)\n".utf8), to: "bare").path
        let alone = try await ToolRun.run("dl", "--checksum-file", bare, "-d", folder.file("to").path, server.url("/b"))
        #expect(alone.status == 0 && alone.error.contains("verified"), "\(alone.error)")
        let count = server.requestCount
        let unknown = try await ToolRun.run("dl", "--checksum-file", sums, server.url("/c"))
        #expect(unknown.status == 2 && unknown.error.hasPrefix("curlew: \(sums.quoted) has no digest of \"c\""))
        #expect(server.requestCount == count)
    }

    @Test("a list of several origins gets no secrets, unless that is asked for") func secrets() async throws {
        let servers = try (0..<2).map { _ in try LoopbackServer { _, _ in .ok("x") } }
        let folder = try TemporaryDirectory()
        let list = try folder.write(Data("\(servers[0].url("/a"))\n\(servers[1].url("/b"))\n".utf8), to: "list").path
        let words = ["dl", "-i", list, "-d", folder.file("to").path]
        for (option, name) in [
            (["-u", "u:p"], "--user"), (["--token", "t"], "--token"), (["--header", "X-Api-Key:k"], "--header"),
            (["--header", "Cookie: a=b"], "--header"),
        ] {
            let result = try await ToolRun(words + option).result()
            #expect(result.status == 2 && result.error.hasPrefix("curlew: the list has 2 origins, and \(name) would be sent to each: "))
        }
        let token = try await ToolRun(words, environment: ["CURLEW_TOKEN": "t"]).result()
        #expect(token.status == 2 && token.error.contains("CURLEW_TOKEN"))
        #expect(servers.allSatisfy { $0.requestCount == 0 })
        #expect(try await ToolRun(words + ["--header", "X-A:1"]).result().status == 0)
        #expect(try await ToolRun(words + ["-u", "u:p", "--location-trusted", "--force"]).result().status == 0)
        #expect(servers.allSatisfy { $0.requests.last?.header("Authorization") == "Basic dTpw" })
        let one = try folder.write(Data("\(servers[0].url("/c"))\n\(servers[0].url("/d"))\n".utf8), to: "one").path
        #expect(try await ToolRun(["dl", "-i", one, "-d", folder.file("to").path, "-u", "u:p"]).result().status == 0)
    }

    @Test("sessions, netrc and --resolve are those of other requests") func options() async throws {
        let server = try LoopbackServer { request, _ in
            ServerResponse(status: 200, headers: [ServerField("Set-Cookie", "k=v; Path=/")], body: .data(Data("x".utf8)))
        }
        let folder = try TemporaryDirectory()
        try folder.write(Data("machine name.test login u password p\n".utf8), to: "netrc")
        let environment = ["XDG_CONFIG_HOME": folder.url.path, "NETRC": folder.file("netrc").path]
        let base = "http://name.test:\(server.port)"
        let words = ["dl", "--session", "s", "--netrc", "--resolve", "name.test:\(server.port):127.0.0.1", "-d", folder.file("to").path]
        let first = try await ToolRun(words + ["--header", "X-A:1", "\(base)/a"], environment: environment).result()
        #expect(first.status == 0, "\(first.error)")
        #expect(
            server.requests.allSatisfy {
                $0.header("Authorization") == "Basic dTpw" && $0.header("X-A") == "1" && $0.header("Cookie") == nil
            })
        let count = server.requestCount
        #expect(try await ToolRun(words + ["\(base)/b"], environment: environment).result().status == 0)
        let second = try #require(server.requests.dropFirst(count).first)
        #expect(second.header("Cookie") == "k=v" && second.header("X-A") == "1")
    }
}
