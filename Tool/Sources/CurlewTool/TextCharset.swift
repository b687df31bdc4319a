// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The charset of a text that is not UTF-8.
struct TextCharset {
    let encoding: String.Encoding
    /// The type without the charset.
    let contentType: String?

    /// - Parameter beginning: may have a byte order mark of UTF-16.
    /// - Returns: `nil` for UTF-8, for what is no text, and for a charset that is not known.
    init?(contentType: String?, beginning: Data) {
        let fields = (contentType ?? "").splitScalars(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
        self.contentType = fields.first
        if beginning.starts(with: [0xFF, 0xFE]) || beginning.starts(with: [0xFE, 0xFF]) {
            encoding = .utf16
            return
        }
        let parameter = fields.dropFirst().first { $0.lowercased().hasBytePrefix("charset=") }
        guard let name = parameter?.dropFirstScalars(8).trimmingScalars(while: { $0 == "\"" || $0 == "'" }).lowercased(),
            let encoding = Self.encodings[name]
        else { return nil }
        self.encoding = encoding
    }

    /// The names of https://encoding.spec.whatwg.org, which reads ISO 8859-1 as windows-1252, for what Foundation converts.
    private static let encodings: [String: String.Encoding] = [
        "iso-8859-1": .windowsCP1252, "latin1": .windowsCP1252, "l1": .windowsCP1252, "windows-1252": .windowsCP1252, "cp1252": .windowsCP1252,
        "iso-8859-2": .isoLatin2, "latin2": .isoLatin2, "windows-1250": .windowsCP1250, "windows-1251": .windowsCP1251,
        "cp1251": .windowsCP1251, "windows-1253": .windowsCP1253, "windows-1254": .windowsCP1254, "iso-8859-9": .windowsCP1254,
        "utf-16": .utf16, "utf-16le": .utf16LittleEndian, "utf-16be": .utf16BigEndian, "utf-32": .utf32, "shift_jis": .shiftJIS,
        "shift-jis": .shiftJIS, "sjis": .shiftJIS, "euc-jp": .japaneseEUC, "iso-2022-jp": .iso2022JP, "macintosh": .macOSRoman,
    ]

    /// The text; `nil` for bytes that are none in the charset.
    func text(of bytes: Data) -> String? {
        // Foundation has no text for the five bytes that windows-1252 leaves open.
        String(data: bytes, encoding: encoding) ?? (encoding == .windowsCP1252 ? String(data: bytes, encoding: .isoLatin1) : nil)
    }
}
