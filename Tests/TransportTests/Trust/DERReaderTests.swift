// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct DERReaderTests {
    private func read(_ bytes: [UInt8]) -> DERReader.Element? {
        var reader = DERReader(bytes[...])
        return try? reader.next()
    }

    @Test("an element has its tag, its contents and all of its bytes") func element() throws {
        var reader = DERReader([0x00, 0x02, 0x01, 0x7F, 0x05, 0x00].dropFirst())
        let first = try reader.next(.integer)
        #expect(Array(first.contents) == [0x7F])
        #expect(Array(first.bytes) == [0x02, 0x01, 0x7F])
        #expect(try reader.next().contents.isEmpty)
        #expect(reader.isAtEnd)
    }

    @Test("long lengths are read") func longLengths() {
        let contents = [UInt8](repeating: 7, count: 300)
        #expect(read([0x04, 0x82, 0x01, 0x2C] + contents)?.contents.count == 300)
        #expect(read([0x04, 0x81, 0x80] + contents)?.contents.count == 128)
    }

    @Test(
        "malformed elements are rejected",
        arguments: [
            [], [0x30], [0x02, 0x01], [0x02, 0x02, 0x00],  // truncated
            [0x30, 0x80, 0x00, 0x00],  // BER's indefinite length
            [0x04, 0x81, 0x05, 1, 2, 3, 4, 5], [0x04, 0x82, 0x00, 0x85],  // lengths not in their shortest form
            [0x04, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], [0x04, 0x85, 1, 0, 0, 0, 0],
            [0x04, 0x88, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
            [0x04, 0xFF], [0x1F, 0x01, 0x00], [0x04, 0x82, 0x01],
        ] as [[UInt8]])
    func malformed(_ bytes: [UInt8]) {
        #expect(read(bytes) == nil)
    }

    @Test("object identifiers are read; unterminated and overflowing ones are rejected") func objectIdentifiers() {
        func identifier(_ contents: [UInt8]) -> String? { read([0x06, UInt8(contents.count)] + contents)?.objectIdentifier }
        #expect(identifier([0x55, 0x04, 0x03]) == "2.5.4.3")
        #expect(identifier([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]) == "1.2.840.113549.1.1.1")
        #expect(identifier([0x88, 0x37]) == "2.999")
        #expect(identifier([]) == nil)
        #expect(identifier([0x55, 0x84]) == nil)
        #expect(identifier([0x55] + [UInt8](repeating: 0xFF, count: 20) + [0x01]) == nil)
    }

    @Test(
        "times in the forms of certificates are read, and no others",
        arguments: [
            ("700101000000Z", 0), ("500101000000Z", -631_152_000), ("491231235959Z", 2_524_607_999), ("240229120000Z", 1_709_208_000),
            ("20240229120000Z", 1_709_208_000), ("00010101000000Z", -62_135_596_800), ("00000301000000Z", -62_162_035_200),
            ("99991231235959Z", 253_402_300_799), ("19000228235959Z", -2_203_891_201),
            ("230229120000Z", nil), ("241301000000Z", nil), ("240100000000Z", nil), ("240101240000Z", nil), ("240101006000Z", nil),
            ("2401010000Z", nil), ("240101000000", nil), ("240101000000+0100", nil), ("19000229000000Z", nil), ("-40101000000Z", nil),
            ("20240101000000.5Z", nil), ("Z", nil), ("", nil),
        ] as [(String, Double?)])
    func times(_ text: String, _ seconds: Double?) {
        let tag: UInt8 = text.utf8.count > 13 && !text.contains("+") ? 0x18 : 0x17
        #expect(read([tag, UInt8(text.utf8.count)] + Array(text.utf8))?.date?.timeIntervalSince1970 == seconds)
    }

    @Test("strings of all types are read") func strings() {
        func string(_ tag: UInt8, _ bytes: [UInt8]) -> String? { read([tag, UInt8(bytes.count)] + bytes)?.string }
        #expect(string(0x0C, Array("Zürich".utf8)) == "Zürich")
        #expect(string(0x0C, [0xC3]) == nil)
        #expect(string(0x13, Array("Basel".utf8)) == "Basel")
        #expect(string(0x14, [0x5A, 0xFC]) == "Zü")
        #expect(string(0x16, [0x61, 0x00, 0x62]) == "a\0b")
        #expect(string(0x1E, [0x00, 0x5A, 0x00, 0xFC]) == "Zü")
        #expect(string(0x1E, [0xD8, 0x00]) == nil)
        #expect(string(0x1E, [0x00]) == nil)
        #expect(string(0x1C, [0x00, 0x01, 0xF6, 0x00]) == "😀")
        #expect(string(0x1C, [0xFF, 0xFF, 0xFF, 0xFF]) == nil)
        #expect(string(0x04, [0x61]) == nil)
    }

    @Test("certificates that are truncated, extended or changed in a byte do not trap") func hostileCertificates() throws {
        let der = try #require(Certificate(pem: Data(TestCertificates.leaf.utf8))).der
        for count in 0..<der.count { #expect(Certificate(der: der.prefix(count)) == nil) }
        #expect(Certificate(der: der + [0]) == nil)
        var parsed = 0
        for index in der.indices {
            for bit in 0..<8 {
                var changed = der
                changed[index] ^= 1 << bit
                if let certificate = Certificate(der: changed) {
                    parsed += 1
                    _ = certificate.isValid(forHost: "www.example.org")
                    #expect(certificate.der == changed)
                }
            }
        }
        // Most bytes belong to the key, the signature and text; a certificate with one of them changed is still valid DER.
        #expect(parsed > der.count)
    }

    @Test("thousands of nested elements are harmless") func depth() {
        var bytes: [UInt8] = []
        for _ in 0..<20_000 {
            let length = bytes.count
            let header: [UInt8] =
                length < 0x80
                ? [UInt8(length)]
                : length < 0x100
                    ? [0x81, UInt8(length)]
                    : length < 0x10000
                        ? [0x82, UInt8(length >> 8), UInt8(length & 0xFF)]
                        : [0x83, UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)]
            bytes.insert(contentsOf: [0x30] + header, at: 0)
        }
        #expect(Certificate(der: Data(bytes)) == nil)
        #expect(PublicKey(der: Data(bytes)) == nil)
    }
}
