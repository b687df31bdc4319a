// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text as one word of a POSIX shell or of fish, in double quotes; in single quotes if they are asked for, or if it has a `!`,
    /// which within double quotes starts a history expansion in interactive shells, or a backtick, which fish does not escape there.
    ///
    /// Control characters except line feeds, and those of bidirectional text, are left to `printf`: pasted into a terminal they
    /// would be keys, a tab one that completes names. A NUL is lost, as no argument can contain one.
    package func quotedForShell(singly: Bool = false) -> String {
        let isSingle = singly || utf8.contains { "!`".utf8.contains($0) }
        let quote = isSingle ? "'" : "\""
        var result = quote
        var isLineStart = false
        for scalar in unicodeScalars {
            // At the start of a line, also of one within quotes, it is a substitution in the history of an interactive shell.
            if isLineStart, scalar == "^" { result += quote + quote }
            isLineStart = scalar == "\n"
            switch scalar {
            case _ where scalar.isKey: result += isSingle ? "'\"\(scalar.printed)\"'" : scalar.printed
            // Outside of the quotes: within them fish takes a backslash for an escape, of the closing quote too.
            case "'" where isSingle, "\\" where isSingle: result += "'\\\(scalar)'"
            case "\\", "\"", "$": result += isSingle ? String(scalar) : "\\\(scalar)"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + quote
    }
}

extension Unicode.Scalar {
    fileprivate var isKey: Bool { properties.generalCategory == .control && self != "\n" || properties.isBidiControl }

    /// The command that prints the scalar, byte by byte in octal digits.
    fileprivate var printed: String {
        let digits = String(self).utf8.map { byte in "\\" + [byte >> 6, byte >> 3 & 7, byte & 7].map { String($0) }.joined() }
        return "$(printf '\(digits.joined())')"
    }
}
