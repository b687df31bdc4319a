// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

// The responses were computed by other implementations; those without comment by Python's hashlib.
@Suite(.timeLimit(.minutes(1))) struct DigestTests {
    private static let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
    private static let clientNonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"

    private static func challenge(_ parameters: [String: String]) -> DigestChallenge? {
        let defaults = [
            "realm": "http-auth@example.org", "nonce": nonce, "opaque": "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS", "qop": "auth",
        ]
        return DigestChallenge(
            AuthenticationChallenge(scheme: "Digest", parameters: defaults.merging(parameters) { $1 }.filter { $0.value != "-" }))
    }

    private static func session(_ parameters: [String: String] = [:], user: String = "Mufasa") throws -> DigestSession {
        let challenge = try #require(Self.challenge(parameters))
        return try #require(DigestSession(challenge, user: user, password: "Circle of Life", clientNonce: clientNonce))
    }

    private static func answer(_ parameters: [String: String] = [:], user: String = "Mufasa") throws -> String {
        var session = try session(parameters, user: user)
        return session.authorization(method: "GET", target: "/dir/index.html")
    }

    @Test(
        "MD5 (RFC 1321, appendix A.5)",
        arguments: [
            ("", "d41d8cd98f00b204e9800998ecf8427e"), ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"), ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"),
            (String(repeating: "1234567890", count: 8), "57edf4a22be3c955ac49da2e2107b67a"),
        ])
    func md5(_ text: String, _ digest: String) {
        #expect(MD5.digest(of: text.utf8).hexDigits == digest)
    }

    @Test(
        "SHA-256 (FIPS 180-4)",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
            (String(repeating: "a", count: 1_000_000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
        ])
    func sha256(_ text: String, _ digest: String) {
        #expect(SHA256.digest(of: text.utf8).hexDigits == digest)
    }

    @Test("digests of all lengths around a block boundary")
    func paddedLengths() {
        // Each length is padded differently; one digest over all digests covers them.
        let all = (50...130).map {
            MD5.digest(of: [UInt8](repeating: UInt8($0), count: $0)) + SHA256.digest(of: [UInt8](repeating: 7, count: $0))
        }
        #expect(SHA256.digest(of: all.joined()).hexDigits == "d3a54a1fc6614569cc3a8b51b741d02106f235b95e6dd1934c926674552d2fb6")
    }

    @Test(
        "responses by algorithm",
        arguments: [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),  // RFC 7616, section 3.9.1
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),  // the same
            ("MD5-sess", "e783283f46242139c486a698fec7211d"),
            ("SHA-256-sess", "2fd51b3a77ad75bad6afad6003e818d767133c46d9e2749e7f5232ae1ea3efd7"),
            ("sha-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ])
    func responses(_ algorithm: String, _ response: String) throws {
        let answer = try Self.answer(["algorithm": algorithm])
        #expect(answer.contains("response=\"\(response)\""))
        #expect(answer.contains("algorithm=\(algorithm),"))
    }

    @Test("the whole Authorization field, as in RFC 7616, section 3.9.1")
    func wholeAnswer() throws {
        #expect(
            try Self.answer(["algorithm": "MD5"])
                == #"Digest username="Mufasa", realm="http-auth@example.org", nonce="\#(Self.nonce)", uri="/dir/index.html", algorithm=MD5, "#
                + #"qop=auth, nc=00000001, cnonce="\#(Self.clientNonce)", response="8ca523f5e9506fed4657c9700eebdbec", "#
                + #"opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#)
    }

    @Test("a challenge without qop gets a response by RFC 2069")
    func legacy() throws {
        let challenge = try #require(
            Self.challenge(["realm": "testrealm@host.com", "nonce": "dcd98b7102dd2f0e8b11d0f600bfb0c093", "qop": "-", "opaque": "-"]))
        var session = try #require(DigestSession(challenge, user: "Mufasa", password: "CircleOfLife"))
        let answer = session.authorization(method: "GET", target: "/dir/index.html")
        #expect(answer.contains("response=\"1949323746fe6a43ef61f9606e7febea\""))  // the RFC's errata
        for field in ["qop", "nc=", "cnonce", "algorithm", "opaque"] { #expect(!answer.contains(field)) }
    }

    @Test("a mark after a quote or a backslash leaves no quoted string", arguments: ["\u{301}", "\u{200D}", "\u{FE0F}", "\u{20DD}"])
    func marks(_ mark: String) throws {
        var session = try Self.session(["opaque": "a\"\(mark)\\\(mark), uri=\"/evil"])
        let answer = session.authorization(method: "GET", target: "/dir/index.html")
        #expect(
            answer.unicodeScalars.reversed().starts(with: "opaque=\"a\\\"\(mark)\\\\\(mark), uri=\\\"/evil\"".unicodeScalars.reversed()))
    }

    @Test("the nonce count has eight hexadecimal digits")
    func counting() throws {
        var session = try Self.session(["algorithm": "SHA-256"])
        var answers = (1...255).map { _ in session.authorization(method: "GET", target: "/dir/index.html") }
        #expect(
            answers[1].contains("nc=00000002") && answers[1].contains("8c8db27f49ff1c202f9fb49fa9d2e9eabf078dcc93db40dfd6527010091d1c8e"))
        #expect(answers[254].contains("nc=000000ff"))
        #expect(answers[254].contains("3f0fc538786ba75c6a3e9e9d031b17c9937f4b16efb5546a1e66dd2806ceff86"))
        session.take(nextNonce: "next")
        answers.append(session.authorization(method: "GET", target: "/dir/index.html"))
        #expect(answers[255].contains("nc=00000001") && answers[255].contains("nonce=\"next\""))
    }

    @Test("a -sess secret uses the first nonce, whichever nonces follow")
    func sessionSecret() throws {
        var session = try Self.session(["algorithm": "SHA-256-sess"])
        session.take(nextNonce: "next")
        #expect(
            session.authorization(method: "GET", target: "/dir/index.html").contains(
                "7cd72319fac9ebd5e69582b8298e4769d9f4c1633c2e2d06b914a9d3ca5a8e78"))
    }

    @Test("the user name is hashed or encoded if the challenge asks for it")
    func userNames() throws {
        let hashed = try Self.answer(["realm": "api@example.org", "userhash": "true", "algorithm": "SHA-256"], user: "Jäsøn Doe")
        #expect(hashed.contains("username=\"5a1a8a47df5c298551b9b42ba9b05835174a5bd7d511ff7fe9191d8e946fc4e7\", userhash=true"))
        #expect(try Self.answer(["charset": "UTF-8"], user: "Jäsøn Doe").contains("username*=UTF-8''J%C3%A4s%C3%B8n%20Doe,"))
        #expect(try Self.answer(user: "Jäsøn Doe").contains("username=\"Jäsøn Doe\""))
        #expect(try Self.answer(["charset": "UTF-8"]).contains("username=\"Mufasa\""))
    }

    @Test("quotes and backslashes are escaped, and a user name can't inject a header field")
    func escaping() throws {
        let answer = try Self.answer(["realm": #"a "b" \c"#], user: #"d"\"#)
        #expect(answer.contains(#"username="d\"\\", realm="a \"b\" \\c""#))
        let plain = try #require(Self.challenge([:]))
        #expect(DigestSession(plain, user: "a\r\nX-Evil: 1", password: "") == nil)
        #expect(try Self.answer(["charset": "UTF-8"], user: "a\r\nX: 1").contains("username*=UTF-8''a%0D%0AX%3A%201"))
    }

    @Test(
        "challenges that can't be answered are rejected",
        arguments: [
            ["nonce": "-"], ["algorithm": "SHA-512-256"], ["algorithm": "MD5, SHA-256"], ["qop": "auth-int"], ["realm": "a\u{1}b"],
            ["nonce": "\u{7F}"], ["opaque": "\n"],
        ])
    func unanswerable(_ parameters: [String: String]) {
        #expect(Self.challenge(parameters) == nil)
    }

    @Test("parameters are case-insensitive")
    func reading() throws {
        let challenge = try #require(Self.challenge(["qop": "auth-int, AUTH", "stale": "TRUE", "userhash": "True", "charset": "utf-8"]))
        #expect(challenge.isStale && challenge.hashesUser && challenge.isUTF8 && challenge.hasQualityOfProtection)
        let other = try #require(Self.challenge(["qop": "", "stale": "no", "realm": "-"]))
        #expect(!other.isStale && !other.hasQualityOfProtection && other.realm.isEmpty)
    }

    @Test("client nonces differ")
    func clientNonces() throws {
        let challenge = try #require(Self.challenge([:]))
        let answers = try (0..<100).map { _ in
            var session = try #require(DigestSession(challenge, user: "a", password: "b"))
            return session.authorization(method: "GET", target: "/")
        }
        #expect(Set(answers).count == 100)
    }
}
