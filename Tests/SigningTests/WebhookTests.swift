// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import CurlewTesting
import Testing

// A3.3
@Suite(.timeLimit(.minutes(1))) struct WebhookTests {
    private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    private static let other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
    private static let privateKey = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
    private static let publicKey = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
    private static let id = "msg_p5jXN8AQM9LWM0D4loKWxJek"
    private static let date = Date(timeIntervalSince1970: 1_614_265_330)
    private static var body: Data { Data("{\"test\": 2432232314}".utf8) }
    private static let published = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

    private static func error(_ body: () throws -> Void) -> WebhookError? {
        do {
            try body()
            return nil
        } catch {
            return error as? WebhookError
        }
    }

    // MARK: Standard Webhooks

    @Test("the published example is signed and verified") func publishedExample() throws {
        let webhook = try StandardWebhook(Self.secret)
        let headers = try webhook.sign(id: Self.id, body: Self.body, at: Self.date)
        #expect(
            headers == ["webhook-id": Self.id, "webhook-timestamp": "1614265330", "webhook-signature": Self.published] as HTTPHeaders)
        let message = try webhook.verify(headers, body: Self.body, at: Self.date)
        #expect(message.id == Self.id && message.timestamp == Self.date)
        #expect(try StandardWebhook(String(Self.secret.dropFirst(6))).sign(id: Self.id, body: Self.body, at: Self.date) == headers)
    }

    @Test("the published example by Ed25519 is signed and verified", .enabled(if: RFC9421.hasLibcrypto)) func asymmetric() throws {
        let headers = try StandardWebhook(Self.privateKey).sign(id: Self.id, body: Self.body, at: Self.date)
        #expect(
            headers["webhook-signature"] == "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==")
        let receiver = try StandardWebhook(Self.publicKey)
        #expect(try receiver.verify(headers, body: Self.body, at: Self.date).id == Self.id)
        #expect(Self.error { try receiver.verify(headers, body: Self.body + [0], at: Self.date) } == .wrongSignature)
        #expect(Self.error { _ = try receiver.sign(id: "a", body: Data()) } == .noSigningKey)
        #expect(Self.error { try StandardWebhook(Self.secret).verify(headers, body: Self.body, at: Self.date) } == .wrongSignature)
    }

    @Test("keys are changed without a failure") func rotation() throws {
        let headers = try StandardWebhook(Self.other, Self.secret).sign(id: Self.id, body: Self.body, at: Self.date)
        #expect(headers["webhook-signature"]?.hasSuffix(" \(Self.published)") == true)
        for secrets in [[Self.secret], [Self.other], [Self.other, Self.secret]] {
            try StandardWebhook(secrets).verify(headers, body: Self.body, at: Self.date)
        }
        let old = try StandardWebhook(Self.other).sign(id: Self.id, body: Self.body, at: Self.date)
        try StandardWebhook(Self.secret, Self.other).verify(old, body: Self.body, at: Self.date)
        #expect(Self.error { try StandardWebhook(Self.secret).verify(old, body: Self.body, at: Self.date) } == .wrongSignature)
    }

    @Test("the time is within the tolerance", arguments: [(-301, false), (-300, true), (300, true), (301, false)] as [(Int, Bool)])
    func tolerance(age: Int, isAccepted: Bool) throws {
        let webhook = try StandardWebhook(Self.secret)
        let headers = try webhook.sign(id: Self.id, body: Self.body, at: Self.date)
        let error = Self.error { try webhook.verify(headers, body: Self.body, at: Self.date.addingTimeInterval(TimeInterval(age))) }
        #expect(error == (isAccepted ? nil : .outsideTolerance(age: .seconds(age))))
    }

    @Test("what was changed or is missing is refused") func changes() throws {
        let webhook = try StandardWebhook(Self.secret)
        let headers = try webhook.sign(id: Self.id, body: Self.body, at: Self.date)
        func error(_ change: (inout HTTPHeaders) -> Void, body: Data = Self.body) -> WebhookError? {
            var changed = headers
            change(&changed)
            return Self.error { try webhook.verify(changed, body: body, at: Self.date) }
        }
        #expect(error({ _ in }, body: Self.body + [0]) == .wrongSignature)
        #expect(error { $0["webhook-id"] = "msg_2" } == .wrongSignature)
        #expect(error { $0["webhook-id"] = "a.b" } == .invalidID)
        #expect(error { $0["webhook-timestamp"] = "1614265331" } == .wrongSignature)
        #expect(error { $0["webhook-timestamp"] = "+1614265330" } == .malformedField("webhook-timestamp"))
        #expect(error { $0["webhook-timestamp"] = String(repeating: "9", count: 40) } == .malformedField("webhook-timestamp"))
        #expect(error { $0["webhook-signature"] = "v1,AA== v2,\(Self.published.dropFirst(3)) x" } == .wrongSignature)
        #expect(error { $0["webhook-signature"] = "v1,AA== \(Self.published)" } == nil)
        #expect(
            error { $0["webhook-signature"] = String(repeating: "v1,AA== ", count: 16) + Self.published } == .wrongSignature,
            "only 16 are considered")
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            #expect(error { $0.remove(name: name) } == .missingField(name))
            #expect(error { $0.append(name: name, value: "a") } == .malformedField(name))
        }
        var old = webhook
        old.fieldPrefix = "svix-"
        let renamed = HTTPHeaders(headers.map { HTTPHeader(name: $0.name.replacing("webhook-", with: "Svix-"), value: $0.value) })
        try old.verify(renamed, body: Self.body, at: Self.date)
    }

    @Test(
        "secrets and identifiers of another form are refused, and not shown",
        arguments: ["whsec_%%secret", "", "whsk_c2VjcmV0", "whpk_c2VjcmV0"])
    func invalid(secret: String) throws {
        let error = try #require(Self.error { _ = try StandardWebhook(secret) })
        #expect(!error.description.contains("c2Vj") && !error.description.contains("%%"))
        #expect(Self.error { _ = try StandardWebhook(Self.secret).sign(id: "a.b", body: Data()) } == .invalidID)
        #expect(Self.error { _ = try StandardWebhook([]) } != nil)
    }

    // MARK: Other forms

    @Test("GitHub's published example is signed and verified") func gitHub() throws {
        let webhook = try HMACWebhook(.gitHub, secrets: "It's a Secret to Everybody")
        let body = Data("Hello, World!".utf8)
        let headers = webhook.sign(body)
        #expect(
            headers["X-Hub-Signature-256"] == "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
        #expect(try webhook.verify(headers, body: body) == nil)
        #expect(Self.error { try webhook.verify(headers, body: body + [0]) } == .wrongSignature)
        for text in ["sha256=75", "sha256=", "sha256=zz", "757107", "sha1=75"] {
            #expect(Self.error { try webhook.verify(["X-Hub-Signature-256": text], body: body) } != nil)
        }
        let rotated = try HMACWebhook(.gitHub, secrets: "new", "It's a Secret to Everybody")
        try rotated.verify(headers, body: body)
        #expect(Self.error { try webhook.verify([:], body: body) } == .missingField("X-Hub-Signature-256"))
    }

    @Test("Slack's published example is signed and verified") func slack() throws {
        let webhook = try HMACWebhook(.slack, secrets: "8f742231b10e8888abcd99yyyzzz85a5")
        let body = Data(
            ("token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
                + "&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com"
                + "%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
                + "&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c").utf8)
        let date = Date(timeIntervalSince1970: 1_531_420_618)
        let headers = webhook.sign(body, at: date)
        #expect(headers["X-Slack-Signature"] == "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503")
        #expect(try webhook.verify(headers, body: body, at: date) == date)
        let late = Self.error { try webhook.verify(headers, body: body, at: date.addingTimeInterval(301)) }
        #expect(late == .outsideTolerance(age: .seconds(301)))
    }

    @Test("Stripe's form has time and signatures in one field") func stripe() throws {
        let webhook = try HMACWebhook(.stripe, secrets: "whsec_new", "whsec_old")
        let headers = webhook.sign(Self.body, at: Self.date)
        let field = try #require(headers["Stripe-Signature"])
        #expect(field.hasPrefix("t=1614265330,v1=") && field.split(separator: ",").count == 3)
        for secret in ["whsec_new", "whsec_old"] {
            let receiver = try HMACWebhook(.stripe, secrets: secret)
            #expect(try receiver.verify(headers, body: Self.body, at: Self.date) == Self.date)
            let changed = field.replacing("t=1614265330", with: "t=1614265331")
            #expect(Self.error { try receiver.verify(["Stripe-Signature": changed], body: Self.body, at: Self.date) } == .wrongSignature)
        }
        for text in ["v1=00", "t=1614265330", "t=1,t=2,v1=00", "t=x,v1=00"] {
            #expect(
                Self.error { try webhook.verify(["Stripe-Signature": text], body: Self.body, at: Self.date) }
                    == .malformedField("Stripe-Signature"))
        }
    }

    @Test("a form of one's own") func own() throws {
        let form = HMACWebhook.Form(field: "X-Shop-Hmac", encoding: .base64, timestamp: .field("X-Shop-Time"), separator: "\n")
        let webhook = try HMACWebhook(form, secrets: [[1, 2, 3]])
        let headers = webhook.sign(Self.body, at: Self.date)
        let expected = try SigningKey(secret: [1, 2, 3]).signature(of: Data("1614265330\n".utf8) + Self.body)
        #expect(headers["X-Shop-Hmac"] == expected.base64EncodedString())
        #expect(try webhook.verify(headers, body: Self.body, at: Self.date) == Self.date)
        #expect(Self.error { _ = try HMACWebhook(form, secrets: "") } != nil)
        let large = Data(repeating: 7, count: 1 << 20)
        #expect(try webhook.verify(webhook.sign(large, at: Self.date), body: large, at: Self.date) == Self.date)
    }

    // MARK: Deliveries

    @Test("each attempt to deliver is signed at its own time, and only with the body that was signed") func deliveries() async throws {
        let count = Lock(0)
        let server = try LoopbackServer { _, _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return number == 1 ? .status(503) : .ok()
        }
        defer { server.stop() }
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "callbacks")
        let manager = SessionManager(configuration: configuration)
        let webhook = try StandardWebhook(Self.secret)
        let options = RequestOptions(signer: webhook.signer(id: Self.id, body: Self.body))
        let policy = RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0.01, retryableHTTPMethods: [.post])
        _ = try await manager.upload(Self.body, to: server.url("/"), method: .post, interceptor: policy, options: options).validate()
            .serializingData().value
        #expect(server.requestCount == 2)
        for request in server.requests {
            let headers = HTTPHeaders(request.headers.map { HTTPHeader(name: $0.name, value: $0.value) })
            #expect(try webhook.verify(headers, body: request.body).id == Self.id)
        }
        let failed = await manager.upload(Data("other".utf8), to: server.url("/"), method: .post, options: options).serializingData()
            .response
        #expect(failed.error as? WebhookError == .otherBody)
        #expect(server.requestCount == 2)
    }
}
