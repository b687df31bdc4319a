// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text as one word of a POSIX shell or of fish, in double quotes; in single quotes if they are asked for, or if it has a `!`,
    /// which within double quotes starts a history expansion in interactive shells, or a backtick, which fish does not escape there.
    ///
    /// A text with control characters other than line feeds, or those of bidirectional text, is printed by `printf`: pasted into a terminal
    /// they would be keys, a tab one that completes names. NULs are left out, as no argument can contain one.
    package func quotedForShell(singly: Bool = false) -> String {
        let text = filterScalars { $0 != "\0" }
        guard !text.unicodeScalars.contains(where: \.isKey) else { return Self.printed(text) }
        let isSingle = singly || text.utf8.contains { "!`".utf8.contains($0) }
        let quote = isSingle ? "'" : "\""
        var result = quote
        var isLineStart = false
        for scalar in text.unicodeScalars {
            // At the start of a line, also of one within quotes, it is a substitution in the history of an interactive shell.
            if isLineStart, scalar == "^" { result += quote + quote }
            isLineStart = scalar == "\n"
            switch scalar {
            // Outside of the quotes: within them fish takes a backslash for an escape, of the closing quote too.
            case "'" where isSingle, "\\" where isSingle: result += "'\\\(scalar)'"
            case "\\", "\"", "$": result += isSingle ? String(scalar) : "\\\(scalar)"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + quote
    }

    /// One command that prints all of the text except its last line feeds, which a shell removes from what a command prints.
    ///
    /// It is the whole word: fish takes a `[1]` that follows a quoted command for an index of what it prints, and fish 3.6 refuses some words
    /// that have dollar signs, parentheses or other commands after one.
    private static func printed(_ text: String) -> String {
        let lineFeeds = text.utf8.reversed().prefix { $0 == UInt8(ascii: "\n") }.count
        var format = ""
        var last: Unicode.Scalar?
        for scalar in text.dropLastScalars(lineFeeds).unicodeScalars {
            switch scalar {
            // What would end the quotes, is an escape of them or of the format, or is the history's also within them.
            case "'", "\\", "!": format += scalar.octal
            // An option, and the start of a line as above.
            case "-" where last == nil, "^" where last == "\n": format += scalar.octal
            case "%": format += "%%"
            default: if scalar.isKey { format += scalar.octal } else { format.unicodeScalars.append(scalar) }
            }
            last = scalar
        }
        return "\"$(printf '\(format)')\(String(repeating: "\n", count: lineFeeds))\""
    }
}

extension Unicode.Scalar {
    fileprivate var isKey: Bool { properties.generalCategory == .control && self != "\n" || properties.isBidiControl }

    /// The scalar byte by byte in octal digits, as `printf` reads it.
    fileprivate var octal: String {
        String(self).utf8.map { byte in "\\" + [byte >> 6, byte >> 3 & 7, byte & 7].map { String($0) }.joined() }.joined()
    }
}
