// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

@Suite struct GuideTests {
    private static let credentials = AWSCredentials(accessKeyID: "id", secretAccessKey: "key", sessionToken: "token")

    @Test(arguments: [("CurlewSigning.md", "Guide.swift"), ("SigningRequests.md", "SigningGuide.swift")] as [(String, String)])
    func `every block of the articles is compiled, and everything compiled for them is in them`(page: String, source: String) throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Signing/CurlewSigning.docc/\(page)")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent(source)) == [])
    }

    @Test func `the article's functions sign`() async throws {
        #expect(makeManager(from: Self.credentials).session.configuration.signer is AWSSigner)
        let url = try await link(to: "a%20b", from: Self.credentials)
        #expect(url.hasBytePrefix("https://bucket.s3.eu-central-1.amazonaws.com/a%20b?X-Amz-Algorithm=AWS4-HMAC-SHA256&"))
        let headers = try publish(Data("{}".utf8), to: "https://sqs.eu-central-1.amazonaws.com/", with: Self.credentials)
        #expect(headers["Authorization"]?.containsScalars(of: "content-type;host;x-amz-date;x-amz-security-token;x-amz-target") == true)
        let (fields, body) = try encoded([Data("abc".utf8), Data("de".utf8)], to: url, with: Self.credentials)
        #expect(fields["X-Amz-Content-Sha256"] == "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
        #expect(body.count == 263)
        let server = try LoopbackServer { _, _ in .ok() }
        defer { server.stop() }
        let rows: @Sendable () -> AsyncStream<Data> = {
            AsyncStream { continuation in
                for text in ["abc", "de"] { continuation.yield(Data(text.utf8)) }
                continuation.finish()
            }
        }
        let signer = AWSSigner(AWSSignatureV4(service: "s3", region: "eu-central-1"), credentials: Self.credentials)
        try await store(rows, size: 5, at: server.url("/bucket/rows"), with: makeManager(from: Self.credentials), signer: signer)
        #expect(server.requests.first?.header("X-Amz-Decoded-Content-Length") == "5")
        #expect(server.requests.first?.body.firstRange(of: Data("\r\nabcde\r\n0;chunk-signature=".utf8)) != nil)
        let directory = try TemporaryDirectory()
        let file = directory.file("object")
        try Data("abc".utf8).write(to: file)
        let manager = makeManager(from: Self.credentials)
        try await put(file, at: server.url("/bucket/object"), with: manager)
        #expect(try await get(server.url("/bucket/object"), with: manager).isEmpty)
        #expect(server.requests.suffix(2).map { "\($0.method) \($0.body.count)" } == ["PUT 3", "GET 0"])
    }

    // A3.4
    @Test(.enabled(if: RFC9421.hasLibcrypto), .timeLimit(.minutes(1))) func `the articles' requests are signed and verified`() async throws
    {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        let serverKey = try SigningKey.generate(id: "server")
        let server = try LoopbackServer { request, _ in
            guard request.path == "/balance" else { return .ok() }
            var headers: HTTPHeaders = [:]
            headers.contentDigest = ContentDigest(of: Data("12".utf8))
            let message = SignableMessage.response(
                200, headers: headers, to: .request(.get, "http://\(request.header("Host") ?? "")\(request.target)"))
            let input = SignatureInput(
                [.status, "content-digest", MessageComponent.targetURI.ofRequest], created: Date(), keyID: serverKey.id)
            headers.merge((try? message.signed(with: serverKey, covering: input)) ?? [:])
            var response = ServerResponse.ok("12")
            response.headers += headers.map { ServerField($0.name, $0.value) }
            return response
        }
        defer { server.stop() }
        let manager = try makeSigningManager(key: RFC9421.ed25519Private)
        #expect(try await balance(at: server.url("/balance"), with: manager, serverKey: serverKey.verificationKey) == Data("12".utf8))
        let event = Data("{}".utf8)
        try await deliver(event, id: "msg_1", to: server.url("/hook"), secret: secret, with: manager)
        let requests = server.requests.map { request in
            (HTTPHeaders(request.headers.map { HTTPHeader(name: $0.name, value: $0.value) }), request)
        }
        #expect(requests[0].0["Signature-Input"]?.hasPrefix("sig1=(\"@method\" \"@target-uri\");created=") == true)
        #expect(try receive(requests[1].0, event, secrets: [secret]) == "msg_1")
        try receiveFromOthers(HMACWebhook(.gitHub, secrets: "s").sign(event), event, secret: "s")
        let shop = try makeShopWebhook(secret: "s")
        #expect(try shop.verify(shop.sign(event), body: event) != nil)
        #expect(makeStrictSigner(serverKey).digestsBody)
    }
}
