// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTesting

/// An exchange with a secret somewhere, to scan for it what is written about the exchange.
package struct SecretExchange: Sendable, CustomStringConvertible {
    package let name: String
    /// The texts that must not be found.
    package let secrets: [String]
    package var url = "https://api.example.org/x"
    package var headers: HTTPHeaders = [:]
    package var type: String?
    package var body = Data()
    package var response = MockResponse.status(200)
    /// Whether sessions know that it is a secret: not a value of the user's that is in a path, which only cassettes are told.
    package var isKnownToSessions = true

    package var description: String { name }

    /// What a session of these exchanges marks: names that are secrets of this program alone.
    package static let redaction = Redaction(headers: ["X-Tests-Own"], queryItems: ["tests-own-item", "tests-marked", "key", "code"])

    /// The request, without user info in a field of its own.
    package var urlRequest: URLRequest {
        get throws {
            var request = try URLRequest(url: url, method: body.isEmpty ? .get : .post, headers: headers)
            if let type { request.setValue(type, forHTTPHeaderField: "Content-Type") }
            if !body.isEmpty { request.httpBody = body }
            return request
        }
    }

    private static let secret = "s3cr3tV4lue9"

    private static func inQuery(_ item: String) -> SecretExchange {
        SecretExchange(
            name: "query \(item)", secrets: [secret], url: "https://api.example.org/x?a=1&\(item)=\(secret)&b=2")
    }

    private static func inHeader(_ name: String, _ value: String = secret, _ secrets: String...) -> SecretExchange {
        SecretExchange(name: "header \(name)", secrets: secrets.isEmpty ? [secret] : secrets, headers: [name: value])
    }

    private static func inBody(_ name: String, _ type: String, _ body: String, _ secrets: String...) -> [SecretExchange] {
        let secrets = secrets.isEmpty ? [secret] : secrets
        return [
            SecretExchange(name: "\(name), sent", secrets: secrets, type: type, body: Data(body.utf8)),
            SecretExchange(name: "\(name), received", secrets: secrets, response: .text(body, type: type)),
        ]
    }

    /// Assembled here, so that no scanner finds tokens in this file.
    private static func token(_ prefix: String, _ count: Int) -> String { prefix + String(repeating: "aB3dE6", count: 20).prefix(count) }

    // Made for each use: the leak sanitizer does not see the bytes of a `Data` that a global has.
    package static var kinds: [SecretExchange] {
        let basic = Data("user:\(secret)".utf8).base64EncodedString()
        var kinds: [SecretExchange] = [
            inHeader("Authorization", "Basic \(basic)", basic), inHeader("Authorization", "Bearer \(secret)"),
            inHeader("Authorization", "Digest username=\"u\", response=\"\(secret)\""),
            inHeader("Proxy-Authorization", "Basic \(basic)", basic),
            inHeader("Cookie", "session=\(secret)"), inHeader("X-Api-Key"), inHeader("X-Auth-Token"), inHeader("X-CSRF-Token"),
            inHeader("X-Vault-Token"), inHeader("Private-Token"), inHeader("Ocp-Apim-Subscription-Key"), inHeader("X-Amz-Security-Token"),
            inHeader("X-Hub-Signature-256"), inHeader("X-Tests-Own"), inHeader("Referer", "https://u:\(secret)@example.org/"),
            inHeader("X-Other", "token \(token("ghp_", 36))", token("ghp_", 36)),
            inQuery("access_token"), inQuery("refresh_token"), inQuery("api_key"), inQuery("apiKey"),
            inQuery("key"),
            inQuery("sig"), inQuery("X-Amz-Signature"), inQuery("X-Amz-Credential"), inQuery("code"), inQuery("client%5Fsecret"),
            inQuery("passwords%5B0%5D=x&password%5B0%5D"), inQuery("tests-own-item"),
            SecretExchange(name: "user info", secrets: [secret], url: "https://user:\(secret)@api.example.org/x"),
            SecretExchange(
                name: "URL in a query", secrets: [secret],
                url: "https://api.example.org/x?to=https%3A%2F%2Fa%2F%3Faccess_token%3D\(secret)"),
            SecretExchange(
                name: "value in a path", secrets: ["own-v4lue"], url: "https://api.example.org/own-v4lue/x", isKnownToSessions: false),
            SecretExchange(
                name: "encoded value in a path", secrets: ["own%2Dv4lue"], url: "https://api.example.org/own%2Dv4lue/x",
                isKnownToSessions: false),
            SecretExchange(name: "session in a path", secrets: [secret], url: "https://api.example.org/x;jsessionid=\(secret)"),
            SecretExchange(
                name: "form with a file", secrets: [secret], type: "multipart/form-data; boundary=\"b\"",
                body: Data("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n".utf8) + [0xFF, 0xFE, 0]
                    + Data("\r\n--b\r\nContent-Disposition: form-data; name=pin\r\n\r\n\(secret)--b\(secret)\r\n--b--\r\n".utf8)),
            SecretExchange(
                name: "JSON in Latin-1", secrets: [secret], type: "application/json; charset=iso-8859-1",
                body: Data("{\"name\": \"".utf8) + [0xE9] + Data("\", \"token\": \"\(secret)\"}".utf8)),
            SecretExchange(name: "value in bytes", secrets: ["own-v4lue"], body: Data([0xFF, 0xFE]) + Data("own-v4lueown-v4lue".utf8)),
            SecretExchange(name: "Set-Cookie", secrets: [secret], response: .status(200, headers: ["Set-Cookie": "s=\(secret); Path=/"])),
            SecretExchange(
                name: "Location with a token", secrets: [secret],
                response: .status(
                    201, headers: ["Location": "https://app.example.org/cb?state=1&access_token=\(secret)#id_token=\(secret)"])),
            SecretExchange(
                name: "message of a failure", secrets: [secret], response: .failure(.connect, message: "No https://u:\(secret)@h/ there")),
        ]
        kinds += inBody("form", "application/x-www-form-urlencoded", "user=u&password=\(secret)&client_secret=\(secret)")
        kinds += inBody("JSON", "application/json", #"{"a": [{"Password": "\#(secret)"}], "refreshToken": {"value": "\#(secret)"}}"#)
        kinds += inBody("JSON of a problem", "application/problem+json", #"{"detail": "Bearer \#(secret) is wrong"}"#)
        kinds += inBody(
            "multipart", "multipart/form-data; boundary=b",
            "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n\(secret)\r\n--b--\r\n")
        kinds += inBody("XML", "application/xml", "<a><wsse:Password Type=\"t\">\(secret)</wsse:Password><token>\(secret)</token></a>")
        kinds += inBody(
            "multipart of JSON", "multipart/related; boundary=b",
            "--b\r\ncontent-type: application/json\r\n\r\n{\"otp\": \"\(secret)\"}\r\n--b--")
        kinds += inBody("form with a space after its type", "application/x-www-form-urlencoded ; charset=utf-8", "a=1&code=\(secret)")
        kinds += inBody("marked item", "application/x-www-form-urlencoded", "a=1&tests%2Dmarked=\(secret)")
        kinds += inBody("marked member", "application/json", #"{"a": 1, "tests-marked": ["\#(secret)"]}"#)
        kinds += inBody("events", "text/event-stream", "event: 5\" wide\ndata: {\"access_token\": \"\(secret)\"}\n\n")
        kinds += inBody(
            "lines of JSON", "application/x-ndjson", "{\"a\":1}\n{\"id_token\":\"\(secret)\"}\n{\"password\":{\"b\":\"\(secret)\"}}\n")
        kinds += inBody("JSON after a prefix", "application/json", ")]}',\n{\"refresh_token\":\"\(secret)\"}")
        kinds += inBody("JSON in JSON", "application/json", #"{"body": "{\"client_secret\":\"\#(secret)\"}"}"#)
        kinds += inBody(
            "attributes", "text/html",
            "<input type=hidden name='csrf_token' value=\"\(secret)\"><user password='\(secret)'/><meta name=csrf-token content=\(secret)>")
        kinds += inBody(
            "property list", "application/x-plist",
            "<dict><key>password</key>\n<string>\(secret)</string><key>a</key><string>b</string></dict>")
        kinds += inBody("element that is cut", "application/xml", "<a><token>\(secret)")
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
}
