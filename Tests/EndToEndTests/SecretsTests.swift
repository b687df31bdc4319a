// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import Testing

/// Passwords, tokens, cookies and fields marked as secret are absent from descriptions, errors, logs, reflection and cURL commands.
@Suite(.timeLimit(.minutes(1))) struct SecretsTests {
    private static let secret = "hunter2"
    /// The secret in plain text, as Basic credentials, and as a list of its bytes.
    private static let forms: [String] = {
        let bytes = secret.utf8.map { "\($0)" }.joined(separator: ", ")
        return [secret, Data("user:\(secret)".utf8).base64EncodedString(), bytes]
    }()

    private static let headers: HTTPHeaders = [
        .authorization(bearerToken: secret), HTTPHeader(name: "Proxy-Authorization", value: "Basic \(secret)"),
        HTTPHeader(name: "Cookie", value: "session=\(secret)"),
    ]

    private static func leaks(_ values: [(name: String, value: Any)]) -> [String] {
        values.flatMap { name, value -> [String] in
            var reflection = ""
            dump(value, to: &reflection)
            var texts = [String(describing: value), String(reflecting: value), "\([value])", reflection]
            if let error = value as? any Error { texts += [error.localizedDescription, "\(error as NSError)"] }
            return texts.filter { text in forms.contains { text.contains($0) } }.map { "\(name): \($0)" }
        }
    }

    @Test("configuration values do not show secrets") func values() {
        let proxy = "http://user:\(Self.secret)@proxy.test:3128"
        let url = "https://user:\(Self.secret)@host.test/"
        var configuration = SessionConfiguration()
        configuration.headers = Self.headers
        configuration.proxy = .url(proxy)
        configuration.headers.append(name: "X-Secrets-Key", value: Self.secret)
        configuration.redaction.headers = ["x-secrets-key"]
        configuration.tls.clientCertificate = .pkcs12(Data(Self.secret.utf8), password: Self.secret)
        var request = TransferRequest(url: url, headers: Self.headers, options: configuration.options)
        request.authentication = .ntlm(user: "user", password: Self.secret)
        let values: [(name: String, value: Any)] = [
            ("configuration", configuration), ("transfer options", configuration.options), ("headers", Self.headers),
            ("header", HTTPHeader.authorization(username: "user", password: Self.secret)), ("request", request),
            ("authentication", ConnectionAuthentication.ntlm(user: "user", password: Self.secret)),
            ("certificate", ClientCertificate.pem(Data(Self.secret.utf8), key: Data(Self.secret.utf8), password: Self.secret)),
            ("proxy", ProxyPolicy.url(proxy)), ("proxy without a scheme", ProxyPolicy.url("user:\(Self.secret)@proxy.test")),
            ("proxies", ProxyPolicy.schemes(http: proxy, https: proxy)),
            ("response", ResponseHead(statusCode: 200, headers: ["Set-Cookie": "session=\(Self.secret)"])),
            ("invalid URL", CurlewError.invalidURL(url: "http://user:\(Self.secret)@")),
            ("no host", CurlewError.urlRequestValidationFailed(reason: .invalidHeader(name: "Cookie"))),
            ("failure", TransferFailure(kind: .connect, url: url, phase: .connecting, message: "refused")),
            ("redirect", CurlewError.redirectFailed(reason: .invalidLocation("ftp://user:\(Self.secret)@host.test/"))),
        ]
        #expect(Self.leaks(values) == [])
    }

    @Test(".netrc is never read", arguments: ["", "user@"]) func netrc(user: String) async throws {
        let server = try LoopbackServer.standard()
        let home = try TemporaryDirectory()
        try Data("default login user password \(Self.secret)\n".utf8).write(to: home.file(".netrc"))
        let url = server.url("/auth-basic?user=user&password=\(Self.secret)").replacing("127.0.0.1", with: user + "127.0.0.1")
        let environment = ["HOME": home.url.path, "NETRC": home.file(".netrc").path]
        let report = try await Probe.run("download", url, home.file("file").path, environment: environment)
        #expect(report.status != 0)
        #expect(server.requestCount > 0)
        #expect(server.requests.allSatisfy { !($0.header("Authorization") ?? "").contains(Self.forms[1]) })
    }

    /// Where a request may carry a secret.
    enum Secret: String, CaseIterable, Sendable {
        case authorization, proxyAuthorization, cookie, storedCookie, sessionHeader, markedHeader, sensitiveHeader, userInfo, credential
        case accessToken, markedItem, fragment, formItem, usualHeader, usualItem, member
    }

    enum Ending: String, CaseIterable, Sendable {
        case success = "/cookie", unauthorized = "/auth-basic?user=other", reset = "/reset", cut = "/cut-body", redirect, tunnel
    }

    private static func makeServer() throws -> LoopbackServer {
        let standard = ServerRoutes.standard
        return try LoopbackServer { request, connection in
            switch request.path {
            case "/cookie": .status(200, headers: [ServerField("Set-Cookie", "session=\(secret)")])
            case "/redirect": .redirect(to: "ftp://user:\(secret)@host.test/?secrets_item=\(secret)")
            default: try standard(request, connection)
            }
        }
    }

    /// Builds a request that carries a secret.
    private struct Carrier {
        var url: String
        var headers: HTTPHeaders = [:]
        var parameters: Parameters?
        var encoding: any ParameterEncoding = URLEncoding.default
        var hasCredential = false

        init(_ url: String, _ secret: Secret) {
            self.url = url
            let value = SecretsTests.secret
            let item = url.contains("?") ? "&" : "?"
            switch secret {
            case .authorization: headers = [.authorization(bearerToken: value)]
            case .proxyAuthorization: headers = ["Proxy-Authorization": "Basic \(value)"]
            case .cookie: headers = ["cookie": "session=\(value)"]
            case .markedHeader: headers = ["X-Secrets-Key": value]
            case .sensitiveHeader: headers = ["X-Secrets-Sensitive": value]
            case .userInfo: self.url = url.replacing("http://", with: "http://user:\(value)@")
            case .credential: hasCredential = true
            case .accessToken: self.url += "\(item)access_token=\(value)"
            case .markedItem: self.url += "\(item)a=1&secrets_item=\(value)"
            case .fragment: self.url += "#access_token=\(value)"
            case .formItem: parameters = ["secrets_item": value, "other": 1]
            case .usualHeader: headers = ["X-RapidAPI-Key": value]
            case .usualItem: self.url += "\(item)api+key=\(value)&pass=\(value)"
            case .member:
                parameters = ["secret_token": value, "other": ["auth": value]]
                encoding = JSONEncoding.default
            case .storedCookie, .sessionHeader: break
            }
        }
    }

    private func makeManager(for secret: Secret, _ ending: Ending, _ monitor: SpokenMonitor) throws -> SessionManager {
        let cookies = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: UUID().uuidString)
        let cookie = HTTPCookie(properties: [.domain: "127.0.0.1", .path: "/", .name: "n", .value: Self.secret])
        cookies.setCookie(try #require(cookie))
        return CurlewSessionTestSupport.makeManager {
            $0.redaction = Redaction(headers: ["x-secrets-key"], queryItems: ["secrets_item"])
            $0.redirects.sensitiveHeaders = ["X-Secrets-Sensitive"]
            if secret == .sessionHeader { $0.headers = Self.headers }
            if secret == .storedCookie { $0.cookieStorage = cookies }
            // No server listens there.
            if ending == .tunnel { $0.proxy = .url("http://user:\(Self.secret)@127.0.0.1:1") }
            $0.eventMonitors = [monitor]
        }
    }

    /// Everything a program may log about a request.
    private static func values(of request: Request, _ manager: SessionManager) -> [(name: String, value: Any)] {
        var values: [(name: String, value: Any)] = [
            ("request", request), ("debug description", request.debugDescription), ("command", request.cURLDescription()),
            ("manager", manager), ("session", manager.session), ("configuration", manager.session.configuration),
            ("session delegate", manager.delegate), ("task delegate", request.delegate),
        ]
        if let head = request.responseHead { values.append(("head", head)) }
        if let task = request.task { values.append(("task", task)) }
        return values
    }

    private static func values(of error: (any Error)?) -> [(name: String, value: Any)] {
        guard let error else { return [] }
        return [("error", error)] + ((error as? CurlewError)?.urlError.map { [("URLError", $0)] } ?? [])
    }

    @Test("a request's texts do not show secrets, however it ends", arguments: Secret.allCases, Ending.allCases)
    func requests(secret: Secret, ending: Ending) async throws {
        let server = try Self.makeServer()
        let monitor = SpokenMonitor()
        let manager = try makeManager(for: secret, ending, monitor)
        let path = ending.rawValue
        let carrier = Carrier(server.url(path.hasPrefix("/") ? path : "/\(path)"), secret)
        let request = manager.request(
            carrier.url, method: carrier.parameters == nil ? .get : .post, parameters: carrier.parameters, encoding: carrier.encoding,
            headers: carrier.headers)
        if carrier.hasCredential { request.authenticate(user: "user", password: Self.secret) }
        let response = await request.validate().serializingData().response
        #expect((response.error == nil) == (ending == .success))
        let values: [(name: String, value: Any)] =
            Self.values(of: request, manager) + Self.values(of: response.error) + [
                ("response", response), ("timeline", response.timeline), ("metrics", response.metrics), ("monitor", monitor.texts.elements),
            ]
        #expect(Self.leaks(values) == [])
        // The unredacted command contains them: the absence elsewhere is not for lack of a secret.
        #expect(!Self.leaks([("command", request.cURLDescription(redacting: false))]).isEmpty)
    }

    @Test("a download's texts do not show secrets", arguments: Secret.allCases.filter { $0 != .formItem && $0 != .member })
    func downloads(secret: Secret) async throws {
        let server = try Self.makeServer()
        let manager = try makeManager(for: secret, .success, SpokenMonitor())
        let directory = try TemporaryDirectory()
        let carrier = Carrier(server.url("/cookie"), secret)
        let request = manager.download(carrier.url, headers: carrier.headers, to: directory.file("file"))
        if carrier.hasCredential { request.authenticate(user: "user", password: Self.secret) }
        let response = await request.serializingURL().response
        #expect(response.error == nil)
        #expect(Self.leaks(Self.values(of: request, manager) + [("response", response)]) == [])
    }

    @Test(
        "an invalid proxy URL is reported without its password",
        arguments: ["user:\(secret)@proxy.test:port", "http://user:\(secret)@proxy.test:999999", "odd://user:\(secret)@proxy.test"])
    func unusableProxy(proxy: String) async throws {
        let manager = CurlewSessionTestSupport.makeManager { $0.proxy = .url(proxy) }
        let response = await manager.request("http://host.test/").serializingData().response
        #expect(response.error != nil)
        #expect(Self.leaks(Self.values(of: response.error) + [("response", response)]) == [])
    }

    // MARK: Texts from peers

    /// A peer's bytes that break lines, control terminals or reorder text: C0, C1, a separator, bidirectional controls.
    private static let odd = "x\u{1B}[2J\u{7F}\u{9B}\u{85}\u{2028}\u{202E}\u{2066}y"

    private static func steers(_ text: String) -> Bool {
        // The texts contain line breaks and tabs of their own; "forged" marks where the peer's would be.
        text.contains("\nforged") || text.contains("\r") || text.unicodeScalars.contains { $0.isControlInText && $0 != "\n" && $0 != "\t" }
    }

    @Test(
        "a peer's control characters appear in no text",
        arguments: [
            "200 \(odd)\r\nContent-Length: 1\r\nX-Odd: \(odd)\r\n\r\nx", "404 \(odd)\r\nContent-Length: 1\r\nSet-Cookie: \(odd)\r\n\r\nx",
            "200 OK\r\nContent-Type: \(odd)\r\nContent-Length: 1\r\n\r\nx",
            "302 Found\r\nLocation: ftp://\(odd)/\r\nContent-Length: 0\r\n\r\n",
            "302 Found\r\nLocation: http://[\(odd)/\r\nContent-Length: 0\r\n\r\n", "200 OK\r\nTransfer-Encoding: \(odd)\r\n\r\nx",
            "200 OK\r\nContent-Encoding: \(odd)\r\nContent-Length: 1\r\n\r\nx", "200 OK\r\nContent-Length: \(odd)\r\n\r\nx",
            "\(odd)\r\n\r\n", "200 OK\r\n\(odd)\r\n\r\n", "200 OK\r\nX: a\rforged\r\nContent-Length: 1\r\n\r\nx",
            "200 OK\r\nContent-Length: 20\r\n\r\nx\r\nforged\u{1B}[2J\u{9B}12345678",
            "401 x\r\nWWW-Authenticate: Basic realm=\"\(odd)\"\r\nContent-Length: 1\r\n\r\nx",
        ])
    func controlCharacters(answer: String) async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 " + answer)
            connection.close()
            return nil
        }
        let manager = CurlewSessionTestSupport.makeManager()
        let request = manager.request(server.url("/")).validate(statusCode: 200..<300).validate(contentType: ["application/json"])
        let text = await request.serializingString().response
        let typed = await manager.request(server.url("/")).serializingDecodable([String: String].self).response
        var texts = [text.description, text.debugDescription, typed.description, typed.debugDescription, request.description]
        texts += [request.debugDescription, request.responseHead?.description ?? "", String(reflecting: request.responseHead)]
        for error in [text.error, typed.error].compactMap({ $0 }) {
            texts += ["\(error)", String(reflecting: error), error.localizedDescription, "\(error as NSError)"]
            if let error = (error as? CurlewError)?.urlError { texts += ["\(error)", error.localizedDescription] }
            var reflection = ""
            dump(error, to: &reflection)
            texts.append(reflection)
        }
        #expect(texts.filter(Self.steers).map(\.debugDescription) == [])
    }
}

/// Records the descriptions that a program could log for each event.
private final class SpokenMonitor: EventMonitor {
    let texts = Log<String>()

    func requestDidResume(_ request: Request) { texts.append("\(request.description)") }
    func requestDidFinish(_ request: Request) { texts.append("\(request.description)") }
}
