// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct AuthenticationChallengeTests {
    private typealias Challenge = AuthenticationChallenge

    @Test(
        "challenges in one or several fields (RFC 9110, section 11.6.1)",
        arguments: [
            (["Basic realm=\"simple\""], [Challenge(scheme: "basic", parameters: ["realm": "simple"])]),
            (["bAsIc REALM=simple"], [Challenge(scheme: "basic", parameters: ["realm": "simple"])]),
            (["Basic"], [Challenge(scheme: "basic")]),
            (["Basic realm = \"a\" , charset=\tUTF-8"], [Challenge(scheme: "basic", parameters: ["realm": "a", "charset": "UTF-8"])]),
            (["NTLM"], [Challenge(scheme: "ntlm")]),
            (["NTLM TlRM+/~._-=="], [Challenge(scheme: "ntlm", token68: "TlRM+/~._-==")]),
            (["Negotiate, NTLM"], [Challenge(scheme: "negotiate"), Challenge(scheme: "ntlm")]),
            (
                ["Negotiate oYG=, Basic realm=x"],
                [Challenge(scheme: "negotiate", token68: "oYG="), Challenge(scheme: "basic", parameters: ["realm": "x"])]
            ),
            (
                ["Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\", Basic realm=\"simple\""],
                [
                    Challenge(scheme: "newauth", parameters: ["realm": "apps", "type": "1", "title": "Login to \"apps\""]),
                    Challenge(scheme: "basic", parameters: ["realm": "simple"]),
                ]
            ),
            (
                ["Digest realm=\"a, b=c\", qop=\"auth, auth-int\", nonce=\"x\"", "Basic realm=\"\""],
                [
                    Challenge(scheme: "digest", parameters: ["realm": "a, b=c", "qop": "auth, auth-int", "nonce": "x"]),
                    Challenge(scheme: "basic", parameters: ["realm": ""]),
                ]
            ),
            ([" ,, Basic realm=a,,, ,", ""], [Challenge(scheme: "basic", parameters: ["realm": "a"])]),
            (["Basic realm=\"Größe\""], [Challenge(scheme: "basic", parameters: ["realm": "Größe"])]),
        ] as [([String], [AuthenticationChallenge])])
    func sound(_ fields: [String], _ challenges: [AuthenticationChallenge]) {
        #expect(Challenge.challenges(in: fields) == challenges)
    }

    @Test(
        "malformed input ends its challenge, and no other",
        arguments: [
            ([""], []), ([","], []), (["="], []), (["\"\""], []), (["=,=\"a\",;"], []),
            (["Basic realm=My Site"], [Challenge(scheme: "basic")]),
            (["Basic realm="], [Challenge(scheme: "basic", token68: "realm=")]),
            (["Basic realm=\"open"], [Challenge(scheme: "basic")]),
            (["Basic realm=\"open\\"], [Challenge(scheme: "basic")]),
            (["Basic realm=\"a\"b, x=y"], [Challenge(scheme: "basic")]),
            (["Basic realm=a, realm=b"], [Challenge(scheme: "basic", parameters: ["realm": "a"])]),
            (["realm=\"a\""], []),
            (["(nonsense), Basic realm=a"], [Challenge(scheme: "basic", parameters: ["realm": "a"])]),
            (["\"quoted, Basic realm=x\", Basic realm=a"], [Challenge(scheme: "basic", parameters: ["realm": "a"])]),
            (
                ["Digest nonce=a b, qop=auth, Basic realm=a"],
                [Challenge(scheme: "digest"), Challenge(scheme: "basic", parameters: ["realm": "a"])]
            ),
            (["NTLM abc=, realm=x"], [Challenge(scheme: "ntlm", token68: "abc=")]),
            (["Basic\u{0}realm=a"], []),
        ] as [([String], [AuthenticationChallenge])])
    func unsound(_ fields: [String], _ challenges: [AuthenticationChallenge]) {
        #expect(Challenge.challenges(in: fields) == challenges)
    }

    @Test("a field of a megabyte is parsed in linear time")
    func large() {
        for piece in ["a,", "a=", "\"", "a=\"\\", "a b=c,", "=", "a=b, ", "\\\"", "Basic a=\"b\", "] {
            _ = Challenge.challenges(in: [String(repeating: piece, count: 100_000)])
        }
    }

    @Test("random bytes do not crash the parser")
    func random() {
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("Ba=\" ,\\\t;é\u{0}~/+")
        for _ in 0..<5_000 {
            let field = String(
                (0..<Int.random(in: 0...40, using: &generator)).map { _ in alphabet.randomElement(using: &generator) ?? "a" })
            for challenge in Challenge.challenges(in: [field]) { #expect(!challenge.scheme.isEmpty, "\(field)") }
        }
    }

    @Test(
        "challenges are ranked by strength, then in the server's order",
        arguments: [
            (["Basic realm=a", "Digest nonce=1", "Digest nonce=2, algorithm=SHA-256"], ["digest 2", "digest 1", "basic"]),
            (["Digest nonce=2, algorithm=SHA-256-sess, Digest nonce=1, algorithm=SHA-256"], ["digest 2", "digest 1"]),
            (["Digest nonce=1, algorithm=SHA-512-256", "Basic"], ["basic"]),
            (["Bearer realm=a", "Unknown"], []),
            (["Basic, NTLM, Digest nonce=1"], CurlInfo.current.supportsNTLM ? ["digest 1", "ntlm", "basic"] : ["digest 1", "basic"]),
        ])
    func ranking(_ fields: [String], _ expected: [String]) {
        let ranked = AnswerableChallenge.ranked(Challenge.challenges(in: fields))
        let names = ranked.map { challenge in
            switch challenge.scheme {
            case .basic: "basic"
            case .digest(let digest): "digest \(digest.nonce)"
            case .ntlm: "ntlm"
            case .negotiate: "negotiate"
            }
        }
        #expect(names == expected)
    }

    @Test(
        "the request target is the one that libcurl sends",
        arguments: [
            ("http://a", "/"), ("http://a/", "/"), ("http://a?b=c", "/?b=c"), ("http://a/b%20c?d=/e#f", "/b%20c?d=/e"),
            ("http://u:p@a:80/../b", "/../b"), ("http://a#f", "/"), ("http://a/?x=http://b/", "/?x=http://b/"), ("nonsense", "/"),
        ])
    func targets(_ url: String, _ target: String) {
        #expect(TransferRequest(url: url).target == target)
    }

    @Test("Basic is base64 of UTF-8, and users with a colon are rejected")
    func basic() {
        #expect(Request.authorizationHeader(user: "Aladdin", password: "open sesame")?.value == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        #expect(Request.authorizationHeader(user: "test", password: "123£")?.value == "Basic dGVzdDoxMjPCow==")  // RFC 7617, section 2.1
        #expect(Request.authorizationHeader(user: "a", password: "b:c")?.key == "Authorization")
        #expect(Request.authorizationHeader(user: "a:b", password: "c") == nil)
        #expect(Request.authorizationHeader(user: "a", password: "c\n") == nil)
    }
}
