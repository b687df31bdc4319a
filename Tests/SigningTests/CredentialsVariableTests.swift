// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewSigning

/// What the environment says of services that give credentials, and what is particular to each.
// A3.1
@Suite(.timeLimit(.minutes(1))) struct CredentialsVariableTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static func error<Value>(_ body: () throws(AWSCredentialsError) -> Value) -> AWSCredentialsError? {
        do {
            _ = try body()
            return nil
        } catch {
            return error
        }
    }

    @Test func `the chain asks in the order of AWS's programs`() {
        let names = AWSCredentialsChain().providers.map { "\(type(of: $0))" }
        #expect(
            names == [
                "AWSEnvironmentCredentials", "AWSWebIdentityCredentials", "AWSProfileCredentials", "AWSContainerCredentials",
                "AWSInstanceCredentials",
            ])
    }

    @Test func `without variables, services are not asked, and the next provider is`() async throws {
        let own = AWSCredentials(accessKeyID: "own", secretAccessKey: "key")
        let chain = AWSCredentialsChain([
            AWSWebIdentityCredentials(environment: [:]), AWSContainerCredentials(environment: ["AWS_CONTAINER_CREDENTIALS_FULL_URI": ""]),
            AWSInstanceCredentials(environment: ["AWS_EC2_METADATA_DISABLED": "TRUE"]), own,
        ])
        #expect(try await chain.credentials() == own)
    }

    // MARK: Container

    @Test(
        arguments: [
            ("https://agent.example.org/c", true), ("http://127.0.0.1:1/c", true), ("http://127.9.9.9/c", true), ("http://[::1]/c", true),
            ("http://localhost/c", true), ("http://169.254.170.2/c", true), ("http://169.254.170.23/c", true),
            ("http://[fd00:ec2::23]/c", true), ("http://[FD00:EC2:0::23]/c", true), ("http://169.254.170.3/c", false),
            ("http://169.254.169.254/c", false), ("http://example.org/c", false), ("http://127.0.0.1.example.org/c", false),
            ("http://127.1x.org/c", false), ("http://localhost.example.org/c", false), ("http://[fd00:ec2::24]/c", false),
            ("http://169.254.170.2.example.org", false), ("ftp://127.0.0.1:21/c", false),
        ] as [(String, Bool)])
    func `a token is sent by TLS, to this computer, or to an agent of AWS`(url: String, isAllowed: Bool) {
        let error = Self.error { () throws(AWSCredentialsError) in
            try AWSContainerCredentials.url(in: ["AWS_CONTAINER_CREDENTIALS_FULL_URI": url])
        }
        #expect(error == (isAllowed ? nil : .forbiddenEndpoint("AWS_CONTAINER_CREDENTIALS_FULL_URI")))
    }

    @Test func `a path has precedence over a URL, and both are checked`() throws {
        let (relative, full) = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
        #expect(try AWSContainerCredentials.url(in: [relative: "/v2/x?id=1", full: "https://a"]) == "http://169.254.170.2/v2/x?id=1")
        for value in ["v2", "@example.org/", ".example.org/", ":80/"] {
            #expect(
                Self.error { () throws(AWSCredentialsError) in try AWSContainerCredentials.url(in: [relative: value]) }
                    == .invalidVariable(relative))
        }
        for value in ["127.0.0.1", "https://user@a/", "https://", "https://a:x/", "ftp://127.0.0.1/c", "/c"] {
            #expect(
                Self.error { () throws(AWSCredentialsError) in try AWSContainerCredentials.url(in: [full: value]) }
                    == .invalidVariable(full))
        }
    }

    @Test func `the token of a file has precedence, is read each time, and has to fit a header`() async throws {
        let server = try CredentialsService.container.server { user, _ in CredentialsService.container.answer(.temporary(of: user)) }
        defer { server.stop() }
        let file = try directory.write(Data("wrong".utf8), to: "token")
        var variables = [
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": server.url("/creds/user"), "AWS_CONTAINER_AUTHORIZATION_TOKEN": "user",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": file.path,
        ]
        let provider = AWSContainerCredentials(environment: variables)
        guard case .refused(_, statusCode: 400, code: nil)? = await failure(of: provider) else {
            Issue.record("no refusal")
            return
        }
        for (text, isUsable) in [(" user\r\n", true), ("", false), ("\n", false), (String(repeating: "a", count: 65_537), false)] {
            try Data(text.utf8).write(to: file)
            let error = await failure(of: AWSContainerCredentials(environment: variables))
            #expect(isUsable ? error == nil : error == .unreadableFile(file.path, "the file \"\(file.path)\" has no token"))
        }
        try Data("user".utf8).write(to: file)
        #expect(try await provider.credentials().accessKeyID == "AKIDuser")
        try Data("us\ner".utf8).write(to: file)
        #expect(
            await failure(of: AWSContainerCredentials(environment: variables))
                == .invalidVariable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"))
        variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = directory.file("none").path
        guard case .unreadableFile? = await failure(of: AWSContainerCredentials(environment: variables)) else {
            Issue.record("no error")
            return
        }
        variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = nil
        #expect(try await AWSContainerCredentials(environment: variables).credentials().accessKeyID == "AKIDuser")
        variables["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "us\r\ner"
        #expect(
            await failure(of: AWSContainerCredentials(environment: variables)) == .invalidVariable("AWS_CONTAINER_AUTHORIZATION_TOKEN"))
    }

    // MARK: Instance

    @Test func `the instance's service has an address by each protocol, or that of a variable`() async throws {
        let name = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
        #expect(try AWSInstanceCredentials.url(in: [:]) == "http://169.254.169.254")
        #expect(try AWSInstanceCredentials.url(in: ["\(name)_MODE": "ipv4"]) == "http://169.254.169.254")
        #expect(try AWSInstanceCredentials.url(in: ["\(name)_MODE": "IPv6"]) == "http://[fd00:ec2::254]")
        #expect(try AWSInstanceCredentials.url(in: [name: "http://localhost:1338/", "\(name)_MODE": "x"]) == "http://localhost:1338")
        for variables in [["\(name)_MODE": "x"], [name: "localhost"], [name: "file:///etc"], [name: "http://a@b"], [name: "http://a?b"]] {
            let wrong = variables.keys.first
            #expect(await failure(of: AWSInstanceCredentials(environment: variables)) == wrong.map { .invalidVariable($0) })
        }
        for number in ["0", "-1", "x", "3601"] {
            let error = await failure(of: AWSInstanceCredentials(environment: ["AWS_METADATA_SERVICE_TIMEOUT": number]))
            #expect(error == .invalidVariable("AWS_METADATA_SERVICE_TIMEOUT"))
        }
    }

    @Test func `what is no instance, or has no role, has no credentials`() async throws {
        let answers = Monitor<[ServerResponse]>([])
        let server = try LoopbackServer { _, _ in answers.update { $0.isEmpty ? .status(500) : $0.removeFirst() } }
        defer { server.stop() }
        func error(_ responses: [ServerResponse], at url: String? = nil) async -> AWSCredentialsError? {
            answers.update { $0 = responses }
            let variables = ["AWS_EC2_METADATA_SERVICE_ENDPOINT": url ?? server.url("")]
            return await failure(of: AWSInstanceCredentials(environment: variables, timeout: .seconds(30), attempts: 1))
        }
        let place = "the instance endpoint at http://127.0.0.1:\(server.port)"
        for status in [403, 404, 405] {
            #expect(await error([.status(status)]) == .notFound(["\(place) gives no token (status \(status))"]))
        }
        #expect(await error([.status(400)]) == .refused(place, statusCode: 400, code: nil))
        #expect(await error([.ok(" ")]) == .invalidResponse(place, reason: "it has no token"))
        #expect(await error([.ok("a\r\nX: y")]) == .invalidResponse(place, reason: "its token can't be sent in a header"))
        #expect(await error([.ok("t"), .status(404)]) == .notFound(["the instance has no role"]))
        #expect(await error([.ok("t"), .status(401)]) == .refused(place, statusCode: 401, code: nil))
        for text in ["", "\nrole", "<html>", "../x", "a/b", String(repeating: "a", count: 65)] {
            #expect(await error([.ok("t"), .ok(text)]) == .invalidResponse(place, reason: "it has no name of a role"))
        }
        server.stop()
        guard case .unreachable(place, reason: _)? = await error([]) else {
            Issue.record("a service that a variable names is none")
            return
        }
    }

    // MARK: Web identity

    @Test func `a web identity needs a role and a name of a session`() async throws {
        var variables = ["AWS_WEB_IDENTITY_TOKEN_FILE": "/none", "AWS_ROLE_ARN": ""]
        #expect(await failure(of: AWSWebIdentityCredentials(environment: variables)) == .invalidVariable("AWS_ROLE_ARN"))
        variables["AWS_ROLE_ARN"] = "arn"
        for name in ["a", "a b", String(repeating: "a", count: 65)] {
            variables["AWS_ROLE_SESSION_NAME"] = name
            #expect(await failure(of: AWSWebIdentityCredentials(environment: variables)) == .invalidVariable("AWS_ROLE_SESSION_NAME"))
        }
        variables["AWS_ROLE_SESSION_NAME"] = nil
        #expect(
            await failure(of: AWSWebIdentityCredentials(environment: variables))
                == .unreadableFile("/none", "the file \"/none\" does not exist"))
    }

    @Test(
        arguments: [
            ([:], "https://sts.amazonaws.com/"), (["AWS_DEFAULT_REGION": "eu-west-1"], "https://sts.eu-west-1.amazonaws.com/"),
            (["AWS_DEFAULT_REGION": "eu-west-1", "AWS_REGION": "cn-north-1"], "https://sts.cn-north-1.amazonaws.com.cn/"),
            (["AWS_ENDPOINT_URL": "https://a/b", "AWS_REGION": "x"], "https://a/b/"),
            (["AWS_ENDPOINT_URL": "https://a/b", "AWS_ENDPOINT_URL_STS": "http://127.0.0.1:1/"], "http://127.0.0.1:1/"),
        ] as [([String: String], String)])
    func `the token's service is that of the region, or of a variable`(variables: [String: String], url: String) throws {
        #expect(try AWSWebIdentityCredentials.url(in: variables) == url)
    }

    @Test func `a web identity is sent by TLS, or to this computer`() {
        func error(_ variables: [String: String]) -> AWSCredentialsError? {
            Self.error { () throws(AWSCredentialsError) in try AWSWebIdentityCredentials.url(in: variables) }
        }
        #expect(error(["AWS_ENDPOINT_URL_STS": "http://example.org"]) == .forbiddenEndpoint("AWS_ENDPOINT_URL_STS"))
        #expect(error(["AWS_ENDPOINT_URL": "https://a@b"]) == .invalidVariable("AWS_ENDPOINT_URL"))
        #expect(error(["AWS_REGION": "x.example.org/"]) == .invalidVariable("AWS_REGION"))
    }

    @Test(arguments: [("IDPCommunicationError", 3), ("InvalidIdentityToken", 1)] as [(String, Int)])
    func `a service that can't reach the provider of identities is asked again`(code: String, count: Int) async throws {
        let service = CredentialsService.webIdentity
        let answers = Monitor(0)
        let server = try service.server { user, _ in
            let number = answers.update { number in
                number += 1
                return number
            }
            if number == 5 { return service.answer(.temporary(of: user)) }
            var refusal = ServerResponse.ok("<ErrorResponse><Error><Code>\(code)</Code></Error></ErrorResponse>", type: "text/xml")
            refusal.status = 400
            return refusal
        }
        defer { server.stop() }
        let provider = try service.provider(at: server.url(""), in: directory, attempts: 3)
        guard case .refused(_, statusCode: 400, code)? = await failure(of: provider) else {
            Issue.record("no refusal")
            return
        }
        #expect(server.requestCount == count)
        if count == 3 { #expect(try await provider.credentials().accessKeyID == "AKIDuser") }
    }

    @Test func `what is sent without TLS is sent to no proxy`() async throws {
        let service = CredentialsService.webIdentity
        let server = try service.server { user, _ in service.answer(.temporary(of: user)) }
        let proxy = try LoopbackServer { _, _ in .status(502) }
        defer {
            server.stop()
            proxy.stop()
        }
        let file = try directory.write(Data("user".utf8), to: "token")
        var options = TransferOptions()
        options.proxy = .url(proxy.url(""))
        let variables = [
            "AWS_ENDPOINT_URL_STS": server.url(""), "AWS_WEB_IDENTITY_TOKEN_FILE": file.path, "AWS_ROLE_SESSION_NAME": "test",
            "AWS_ROLE_ARN": "arn:aws:iam::1:role/r&<", "AWS_CONTAINER_CREDENTIALS_FULL_URI": server.url("/x"),
        ]
        #expect(try await AWSWebIdentityCredentials(environment: variables, options: options).credentials().accessKeyID == "AKIDuser")
        guard
            case .refused(_, statusCode: 400, code: nil)? = await failure(
                of: AWSContainerCredentials(environment: variables, options: options))
        else {
            Issue.record("the server was not asked")
            return
        }
        #expect(proxy.requestCount == 0)
    }

    @Test(
        arguments: [
            ("<a>x</a>", ["a": "x"]), ("<?xml version='1.0'?>\n<a b=\"c\"><d>x&amp;lt;</d><d>y</d><e/></a>\n", ["d": "x&lt;"]),
            ("<a>&lt;&gt;&quot;&apos;</a>", ["a": "<>\"'"]), ("", nil), ("x", nil), ("<a>", nil), ("<a></b>", nil), ("<a></a></a>", nil),
            ("<a/><b/>", nil), ("<a><!-- x --></a>", nil), ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", nil), ("<a><![CDATA[x]]></a>", nil),
            ("<a", nil), ("<>x</>", nil), ("<a><?b?></a>", nil), (String(repeating: "<a>", count: 100_000), nil),
        ] as [(String, [String: String]?)])
    func `texts are those of closed elements`(text: String, expected: [String: String]?) {
        let texts = STSTexts(Data(text.utf8))
        #expect((texts == nil) == (expected == nil))
        for (name, value) in expected ?? [:] { #expect(texts?[name] == value) }
        #expect(texts?["none"] == nil)
    }
}
