// SPDX-License-Identifier: Apache-2.0
import CurlewAuth
import CurlewCore
import CurlewCrypto
import CurlewEncoding
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewSigning
import CurlewTestSupport
import Testing

/// A JSON Web Token that was received.
struct ReceivedToken {
    let header: [String: JSONValue]
    let claims: [String: JSONValue]
    private let message: Data
    private let signature: Data

    init(_ text: String?) throws {
        let parts = (text ?? "").split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, let header = Data(base64URLEncoded: parts[0]), let claims = Data(base64URLEncoded: parts[1]),
            let signature = Data(base64URLEncoded: parts[2])
        else { throw TestError("no token: \(text ?? "nil")") }
        self.header = try JSONDecoder().decode([String: JSONValue].self, from: header)
        self.claims = try JSONDecoder().decode([String: JSONValue].self, from: claims)
        message = Data("\(parts[0]).\(parts[1])".utf8)
        self.signature = signature
    }

    func isSigned(by key: VerificationKey) throws -> Bool { try key.isValid(signature, of: message) }

    /// Whether it is signed by the key in its header.
    func isSelfSigned() throws -> Bool {
        let jwk = try JSONEncoder().encode(try #require(header["jwk"]))
        return try isSigned(by: VerificationKey(jwk: jwk))
    }
}

/// Whether the process has a libcrypto with keys.
let hasLibcrypto = (try? SigningKey.generate()) != nil

@Suite(.timeLimit(.minutes(1)), .enabled(if: hasLibcrypto)) struct ClientKeyTests {
    // A4.1: RFC 7523
    @Test(arguments: [(.ecdsaP256, "ES256"), (.ed25519, "EdDSA"), (.hmacSHA256, "HS256")] as [(SignatureAlgorithm, String)])
    func `a client authenticates by an assertion`(algorithm: SignatureAlgorithm, name: String) async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let key = try SigningKey.generate(algorithm, id: "k1")
        let client = server.client(.key(key))
        _ = try await client.tokens(by: .clientCredentials())
        _ = try await client.tokens(by: .jwtBearer(signedBy: key, issuer: "me", audience: "them", claims: ["scope": "s"]))
        let forms = server.forms
        #expect(forms[0]["client_id"] == ["app"])
        #expect(forms[0]["client_assertion_type"] == ["urn:ietf:params:oauth:client-assertion-type:jwt-bearer"])
        let token = try ReceivedToken(forms[0]["client_assertion"]?.first)
        #expect(try token.isSigned(by: key.verificationKey))
        #expect(token.header == ["alg": .string(name), "kid": .string("k1")])
        #expect(token.claims["iss"] == .string("app") && token.claims["sub"] == .string("app"))
        #expect(token.claims["aud"] == .string(server.url()))
        guard case .integer(let issued) = token.claims["iat"], case .integer(let end) = token.claims["exp"] else {
            Issue.record("no times")
            return
        }
        #expect(end - issued == 60 && abs(Double(issued) - Date().timeIntervalSince1970) < 30)
        // Each request has an assertion of its own.
        #expect(try ReceivedToken(forms[1]["client_assertion"]?.first).claims["jti"] != token.claims["jti"])
        let assertion = try ReceivedToken(forms[1]["assertion"]?.first)
        #expect(assertion.claims["iss"] == .string("me") && assertion.claims["aud"] == .string("them"))
        #expect(assertion.claims["scope"] == .string("s"))
        #expect(!"\(client.authentication)".contains("k1"))
    }

    // A4.1: RFC 8705
    @Test func `a client authenticates by its certificate at the endpoint for it`() async throws {
        let (authority, clients) = (try CertificateAuthority(), try CertificateAuthority(name: "Clients"))
        let subject = Monitor<[String?]>([])
        let server = try LoopbackServer(tls: ServerTLS(authority.issue(), clientAuthority: clients)) { request, connection in
            subject.update { $0.append(connection.tls?.clientName) }
            return try .json(["access_token": "x", "token_type": "Bearer"])
        }
        defer { server.stop() }
        let identity = try clients.issue("Numenius", usage: .client)
        var configuration = makeConfiguration()
        configuration.tls.certificateAuthorities = authority.certificate
        configuration.tls.clientCertificate = .pem(Data(identity.chain.utf8), key: Data(identity.key.utf8))
        var metadata = OAuthServerMetadata(tokenEndpoint: "https://example.org/token")
        metadata.certificateEndpoints = ["token_endpoint": server.url("/mtls/token")]
        let client = OAuthClient(id: "app", authentication: .certificate, server: .metadata(metadata), configuration: configuration)
        #expect(try await client.tokens(by: .clientCredentials()).accessToken == "x")
        let request = try #require(server.requests.first)
        #expect(request.path == "/mtls/token")
        #expect(AuthorizationServer.form(String(decoding: request.body, as: UTF8.self))["client_id"] == ["app"])
        #expect(subject.read { $0 } == ["Numenius"])
    }

    /// A server that wants proofs with a nonce, at `/token` and at `/api`.
    private func makeBoundServer(_ proofs: Log<ReceivedToken>, nonce: Monitor<String>) throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            let proof = try ReceivedToken(request.header("DPoP"))
            proofs.append(proof)
            let nonce = nonce.read { $0 }
            let isRight = proof.claims["nonce"] == .string(nonce)
            if request.path == "/token" {
                guard isRight else { return try AuthorizationServer.error("use_dpop_nonce").header("DPoP-Nonce", nonce) }
                return try .json(["access_token": "x", "token_type": "DPoP"])
            }
            guard request.header("Authorization") == "DPoP x" else { return .status(401) }
            guard isRight else {
                return .status(401).header("WWW-Authenticate", #"DPoP error="use_dpop_nonce", error_description="x""#)
                    .header("DPoP-Nonce", nonce)
            }
            return .ok("data").header("DPoP-Nonce", nonce)
        }
    }

    // A4.1: RFC 9449
    @Test func `each exchange has a proof, with the server's nonce`() async throws {
        let (proofs, nonce) = (Log<ReceivedToken>(), Monitor("n1"))
        let server = try makeBoundServer(proofs, nonce: nonce)
        defer { server.stop() }
        let dpop = try DPoP(key: .generate(.ecdsaP256))
        let client = OAuthClient(
            id: "app", server: .metadata(OAuthServerMetadata(tokenEndpoint: server.url("/token"))), dpop: dpop,
            configuration: makeConfiguration())
        var configuration = makeConfiguration()
        configuration.signer = dpop
        configuration.instruments.append(dpop)
        let authenticator = OAuthAuthenticator(client, renewingBy: .clientCredentials())
        let manager = SessionManager(
            configuration: configuration,
            interceptor: Interceptor(interceptors: [dpop, AuthenticationInterceptor(authenticator: authenticator)]))
        for _ in 0..<2 {
            #expect(try await manager.request(server.url("/api?a=b")).validate().serializingData().value == Data("data".utf8))
        }
        // The old nonce is refused once, with the new one, and the token stays.
        nonce.update { $0 = "n2" }
        #expect(try await manager.request(server.url("/api")).validate().serializingData().value == Data("data".utf8))
        let received = proofs.elements
        #expect(
            received.map { $0.claims["htu"] }
                == ["/token", "/token", "/api", "/api", "/api", "/api"].map { .string(server.url($0)) })
        #expect(received.map { $0.claims["htm"] } == received.indices.map { .string($0 < 2 ? "POST" : "GET") })
        #expect(received.map { $0.claims["nonce"] } == [nil, "n1", "n1", "n1", "n1", "n2"].map { $0.map { .string($0) } })
        let digest = JSONValue.string(Data(SHA256.digest(of: "x".utf8)).base64URLEncoded)
        #expect(received.map { $0.claims["ath"] } == received.indices.map { $0 < 2 ? nil : digest })
        #expect(Set(received.map { $0.claims["jti"] }).count == received.count)
        for proof in received {
            #expect(try proof.isSelfSigned())
            #expect(proof.header["typ"] == .string("dpop+jwt") && proof.header["alg"] == .string("ES256") && proof.header["kid"] == nil)
        }
    }

    // A4.1: RFC 9449, section 9
    @Test func `a resource's nonce is used by a retry`() async throws {
        let (proofs, nonce) = (Log<ReceivedToken>(), Monitor("n1"))
        let server = try makeBoundServer(proofs, nonce: nonce)
        defer { server.stop() }
        let dpop = try DPoP(key: .generate())
        let manager = makeManager { $0.signer = dpop }
        let headers: HTTPHeaders = ["Authorization": "DPoP x"]
        let response = await manager.request(server.url("/api"), headers: headers, interceptor: dpop).validate().serializingData().response
        #expect(response.response?.statusCode == 200)
        #expect(proofs.elements.map { $0.claims["nonce"] } == [nil, .string("n1")])
        // A request without a token that needs one has no proof.
        let other = try LoopbackServer { request, _ in .ok(request.header("DPoP") ?? "none") }
        defer { other.stop() }
        let plain = try await manager.request(other.url("/"), headers: ["Authorization": "Bearer x"]).serializingData().value
        #expect(plain == Data("none".utf8))
        #expect(throws: SigningKeyError.self) { try DPoP(key: .generate(.hmacSHA256)) }
    }

    // RFC 9449, section 8
    @Test func `a nonce that another request has received is used by a repetition`() async throws {
        let count = Monitor(0)
        let server = try LoopbackServer { _, _ in
            let isRefused = count.update { count in
                count += 1
                return count != 2 && count != 4
            }
            guard !isRefused else { return try AuthorizationServer.error("use_dpop_nonce").header("DPoP-Nonce", "n1") }
            return try .json(["access_token": "x", "token_type": "DPoP"])
        }
        defer { server.stop() }
        let client = OAuthClient(
            id: "app", server: .metadata(OAuthServerMetadata(tokenEndpoint: server.url("/token"))),
            dpop: try DPoP(key: .generate()), configuration: makeConfiguration())
        for _ in 0..<2 { #expect(try await client.tokens(by: .clientCredentials()).accessToken == "x") }
        // Once only.
        let error = await AuthTests.error { try await client.tokens(by: .clientCredentials()) }
        #expect(error.map { "\($0)" }?.contains("use_dpop_nonce") == true)
        #expect(count.read { $0 } == 6)
    }

    // RFC 9449, section 4.2
    @Test func `a proof's URL has no user`() async throws {
        let proofs = Log<ReceivedToken>()
        let server = try LoopbackServer { request, _ in
            proofs.append(try ReceivedToken(request.header("DPoP")))
            return .ok("data")
        }
        defer { server.stop() }
        let dpop = try DPoP(key: .generate())
        let manager = makeManager { $0.signer = dpop }
        let url = server.url("/a@b?c@d").replacing("http://", with: "http://user:p%40@")
        _ = await manager.request(url, headers: ["Authorization": "DPoP x"]).serializingData().response
        #expect(proofs.elements.map { $0.claims["htu"] } == [.string(server.url("/a@b"))])
    }

    @Test func `a token that is not bound is refused`() async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let client = OAuthClient(
            id: "app", server: .metadata(OAuthServerMetadata(tokenEndpoint: server.url("/token"))),
            dpop: try DPoP(key: .generate()), configuration: makeConfiguration())
        let error = await AuthTests.error { try await client.tokens(by: .clientCredentials()) }
        guard case OAuthError.unboundToken? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }
}
