// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text as one word of a POSIX shell, in double quotes; in single quotes, as `!` within double quotes starts a history expansion in
    /// interactive shells, if it has one or they are asked for.
    ///
    /// Control characters except line feeds, and those of bidirectional text, are left to `printf`: pasted into a terminal they
    /// would be keys, a tab one that completes names. A NUL is lost, as no argument can contain one.
    package func quotedForShell(singly: Bool = false) -> String {
        let isSingle = singly || utf8.contains(UInt8(ascii: "!"))
        var result = isSingle ? "'" : "\""
        for scalar in unicodeScalars {
            switch scalar {
            case _ where scalar.isKey: result += isSingle ? "'\"\(scalar.printed)\"'" : scalar.printed
            case "'" where isSingle: result += #"'\''"#
            case "\\", "\"", "$", "`": result += isSingle ? String(scalar) : "\\\(scalar)"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + (isSingle ? "'" : "\"")
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
