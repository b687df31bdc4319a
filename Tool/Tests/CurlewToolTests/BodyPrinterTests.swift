// SPDX-License-Identifier: Apache-2.0
import Curlew
import Testing

@testable import CurlewTool

@Suite struct BodyPrinterTests {
    /// Returns the output for pieces of a body; `nil` if the body is rejected.
    private func printed(
        _ pieces: [String], type: String? = "application/json", isTerminal: Bool = true, isRaw: Bool = false, isPretty: Bool = false
    ) throws -> String? {
        var output = Data()
        var isShown = true
        try withUnsafeMutablePointer(to: &output) { output in
            var printer = BodyPrinter(isTerminal: isTerminal, isRaw: isRaw, isPretty: isPretty) { output.pointee += $0 }
            for piece in pieces where isShown { isShown = try printer.print(Data(piece.utf8), contentType: type) }
            if isShown { try printer.finish() }
        }
        return isShown ? String(decoding: output, as: UTF8.self) : nil
    }

    @Test("JSON is formatted on a terminal, with a trailing line break") func formatting() throws {
        #expect(try printed(["[1", "0]"]) == "[\n  10\n]\n")
        #expect(try printed(["[1"]) == "[1\n")
        #expect(try printed(["[1]"], type: "application/problem+json; charset=utf-8") == "[\n  1\n]\n")
        #expect(try printed(["[1", "]"], type: "text/plain") == "[\n  1\n]\n")
        #expect(try printed(["\u{FEFF} [1]\n"], type: nil) == "[\n  1\n]\n")
        #expect(try printed(["", "{}"], type: "application/dns-json") == "{}\n")
        #expect(try printed(["[info] start"], type: "text/plain") == "[info] start\n")
        #expect(try printed(["{}\n{", "}\n"], type: "text/plain") == "{}\n{}\n")
        #expect(try printed([]) == "")
    }

    @Test("a long line of JSON may come in small pieces", .timeLimit(.minutes(1))) func longLine() throws {
        var output = Data()
        let count = 100_000
        try withUnsafeMutablePointer(to: &output) { output in
            var printer = BodyPrinter(isTerminal: true, isRaw: false, isPretty: false, style: Style(isOn: true)) { output.pointee += $0 }
            for _ in 0..<count { _ = try printer.print(Data("[".utf8), contentType: "application/x-ndjson") }
            #expect(output.pointee.isEmpty)
            _ = try printer.print(Data("]\n1\n2".utf8), contentType: "application/x-ndjson")
            #expect(output.pointee.count == count + 2 + style("1").count + 1)
            try printer.finish()
        }
        #expect(output.suffix(style("2").count + 1) == Data((style("2") + "\n").utf8))
    }

    /// A number in colour.
    private func style(_ number: String) -> String { "\u{1B}[35m\(number)\u{1B}[0m" }

    @Test("a pipe gets unchanged bytes by default") func pipes() throws {
        #expect(try printed(["[1", "0]"], isTerminal: false) == "[10]")
        #expect(try printed(["[10]"], isTerminal: false, isPretty: true) == "[\n  10\n]\n")
        #expect(try printed(["[10]"], isRaw: true) == "[10]")
        #expect(try printed(["a\0b"], isTerminal: false) == "a\0b")
    }

    @Test("a terminal gets no binary body by default") func binaryBodies() throws {
        #expect(try printed(["a\0b"]) == nil)
        #expect(try printed(["a\0b"], isRaw: true) == "a\0b")
    }

    @Test("control characters are escaped on a terminal, also where pieces part them") func controls() throws {
        let clipboard = "a\u{1B}]52;c;eA==\u{7}b\tc\n"
        #expect(try printed([clipboard], type: "text/plain") == "a\\u{1B}]52;c;eA==\\u{7}b\tc\n")
        #expect(try printed([clipboard], type: "text/plain", isTerminal: false) == clipboard)
        #expect(try printed([clipboard], type: "text/plain", isRaw: true) == clipboard)
        #expect(try printed(["{\"a\":\"\u{9B}2J\"}"]) == "{\n  \"a\": \"\\u{9B}2J\"\n}\n")
        #expect(try printed(["a\r", "\nb\r", "c\r"], type: "text/plain") == "a\r\nb\\rc\\r\n")
        var text = TerminalText()
        let bytes = Data("é\u{9B}🎉\u{202E}".utf8) + [0x9B, 0xE2]
        let pieces = bytes.map { text.escaped([$0]) } + [text.escaped([], isLast: true)]
        #expect(String(decoding: pieces.joined(), as: UTF8.self) == "é\\u{9B}🎉\\u{202E}\u{FFFD}\u{FFFD}")
    }

    @Test("a large body is not formatted") func largeBodies() throws {
        let pieces = ["["] + Array(repeating: String(repeating: " ", count: 1 << 20), count: 17) + ["1]"]
        #expect(try printed(pieces) == pieces.joined() + "\n")
    }
}

@Suite struct ProgressLineTests {
    @Test(
        "size, percent, speed and remaining time",
        arguments: [
            (512, 1024, 1, "[#####.....]  50%  512 B of 1.0 KiB  512 B/s  0:01 left"), (0, 0, 1, "[##########] 100%  0 B of 0 B  0 B/s"),
            (3 << 20, -1, 2, "3.0 MiB  1.5 MiB/s"),
            (1 << 30, 100 << 30, 10, "[..........]   1%  1.0 GiB of 100.0 GiB  102.4 MiB/s  16:30 left"),
            (1, 1 << 40, 1, "[..........]   0%  1 B of 1.0 TiB  1 B/s  99:59:59 left"),
        ] as [(Int64, Int64, Int, String)])
    func lines(_ completed: Int64, _ total: Int64, _ seconds: Int, _ line: String) {
        #expect(ProgressLine.text(completed: completed, total: total, elapsed: .seconds(seconds), width: 10) == line)
    }
}
