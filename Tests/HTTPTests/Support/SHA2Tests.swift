// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CurlewHTTP

/// Digests of messages of all lengths around the blocks, beside those of another implementation (Python's hashlib).
@Suite struct SHA2Tests {
    /// The digest of the digests of 300 messages, of 0 to 299 bytes, each in pieces of `piece` bytes.
    private static func digestOfDigests<Word: SHA2Word>(_: Word.Type, pieces piece: Int) -> String {
        var all = SHA2<Word>()
        for length in 0..<300 {
            let message = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ length) }
            var one = SHA2<Word>()
            for start in stride(from: 0, to: length, by: piece) {
                message[start..<min(start + piece, length)].withUnsafeBytes { one.update($0) }
            }
            let digest = one.digest()
            #expect(digest == message.withUnsafeBytes { SHA2<Word>.digest(of: $0) })
            digest.withUnsafeBytes { all.update($0) }
        }
        return all.digest().hexDigits
    }

    @Test(arguments: [1, 63, 64, 127, 1000]) func `SHA-256 is that of FIPS 180-4 for each length`(piece: Int) {
        #expect(
            Self.digestOfDigests(UInt32.self, pieces: piece) == "d5238871a46ac4a1a75ac3fb19d645b0b3b9e5f35f5f720e2b240d605c6b694e")
    }

    @Test(arguments: [1, 63, 64, 127, 1000]) func `SHA-512 is that of FIPS 180-4 for each length`(piece: Int) {
        #expect(
            Self.digestOfDigests(UInt64.self, pieces: piece)
                == "30d6c78a55e1f152f00703601a37b39b96c6c8fa2b3e66fb9c8182466b108d39d5dd84827c69cadb4376853da7ec31ea83a0a7a0e5a713bac426e0f0ceea8424"
        )
    }

    @Test func `a digest so far does not end the message`() {
        var hash = SHA2<UInt32>()
        Array("ab".utf8).withUnsafeBytes { hash.update($0) }
        _ = hash.digest()
        Array("c".utf8).withUnsafeBytes { hash.update($0) }
        #expect(hash.digest() == SHA256.digest(of: "abc".utf8))
        #expect(hash.digest().hexDigits == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }
}
