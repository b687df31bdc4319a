// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct PercentDecodingTests {
    @Test(
        arguments: [
            ("a%2Fb%2f%41", "a/b/A", "a/b/A"), ("a+b%2B", "a+b+", "a b+"), ("", "", ""), ("%25%34%31", "%41", "%41"),
            // A sign is no digit.
            ("%", "%", "%"), ("%4", "%4", "%4"), ("%zz%4g", "%zz%4g", "%zz%4g"), ("%+1%-1", "%+1%-1", "% 1%-1"), ("%%41", "%A", "%A"),
        ])
    func `escapes are decoded, and invalid ones kept`(text: String, decoded: String, ofForm: String) {
        #expect(String(decoding: text.utf8.percentDecoded, as: UTF8.self) == decoded)
        #expect(String(decoding: text.utf8.formDecoded, as: UTF8.self) == ofForm)
    }

    @Test func `a byte is a hexadecimal digit or none`() {
        #expect("09afAF".utf8.map(\.hexValue) == [0, 9, 10, 15, 10, 15])
        #expect("/:@G`g+".utf8.allSatisfy { $0.hexValue == nil })
    }

    @Test func `a number has two digits for each byte`() {
        #expect(UInt64(0xFF).hexDigits == "00000000000000ff" && UInt8(5).hexDigits == "05" && UInt32.max.hexDigits == "ffffffff")
        #expect("/ö".utf8.map(\.hexDigits) == ["2f", "c3", "b6"] && "/ö".utf8.hexDigits == "2fc3b6")
    }
}
