// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation

@testable import CurlewCore
@testable import CurlewDownloads
@testable import CurlewTransport

// What is made of the text of others and read by a file system, a shell or a person.

extension FuzzTarget {
    static let texts = [
        FuzzTarget(name: "file-name", check: fileName), FuzzTarget(name: "shell-word", check: shellWord),
        FuzzTarget(name: "curl-command", check: curlCommand), FuzzTarget(name: "user-info", check: userInfo),
    ]

    /// The input is the field, and after a NUL the last component of the URL.
    private static func fileName(_ input: [UInt8]) throws {
        let parts = input.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false).map { text(Array($0)) }
        guard let url = URL(string: "https://host.test/dir/" + (parts.count > 1 ? parts[1] : "")) else { return }
        for name in [SuggestedFileName.name(contentDisposition: parts[0], url: url), SuggestedFileName.name(url: url)] {
            let bytes = Array(name.utf8)
            try require(!bytes.isEmpty && bytes.count <= 200 && bytes != [0x2E, 0x2E], "no name: \(name.debugDescription)")
            try require(!bytes.contains { "/\\".utf8.contains($0) || $0 < 0x20 }, "a path: \(name.debugDescription)")
            let isPlain = bytes.first.map { ".-~".utf8.contains($0) } == false
            try require(isPlain, "a hidden file, an option or a home: \(name.debugDescription)")
            let path = URL(fileURLWithPath: "/dir", isDirectory: true).appendingPathComponent(name, isDirectory: false).path
            try require(Array(path.utf8) == Array("/dir/".utf8) + bytes, "in another directory: \(path.debugDescription)")
        }
    }

    private static func shellWord(_ input: [UInt8]) throws {
        let word = text(input)
        // No argument contains a NUL.
        let expected = word.utf8.filter { $0 != 0 }
        for quoted in [word.quotedForShell(), word.quotedForShell(singly: true)] {
            try require(try shellWords(quoted) == [expected], "\(word.debugDescription) is written \(quoted.debugDescription)")
        }
    }

    /// The input is the value of a field, and after a NUL the body.
    private static func curlCommand(_ input: [UInt8]) throws {
        let parts = input.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false).map { text(Array($0)) }
        var request = TransferRequest(url: "https://host.test/a?b", headers: [HTTPHeader(name: "X-Value", value: parts[0])])
        if parts.count > 1, !parts[1].utf8.contains(0) { request.body = DataBody(Data(parts[1].utf8)) }
        let lines = CurlCommand(request, credential: "user:\(parts[0])", redaction: nil).lines
        let words = try shellWords(lines.joined(separator: " \\\n\t"))
        try require(words.first == Array("curl".utf8) && words.last == Array("https://host.test/a?b".utf8), "\(lines)")
        let isBlank = parts[0].utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 }
        try require(words.contains(Array((isBlank ? "X-Value;" : "X-Value: \(parts[0])").utf8)), "another field: \(lines)")
        try require(words.contains(Array("user:\(parts[0])".utf8)), "another user: \(lines)")
        if request.body != nil { try require(words.contains(Array(parts[1].utf8)), "another body: \(lines)") }
        if let place = words.firstIndex(of: Array("-d".utf8)) {
            try require(words[place + 1].first != UInt8(ascii: "@"), "a file is read: \(lines)")
        }
        // Only known options, so that no value has become one.
        let known = ["-v", "-u", "--anyauth", "-H", "-d", "--data-raw", "-X"].map { Array($0.utf8) }
        let values = [parts[0], parts.last ?? ""].map { Array($0.utf8) }
        for word in words where word.first == UInt8(ascii: "-") {
            try require(known.contains(word) || values.contains(word), "the option \(text(word)) in \(lines)")
        }
    }

    private static func userInfo(_ input: [UInt8]) throws {
        let shown = Array(text(input).withoutUserInfo.utf8)
        for index in shown.indices where shown[index...].starts(with: "://".utf8) {
            let authority = shown[(index + 3)...].prefix { !"/?#".utf8.contains($0) }
            try require(!authority.contains(UInt8(ascii: "@")), "a user in \(text(shown).debugDescription)")
        }
    }

    /// The words of a command that uses quotes and `printf`, as a POSIX shell reads it; throws a failure if it does more.
    private static func shellWords(_ command: String) throws -> [[UInt8]] {
        var rest = Array(command.utf8)[...]
        var words: [[UInt8]] = []
        var word: [UInt8]?
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\t"):
                if let ended = word { words.append(ended) }
                word = nil
            case UInt8(ascii: "\\"): try require(rest.popFirst() == UInt8(ascii: "\n"), "a backslash outside of quotes")
            case UInt8(ascii: "'"):
                let quoted = rest.prefix { $0 != byte }
                rest = rest[quoted.endIndex...]
                try require(rest.popFirst() == byte, "an open quote")
                word = (word ?? []) + quoted
                // An escaped quote or backslash between two quoted texts.
                if rest.starts(with: "\\''".utf8) || rest.starts(with: "\\\\'".utf8) {
                    word?.append(rest[rest.startIndex + 1])
                    rest = rest.dropFirst(2)
                }
            case UInt8(ascii: "\""): word = (word ?? []) + (try doubleQuoted(&rest))
            default:
                let isPlain = (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x2D
                try require(isPlain, "the byte \(byte) outside of quotes")
                word = (word ?? []) + [byte]
            }
        }
        return words + (word.map { [$0] } ?? [])
    }

    private static func doubleQuoted(_ rest: inout ArraySlice<UInt8>) throws -> [UInt8] {
        var result: [UInt8] = []
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return result
            case UInt8(ascii: "`"): throw Failure(description: "a command")
            case UInt8(ascii: "\\"):
                guard let next = rest.popFirst() else { throw Failure(description: "an open quote") }
                if !"\\\"$`".utf8.contains(next) { result.append(byte) }
                result.append(next)
            case UInt8(ascii: "$"):
                // fish misreads some texts that follow a command, and shells remove the line feeds at its end.
                try require(result.isEmpty && rest.starts(with: "(printf '".utf8), "an expansion")
                rest = rest.dropFirst("(printf '".utf8.count)
                result = try printed(&rest)
                try require(rest.popFirst() == UInt8(ascii: ")") && result.last != UInt8(ascii: "\n"), "another command")
                let last = rest.prefix { $0 == UInt8(ascii: "\n") }
                try require(rest[last.endIndex...].first == UInt8(ascii: "\""), "text after a command")
            default: result.append(byte)
            }
        }
        throw Failure(description: "an open quote")
    }

    /// What `printf` prints for a format in single quotes.
    private static func printed(_ rest: inout ArraySlice<UInt8>) throws -> [UInt8] {
        var result: [UInt8] = []
        try require(rest.first != UInt8(ascii: "-"), "an option of printf")
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "'"): return result
            case UInt8(ascii: "!"): throw Failure(description: "a history expansion")
            case UInt8(ascii: "%"):
                try require(rest.popFirst() == byte, "a conversion")
                result.append(byte)
            case UInt8(ascii: "\\"):
                guard let printed = UInt8(text(Array(rest.prefix(3))), radix: 8), printed != 0 else {
                    throw Failure(description: "no octal digits")
                }
                result.append(printed)
                rest = rest.dropFirst(3)
            default: result.append(byte)
            }
        }
        throw Failure(description: "an open quote")
    }
}
