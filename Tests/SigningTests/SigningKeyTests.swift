// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

@testable import CurlewCrypto

/// The forms in which keys are read and written, and what is wrong with others.
// A3.2
@Suite(.enabled(if: RFC9421.hasLibcrypto)) struct SigningKeyTests {
    private static let message = Data("message".utf8)

    private static func signs(_ key: SigningKey, for verifier: VerificationKey? = nil) throws -> Bool {
        let signature = try key.signature(of: message)
        let verifier = verifier ?? key.verificationKey
        let isRefused = try !verifier.isValid(signature, of: Data("messagE".utf8)) && !verifier.isValid(Data(), of: message)
        return try isRefused && verifier.isValid(signature, of: message)
    }

    private static func error(_ body: () throws -> Void) -> SigningKeyError? {
        do {
            try body()
            return nil
        } catch {
            return error as? SigningKeyError
        }
    }

    // MARK: Forms

    private static let pairs: [(privatePEM: String, publicPEM: String, SignatureAlgorithm)] = [
        (RFC9421.rsaPrivate, RFC9421.rsaPublic, .rsaPSS), (RFC9421.rsaPrivate, RFC9421.rsaPublic, .rsaPKCS1),
        (RFC9421.rsaPSSPrivate, RFC9421.rsaPSSPublic, .rsaPSS), (RFC9421.ecPrivate, RFC9421.ecPublic, .ecdsaP256),
        (RFC9421.ed25519Private, RFC9421.ed25519Public, .ed25519),
    ]

    @Test("published keys sign for their public keys", arguments: 0..<5) func published(number: Int) throws {
        let (privatePEM, publicPEM, algorithm) = Self.pairs[number]
        let key = try SigningKey(pem: privatePEM, algorithm: algorithm)
        let verifier = try VerificationKey(pem: publicPEM, algorithm: algorithm)
        #expect(try Self.signs(key, for: verifier))
        #expect(try key.verificationKey.jwk() == verifier.jwk())
        #expect(try Self.signs(key, for: VerificationKey(jwk: Data(verifier.jwk().utf8), algorithm: algorithm)))
        #expect(try Self.signs(SigningKey(pem: key.pem(), algorithm: algorithm), for: verifier))
    }

    @Test("JSON Web Keys are read, with algorithm and identifier") func webKeys() throws {
        let ec =
            #"{"kty":"EC","crv":"P-256","kid":"e","x":"qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA","#
            + #""y":"Mc4nN9LTDOBhfoUeg8Ye9WedFRhnZXZJA12Qp0zZ6F0","d":"UpuF81l-kOxbjf7T4mNSv0r5tN67Gim7rnf6EFpcYDs"}"#
        let key = try SigningKey(jwk: Data(ec.utf8))
        #expect(key.id == "e")
        #expect(try Self.signs(key, for: VerificationKey(pem: RFC9421.ecPublic)))
        #expect(try Self.signs(key, for: VerificationKey(jwk: Data(ec.utf8))))
        let ed = #"{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","d":"n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU"}"#
        #expect(try Self.signs(SigningKey(jwk: Data(ed.utf8), id: "f"), for: VerificationKey(pem: RFC9421.ed25519Public)))
        let secret = try SigningKey(jwk: Data(#"{"kty":"oct","alg":"HS256","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ"}"#.utf8))
        #expect(secret.algorithm == .hmacSHA256)
        #expect(try Self.signs(secret))
    }

    @Test("the thumbprint is that of RFC 7638 and RFC 8037") func thumbprints() throws {
        let rsa =
            #"{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRX"#
            + "jBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6"
            + #"qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","#
            + #""e":"AQAB","alg":"RS256","kid":"2011-04-29"}"#
        let key = try VerificationKey(jwk: Data(rsa.utf8))
        #expect(key.algorithm == .rsaPKCS1)
        #expect(try key.thumbprint() == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
        let ed = #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#
        #expect(try VerificationKey(jwk: Data(ed.utf8)).thumbprint() == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
    }

    @Test("generated keys differ, and can be stored", arguments: [.ed25519, .ecdsaP256, .hmacSHA256] as [SignatureAlgorithm])
    func generated(algorithm: SignatureAlgorithm) throws {
        let (one, other) = (try SigningKey.generate(algorithm, id: "g"), try SigningKey.generate(algorithm))
        #expect(try Self.signs(one))
        #expect(try !Self.signs(one, for: other.verificationKey))
        guard algorithm != .hmacSHA256 else { return }
        #expect(try Self.signs(SigningKey(pem: one.pem()), for: one.verificationKey))
        #expect(try one.verificationKey.thumbprint() != other.verificationKey.thumbprint())
    }

    @Test("a signature by ECDSA has both numbers in full length") func lengths() throws {
        let key = try SigningKey(pem: RFC9421.ecPrivate)
        // Numbers with leading zeros are among 1,000 signatures, with near certainty.
        for number in 0..<1000 {
            let message = Data("\(number)".utf8)
            let signature = try key.signature(of: message)
            #expect(signature.count == 64)
            #expect(try key.verificationKey.isValid(signature, of: message))
        }
        let asymmetric = try AsymmetricKey(pem: RFC9421.ecPrivate)
        let encoded = try asymmetric.sign([1, 2], by: .ecdsaP256, isDER: true)
        #expect(encoded.first == 0x30)
        #expect(try asymmetric.isValid(encoded, of: [1, 2], by: .ecdsaP256, isDER: true))
        #expect(try !asymmetric.isValid(encoded, of: [1, 2], by: .ecdsaP256))
    }

    // MARK: Errors

    private static let brokenPEMs: [(pem: String, reason: String)] = [
        ("", "it has no PEM block"), ("-----BEGIN PRIVATE KEY-----\nMC4C", "the PEM block has no last line"),
        ("-----BEGIN CERTIFICATE-----\nMC4C\n-----END CERTIFICATE-----", "its PEM block is not that of a key: CERTIFICATE"),
        ("-----BEGIN PRIVATE KEY-----\nSECRETSECRET\n-----END PRIVATE KEY-----", "it is not the PEM encoding of a private key"),
        ("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----", "it is not the PEM encoding of a private key"),
        (RFC9421.ecPublic, "it is a public key, which only verifies"),
        (RFC9421.ecPublic.replacing("PUBLIC", with: "PRIVATE"), "it is not the PEM encoding of a private key"),
    ]

    @Test("broken keys say what is wrong, and show nothing of them", arguments: 0..<7) func brokenPEM(number: Int) {
        let (pem, reason) = Self.brokenPEMs[number]
        #expect(Self.error { _ = try SigningKey(pem: pem) } == .invalidKey(reason))
    }

    @Test(
        "broken JSON Web Keys say what is wrong, and show nothing of them",
        arguments: [
            ("{}", .invalidKey("it is not a JSON object with the members of a JSON Web Key")),
            (#"{"kty":"oct"}"#, .invalidKey("the JSON Web Key has no k")),
            (#"{"kty":"oct","k":""}"#, .invalidKey("k of the JSON Web Key has 0 bytes")),
            (#"{"kty":"oct","k":"a+b"}"#, .invalidKey("k of the JSON Web Key is not base64url")),
            (#"{"kty":"OKP","crv":"Ed448","d":"AA"}"#, .unsupportedKey("the curve Ed448")),
            (#"{"kty":"OKP","crv":"Ed25519","x":"AA"}"#, .invalidKey("the JSON Web Key has no private part")),
            (#"{"kty":"OKP","crv":"Ed25519","d":"AA"}"#, .invalidKey("d of the JSON Web Key has 1 bytes, not 32")),
            (#"{"kty":"EC","crv":"secp256k1","d":"AA"}"#, .unsupportedKey("the curve secp256k1")),
            (#"{"kty":"RSA","n":"AA","e":"AQAB","d":"AA"}"#, .invalidKey("the JSON Web Key has no p")),
            (#"{"kty":"XYZ","d":"AA"}"#, .unsupportedKey("a JSON Web Key of the type XYZ")),
            (#"{"kty":"oct","k":"AA","alg":"HS512"}"#, .unsupportedKey("the algorithm HS512")),
            (#"{"kty":"oct","k":"AA","alg":"ES256"}"#, .wrongAlgorithm("a secret signs by hmac-sha256 only")),
            (
                #"{"kty":"OKP","crv":"Ed25519","d":"n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
                .invalidKey("the private part of the JSON Web Key is not that of its public part")
            ),
        ] as [(String, SigningKeyError)])
    func brokenJWK(json: String, expected: SigningKeyError) {
        #expect(Self.error { _ = try SigningKey(jwk: Data(json.utf8)) } == expected)
    }

    @Test("keys that don't go with what is wanted are refused") func mismatches() throws {
        #expect(
            Self.error { _ = try VerificationKey(pem: RFC9421.ecPrivate) }
                == .invalidKey("it is a private key, which a verifier does not need"))
        let mismatch = Self.error { _ = try SigningKey(pem: RFC9421.ecPrivate, algorithm: .ed25519) }
        #expect(mismatch == .wrongAlgorithm("a key of the kind p256 does not sign by ed25519"))
        #expect(Self.error { _ = try SigningKey(pem: RFC9421.rsaPSSPrivate, algorithm: .rsaPKCS1) } != nil)
        #expect(Self.error { _ = try SigningKey(pem: RFC9421.rsaPrivate, algorithm: .hmacSHA256) } != nil)
        #expect(Self.error { _ = try SigningKey(secret: []) } == .invalidKey("the secret is empty"))
        #expect(Self.error { _ = try SigningKey(secret: [1]).pem() } == .unsupportedKey("a secret has no PEM form"))
        #expect(Self.error { _ = try VerificationKey(secret: [1]).jwk() } == .unsupportedKey("a secret has no public part"))
        #expect(Self.error { _ = try SigningKey.generate(.rsaPSS) } == .unsupportedKey("no key is generated for rsa-pss-sha512"))
        // A point that is not on the curve.
        let point =
            #"{"kty":"EC","crv":"P-256","x":"qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA","y":"qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA"}"#
        #expect(Self.error { _ = try VerificationKey(jwk: Data(point.utf8)) } == .invalidKey("it is not the DER encoding of a public key"))
        #expect(Self.error { _ = try SigningKey(der: Data()) } == .invalidKey("it is not the DER encoding of a private key"))
    }

    @Test("descriptions and mirrors show no key") func secrecy() throws {
        let keys: [Any] = [
            try SigningKey(secret: Array("secret".utf8), id: "a"), try SigningKey(pem: RFC9421.ed25519Private, id: "a"),
            try VerificationKey(secret: Array("secret".utf8), id: "a"), try AsymmetricKey(pem: RFC9421.ed25519Private),
            try StandardWebhook("whsec_c2VjcmV0"), try HMACWebhook(.gitHub, secrets: "secret"),
            MessageSigner(try SigningKey(secret: Array("secret".utf8))),
        ]
        for key in keys {
            var text = ""
            dump(key, to: &text)
            for part in ["\(key)", String(reflecting: key), text] {
                #expect(!part.contains("secret") && !part.contains("115") && !part.contains("c2Vj") && !part.contains("0x"), "\(part)")
            }
        }
        #expect("\(keys[0])" == "SigningKey(hmac-sha256, a)")
        #expect("\(keys[1])" == "SigningKey(ed25519, a)")
    }

    @Test("a process without a function of libcrypto names it", arguments: ["EVP_DigestSign", "OSSL_DECODER_from_data"])
    func unavailable(function: String) {
        #expect(throws: CryptoError.unavailable(function)) { try KeyFunctions(without: [function]) }
        #expect(
            SigningKeyError.signingUnavailable(function).description
                == "Signing is not available, as the process has no libcrypto 3 with \(function).")
    }

    @Test("errors of libcrypto are not left to the thread, where libcurl would find them") func errorQueue() throws {
        typealias Peek = @convention(c) () -> UInt
        let peek = try #require(processFunction("ERR_peek_error", as: Peek.self))
        let before = peek()
        #expect(Self.error { _ = try SigningKey(der: Data([0x30, 0x03, 1, 2, 3])) } != nil)
        #expect(Self.error { _ = try VerificationKey(pem: RFC9421.ecPublic.replacing("MFkw", with: "MFkx")) } != nil)
        let key = try SigningKey(pem: RFC9421.ecPrivate).verificationKey
        #expect(try !key.isValid(Data(repeating: 0xFF, count: 64), of: Self.message))
        #expect(peek() == before)
    }
}
