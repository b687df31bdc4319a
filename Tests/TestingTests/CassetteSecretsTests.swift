// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import Testing

/// Secrets of many kinds are recorded, replayed and made to fail; none is on disk, or in a text.
@Suite(.timeLimit(.minutes(2))) struct CassetteSecretsTests {
    /// An exchange with a secret somewhere.
    struct Kind: Sendable, CustomTestStringConvertible {
        let name: String
        /// The texts that must not be found.
        let secrets: [String]
        var url = "https://api.example.org/x"
        var headers: HTTPHeaders = [:]
        var type: String?
        var body = Data()
        var response = MockResponse.status(200)
        /// Whether errors of the library itself hide it: not unmarked items of a URL, which only cassettes know to be secrets.
        var isHiddenInErrors = true

        var testDescription: String { name }
    }

    private static let secret = "s3cr3tV4lue9"

    private static func inQuery(_ item: String, isHiddenInErrors: Bool = false) -> Kind {
        Kind(
            name: "query \(item)", secrets: [secret], url: "https://api.example.org/x?a=1&\(item)=\(secret)&b=2",
            isHiddenInErrors: isHiddenInErrors)
    }

    private static func inHeader(_ name: String, _ value: String = secret, _ secrets: String...) -> Kind {
        Kind(name: "header \(name)", secrets: secrets.isEmpty ? [secret] : secrets, headers: [name: value])
    }

    private static func inBody(_ name: String, _ type: String, _ body: String, _ secrets: String...) -> [Kind] {
        let secrets = secrets.isEmpty ? [secret] : secrets
        return [
            Kind(name: "\(name), sent", secrets: secrets, type: type, body: Data(body.utf8)),
            Kind(name: "\(name), received", secrets: secrets, response: .text(body, type: type)),
        ]
    }

    /// Assembled here, so that no scanner finds tokens in this file.
    private static func token(_ prefix: String, _ count: Int) -> String { prefix + String(repeating: "aB3dE6", count: 20).prefix(count) }

    // Made for each use: the leak sanitizer does not see the bytes of a `Data` that a global has.
    static var kinds: [Kind] {
        let basic = Data("user:\(secret)".utf8).base64EncodedString()
        var kinds: [Kind] = [
            inHeader("Authorization", "Basic \(basic)", basic), inHeader("Authorization", "Bearer \(secret)"),
            inHeader("Authorization", "Digest username=\"u\", response=\"\(secret)\""),
            inHeader("Proxy-Authorization", "Basic \(basic)", basic),
            inHeader("Cookie", "session=\(secret)"), inHeader("X-Api-Key"), inHeader("X-Auth-Token"), inHeader("X-CSRF-Token"),
            inHeader("X-Vault-Token"), inHeader("Private-Token"), inHeader("Ocp-Apim-Subscription-Key"), inHeader("X-Amz-Security-Token"),
            inHeader("X-Hub-Signature-256"), inHeader("X-Tests-Own"), inHeader("Referer", "https://u:\(secret)@example.org/"),
            inHeader("X-Other", "token \(token("ghp_", 36))", token("ghp_", 36)),
            inQuery("access_token", isHiddenInErrors: true), inQuery("refresh_token"), inQuery("api_key"), inQuery("apiKey"),
            inQuery("key"),
            inQuery("sig"), inQuery("X-Amz-Signature"), inQuery("X-Amz-Credential"), inQuery("code"), inQuery("client%5Fsecret"),
            inQuery("passwords%5B0%5D=x&password%5B0%5D"), inQuery("tests-own-item", isHiddenInErrors: true),
            Kind(name: "user info", secrets: [secret], url: "https://user:\(secret)@api.example.org/x"),
            Kind(
                name: "URL in a query", secrets: [secret],
                url: "https://api.example.org/x?to=https%3A%2F%2Fa%2F%3Faccess_token%3D\(secret)",
                isHiddenInErrors: false),
            Kind(name: "value in a path", secrets: ["own-v4lue"], url: "https://api.example.org/own-v4lue/x", isHiddenInErrors: false),
            Kind(name: "value in bytes", secrets: ["own-v4lue"], body: Data([0xFF, 0xFE]) + Data("own-v4lueown-v4lue".utf8)),
            Kind(name: "Set-Cookie", secrets: [secret], response: .status(200, headers: ["Set-Cookie": "s=\(secret); Path=/"])),
            Kind(
                name: "Location with a token", secrets: [secret],
                response: .status(
                    201, headers: ["Location": "https://app.example.org/cb?state=1&access_token=\(secret)#id_token=\(secret)"])),
            Kind(
                name: "message of a failure", secrets: [secret], response: .failure(.connect, message: "No https://u:\(secret)@h/ there")),
        ]
        kinds += inBody("form", "application/x-www-form-urlencoded", "user=u&password=\(secret)&client_secret=\(secret)")
        kinds += inBody("JSON", "application/json", #"{"a": [{"Password": "\#(secret)"}], "refreshToken": {"value": "\#(secret)"}}"#)
        kinds += inBody("JSON of a problem", "application/problem+json", #"{"detail": "Bearer \#(secret) is wrong"}"#)
        kinds += inBody(
            "multipart", "multipart/form-data; boundary=b",
            "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n\(secret)\r\n--b--\r\n")
        kinds += inBody("XML", "application/xml", "<a><wsse:Password Type=\"t\">\(secret)</wsse:Password><token>\(secret)</token></a>")
        let jwt = "eyJhbGciOiJub25l.eyJzdWIiOiIxMjM0NTY3.c2lnbmF0dXJl"
        let tokens: [(String, String)] = [
            ("JSON Web Token", jwt), ("AWS", token("AKIA", 0) + "ABCDEFGHIJKLMNOP"), ("GitHub", token("ghp_", 36)),
            ("GitHub, fine-grained", token("github_pat_", 40)), ("GitLab", token("glpat-", 20)), ("Slack", token("xoxb-", 30)),
            ("Stripe", token("sk_live_", 24)), ("Google key", token("AIza", 35)), ("Google token", token("ya29.", 30)),
            ("npm", token("npm_", 36)), ("PyPI", token("pypi-", 40)), ("OpenAI", token("sk-", 40)),
            ("SendGrid", token("SG.", 22) + token(".", 43)), ("own value", "own-v4lue"),
        ]
        for (name, token) in tokens { kinds += inBody(name, "text/plain", "The secret is \(token), keep it", token) }
        let key = "-----BEGIN PRIVATE KEY-----\n\(secret)\n-----END PRIVATE KEY-----\n"
        kinds += inBody("key in PEM", "text/plain", key)
        kinds += inBody("key in JSON", "application/json", #"{"pem": "\#(key.replacing("\n", with: #"\n"#))"}"#)
        return kinds
    }

    private let redaction = CassetteRedaction(names: ["x-tests-own", "tests-own-item"], values: ["own-v4lue", ""])

    @Test("there are forty kinds and more") func count() {
        #expect(Set(Self.kinds.map(\.name)).count >= 40)
    }

    @Test("no secret is on disk, or in a text", arguments: kinds) func scan(_ kind: Kind) async throws {
        let directory = try TemporaryDirectory()
        let cassette = try Cassette(directory: directory.url, redaction: redaction)
        var texts: [String] = []
        func note(_ value: Any) {
            texts += ["\(value)", String(reflecting: value)]
            var dumped = ""
            dump(value, to: &dumped)
            texts.append(dumped)
        }
        func send(_ transport: any Transport) async throws {
            var configuration = SessionConfiguration()
            configuration.redaction = Redaction(headers: ["X-Tests-Own"], queryItems: ["tests-own-item"])
            let manager = SessionManager(configuration: configuration, transport: transport)
            var request = try URLRequest(url: kind.url, method: kind.body.isEmpty ? .get : .post, headers: kind.headers)
            if let type = kind.type { request.setValue(type, forHTTPHeaderField: "Content-Type") }
            if !kind.body.isEmpty { request.httpBody = kind.body }
            let response = await manager.request(request).validate().serializingData().response
            if kind.isHiddenInErrors, let error = response.error { note(error) }
            if let error = response.error as? UnmatchedRequest { note(error) }
        }
        let mock = MockTransport(kind.response)
        try await send(RecordingTransport(cassette, base: mock))
        try await cassette.flush()
        // Replayed, although what is asked and what is stored are redacted; then nothing is left.
        let replay = try ReplayTransport(Cassette(directory: directory.url, redaction: redaction))
        try await send(replay)
        #expect(replay.unusedExchanges.isEmpty)
        try await send(try ReplayTransport(Cassette([], redaction: redaction)))
        try await send(MockTransport(.failure(.connect)))
        try await send(MockTransport(.status(500)))
        let names = try contents(of: directory)
        #expect(!names.isEmpty)
        for name in names { texts += [name, String(decoding: try Data(contentsOf: directory.file(name)), as: UTF8.self)] }
        for exchange in cassette.exchanges { note(exchange) }
        for text in texts {
            for secret in kind.secrets { #expect(!text.contains(secret), "\(text)") }
        }
    }

    @Test("a body without secrets is stored byte by byte, and names can be excepted") func untouched() async throws {
        let body = "{ \"b\" : 1.50, \"a\":[true,null], \"password_hint\": \"x\", \"token\": \"kept\" }"
        let directory = try TemporaryDirectory()
        let cassette = try Cassette(directory: directory.url, redaction: CassetteRedaction(exceptions: ["token"]))
        let manager = SessionManager(transport: RecordingTransport(cassette, base: MockTransport(.text(body, type: "application/json"))))
        _ = await manager.request("https://api.example.org/").serializingData().response
        try await cassette.flush()
        let file = try #require(try contents(of: directory).first { $0.contains(".response.") })
        #expect(try String(contentsOf: directory.file(file), encoding: .utf8) == body)
    }
}
