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
