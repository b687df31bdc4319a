// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct ExtendedValueTests {
    @Test(
        arguments: [
            // RFC 8187, section 3.2.3.
            ("UTF-8'en'%C2%A3%20rates", "£ rates"), ("UTF-8''%c2%a3%20and%20%e2%82%ac%20rates", "£ and € rates"), ("utf-8''", ""),
            ("UTF-8''a'b", "a'b"), ("iso-8859-1'en'%A3%20rates", nil), ("UTF-8''%zz", nil), ("UTF-8''%FF", nil), ("UTF-8'a", nil),
            ("a", nil),
            ("us-ascii''a", nil), ("", nil), ("UTF-8'\u{301}'a", "a"),
        ] as [(String, String?)])
    func `an extended value is decoded`(value: String, text: String?) {
        #expect(value.decodedExtendedValue() == text)
    }

    @Test(arguments: [("iso-8859-1'en'%A3%20rates", "£ rates"), ("ISO-8859-1''%E4", "ä"), ("UTF-8''%c2%a3", "£")])
    func `ISO-8859-1 is decoded where it is allowed`(value: String, text: String) {
        #expect(value.decodedExtendedValue(allowsLatin1: true) == text)
    }
}
