// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP
import CurlewTestSupport
import Testing

@Suite struct RedactionTests {
    private let redaction = Redaction(headers: ["X-Own-Key"], queryItems: ["key", "user[pin]", "two words"])

    @Test(
        "secret header fields, compared case-insensitively",
        arguments: ["authorization", "COOKIE", "Set-Cookie", "x-own-KEY", "x-api-KEY"])
    func secretHeaders(_ name: String) {
        #expect(redaction.hides(header: name))
        #expect(redaction.line(HTTPHeader(name: name, value: "s3cret")) == "\(name): <hidden>")
    }

    @Test("other header fields keep their values, except for secrets in URLs")
    func otherHeaders() {
        #expect(redaction.line(HTTPHeader(name: "X-Api", value: "plain")) == "X-Api: plain")
        let location = HTTPHeader(name: "Location", value: "https://u:p@h/?key=s3cret&a=1#access_token=s3cret")
        #expect(redaction.line(location) == "Location: https://h/?key=<hidden>&a=1#access_token=<hidden>")
        #expect(!Redaction().hides(header: "X-Own-Key"))
    }

    @Test("names that are usual for secrets are secret without a mark") func usualNames() {
        let redaction = Redaction()
        #expect(redaction.hides(header: "X-Vault-Token") && !redaction.marks(header: "X-Vault-Token"))
        #expect(
            redaction.url("/?client%5Fsecret=1&refreshToken=2&password[0]=3&page=4")
                == "/?client%5Fsecret=<hidden>&refreshToken=<hidden>&password[0]=<hidden>&page=4")
        #expect(
            redaction.url("/?client_secret=1&access_token=2", hides: { redaction.marks(queryItem: $0) })
                == "/?client_secret=1&access_token=<hidden>")
        let token = "ghp_" + String(repeating: "a1", count: 18)
        #expect(redaction.value(of: HTTPHeader(name: "X-Other", value: "token \(token)")) == "token <hidden>")
        for scheme in ["Bearer ", "bearer\t", "BEARER  ", "Basic ", "BASIC\t"] {
            #expect(redaction.value(of: HTTPHeader(name: "X-Other", value: "a \(scheme)c2VjcmV0c2VjcmV0")) == "a <hidden>")
        }
    }

    @Test(
        "secret header fields without a mark",
        arguments: [
            "X-Secret", "X-Auth", "X-Token", "X-Password", "DD-API-KEY", "DD-APPLICATION-KEY", "X-RapidAPI-Key", "CF-Access-Client-Secret",
            "CF-Access-Client-Id", "X-Amz-Security-Token", "DPoP", "Api-Key", "X-Auth-Token", "X-Forwarded-Authorization", "Private-Token",
            "X-Amz-Server-Side-Encryption-Customer-Key", "X-Hub-Signature-256", "X-JWT", "X-Session", "Impersonate-User", "X-Password-2",
            "X-Sentry-Auth", "X-ZUMO-AUTH", "X-Tableau-Auth", "Fastly-Key", "X-Master-Key", "X-Parse-Master-Key", "X-Session-Key",
        ])
    func usualHeaders(_ name: String) {
        #expect(Redaction().line(HTTPHeader(name: name, value: "s3cret")) == "\(name): <hidden>")
    }

    @Test(
        "secret items without a mark",
        arguments: [
            "key", "auth", "pass", "secret_token", "api+key", "api%20key", "api.key", "API_KEY", "code", "code_verifier", "client_secret",
            "X-Amz-Security-Token", "X-Amz-Signature", "user[pass]", "pin", "password1", "token2", "jsessionid", "id_token_hint",
            "SAMLResponse", "oauth_verifier", "ticket", "hmac", "password_confirmation",
        ])
    func usualItems(_ name: String) {
        #expect(Redaction().url("https://h/?a=1&\(name)=s3cret&b=2") == "https://h/?a=1&\(name)=<hidden>&b=2")
        #expect(Redaction().form("\(name)=s3cret") == "\(name)=<hidden>")
    }

    @Test(
        "names of other values",
        arguments: [
            "page_token", "nextPageToken", "Continuation-Token", "Idempotency-Key", "keys", "max_tokens", "Sec-WebSocket-Key", "id",
        ])
    func otherNames(_ name: String) {
        #expect(!Redaction().hides(header: name) && !Redaction().hides(queryItem: name))
    }

    @Test(
        "bodies: members of JSON, whole or cut, and items of forms",
        arguments: [
            (#"{"password":"s3\"cret","a":1}"#, #"{"password":"<hidden>","a":1}"#),
            (
                #"{ "a" : [ {"client_secret" : 17 }, {"api.key":[1,{"b":"]"}],"c":2} ] }"#,
                #"{ "a" : [ {"client_secret" : "<hidden>" }, {"api.key":"<hidden>","c":2} ] }"#
            ),
            (#"{"token":"s3cr"#, #"{"token":"<hidden>""#), (#"{"token":{"a":"s3"#, #"{"token":"<hidden>""#), (#"{"token":"#, #"{"token":"#),
            (#"{"tok\u0065n":"s3cret"}"#, #"{"tok\u0065n":"<hidden>"}"#), (#"{"token":null,"b":true}"#, #"{"token":null,"b":true}"#),
            (#"{"key":"name","code":42}"#, #"{"key":"name","code":42}"#),
            (#"{"url":"https://u:s3cret@h/?key=s3cret","b":1}"#, #"{"url":"https://h/?key=<hidden>","b":1}"#),
            (#"{"url":"https:\/\/u:s3cret@h\/","b":1}"#, #"{"url":"<hidden>","b":1}"#),
            (#"{"body":"{\"token\":\"s3cret\"}","b":1}"#, #"{"body":"<hidden>","b":1}"#), (#"["token","s"]"#, #"["token","s"]"#),
            (#"{"a\"#, #"{"a\"#), ("{", "{"), ("", ""), ("a=1&key=s3cret", "a=1&key=<hidden>"), ("plain: text", "plain: text"),
            ("id: 5\" wide\ndata: {\"token\":\"s3cret\"}\n\n", "id: 5\" wide\ndata: {\"token\":\"<hidden>\"}\n\n"),
            (")]}',\n{\"token\":{\n\"a\":\"s3cret\"\n}}", ")]}',\n{\"token\":\"<hidden>\"}"),
            (#"{"own":"s3cret"}"#, #"{"own":"<hidden>"}"#), ("\u{FEFF}" + #"{"own":"s3cret"}"#, "\u{FEFF}" + #"{"own":"<hidden>"}"#),
        ])
    func bodies(_ body: String, _ shown: String) {
        #expect(Redaction(queryItems: ["own"]).body(body) == shown)
    }

    @Test("redacting a body takes time in proportion to its length, and it may be nested to any depth") func deepBodies() {
        for unit in ["[", "{\"a\":", "{\"token\":[", "\"\\\"", "\"a\":", "\""] {
            let shown = Redaction().body("{" + String(repeating: unit, count: 30_000))
            #expect(!shown.isEmpty)
        }
    }

    @Test(
        "an item with a URL that has a secret is one",
        arguments: [
            ("/?to=https%3A%2F%2Fh%2F%3Fkey%3D1&a=2", "/?to=<hidden>&a=2"), ("/?to=https%3A%2F%2Fu%3Ap%40h%2F", "/?to=<hidden>"),
            ("/?to=https%253A%252F%252Fh%252F%253Fkey%253D1", "/?to=<hidden>"),
            ("/?to=https%3A%2F%2Fh%2F%3Fa%3D1", "/?to=https%3A%2F%2Fh%2F%3Fa%3D1"),
            ("/?q=a%20b%40c%3D1", "/?q=a%20b%40c%3D1"),
        ])
    func nestedURLs(_ url: String, _ shown: String) {
        #expect(redaction.url(url) == shown)
    }

    @Test(
        "URLs",
        arguments: [
            ("https://u:p/s@h/path", "https://h/path"), ("https://u:x?p#s@h", "https://h"), ("https://h:1/a@b", "https://h:1/a@b"),
            ("https://[::1]/a@b", "https://[::1]/a@b"), ("\"https://h:x\", \"a/b@c\"", "\"https://h:x\", \"a/b@c\""),
            ("https://u:p@h/path", "https://h/path"), ("//u:p@h?key=1", "//h?key=<hidden>"), ("/?a=1&key=2&b=3", "/?a=1&key=<hidden>&b=3"),
            ("/?KEY=1&%6Bey=2&k%65y=3", "/?KEY=<hidden>&%6Bey=<hidden>&k%65y=<hidden>"),
            ("/?key[]=1&key[a]=2", "/?key[]=<hidden>&key[a]=<hidden>"),
            ("/?user[pin]=1&user[name]=n", "/?user[pin]=<hidden>&user[name]=n"),
            ("/?two+words=1&two%20words=2", "/?two+words=<hidden>&two%20words=<hidden>"),
            ("/?key=a=b?c;d e", "/?key=<hidden>"), ("/?key=", "/?key="), ("/?key", "/?key"), ("/?keys=1&a=key", "/?keys=1&a=key"),
            ("/#access_token=1&state=2", "/#access_token=<hidden>&state=2"), ("/?a;key=1", "/?a;key=<hidden>"), ("/key=1", "/key=1"),
            ("/?%zz=1&%=2", "/?%zz=1&%=2"), ("", ""), ("?access_token=é", "?access_token=<hidden>"),
        ])
    func urls(_ url: String, _ shown: String) {
        #expect(redaction.url(url) == shown)
    }

    @Test("forms", arguments: [("key=1&a=2", "key=<hidden>&a=2"), ("a=1&access_token=x y", "a=1&access_token=<hidden>"), ("key", "key")])
    func forms(_ form: String, _ shown: String) {
        #expect(redaction.form(form) == shown)
    }

    @Test("parameters, at any depth")
    func objects() {
        let object: [String: Any] = ["key": 1, "list": [["access_token": "x"], "y"], "a": "b"]
        let shown = redaction.object(object) as? [String: Any]
        #expect(shown?["key"] as? String == "<hidden>" && shown?["a"] as? String == "b")
        #expect("\(shown?["list"] ?? "")" == #"[["access_token": "<hidden>"], "y"]"#)
        struct Login { let password = "s3cret" }
        for value in [Login(), [Login()], ["a": Login()], #"{"password": "s3cret"}"#, "user=u&password=s3cret"] as [Any] {
            #expect(!"\(redaction.object(value))".contains("s3cret"))
        }
    }

    @Test("control characters are escaped, other text is unchanged")
    func controlCharacters() {
        let ranges: [ClosedRange<UInt32>] = [0...0x1F, 0x7F...0x9F, 0x61C...0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069]
        for scalar in ranges.joined().compactMap(Unicode.Scalar.init) {
            let escaped = Redaction.escaped("a\(scalar)b")
            #expect(
                escaped.hasPrefix("a\\") && escaped.hasSuffix("b") && escaped.unicodeScalars.allSatisfy { $0.isASCII && $0.value >= 0x20 })
        }
        #expect(Redaction.escaped("\r\n\t\u{1B}\u{202E}") == #"\r\n\t\u{1B}\u{202E}"#)
        for text in ["", #"C:\path"#, "é 日本 😃", "a\u{200D}b", "\u{A0}"] { #expect(Redaction.escaped(text) == text) }
    }

    @Test("a session's marks apply to texts without a session")
    func marks() {
        Redaction(headers: ["X-Marks-Test"], queryItems: ["marks_test"]).register()
        Redaction(headers: ["X-Marks-Test-2"]).register()
        #expect(Redaction.current.headers.isSuperset(of: ["X-Marks-Test", "X-Marks-Test-2"]))
        #expect(HTTPHeader(name: "x-marks-test", value: "s3cret").description == "x-marks-test: <hidden>")
        let url = "http://h/?marks_test=s3cret"
        let failure = TransferFailure(kind: .connect, url: url, phase: .connecting, message: "refused by \(url)")
        for text in ["\(CurlewError.invalidURL(url: url))", "\(failure)", failure.url, failure.message] {
            #expect(!text.contains("s3cret") && text.contains("marks_test=<hidden>"))
        }
    }

    @Test("reflection reveals no secrets, and no state protected by a lock")
    func reflection() {
        let values: [Any] = [
            HTTPHeader.authorization("s3cret"), [.authorization("s3cret")] as HTTPHeaders, Lock("s3cret"),
            CurlewError.invalidURL(url: "http://u:s3cret@h"), CurlewError.redirectFailed(reason: .invalidLocation("//u:s3cret@h")),
        ]
        for value in values {
            var text = ""
            dump(value, to: &text)
            #expect(!text.contains("s3cret"))
        }
    }

    @Test("control characters from peers and underlying errors are escaped in error messages")
    func errors() {
        let odd = "a\r\nb\u{1B}\u{9B}\u{2028}\u{202E}"
        let errors: [any Error] = [
            TransferFailure(kind: .protocolViolation, url: "http://h/", phase: .waiting, message: odd),
            CurlewError.responseValidationFailed(
                reason: .unacceptableContentType(acceptableContentTypes: ["*/*"], responseContentType: odd)),
            CurlewError.redirectFailed(reason: .invalidLocation(odd)),
            CurlewError.responseSerializationFailed(reason: .decodingFailed(error: Cause(description: odd))),
            CurlewError.urlRequestValidationFailed(reason: .bodyAlreadyEncoded(contentEncoding: odd)),
        ]
        for error in errors {
            for text in ["\(error)", String(reflecting: error), error.localizedDescription] {
                #expect(text.unicodeScalars.allSatisfy { !$0.isControlInText }, "\(text.debugDescription)")
            }
        }
        #expect(TransferFailure(kind: .other, url: "", phase: .waiting, message: odd).message == #"a\r\nb\u{1B}\u{9B}\u{2028}\u{202E}"#)
    }

    private struct Cause: Error, CustomStringConvertible {
        let description: String
    }

    @Test("names in brackets are looked at one by one") func brackets() {
        #expect(
            redaction.url("/?user%5Bpassword%5D=1&a[key][b]=2&user[name]=n")
                == "/?user%5Bpassword%5D=<hidden>&a[key][b]=<hidden>&user[name]=n")
    }

    @Test("tokens in paths are redacted, and texts that are like them are not") func tokens() {
        let token = "eyJhbGciOiJub25l.eyJzdWIiOiIxMjM0NTY3.c2lnbmF0dXJl"
        #expect(redaction.url("https://h/x/\(token)/y") == "https://h/x/<hidden>/y")
        #expect(redaction.url("https://h/eyJ.\(token)?a=1") == "https://h/eyJ.<hidden>?a=1")
        for text in ["https://h/eyJhbGciOiJub25l", "https://h/eyJ.x/eyJabcdefgh.abc", "https://h/sketch/git/areas"] {
            #expect(redaction.url(text) == text)
        }
    }

    /// With quadratic effort, each of these would take minutes.
    @Test(
        "long texts of a peer take linear time", .timeLimit(.minutes(1)),
        arguments: ["a=%;", "a=%25;", "?a=?a=", "a=%25%32%35&", "eyJ", "eyJ.", "%5B", "a[", "//a@", "SG.", "-----BEGIN PRIVATE KEY"])
    func linear(_ piece: String) {
        let text = "?" + String(repeating: piece, count: TestLength.value(64 << 10, short: 16 << 10) / piece.utf8.count)
        #expect(redaction.url(text).hasPrefix("?"))
        #expect(!redaction.value(of: HTTPHeader(name: "Location", value: text)).isEmpty)
    }
}
