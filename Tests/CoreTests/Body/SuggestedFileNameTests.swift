// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import Testing

@Suite struct SuggestedFileNameTests {
    @Test(
        "a name is suggested by a field, which never leads out of the directory",
        arguments: [
            ("attachment; filename=\"a b.txt\"", "a b.txt"),
            ("attachment; filename=plain.txt; size=3", "plain.txt"),
            ("inline; FILENAME=\"x\\\"y\"", "x\"y"),
            ("attachment; filename=\"a.txt\"; filename*=UTF-8''%e2%82%ac%20rates", "€ rates"),
            ("attachment; filename*=iso-8859-1'en'%A3%20rates", "£ rates"),
            ("attachment; filename*=utf-16''x; filename=ok", "ok"),
            ("attachment; filename=\"../../../../tmp/curlew-evil\"; filename*=UTF-8''..%2F..%2Fevil%00.txt", "evil.txt"),
            ("attachment; filename=\"..\\..\\x.exe\"", "x.exe"),
            ("attachment; filename=\"..\"", "last"), ("attachment; filename=\"/\"", "last"), ("attachment; filename=", "last"),
            ("attachment; filename=\".bashrc\"", "bashrc"), ("attachment; filename=~root", "root"),
            ("attachment; filename=\"-rf \"", "rf"), ("attachment; filename*=UTF-8''-.~%20%CC%81--x-~", "x-~"),
            ("attachment; filename=\".file.segments.state\"", "file.segments.state"), ("attachment; filename=-", "last"),
            ("attachment; filename=\"a\u{1B}[31m\u{202E}b\"", "a[31mb"),
            ("attachment", "last"), ("", "last"), (";;;=;filename", "last"), ("attachment; filename=\"open", "open"),
        ]) func field(_ field: String, _ name: String) throws
    {
        let url = try #require(URL(string: "https://example.org/dir/last?x=/y"))
        #expect(SuggestedFileName.name(contentDisposition: field, url: url) == name)
    }

    @Test(
        "a mark after a separator hides no path",
        arguments: [
            "\u{200D}", "\u{301}", "\u{FE0F}", "\u{20DD}", "\u{200D}\u{301}", "\u{301}\u{200D}", "\u{E33}", "\u{FF9E}", "\u{1F3FB}",
        ],
        ["/", "\\"]
    ) func marks(_ mark: String, _ separator: String) throws {
        let path = "x\(separator)\(mark)..\(separator)\(mark)..\(separator)\(mark)outside"
        let encoded = path.utf8.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let url = try #require(URL(string: "https://example.org/dir/last"))
        #expect(SuggestedFileName.name(contentDisposition: "attachment; filename*=UTF-8''\(encoded)", url: url) == "outside")
        let quoted = path.unicodeScalars.map { $0 == "\\" ? "\\\\" : String($0) }.joined()
        #expect(SuggestedFileName.name(contentDisposition: "attachment; filename=\"\(quoted)\"", url: url) == "outside")
        #expect(SuggestedFileName.name(url: try #require(URL(string: "https://example.org/\(encoded)"))) == "outside")
        let absolute = try #require(URL(string: "https://example.org/%2F\(encoded.suffix(encoded.count - 3))"))
        #expect(SuggestedFileName.name(url: absolute) == "outside")
    }

    @Test("no name begins with a scalar that combines with a slash") func combining() throws {
        let url = try #require(URL(string: "https://example.org/dir/last"))
        var count = 0
        for start in stride(from: UInt32(0), to: 0x11_0000, by: 256) {
            let scalars = (start..<start + 256).compactMap(Unicode.Scalar.init)
            // All at once first: one by one takes seconds.
            guard String(String.UnicodeScalarView(scalars.flatMap { ["/", $0] })).count < 2 * scalars.count else { continue }
            for scalar in scalars where "/\(scalar)".count == 1 {
                count += 1
                let name = "\(scalar)-\(scalar)~ \(scalar)a\(scalar)"
                let encoded = name.utf8.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
                let result = SuggestedFileName.name(contentDisposition: "attachment; filename*=UTF-8''\(encoded)", url: url)
                #expect(result.unicodeScalars.first == "a", "\(String(scalar.value, radix: 16))")
            }
        }
        #expect(count > 2000)
    }

    @Test(
        "a mark after a delimiter of the field is no part of it",
        arguments: [
            ("attachment;\u{301} filename=a", "last"), ("attachment; filename=\u{301}a;\u{301}filename=b", "a"),
            ("attachment; filename=\"\u{301}a\"\u{301}; filename*=UTF-8'\u{301}'b", "b"),
            ("attachment; filename=\"a\\\"\u{301}b\"", "a\"\u{301}b"),
        ]) func delimiters(_ field: String, _ name: String) throws
    {
        let url = try #require(URL(string: "https://example.org/dir/last"))
        #expect(SuggestedFileName.name(contentDisposition: field, url: url) == name)
    }

    @Test(
        "without a field the URL's path has the name",
        arguments: [
            ("https://example.org/a/b.iso", "b.iso"), ("https://example.org/", "download"), ("https://example.org", "download"),
            ("https://example.org/a%20b", "a b"), ("https://example.org/x%2F..%2Fy", "y"), ("https://example.org/%2e%2e", "download"),
            ("https://example.org/a/", "a"),
        ]) func path(_ url: String, _ name: String) throws
    {
        #expect(SuggestedFileName.name(url: try #require(URL(string: url))) == name)
    }

    @Test("no file of one destination's downloads is that of another's") func stableNames() {
        let names = ["x", "x.segments", "x.part", "x.segments.part", "x.part.json", "x.segments.state"]
        let files = names.flatMap { name in
            let file = URL(fileURLWithPath: "/d/\(name)")
            let (part, segments) = (PartFile.stableURL(for: file), PartFile.stableURL(for: file, kind: "segments"))
            return [file, part, part.appendingPathExtension("json"), segments, segments.appendingPathExtension("state")].map(\.path)
        }
        #expect(Set(files).count == files.count)
    }

    @Test("a long name is cut at a character") func long() throws {
        let name = SuggestedFileName.name(
            contentDisposition: "a; filename=\"\(String(repeating: "ä", count: 300))\"", url: try #require(URL(string: "https://a/b")))
        #expect(name == String(repeating: "ä", count: 100))
    }
}
