// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@testable import CurlewEncoding

@Suite struct MIMETypesTests {
    @Test(
        "common extensions have their type, case-insensitively",
        arguments: [
            ("png", "image/png"), ("PNG", "image/png"), ("jpg", "image/jpeg"), ("json", "application/json"), ("txt", "text/plain"),
            ("pdf", "application/pdf"), ("html", "text/html"), ("zip", "application/zip"), ("mp4", "video/mp4"),
        ])
    func common(_ pathExtension: String, _ type: String) {
        #expect(MIMETypes.type(forExtension: pathExtension) == type)
    }

    @Test("unknown extensions are application/octet-stream", arguments: ["", "unknownextension", "a/b", "\0", "png "])
    func unknown(_ pathExtension: String) {
        #expect(MIMETypes.type(forExtension: pathExtension) == "application/octet-stream")
    }

    @Test("the system's file is parsed line by line, and malformed lines are skipped")
    func parsing() {
        let text = """
            # a comment
            text/x-one\tone ONE1
            text/x-two   two\ttwo2  # another
            text/x-none
            not-a-type three
            text/ four
            /x five
            a/b/c six
            text/x\u{7F} seven
            text/x-again one
            \t text/x-indented eight
            text/x-crlf nine\r
            """
        let types = MIMETypes.parse(text)
        #expect(
            types == [
                "one": "text/x-one", "one1": "text/x-one", "two": "text/x-two", "two2": "text/x-two", "eight": "text/x-indented",
                "nine": "text/x-crlf",
            ])
        #expect(MIMETypes.parse("").isEmpty)
    }
}
