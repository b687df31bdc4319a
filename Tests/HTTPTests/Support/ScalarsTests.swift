// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct ScalarsTests {
    /// Marks that form one Character with a delimiter before them.
    private static let marks = ["\u{301}", "\u{200D}", "\u{FE0F}", "\u{20DD}"]

    @Test("delimiters are found before marks", arguments: marks) func delimiters(_ mark: String) {
        let text = "a/\(mark)b//\(mark)c"
        #expect(text.splitScalars(separator: "/").map { Array($0.utf8) } == ["a", "\(mark)b", "\(mark)c"].map { Array($0.utf8) })
        #expect(text.splitScalars(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).count == 2)
        #expect(text.prefixScalars { $0 != "/" } == "a")
        #expect(text.dropScalars { $0 != "/" }.utf8.count == text.utf8.count - 1)
        #expect(
            text.firstScalarRange(of: "//").map { text.utf8.distance(from: text.startIndex, to: $0.lowerBound) } == text.utf8.count - 3
                - mark.utf8.count)
        #expect(text.replacingScalars("/", with: ":") == "a:\(mark)b::\(mark)c")
        #expect(text.filterScalars { $0 != "/" } == "a\(mark)b\(mark)c")
        #expect(" \(mark) ".trimmingScalars { $0 == " " }.utf8.elementsEqual(mark.utf8))
        #expect("/\(mark)".hasBytePrefix("/") && "/\(mark)".dropFirstScalars().utf8.elementsEqual(mark.utf8))
        #expect("x\(mark)/".hasByteSuffix("/") && "x\(mark)".dropLastScalars().utf8.elementsEqual("x".utf8))
    }

    @Test("canonically equivalent text is other text") func equivalence() {
        #expect("\u{37E}" == ";")
        #expect("a\u{37E}b".splitScalars(separator: ";").count == 1)
        #expect(!"\u{212A}x".hasBytePrefix("K") && !"x\u{1FEF}".hasByteSuffix("`"))
    }

    @Test(
        "a name of a file leads to no other directory",
        arguments: [
            ("a", true), (".a", true), ("...", true), ("a\u{301}", true), ("", false), (".", false), ("..", false), ("/", false),
            ("a/b", false), ("a/\u{301}", false), ("/\u{200D}", false), ("a\0", false),
        ]) func fileName(_ name: String, _ isFileName: Bool)
    {
        #expect(name.isFileName == isFileName)
    }

    @Test("a password after a slash or an at sign with a mark is removed", arguments: marks) func userInfo(_ mark: String) {
        #expect("http://\(mark)user:secret@\(mark)host/a@b".withoutUserInfo.utf8.elementsEqual("http://\(mark)host/a@b".utf8))
        #expect(!"profile:///user:secret@host".withoutUserInfo.contains("secret"))
        #expect(!"http:///user:secret@host".withoutUserInfo.contains("secret"))
        #expect(!"http:/\(mark)/x http://u:secret@host".withoutUserInfo.contains("secret"))
        #expect("http://host/\(mark)a@b".withoutUserInfo.utf8.elementsEqual("http://host/\(mark)a@b".utf8))
    }

    @Test("the form of a secret is found before a mark", arguments: marks) func secrets(_ mark: String) {
        for secret in ["AKIAABCDEFGHIJKLMNOP", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "ghp_0123456789abcdefghij0123"] {
            #expect(!Redaction.current.url("/\(mark)\(secret)\(mark)").containsScalars(of: secret.suffix(6).description))
        }
    }
}
