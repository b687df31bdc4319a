// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// `curlew dl --recursive`: the links of listings, and what is made of them.
@Suite(.timeLimit(.minutes(2))) struct DownloadTreeTests {
    // The forms of Apache, nginx and Python.
    private static let pages: [(page: String, links: [String])] = [
        (
            """
            <table><tr><th><a href="?C=N;O=D">Name</a></th></tr><tr><td><a href="/pub/">Parent Directory</a></td></tr>
            <tr><td><a href="a%20b.iso">a b.iso</a></td><td><A class=x HREF='sub/'>sub/</A></td></tr></table>
            """, ["?C=N;O=D", "/pub/", "a%20b.iso", "sub/"]
        ),
        ("<pre><a href=\"../\">../</a>\n<a href=\"x&amp;y\">x&amp;y</a> 1-Jan 5\n</pre>", ["../", "x&y"]),
        ("<li><a href=\"a%26b%22.txt\">a&amp;b</a></li><li><a href=plain>x</a><a href=/b/c>y</a>", ["a%26b%22.txt", "plain", "/b/c"]),
        ("<!-- <a href=\"no\"> --><abbr href=no><link href=no><a name=x><a\nid = y\thref = \" yes \" >", ["yes"]),
        ("<a href=\"&#x41;&#66;&unknown;&lt\">", ["AB&unknown;&lt"]), ("<a href=\"unfinished", ["unfinished"]), ("<a href", [""]),
        ("<a =\"x\" href=y><a/href=z><", ["y", "z"]), ("<!-- <a href=no>", []), ("", []),
    ]

    @Test("the links of listings are found", arguments: pages.indices) func links(_ index: Int) {
        #expect(ListingLinks.links(of: Self.pages[index].page) == Self.pages[index].links)
    }

    private static func tree(_ links: [String], depth: Int = 5, start: String = "http://h.test/pub/") throws -> (DownloadTree, [String]) {
        var tree = try #require(DownloadTree(start: start, depth: depth))
        let folders = try tree.take(links.map { "<a href=\"\($0)\">" }.joined(), at: start)
        return (tree, folders.map(\.path))
    }

    @Test("links below the start become files and folders of safe names") func entries() throws {
        let (tree, folders) = try Self.tree([
            "a", "./a", "http://h.test:80/pub/a#part", "b/", "c/d", "/pub/e%20f", "HTTP://H.TEST/pub/g", "#top", "./", "/pub/", "-rf", ".x",
            "%C3%A9",
        ])
        #expect(tree.files.map(\.path) == ["a", "c/d", "e f", "g", "rf", "x", "é"] && folders == ["b"])
        #expect(tree.refused == [:] && tree.report == nil)
        #expect(tree.files.map(\.url).last == "http://h.test/pub/%C3%A9")
    }

    @Test("names that are only canonically equivalent are different files, and no other start") func bytes() throws {
        let (tree, _) = try Self.tree(["%C3%A9", "e%CC%81", "/e%CC%81/a", "/%C3%A9/a"], start: "http://h.test/%C3%A9/")
        #expect(tree.files.map(\.url) == ["%C3%A9", "e%CC%81", "a"].map { "http://h.test/%C3%A9/\($0)" })
        #expect(tree.refused == [.above: 1])
    }

    @Test(
        "other links are counted with the reason",
        arguments: [
            ("http://other.test/pub/a", .elsewhere), ("https://h.test/pub/a", .elsewhere), ("http://h.test:81/pub/a", .elsewhere),
            ("//other.test/pub/a", .elsewhere), ("mailto:a@h.test", .elsewhere), ("http://u:p@h.test/pub/a", .elsewhere),
            ("../", .above), ("/", .above), ("/public/a", .above), ("../../a", .above), ("/pub", .above), ("?C=N", .query), ("a?b", .query),
            ("%2e%2e/a", .misleading), ("a%2fb", .misleading), ("a//b", .misleading), ("a%00", .misleading), ("%FF", .misleading),
            ("a/%2e%2e/%2e%2e/b", .misleading),
        ] as [(String, DownloadTree.Refusal)])
    func refusals(_ link: String, _ reason: DownloadTree.Refusal) throws {
        let (tree, folders) = try Self.tree([link])
        #expect(tree.files.isEmpty && folders == [] && tree.refused == [reason: 1], "\(tree.files.map(\.path))")
    }

    @Test("a start whose path is no text has no folder below it") func start() {
        #expect(DownloadTree(start: "http://h.test/%FF/", depth: 5) == nil)
        #expect(DownloadTree(start: "http://h.test", depth: 5) != nil)
    }

    @Test("names are taken once, depth and number are bounded") func bounds() throws {
        let (tree, folders) = try Self.tree(["a", "a/", "-a", "b/c/", "b/d"], depth: 2)
        #expect(tree.files.map(\.path) == ["a", "b/d"] && folders == [] && tree.refused == [.taken: 2, .deep: 1])
        #expect(tree.report == "3 links not followed: 1 deeper than --depth 2, 2 with the name of another one")
        let many = (0...DownloadTree.mostEntries).map { "f\($0)" }
        let failure = #expect(throws: DownloadTree.Failure.self) { try Self.tree(many) }
        #expect(failure?.outcome.status == .transfer)
        #expect(try Self.tree(Array(many.dropLast())).0.files.count == DownloadTree.mostEntries)
    }

    private static func html(_ links: String...) -> ServerResponse {
        .ok(links.map { "<a href=\"\($0)\">x</a>\n" }.joined(), type: "text/html; charset=utf-8")
    }

    @Test("the files below a folder are loaded, and nothing else is asked for") func tree() async throws {
        let server = try LoopbackServer { request, _ in
            switch request.path {
            case "/pub/": Self.html("../", "a.txt", "sub/", "?C=N;O=D", "https://other.test/x", "loop/", "/secret")
            case "/pub/sub/": Self.html("../", "../a.txt", "deep/", "b%20c.txt")
            case "/pub/sub/deep/": Self.html("d")
            case "/pub/loop/": ServerResponse(status: 302, headers: [ServerField("Location", "/pub/")])
            case "/pub/a.txt", "/pub/sub/b c.txt", "/pub/sub/deep/d": .ok(request.path)
            default: .status(404)
            }
        }
        let folder = try TemporaryDirectory()
        let words = ["dl", "-r", "-d", folder.url.path, server.url("/pub/")]
        let result = try await ToolRun(words).result()
        #expect(result.status == 0, "\(result.error)")
        for (name, text) in [("a.txt", "/pub/a.txt"), ("sub/b c.txt", "/pub/sub/b c.txt"), ("sub/deep/d", "/pub/sub/deep/d")] {
            #expect(try String(contentsOf: folder.file(name), encoding: .utf8) == text)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted() == ["a.txt", "sub"])
        #expect(
            result.error.hasSuffix("\n8 links not followed: 2 to another origin, 4 not below the start, 2 with a query\n"),
            "\(result.error)")
        #expect(!server.requests.contains { $0.path == "/secret" || $0.path == "/" })
        let bounded = try TemporaryDirectory()
        let shallow = try await ToolRun(["dl", "-r", "--depth", "1", "-d", bounded.url.path, server.url("/pub/")]).result()
        #expect(shallow.status == 0 && shallow.error.contains("2 deeper than --depth 1"), "\(shallow.error)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: bounded.url.path) == ["a.txt"])
    }

    @Test("what curlew serve has is loaded, and what is there is not loaded again") func served() async throws {
        let root = try TemporaryDirectory()
        try FileManager.default.createDirectory(at: root.file("a & b/c"), withIntermediateDirectories: true)
        let body = GeneratedBody(seed: 8).data(count: 300_000)
        try body.write(to: root.file("a & b/c/big"))
        try root.write(Data("x".utf8), to: "ü%.txt")
        let files = try #require(FileServer(folder: root.url.path, takesFiles: false, replacesFiles: false))
        let server = try LoopbackServer { try files.respond($0, $1) }
        let folder = try TemporaryDirectory()
        for _ in 1...2 {
            let result = try await ToolRun(["dl", "-r", "-d", folder.url.path, server.url("/")]).result()
            #expect(result.status == 0, "\(result.error)")
        }
        #expect(try Data(contentsOf: folder.file("a & b/c/big")) == body)
        #expect(try Data(contentsOf: folder.file("ü%.txt")) == Data("x".utf8))
        let again = try await ToolRun(["dl", "-r", "-d", folder.url.path, server.url("/")]).result()
        #expect(again.error.contains("already complete") && !again.error.contains("failed"), "\(again.error)")
    }

    @Test("no other origin gets a request, and folders that can't be listed fail") func failures() async throws {
        let other = try LoopbackServer { _, _ in Self.html("x") }
        let elsewhere = other.url("/")
        let server = try LoopbackServer { request, _ in
            switch request.path {
            case "/": Self.html("moved/", "gone/", "json/", "huge/", "file", "away")
            case "/moved/", "/start/", "/away": ServerResponse(status: 302, headers: [ServerField("Location", elsewhere)])
            case "/json/": .ok("{}", type: "application/json")
            case "/huge/":
                ServerResponse(
                    status: 200, headers: [ServerField("Content-Type", "text/html")],
                    body: .data(Data(count: DownloadTree.largestListing + 1)))
            case "/file": .ok("x")
            default: .status(404)
            }
        }
        let folder = try TemporaryDirectory()
        let words = ["dl", "-r", "--retry", "0", "-d", folder.url.path]
        let result = try await ToolRun(words + [server.url("/")]).result()
        for line in [
            "moved/: failed: \(server.url("/moved/")): redirects to \(elsewhere), which is of another origin",
            "gone/: failed: \(server.url("/gone/")): the server responded with 404",
            "json/: failed: \(server.url("/json/")): no listing of a folder, but \"application/json\"", "huge/: failed: ",
        ] {
            #expect(result.error.contains(line), "\(line) in \(result.error)")
        }
        #expect(result.status == 3 && FileManager.default.fileExists(atPath: folder.file("file").path))
        let start = try await ToolRun(words + [server.url("/start/")]).result()
        #expect(start.status == 3 && start.error.contains("redirects to \(elsewhere)"))
        #expect(other.requestCount == 0)
        #expect(try await ToolRun(words + [server.url("/json/")]).result().status == 9)
    }

    @Test(
        "what has no sense with --recursive is refused",
        arguments: [
            (["-r", "-o", "x", "http://h/"], "--recursive and --output can't be combined"),
            (["-r", "-J", "http://h/"], "--recursive and --content-disposition can't be combined"),
            (["-r", "http://h/", "http://i/"], "--recursive takes one URL, not 2"),
            (["-r", "http://u:p@h/"], "--recursive takes the user by --user, not in the URL"),
            (["--depth", "2", "http://h/"], "--depth requires --recursive"),
            (["-r", "--depth", "0", "http://h/"], "--depth needs a number from 1 to 64"),
        ] as [([String], String)])
    func usage(_ words: [String], _ message: String) async throws {
        let result = try await ToolRun(["dl"] + words).result()
        #expect(result.status == 2 && result.error == "curlew: \(message); see curlew --help\n", "\(result.error)")
    }
}
