// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

@testable import CurlewHTTP

/// Digests by libcrypto, beside ours.
@Suite struct LargeDigestTests {
    /// FIPS 180-4's examples, and the empty message: a text, how many times it is the message, and both digests.
    private static let examples: [(String, Int, sha256: String, sha512: String)] = [
        (
            "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
        ),
        (
            "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        ),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            "204a8fc6dda82f0a0ced7beb8e08a41657c16ef468b228a8279be331a703c33596fd15c13b1b07f9aa1d3bea57789ca031ad85c7a71dd70354ec631238ca3445"
        ),
        (
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu", 1,
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
            "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909"
        ),
        (
            "a", 1_000_000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
            "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973ebde0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b"
        ),
    ]

    /// The digest of a message in the given pieces.
    private static func digest<Word: SHA2Word>(_: Word.Type, of pieces: [[UInt8]], by libcrypto: Libcrypto?) -> [UInt8] {
        var hash = LargeDigest<Word>(by: libcrypto)
        for piece in pieces { piece.withUnsafeBytes { hash.update($0) } }
        return hash.finish()
    }

    @Test(arguments: examples.indices) func `libcrypto's digests and ours are those of FIPS 180-4`(_ index: Int) {
        let (text, count, short, long) = Self.examples[index]
        let pieces = Array(repeating: Array(text.utf8), count: count)
        #expect(Self.digest(UInt32.self, of: pieces, by: .system).hexDigits == short)
        #expect(Self.digest(UInt64.self, of: pieces, by: .system).hexDigits == long)
        // Two megabytes of ours take seconds in a debug build.
        if count == 1 {
            #expect(Self.digest(UInt32.self, of: pieces, by: nil).hexDigits == short)
            #expect(Self.digest(UInt64.self, of: pieces, by: nil).hexDigits == long)
        }
    }

    @Test(arguments: 0..<20) func `libcrypto and ours agree on pieces of any size`(seed: UInt64) {
        var random = SplitMix(state: seed)
        let pieces = (0..<Int.random(in: 0...12, using: &random)).map { _ in
            (0..<Int.random(in: 0...700, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
        func compare<Word: SHA2Word>(_: Word.Type) {
            let whole = Array(pieces.joined()).withUnsafeBytes { SHA2<Word>.digest(of: $0) }
            #expect(Self.digest(Word.self, of: pieces, by: .system) == whole)
            #expect(Self.digest(Word.self, of: pieces, by: nil) == whole)
        }
        compare(UInt32.self)
        compare(UInt64.self)
    }

    @Test func `a whole message has one digest below and above the size from which libcrypto computes it`() {
        func compare<Word: SHA2Word>(_: Word.Type) {
            let shortest = LargeDigest<Word>.shortest
            for count in [shortest - 1, shortest, shortest + 1] {
                let message = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
                message.withUnsafeBytes { #expect(LargeDigest<Word>.digest(of: $0) == SHA2<Word>.digest(of: $0)) }
            }
        }
        compare(UInt32.self)
        compare(UInt64.self)
    }

    @Test func `a digest that is abandoned leaves nothing behind`() {
        for _ in 0..<100 {
            var hash = LargeDigest<UInt32>()
            [UInt8(1)].withUnsafeBytes { hash.update($0) }
        }
    }
}
