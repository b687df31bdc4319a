// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

/// Passwords, tokens and cookies stay out of whatever lands in logs. The cURL command of a request is the exception: without them it would
/// not run, as it says.
@Suite(.timeLimit(.minutes(1))) struct SecretsTests {
    private static let secret = "hunter2"
    /// The secret, as Basic credentials have it, and as a sequence of bytes shows it.
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
            var texts = [String(describing: value), String(reflecting: value), "\([value])"]
            if let error = value as? any Error { texts += [error.localizedDescription, "\(error as NSError)"] }
            return texts.filter { text in forms.contains { text.contains($0) } }.map { "\(name): \($0)" }
        }
    }

    @Test("what is configured does not show them") func values() {
        let proxy = "http://user:\(Self.secret)@proxy.test:3128"
        let url = "https://user:\(Self.secret)@host.test/"
        var configuration = SessionConfiguration()
        configuration.headers = Self.headers
        configuration.proxy = .url(proxy)
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

    @Test("a .netrc is not read, whatever the server asks for", arguments: ["", "user@"]) func netrc(user: String) async throws {
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

    enum Ending: String, CaseIterable, Sendable {
        case success = "/cookie", unauthorized = "/auth-basic?user=other", reset = "/reset", cut = "/cut-body", redirect, tunnel
    }

    private static func makeServer() throws -> LoopbackServer {
        let standard = ServerRoutes.standard
        return try LoopbackServer { request, connection in
            switch request.path {
            case "/cookie": .status(200, headers: [ServerField("Set-Cookie", "session=\(secret)")])
            case "/redirect": .redirect(to: "ftp://user:\(secret)@host.test/")
            default: try standard(request, connection)
            }
        }
    }

    @Test("what comes of a request does not show them, whatever comes of it", arguments: Ending.allCases)
    func requests(ending: Ending) async throws {
        let server = try Self.makeServer()
        let monitor = SpokenMonitor()
        let manager = makeManager {
            // Nobody is there.
            if ending == .tunnel { $0.proxy = .url("http://user:\(Self.secret)@127.0.0.1:1") }
            $0.eventMonitors = [monitor]
        }
        let path = ending.rawValue
        let url = server.url(path.hasPrefix("/") ? path : "/\(path)").replacing("http://", with: "http://user:\(Self.secret)@")
        var headers = Self.headers
        if ending == .unauthorized { headers.remove(name: "Authorization") }
        let request = manager.request(url, headers: headers).authenticate(user: "user", password: Self.secret).validate()
        let response = await request.serializingData().response
        #expect((response.error == nil) == (ending == .success))
        var values: [(name: String, value: Any)] = [
            ("request", request.description), ("response", response), ("timeline", response.timeline), ("metrics", response.metrics),
        ]
        if let error = response.error {
            values.append(("error", error))
            if let error = (error as? CurlewError)?.urlError { values.append(("URLError", error)) }
        }
        if let head = request.responseHead { values.append(("head", head)) }
        if let task = request.task { values.append(("task", task)) }
        values.append(("monitor", monitor.texts.elements))
        #expect(Self.leaks(values) == [])
    }
}

/// Writes down what a program's log could say of each event.
private final class SpokenMonitor: EventMonitor {
    let texts = Log<String>()

    func requestDidResume(_ request: Request) { texts.append("\(request.description)") }
    func requestDidFinish(_ request: Request) { texts.append("\(request.description)") }
}
