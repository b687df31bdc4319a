// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import CurlewTesting
import Testing

/// Requests whose message signatures are verified of what a server has received.
// A3.2
@Suite(.timeLimit(.minutes(1)), .enabled(if: RFC9421.hasLibcrypto)) struct MessageSignerTests {
    private static func manager(_ signer: MessageSigner) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "callbacks")
        configuration.signer = signer
        return SessionManager(configuration: configuration)
    }

    private static func message(_ request: ServerRequest) throws -> SignableMessage {
        let headers = HTTPHeaders(request.headers.map { HTTPHeader(name: $0.name, value: $0.value) })
        let method = try #require(HTTPMethod(rawValue: request.method))
        return .request(method, "http://\(request.header("Host") ?? "")\(request.target)", headers: headers)
    }

    private static func key(_ algorithm: SignatureAlgorithm) throws -> SigningKey {
        switch algorithm {
        case .rsaPSS, .rsaPKCS1: try SigningKey(pem: RFC9421.rsaPrivate, algorithm: algorithm, id: "k")
        case .ecdsaP384: try SigningKey(pem: try Self.p384(), id: "k")
        default: try SigningKey.generate(algorithm, id: "k")
        }
    }

    /// A private key of one, whose form is that of PKCS #8.
    private static func p384() throws -> String {
        let number = Data(repeating: 0, count: 47) + [1]
        let head: [UInt8] = [
            0x30, 0x4E, 0x02, 0x01, 0x00, 0x30, 0x10, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x05, 0x2B, 0x81, 0x04,
            0x00, 0x22, 0x04, 0x37, 0x30, 0x35, 0x02, 0x01, 0x01, 0x04, 0x30,
        ]
        return "-----BEGIN PRIVATE KEY-----\n\((Data(head) + number).base64EncodedString())\n-----END PRIVATE KEY-----"
    }

    @Test("requests of all kinds are signed as they are received", arguments: SignatureAlgorithm.allCases)
    func kinds(_ algorithm: SignatureAlgorithm) async throws {
        let server = try LoopbackServer { request, _ in request.path == "/from" ? .redirect(to: "/to?b=%2B&a=1", status: 307) : .ok() }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        let key = try Self.key(algorithm)
        var signer = MessageSigner(key)
        signer.components += [.authority, .path, .query]
        signer.sendsAlgorithm = true
        signer.sendsNonce = true
        signer.lifetime = .seconds(60)
        signer.tag = "orders"
        let manager = Self.manager(signer)
        let file = try directory.write(Data("file".utf8), to: "body")
        _ = try await manager.request(server.url("/a/../b//c%20d?x=1&y=%C3%BC"), headers: ["Authorization": "Bearer t"])
            .serializingData().value
        _ = try await manager.request(server.url("/p"), method: .post, parameters: ["k": "v"]).serializingData().value
        _ = try await manager.upload(Data("data".utf8), to: server.url("/from"), method: .put).serializingData().value
        _ = try await manager.upload(file, to: server.url("/f"), method: .put).serializingData().value
        #expect(server.requests.map(\.method) == ["GET", "POST", "PUT", "PUT", "PUT"])
        let verification = key.verificationKey
        var verifier = MessageVerifier(requiring: [.method, .targetURI, .query]) { $0 == "k" ? verification : nil }
        verifier.tag = "orders"
        var nonces: Set<String> = []
        for request in server.requests {
            let signature = try verifier.verify(Self.message(request), body: request.body)
            nonces.insert(signature.input.nonce ?? "")
            #expect(signature.input.algorithm == algorithm.rawValue)
            #expect(signature.input.expires.map { $0.timeIntervalSince(signature.input.created ?? $0) } == 60)
            let names = signature.input.components.map(\.name)
            #expect(names.contains("authorization") == (request.method == "GET"))
            #expect(names.contains("content-digest") == !request.body.isEmpty)
        }
        #expect(nonces.count == 5)
    }

    @Test("a body that can't be digested fails, unless its digest is known") func undigested() async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        defer { server.stop() }
        let key = try SigningKey(secret: [1, 2, 3], id: "k")
        let manager = Self.manager(MessageSigner(key))
        let stream = { InputStream(data: Data("stream".utf8)) }
        let failed = await manager.upload(stream(), to: server.url("/"), method: .put).serializingData().response
        #expect(failed.error as? MessageSignatureError == .bodyNotDigested)
        var headers: HTTPHeaders = [:]
        headers.contentDigest = ContentDigest(of: Data("stream".utf8))
        _ = try await manager.upload(stream(), to: server.url("/"), method: .put, headers: headers).serializingData().value
        var signer = MessageSigner(key)
        signer.coversBody = false
        _ = try await Self.manager(signer).upload(stream(), to: server.url("/"), method: .put).serializingData().value
        #expect(server.requestCount == 2)
        let verification = key.verificationKey
        let verifier = MessageVerifier(requiring: [.targetURI]) { _ in verification }
        let requests = server.requests
        try verifier.verify(Self.message(requests[0]), body: requests[0].body)
        #expect(throws: MessageSignatureError.notCovered("\"content-digest\"")) {
            try verifier.verify(Self.message(requests[1]), body: requests[1].body)
        }
    }

    @Test("the lack of a body, and another host, are covered; other signatures are kept") func details() async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        defer { server.stop() }
        let key = try SigningKey(secret: [1, 2, 3], id: "k")
        var signer = MessageSigner(key)
        signer.components.append("content-digest")
        signer.label = "mine"
        let headers: HTTPHeaders = ["Host": "Api.Example", "Signature-Input": "theirs=()", "Signature": "theirs=:AA==:"]
        _ = try await Self.manager(signer).request(server.url("/"), headers: headers).serializingData().value
        let message = try Self.message(server.requests[0])
        let verification = key.verificationKey
        let signature = try MessageVerifier(requiring: ["content-digest"]) { $0 == "k" ? verification : nil }.verify(message, body: Data())
        #expect(signature.label == "mine")
        #expect(try message.signatures().map(\.label) == ["theirs", "mine"])
        #expect(try message.signatureBase(signature.input).contains("\"@target-uri\": http://api.example/\n"))
    }

    @Test("responses are stored for the key, also for one without an identifier") func identities() throws {
        let keys = try [
            SigningKey(secret: [1]), SigningKey(secret: [2]), SigningKey(secret: [2], id: "k"), SigningKey.generate(),
            SigningKey.generate(),
        ]
        let identities = keys.map { MessageSigner($0).identity }
        #expect(Set(identities).count == 5)
        #expect(identities[2] == "sig1 hmac-sha256 k")
        #expect(MessageSigner(keys[0]).identity == identities[0])
        let webhooks = try ["a", "b"].map { try HMACWebhook(.gitHub, secrets: $0).signer(body: Data()).identity }
        #expect(webhooks[0] != webhooks[1] && !webhooks[0].contains("secret"))
    }
}
