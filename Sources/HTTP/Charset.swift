// SPDX-License-Identifier: Apache-2.0

extension String.Encoding {
    /// The encoding that a charset's name denotes; `nil` for an unknown one.
    ///
    /// Known are those of the Encoding Standard (section 4.2), by their labels and the names that IANA has for them, in any case, with or
    /// without hyphens. Not every converter of the system: the name comes from a server, which could choose one with known faults.
    /// Encodings for which Foundation has no constant have the values that it uses on Apple's platforms.
    package init?(charset: String) {
        // "ISO_8859-1:1987" is ISO 8859-1. The longest names of IANA have 40 bytes (RFC 2978, section 2.3).
        guard charset.utf8.count <= Charset.longestName else { return nil }
        let key = charset.prefixScalars { $0 != ":" }.filterScalars { $0 != "-" && $0 != "_" }.lowercased()
        guard let encoding = Charset.encodings[key] else { return nil }
        self = encoding
    }

    /// The name of the encoding; `nil` for one that Foundation decodes.
    var charsetName: String? { Charset.converters[self] }

    /// One of the encodings that Foundation identifies by Core Foundation's numbers.
    fileprivate init(coreFoundation number: UInt) { self.init(rawValue: 0x8000_0000 | number) }
}

extension String {
    /// Decodes bytes; `nil` if they are invalid in the encoding.
    package init?(_ bytes: Data, in encoding: String.Encoding) {
        guard let name = Charset.converters[encoding] else {
            self.init(data: bytes, encoding: encoding)
            return
        }
        guard let text = decoded(bytes, in: encoding, named: name) else { return nil }
        self = text
    }
}

enum Charset {
    static let longestName = 40

    private typealias Row = (encoding: String.Encoding, labels: String)
    private typealias ConvertedRow = (encoding: String.Encoding, converter: String, labels: String)

    private static let rows: [Row] = [
        (.utf8, "utf8 unicode11utf8 unicode20utf8 xunicode20utf8"), (.utf16, "utf16"), (.utf16BigEndian, "utf16be"),
        (.utf16LittleEndian, "utf16le"), (.utf32, "utf32"), (.utf32BigEndian, "utf32be"), (.utf32LittleEndian, "utf32le"),
        (.ascii, "usascii ascii iso646us ansix3.41968 us csascii"), (.isoLatin1, "iso88591 latin1 l1 cp819 ibm819 isoir100 csisolatin1"),
        (.isoLatin2, "iso88592 latin2 l2 isoir101 csisolatin2"), (.windowsCP1250, "windows1250 cp1250 xcp1250"),
        (.windowsCP1251, "windows1251 cp1251 xcp1251"), (.windowsCP1252, "windows1252 cp1252 xcp1252"),
        (.windowsCP1253, "windows1253 cp1253 xcp1253"), (.windowsCP1254, "windows1254 cp1254 xcp1254"),
    ]

    /// What Foundation does not decode, or not correctly, on every system, with the name for iconv.
    private static let convertedRows: [ConvertedRow] = [
        (.init(coreFoundation: 0x203), "ISO-8859-3", "iso88593 latin3 l3"),
        (.init(coreFoundation: 0x204), "ISO-8859-4", "iso88594 latin4 l4"),
        (.init(coreFoundation: 0x205), "ISO-8859-5", "iso88595 cyrillic"),
        (.init(coreFoundation: 0x206), "ISO-8859-6", "iso88596 arabic"),
        (.init(coreFoundation: 0x207), "ISO-8859-7", "iso88597 greek"),
        (.init(coreFoundation: 0x208), "ISO-8859-8", "iso88598 iso88598e iso88598i hebrew"),
        (.init(coreFoundation: 0x209), "ISO-8859-9", "iso88599 latin5 l5"),
        (.init(coreFoundation: 0x20A), "ISO-8859-10", "iso885910 latin6 l6"),
        (.init(coreFoundation: 0x20D), "ISO-8859-13", "iso885913"),
        (.init(coreFoundation: 0x20E), "ISO-8859-14", "iso885914 latin8 l8"),
        (.init(coreFoundation: 0x20F), "ISO-8859-15", "iso885915 latin9 l9"),
        (.init(coreFoundation: 0x210), "ISO-8859-16", "iso885916 latin10"),
        (.init(coreFoundation: 0x505), "CP1255", "windows1255 cp1255 xcp1255"),
        (.init(coreFoundation: 0x506), "CP1256", "windows1256 cp1256 xcp1256"),
        (.init(coreFoundation: 0x507), "CP1257", "windows1257 cp1257 xcp1257"),
        (.init(coreFoundation: 0x508), "CP1258", "windows1258 cp1258 xcp1258"),
        (.init(coreFoundation: 0x41B), "CP866", "ibm866 cp866 866 csibm866"),
        (.init(coreFoundation: 0x41D), "CP874", "windows874 cp874 dos874 tis620 iso885911"),
        (.init(coreFoundation: 0xA02), "KOI8-R", "koi8r koi8 koi cskoi8r"),
        (.init(coreFoundation: 0xA08), "KOI8-U", "koi8u koi8ru"),
        (.macOSRoman, "MACINTOSH", "macintosh mac xmacroman csmacintosh"),
        (.init(coreFoundation: 0x007), "MAC-CYRILLIC", "xmaccyrillic xmacukrainian"),
        (.iso2022JP, "ISO-2022-JP", "iso2022jp csiso2022jp"),
        (.japaneseEUC, "EUC-JP", "eucjp xeucjp cseucpkdfmtjapanese"),
        // What is labelled as Shift JIS, GB 2312, EUC-KR or Big5 is in one of their supersets, as browsers decode it.
        (.shiftJIS, "CP932", "shiftjis sjis xsjis mskanji windows31j ms932 csshiftjis"),
        (.init(coreFoundation: 0x930), "GBK", "gb2312 csgb2312 gb231280 csiso58gb231280 euccn chinese"),
        (.init(coreFoundation: 0x631), "GBK", "gbk xgbk cp936 ms936 windows936"),
        (.init(coreFoundation: 0x632), "GB18030", "gb18030"),
        (.init(coreFoundation: 0xA03), "BIG5-HKSCS", "big5 xxbig5 cnbig5 csbig5 cp950"),
        (.init(coreFoundation: 0xA06), "BIG5-HKSCS", "big5hkscs"),
        (.init(coreFoundation: 0x940), "CP949", "euckr cseuckr ksc5601 ksc56011987 ksc56011989 korean cp949 windows949 uhc"),
    ]

    static let encodings = Dictionary(
        (rows + convertedRows.map { ($0.encoding, $0.labels) }).flatMap { row in
            row.labels.splitScalars(separator: " ").map { (String($0), row.encoding) }
        }, uniquingKeysWith: { first, _ in first })

    static let converters = Dictionary(convertedRows.map { ($0.encoding, $0.converter) }, uniquingKeysWith: { first, _ in first })
}
