// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CurlewWebSocket

@Suite(.timeLimit(.minutes(1))) struct UTF8ValidatorTests {
    /// Returns the index of the byte that the validator rejects, fed one at a time; `nil` if it accepts them all.
    private func refused(_ bytes: [UInt8]) -> Int? {
        var validator = UTF8Validator()
        return bytes.firstIndex { byte in !withUnsafeBytes(of: byte) { validator.consume($0) } }
    }

    private func isComplete(_ bytes: [UInt8]) -> Bool {
        var validator = UTF8Validator()
        return bytes.withUnsafeBytes { validator.consume($0) } && validator.isComplete
    }

    @Test(
        "valid text is accepted, whole and byte by byte",
        arguments: [
            "", "a", "Hello, world, this is ASCII", "κόσμε", "日本語", "\u{10000}\u{10FFFF}", "\u{7F}\u{80}\u{7FF}\u{800}\u{FFFF}",
            "\u{D7FF}\u{E000}",
            "eight by and then ü, twice eight by ö",
        ])
    func text(_ text: String) {
        #expect(isComplete(Array(text.utf8)))
        #expect(refused(Array(text.utf8)) == nil)
    }

    @Test(
        "invalid text is rejected at its first invalid byte",
        arguments: [
            ([0x80], 0), ([0xC0, 0x80], 0), ([0xC1, 0xBF], 0), ([0xE0, 0x9F, 0xBF], 1), ([0xED, 0xA0, 0x80], 1), ([0xF0, 0x8F, 0xBF], 1),
            ([0xF4, 0x90, 0x80, 0x80], 1), ([0xF5], 0), ([0xFF], 0), ([0x61, 0xC3, 0x28], 2), ([0xE2, 0x82, 0x41], 2),
            ([0xF0, 0x9F, 0x98, 0xC0], 3),
        ] as [([UInt8], Int)])
    func invalidText(_ bytes: [UInt8], _ position: Int) {
        #expect(refused(bytes) == position)
    }

    @Test("a truncated character is incomplete", arguments: [[0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98]] as [[UInt8]])
    func truncated(_ bytes: [UInt8]) {
        #expect(refused(bytes) == nil)
        #expect(!isComplete(bytes))
    }

    @Test("random bytes are valid or invalid as for the standard library") func agreement() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            let alphabet: [UInt8] = [0x41, 0x80, 0x9F, 0xA0, 0xBF, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xFF]
            let bytes = (0..<Int.random(in: 0...12, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? 0 }
            #expect(isComplete(bytes) == (String(validating: bytes, as: UTF8.self) != nil), "\(bytes)")
        }
    }
}
