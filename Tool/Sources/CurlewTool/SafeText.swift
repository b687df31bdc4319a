// SPDX-License-Identifier: Apache-2.0

/// Text of others that is shown on a terminal or in a line of a log.
enum SafeText {
    /// What takes the place of a secret.
    static let hidden = "<hidden>"

    /// Returns the text with control characters escaped as in Swift's literals, so that it stays on one line and can't control a terminal.
    ///
    /// These are C0, DEL and C1, the line and paragraph separators, and the controls of bidirectional text, by which one text can imitate
    /// another. Backslashes are kept.
    static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: \.isControlInText) else { return text }
        return text.unicodeScalars.map { $0.isControlInText ? $0.escapeSequence : String($0) }.joined()
    }
}

extension SafeText {
    /// The columns of a terminal that a text takes. East Asian characters and emoji take two.
    static func columns(of text: String) -> Int {
        text.reduce(0) { $0 + ($1.isWide ? 2 : 1) }
    }

    /// The beginning of a text that fits, with an ellipsis if that is not all.
    static func fitted(_ text: String, columns: Int) -> String {
        guard self.columns(of: text) > columns else { return text }
        var left = columns - 1
        let beginning = text.prefix { character in
            left -= character.isWide ? 2 : 1
            return left >= 0
        }
        return beginning + "…"
    }
}

extension Character {
    /// Whether it takes two columns (Unicode Standard Annex #11, "W" and "F").
    fileprivate var isWide: Bool {
        guard let scalar = unicodeScalars.first else { return false }
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF01...0xFF60,
            0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1FAFF, 0x20000...0x3FFFD:
            return true
        default: return false
        }
    }
}

extension Unicode.Scalar {
    /// Whether the character may break a line of a log, control a terminal, or change the order in which others are displayed.
    var isControlInText: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    fileprivate var escapeSequence: String {
        switch self {
        case "\n": #"\n"#
        case "\r": #"\r"#
        case "\t": #"\t"#
        default: #"\u{"# + String(value, radix: 16, uppercase: true) + "}"
        }
    }
}
