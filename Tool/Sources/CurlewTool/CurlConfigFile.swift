// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The words of a file of curl's option `--config`: an option a line, with or without its dashes, and its value behind a space, an equals
/// sign or a colon. A value in double quotes may have spaces and the escapes \t, \n, \r and \v; a line that begins with `#` is a comment.
enum CurlConfigFile {
    static func words(of path: String) throws(UsageError) -> [String] {
        guard let data = InputFile.contents(path) else { throw UsageError("\(path.quoted) can't be read") }
        guard let text = String(data: data, encoding: .utf8) else { throw UsageError("\(path.quoted) is not text in UTF-8") }
        var words: [String] = []
        for (number, line) in text.splitScalars(omittingEmptySubsequences: false, whereSeparator: { $0 == "\n" }).enumerated() {
            let rest = line.trimmingScalars(while: isSpace)
            guard let first = rest.unicodeScalars.first, first != "#" else { continue }
            let name = rest.prefixScalars { !isSpace($0) && $0 != "=" && $0 != ":" }
            let option = name.hasBytePrefix("-") ? String(name) : "--\(name)"
            var value = rest[name.endIndex...].dropScalars(while: isSpace)
            if let separator = value.unicodeScalars.first, separator == "=" || separator == ":" {
                value = value.dropFirstScalars().dropScalars(while: isSpace)
            }
            var word: String?
            if value.unicodeScalars.first == "\"" {
                word = quoted(value.dropFirstScalars())
                if word == nil { throw UsageError("line \(number + 1) of \(path.quoted) has a quote without an end") }
            } else if let first = value.unicodeScalars.first, first != "#" {
                // curl warns of further words, and ignores them.
                word = String(value.prefixScalars { !isSpace($0) })
            }
            // An option of a file has one line, so that the next one is never its value.
            let letter = option.hasBytePrefix("--") ? nil : option.dropFirst().first.flatMap { CurlOption.short[$0] }
            if option.utf8.count == 2 || letter == nil, let takesValue = CurlOption.long[letter ?? option]?.takesValue,
                takesValue != (word != nil)
            {
                throw UsageError("line \(number + 1) of \(path.quoted): curl's option \(option) \(takesValue ? "needs a" : "has no") value")
            }
            words += [option] + (word.map { [$0] } ?? [])
        }
        return words
    }

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" || scalar == "\r" }

    private static func quoted(_ text: Substring) -> String? {
        var result = String.UnicodeScalarView()
        var rest = text.unicodeScalars
        while let scalar = rest.popFirst() {
            if scalar == "\"" { return String(result) }
            guard scalar == "\\", let next = rest.popFirst() else {
                result.append(scalar)
                continue
            }
            switch next {
            case "t": result.append("\t")
            case "n": result.append("\n")
            case "r": result.append("\r")
            case "v": result.append("\u{B}")
            default: result.append(next)
            }
        }
        return nil
    }
}
