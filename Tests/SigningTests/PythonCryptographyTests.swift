// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

/// Another implementation of the algorithms: the package `cryptography` for Python.
enum PythonCryptography {
    /// Whether tests with it are to be run.
    static func isInstalled() async throws -> Bool {
        if Servers.areRequired { return true }
        guard ChildProcess.path(of: Servers.python) != nil else { return false }
        return try await ChildProcess(Servers.python, "-c", "import cryptography").finish().status == 0
    }

    /// Runs a script, which has the modules, `args` and `encoded(bytes)`; returns the lines of its output.
    static func run(_ script: String, _ arguments: [String] = []) async throws -> [String] {
        let beginning = """
            import base64, json, sys
            from cryptography.hazmat.primitives import hashes, serialization
            from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
            from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat, PublicFormat
            args = sys.argv[1:]
            def encoded(data): return base64.b64encode(data).decode()
            """
        let (status, output) = try await ChildProcess(Servers.python, ["-c", "\(beginning)\n\(script)"] + arguments).finish()
        guard status == 0 else { throw TestError("the script ended with the status \(status): \(output)") }
        return output
    }
}

/// Signatures that others verify, and theirs; keys in all forms in which they write them.
// A3.2
@Suite(.timeLimit(.minutes(1)), .enabled(if: RFC9421.hasLibcrypto), .enabled { try await PythonCryptography.isInstalled() })
struct PythonCryptographyTests {
    private static let schemes = """
        def sign(key, name, message):
            if name == "ed25519": return key.sign(message)
            if name.startswith("ecdsa"):
                size = 32 if "256" in name else 48
                algorithm = ec.ECDSA(hashes.SHA256() if size == 32 else hashes.SHA384())
                r, s = utils.decode_dss_signature(key.sign(message, algorithm))
                return r.to_bytes(size, "big") + s.to_bytes(size, "big")
            return key.sign(message, *rsa_scheme(name))
        def rsa_scheme(name):
            if name == "rsa-v1_5-sha256": return padding.PKCS1v15(), hashes.SHA256()
            return padding.PSS(mgf=padding.MGF1(hashes.SHA512()), salt_length=64), hashes.SHA512()
        def verify(key, name, signature, message):
            if name == "ed25519": return key.verify(signature, message)
            if name.startswith("ecdsa"):
                size = len(signature) // 2
                numbers = [int.from_bytes(part, "big") for part in (signature[:size], signature[size:])]
                return key.verify(utils.encode_dss_signature(*numbers), message, ec.ECDSA(hashes.SHA256() if size == 32 else hashes.SHA384()))
            return key.verify(signature, message, *rsa_scheme(name))
        def make(name):
            if name == "ed25519": return ed25519.Ed25519PrivateKey.generate()
            if name.startswith("ecdsa"): return ec.generate_private_key(ec.SECP256R1() if "256" in name else ec.SECP384R1())
            return rsa.generate_private_key(65537, 2048)
        """

    @Test(
        "signatures go both ways, with a key of theirs",
        arguments: [.ed25519, .ecdsaP256, .ecdsaP384, .rsaPSS, .rsaPKCS1] as [SignatureAlgorithm])
    func signatures(algorithm: SignatureAlgorithm) async throws {
        let message = SignableMessage.request(.post, "https://example.com/a?b=c", headers: ["Content-Type": "text/plain"])
        let input = SignatureInput(["@method", "@target-uri", "content-type"], created: RFC9421.created, keyID: "k", algorithm: algorithm)
        let base = try message.signatureBase(input)
        let made = try await PythonCryptography.run(
            """
            \(Self.schemes)
            key = make(args[0])
            print(encoded(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, serialization.NoEncryption())))
            print(encoded(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)))
            print(encoded(sign(key, args[0], args[1].encode())))
            """, [algorithm.rawValue, base]
        ).map { Data(base64Encoded: $0) ?? Data() }
        let theirs = try VerificationKey(pem: String(decoding: made[1], as: UTF8.self), algorithm: algorithm)
        #expect(try theirs.isValid(made[2], of: Data(base.utf8)))
        let key = try SigningKey(pem: String(decoding: made[0], as: UTF8.self), algorithm: algorithm)
        var signed = message
        for field in try message.signed(with: key, covering: input) { signed.headers.update(field) }
        let signature = try #require(try signed.signatures().first?.signature)
        let verified = try await PythonCryptography.run(
            """
            \(Self.schemes)
            verify(serialization.load_pem_public_key(args[1].encode()), args[0], base64.b64decode(args[2]), args[3].encode())
            print("verified")
            """, [algorithm.rawValue, String(decoding: made[1], as: UTF8.self), signature.base64EncodedString(), base])
        #expect(verified == ["verified"])
    }

    @Test(
        "keys in every form in which they are written are read",
        arguments: ["ed25519", "ecdsa-p256-sha256", "ecdsa-p384-sha384", "rsa-pss-sha512"])
    func forms(name: String) async throws {
        let output = try await PythonCryptography.run(
            """
            \(Self.schemes)
            key = make(args[0])
            names = {Encoding.PEM: "PEM", Encoding.DER: "DER"}
            locked = serialization.BestAvailableEncryption(b"password")
            for form in [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL]:
                if form == PrivateFormat.TraditionalOpenSSL and args[0] == "ed25519": continue
                for encryption in [None, locked]:
                    for encoding in [Encoding.PEM, Encoding.DER]:
                        if encryption and encoding == Encoding.DER and form == PrivateFormat.TraditionalOpenSSL: continue
                        data = key.private_bytes(encoding, form, encryption or serialization.NoEncryption())
                        print("private", names[encoding], "locked" if encryption else "open", encoded(data))
            public = key.public_key()
            forms = [PublicFormat.SubjectPublicKeyInfo] + ([PublicFormat.PKCS1] if args[0].startswith("rsa") else [])
            for form in forms:
                for encoding in [Encoding.PEM, Encoding.DER]:
                    print("public", names[encoding], "open", encoded(public.public_bytes(encoding, form)))
            """, [name])
        #expect(output.count == (name == "ed25519" ? 6 : name.hasPrefix("rsa") ? 11 : 9))
        var signing: [SigningKey] = []
        var verifying: [VerificationKey] = []
        for line in output {
            let parts = line.split(separator: " ")
            let data = try #require(Data(base64Encoded: String(parts[3])))
            let (isPEM, isLocked) = (parts[1] == "PEM", parts[2] == "locked")
            let text = String(decoding: data, as: UTF8.self)
            if parts[0] == "public" {
                verifying.append(try isPEM ? VerificationKey(pem: text) : VerificationKey(der: data))
                continue
            }
            func read(_ password: String?) throws -> SigningKey {
                try isPEM ? SigningKey(pem: text, password: password) : SigningKey(der: data, password: password)
            }
            signing.append(try read(isLocked ? "password" : nil))
            guard isLocked else { continue }
            #expect(throws: isPEM ? SigningKeyError.wrongPassword : .invalidKey("it is not the DER encoding of a private key")) {
                try read("other")
            }
            #expect(throws: isPEM ? SigningKeyError.passwordRequired : .invalidKey("it is not the DER encoding of a private key")) {
                try read(nil)
            }
        }
        let message = Data("message".utf8)
        for key in signing {
            let signature = try key.signature(of: message)
            for verifier in verifying { #expect(try verifier.isValid(signature, of: message)) }
        }
    }

    @Test(
        "keys of unsupported kinds and sizes are named",
        arguments: [
            ("ec.generate_private_key(ec.SECP521R1())", "the curve secp521r1"),
            ("ec.generate_private_key(ec.SECP256K1())", "the curve secp256k1"),
            ("rsa.generate_private_key(65537, 1024)", "an RSA key of 1024 bits, fewer than 2048"),
        ] as [(String, String)])
    func unsupported(expression: String, reason: String) async throws {
        let pem = try await PythonCryptography.run(
            "key = \(expression)\nprint(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, serialization.NoEncryption()).decode())")
        #expect(throws: SigningKeyError.unsupportedKey(reason)) { try SigningKey(pem: pem.joined(separator: "\n")) }
    }

    @Test("a JSON Web Key of RSA with its prime factors is read") func rsaWebKey() async throws {
        let output = try await PythonCryptography.run(
            """
            key = rsa.generate_private_key(65537, 2048)
            numbers = key.private_numbers()
            values = dict(n=numbers.public_numbers.n, e=numbers.public_numbers.e, d=numbers.d, p=numbers.p, q=numbers.q, dp=numbers.dmp1,
                dq=numbers.dmq1, qi=numbers.iqmp)
            def text(value):
                return base64.urlsafe_b64encode(value.to_bytes((value.bit_length() + 7) // 8, "big")).decode().rstrip("=")
            print(json.dumps(dict({name: text(value) for name, value in values.items()}, kty="RSA", alg="RS256", kid="r")))
            print(encoded(key.sign(b"message", padding.PKCS1v15(), hashes.SHA256())))
            """)
        let key = try SigningKey(jwk: Data(output[0].utf8))
        #expect(key.id == "r")
        // Without a salt, there is one signature of a message.
        #expect(try key.signature(of: Data("message".utf8)).base64EncodedString() == output[1])
    }
}
