// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewCrypto
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import Testing

@testable import CurlewAuth

@Suite(.timeLimit(.minutes(1))) struct SignInTests {
    /// An unsigned ID token.
    private static func idToken(_ claims: [String: String]) -> String {
        let expiration = Int(Date().timeIntervalSince1970) + 60
        let pairs = claims.map { "\"\($0.key)\":\"\($0.value)\"" } + ["\"exp\":\(expiration)"]
        return "\(Data("{}".utf8).base64URLEncoded).\(Data("{\(pairs.joined(separator: ","))}".utf8).base64URLEncoded).x"
    }

    private func items(_ url: String) throws -> [String: String] { try OAuthAuthorization.items(of: url) }

    // A4.1: RFC 7636, appendix B
    @Test func `the challenge is that of the example`() {
        let verifier = CodeVerifier("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        #expect(verifier.challenge == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
        #expect(CodeVerifier().text.utf8.count == 43 && CodeVerifier().text != CodeVerifier().text)
    }

    // A4.1
    @Test func `a code is exchanged with the verifier of its request`() async throws {
        let nonce = Monitor("")
        let server = try AuthorizationServer { request, form in
            guard form["grant_type"] == ["authorization_code"] else { return nil }
            let token = Self.idToken(["iss": "http://\(request.header("Host") ?? "")", "aud": "app", "nonce": nonce.read { $0 }])
            return try .json(["access_token": "x", "token_type": "Bearer", "id_token": token])
        }
        defer { server.stop() }
        let client = server.client()
        let authorization = try await client.authorization(
            redirectingTo: "https://app.example/cb?x=1", scope: ["openid", "a"], resources: ["https://r.example"],
            parameters: ["prompt": "login", "state": "mine"])
        let sent = try items(authorization.url)
        #expect(authorization.url.hasPrefix(server.url("/authorize?response_type=code&client_id=app&")))
        #expect(sent["scope"] == "openid a" && sent["resource"] == "https://r.example" && sent["prompt"] == "login")
        #expect(sent["code_challenge"] == authorization.verifier.challenge && sent["code_challenge_method"] == "S256")
        #expect(sent["state"] == authorization.state && sent["redirect_uri"] == "https://app.example/cb?x=1")
        nonce.update { $0 = sent["nonce"] ?? "" }
        let callback = "https://app.example/cb?x=1&code=c%2B1&state=\(authorization.state)&iss=\(PercentEncoding.escape(server.url()))"
        #expect(try await authorization.tokens(from: callback).accessToken == "x")
        #expect(
            server.forms == [
                [
                    "grant_type": ["authorization_code"], "code": ["c+1"], "redirect_uri": ["https://app.example/cb?x=1"],
                    "code_verifier": [authorization.verifier.text], "resource": ["https://r.example"], "client_id": ["app"],
                ]
            ])
        nonce.update { $0 = "another" }
        let error = await AuthTests.error { try await authorization.tokens(from: callback) }
        #expect(error.map { "\($0)" }?.contains("the ID token is another request's") == true)
        #expect(!"\(authorization)".contains(authorization.state))
    }

    // A4.1: OpenID Connect Core, sections 3.1.2.1 and 3.1.3.7
    @Test func `an ID token is checked whether or not it was asked for`() async throws {
        let claims = Monitor<[String: String]>([:])
        let server = try AuthorizationServer { _, _ in
            try .json(["access_token": "x", "token_type": "Bearer", "id_token": Self.idToken(claims.read { $0 })])
        }
        defer { server.stop() }
        let client = server.client()
        func result(_ authorization: OAuthAuthorization) async -> (any Error)? {
            await AuthTests.error { try await authorization.tokens(from: "/cb?code=c&state=\(authorization.state)") }
        }
        let plain = try await client.authorization(redirectingTo: "https://app.example/cb", scope: ["a"])
        #expect(try items(plain.url)["nonce"] == nil)
        for audience in ["app", "other"] {
            claims.update { $0 = ["iss": server.url(), "aud": audience] }
            #expect(await (result(plain) == nil) == (audience == "app"))
        }
        // The scope may be a parameter or one text, and the nonce the caller's.
        let merged = try await client.authorization(redirectingTo: "https://app.example/cb", parameters: ["scope": "a openid"])
        let joined = try await client.authorization(redirectingTo: "https://app.example/cb", scope: ["openid email"])
        #expect(try items(merged.url)["nonce"]?.utf8.count == 43 && items(joined.url)["nonce"]?.utf8.count == 43)
        claims.update { $0["aud"] = "app" }
        #expect(await result(merged) != nil)
        let chosen = try await client.authorization(redirectingTo: "https://app.example/cb", scope: ["openid"], parameters: ["nonce": "n"])
        #expect(try items(chosen.url)["nonce"] == "n")
        claims.update { $0["nonce"] = "n" }
        #expect(await result(chosen) == nil)
    }

    // A4.1: OpenID Connect Core, section 3.1.3.7, points 3 to 5
    @Test(
        arguments: [
            (["app"], nil, true), (["app"], "app", true), (["app"], "other", false), (["app", "other"], "app", true),
            (["app", "other"], nil, false), (["app", "other"], "other", false), (["other"], "app", false), ([], "app", false),
        ] as [([String], String?, Bool)])
    func `an ID token is the client's own`(audience: [String], party: String?, isAccepted: Bool) async throws {
        let server = try AuthorizationServer { request, _ in
            let names = audience.map { "\"\($0)\"" }.joined(separator: ",")
            let claims = """
                {"iss":"http://\(request.header("Host") ?? "")","aud":[\(names)],"exp":4000000000\(party.map { ",\"azp\":\"\($0)\"" } ?? "")}
                """
            let token = "\(Data("{}".utf8).base64URLEncoded).\(Data(claims.utf8).base64URLEncoded).x"
            return try .json(["access_token": "x", "token_type": "Bearer", "id_token": token])
        }
        defer { server.stop() }
        let authorization = try await server.client().authorization(redirectingTo: "https://app.example/cb", scope: ["a"])
        let error = await AuthTests.error { try await authorization.tokens(from: "/cb?code=c&state=\(authorization.state)") }
        #expect((error == nil) == isAccepted)
        #expect(error.map { "\($0)".contains("the ID token is another") } ?? true)
    }

    // OpenID Connect Core, section 12.2
    @Test(
        arguments: [("sub", "u"), ("sub", "v"), ("iss", "https://other.example"), ("aud", "other"), ("azp", "other")] as [(String, String)])
    func `the ID token of a refresh is the same user's`(claim: String, value: String) async throws {
        let claims = ["iss": "https://x.example", "aud": "app", "sub": "u"]
        let changed = Self.idToken(claims.merging([claim: value]) { $1 })
        let server = try AuthorizationServer()
        defer { server.stop() }
        let response = try ServerResponse.json(["access_token": "x", "token_type": "Bearer", "id_token": changed])
        server.state.update { $0.next = [{ _ in response }] }
        let old = OAuthTokens(accessToken: "a0", refreshToken: "r0", idToken: Self.idToken(claims))
        let error = await AuthTests.error { try await server.client().refresh(old) }
        #expect((error == nil) == (value == "u"))
        #expect(error.map { "\($0)".contains("the ID token is another user's") } ?? true)
    }

    // A4.1: RFC 6749, section 10.12, and RFC 9207
    @Test(
        arguments: [
            ("code=c&state=x", "its state"), ("code=c", "its state"), ("state=STATE", "neither a code"),
            ("code=c&state=STATE&iss=https://other.example", "not from the issuer"), ("code=c&state=STATE", "not from the issuer"),
            ("code=c&code=d&state=STATE", "occurs twice"), ("error=access_denied&state=x", "its state"),
            ("error=access_denied&error_description=no+way&state=STATE&iss=ISSUER", "access_denied: no way"),
        ] as [(String, String)])
    func `a redirect that is not the request's is refused`(query: String, reason: String) async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let authorization = try await server.client { $0.sendsIssuer = reason != "neither a code" }
            .authorization(redirectingTo: "https://app.example/cb")
        let callback = query.replacing("STATE", with: authorization.state).replacing("ISSUER", with: PercentEncoding.escape(server.url()))
        let error = await AuthTests.error { try await authorization.tokens(from: "https://app.example/cb?\(callback)#x") }
        #expect(error.map { "\($0)" }?.contains(reason) == true)
        #expect(server.requests.isEmpty)
    }

    // A4.1: RFC 9126
    @Test func `a pushed request is a reference`() async throws {
        let server = try AuthorizationServer { request, _ in
            guard request.path == "/par" else { return nil }
            return try .json(["request_uri": "urn:x:1"], status: 201)
        }
        defer { server.stop() }
        let client = server.client(.secret("s")) { metadata in
            metadata.pushedAuthorizationEndpoint = server.url("/par")
            metadata.requiresPushedAuthorization = true
        }
        let authorization = try await client.authorization(redirectingTo: "https://app.example/cb", scope: ["a"])
        #expect(authorization.url == server.url("/authorize?client_id=app&request_uri=urn%3Ax%3A1"))
        let pushed = AuthorizationServer.form(String(decoding: try #require(server.requests.first).body, as: UTF8.self))
        #expect(pushed["state"] == [authorization.state] && pushed["code_challenge_method"] == ["S256"] && pushed["scope"] == ["a"])
        #expect(server.requests.first?.header("Authorization")?.hasPrefix("Basic ") == true)
    }

    // A4.1: RFC 8252
    @Test func `a user of this computer signs in by a browser`() async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let browser = SessionManager(configuration: makeConfiguration())
        let page = Log<String>()
        let tokens = try await server.client().signIn(scope: ["a"], timeout: .seconds(30)) { url in
            let sent = try items(url)
            let redirect = sent["redirect_uri"] ?? ""
            #expect(redirect.hasPrefix("http://127.0.0.1:") && redirect.hasSuffix("/callback"))
            Task {
                // What other programs send ends nothing.
                let others = ["/favicon.ico", "/callback?code=c&state=wrong", "/callback"]
                for path in others {
                    let status = await browser.request(redirect.replacing("/callback", with: path)).serializingData().response.response?
                        .statusCode
                    page.append("\(status ?? 0)")
                }
                let right = "\(redirect)?code=c&state=\(sent["state"] ?? "")"
                let post = await browser.request(right, method: .post).serializingData().response.response?.statusCode
                page.append("\(post ?? 0)")
                page.append(String(decoding: try await browser.request(right).validate().serializingData().value, as: UTF8.self))
            }
        }
        #expect(tokens.accessToken == "a1")
        #expect(server.forms.first?["code"] == ["c"])
        await page.wait(for: 5)
        #expect(Array(page.elements.prefix(4)) == ["404", "404", "404", "404"])
        #expect(page.elements.last?.contains("You can close this page.") == true)
    }

    @Test func `opening may wait for the answer, and fail before it`() async throws {
        struct NoBrowser: Error {}
        let server = try AuthorizationServer()
        defer { server.stop() }
        let browser = SessionManager(configuration: makeConfiguration())
        let cancelled = Gate()
        let tokens = try await server.client().signIn(timeout: .seconds(30)) { url in
            let sent = try items(url)
            let redirect = "\(sent["redirect_uri"] ?? "")?code=c&state=\(sent["state"] ?? "")"
            // As long as the browser is open.
            try await withTaskCancellationHandler {
                _ = try await browser.request(redirect).validate().serializingData().value
                try await Task.sleep(for: .seconds(3600))
            } onCancel: {
                cancelled.open()
            }
        }
        #expect(tokens.accessToken == "a1")
        #expect(await cancelled.wait())
        await #expect(throws: NoBrowser.self) { try await server.client().signIn { _ in throw NoBrowser() } }
        let late = await AuthTests.error {
            try await server.client().signIn(timeout: .milliseconds(50)) { _ in try await Task.sleep(for: .seconds(3600)) }
        }
        guard case OAuthError.timedOut? = late else {
            Issue.record("\(String(describing: late))")
            return
        }
    }

    #if os(Linux)
    @Test func `a socket that accepts no connections ends the sign-in`() async throws {
        let listener = try RedirectListener()
        // Ready from then on, as with too many open files.
        #expect(shutdown(listener.socket.number, Int32(SHUT_RDWR)) == 0)
        let error = await AuthTests.error { try await listener.target(within: .seconds(30), page: "") { _ in true } }
        #expect((error as? POSIXError)?.code == .EINVAL)
    }
    #endif

    @Test func `a user who does not answer ends the sign-in`() async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let client = server.client()
        let error = await AuthTests.error { try await client.signIn(timeout: .milliseconds(50)) { _ in } }
        guard case OAuthError.timedOut(after: .milliseconds(50))? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        let opened = Gate()
        let task = Task { try await client.signIn { _ in opened.open() } }
        #expect(await opened.wait())
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}

@Suite(.timeLimit(.minutes(1))) struct DeviceTests {
    /// A server that answers requests for a device's tokens in this order, then with tokens.
    private func makeServer(_ errors: [String]) throws -> AuthorizationServer {
        let left = Monitor(errors)
        return try AuthorizationServer { request, form in
            if request.path == "/device" {
                struct Codes: Encodable {
                    let device_code = "d"
                    let user_code = "ABCD"
                    let verification_uri = "https://x.example/device"
                    let expires_in = 60
                }
                return try .json(Codes())
            }
            guard form["device_code"] == ["d"] else { return nil }
            let error = left.update { $0.isEmpty ? nil : $0.removeFirst() }
            return try error.map { try AuthorizationServer.error($0) }
        }
    }

    private func client(_ server: AuthorizationServer, _ clock: VirtualClock) -> OAuthClient {
        var configuration = makeConfiguration()
        configuration.clock = clock
        var metadata = OAuthServerMetadata(tokenEndpoint: server.url("/token"))
        metadata.deviceAuthorizationEndpoint = server.url("/device")
        return OAuthClient(id: "app", server: .metadata(metadata), configuration: configuration)
    }

    // A4.1: RFC 8628
    @Test func `a device asks in the server's interval`() async throws {
        let server = try makeServer(["authorization_pending", "slow_down", "authorization_pending"])
        defer { server.stop() }
        let clock = VirtualClock(.automatic)
        let client = client(server, clock)
        let device = try await client.deviceAuthorization(scope: ["a"])
        #expect(device.userCode == "ABCD" && device.verificationURL == "https://x.example/device" && device.interval == .seconds(5))
        #expect(!"\(device)".contains("ABCD"))
        #expect(try await client.tokens(for: device).accessToken == "a1")
        #expect(clock.sleeps == [.seconds(5), .seconds(5), .seconds(10), .seconds(10)])
        #expect(server.forms.last?["grant_type"] == ["urn:ietf:params:oauth:grant-type:device_code"])
    }

    @Test(arguments: [(["access_denied"], "access_denied"), (["expired_token"], "expired_token")] as [([String], String)])
    func `a refusal ends it`(errors: [String], code: String) async throws {
        let server = try makeServer(errors)
        defer { server.stop() }
        let client = client(server, VirtualClock(.automatic))
        let device = try await client.deviceAuthorization()
        let error = await AuthTests.error { try await client.tokens(for: device) }
        guard case OAuthError.refused(let refusal)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(refusal.code.rawValue == code)
    }

    @Test func `codes expire, and a lost connection doubles the interval`() async throws {
        let server = try makeServer(Array(repeating: "authorization_pending", count: 100))
        defer { server.stop() }
        let clock = VirtualClock(.automatic)
        let client = client(server, clock)
        let device = try await client.deviceAuthorization()
        server.state.update { $0.next = [{ $0.misbehaving(.cut(after: 0)) }] }
        let error = await AuthTests.error { try await client.tokens(for: device) }
        #expect(error.map { "\($0)" }?.contains("expired_token") == true)
        #expect(clock.sleeps == [.seconds(5)] + Array(repeating: .seconds(10), count: 5))
    }
}
