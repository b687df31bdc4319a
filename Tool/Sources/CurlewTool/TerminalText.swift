// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Text of a body on its way to a terminal, with control characters escaped, as in ``SafeText``: they write the clipboard, move the cursor
/// or make one text look like another. Line feeds, also after a carriage return, and tabs are kept.
struct TerminalText {
    /// The beginning of a character, or a carriage return, of which the next piece decides.
    private var rest: [UInt8] = []

    /// Returns a piece with what the one before has left. Bytes that are not UTF-8 become U+FFFD, as a terminal may take one for a control.
    mutating func escaped(_ piece: some Collection<UInt8>, isLast: Bool = false) -> Data {
        var bytes = rest + Array(piece)
        rest = isLast ? [] : bytes.suffix(Self.incompleteCount(bytes))
        bytes.removeLast(rest.count)
        let isPlain = bytes.allSatisfy { (0x20..<0x7F).contains($0) || $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\t") }
        return isPlain ? Data(bytes) : Data(Self.escaped(String(decoding: bytes, as: UTF8.self)).utf8)
    }

    /// The same for a text that is complete.
    static func escaped(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        var line = String.UnicodeScalarView()
        func end() { result.append(contentsOf: SafeText.escaped(String(line)).unicodeScalars) }
        var scalars = text.unicodeScalars[...]
        while let scalar = scalars.popFirst() {
            let isLineEnd = scalar == "\r" && scalars.starts(with: "\n".unicodeScalars)
            guard scalar == "\n" || scalar == "\t" || isLineEnd else {
                line.append(scalar)
                continue
            }
            end()
            line = String.UnicodeScalarView()
            result.append(scalar)
        }
        end()
        return String(result)
    }

    private static func incompleteCount(_ bytes: [UInt8]) -> Int {
        if bytes.last == UInt8(ascii: "\r") { return 1 }
        for (index, byte) in bytes.reversed().prefix(3).enumerated() where byte & 0xC0 != 0x80 {
            let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
            return length > index + 1 ? index + 1 : 0
        }
        return 0
    }
}
