// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

/// Credentials of services: what all of them have in common.
// A3.1
@Suite(.timeLimit(.minutes(1))) struct RemoteCredentialsTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test(arguments: CredentialsService.allCases) func `two users at once are served each their own, by one request each`(
        service: CredentialsService
    ) async throws {
        let gate = Gate()
        defer { gate.open() }
        let server = try service.server { user, connection in
            connection.wait(until: gate)
            return service.answer(.temporary(of: user))
        }
        defer { server.stop() }
        let providers = try ["a", "b"].map { ($0, try service.provider(at: server.url(""), user: $0, in: directory)) }
        let found = try await withThrowingTaskGroup(of: (String, String).self) { group in
            for _ in 0..<20 {
                for (user, provider) in providers { group.addTask { (user, try await provider.credentials().accessKeyID) } }
            }
            group.addTask {
                #expect(await gate.arrivals(2))
                gate.open()
                return ("a", "AKIDa")
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(found.count == 41 && found.allSatisfy { "AKID\($0.0)" == $0.1 })
        #expect(server.requestCount == 2 * service.requestCount)
        for (user, provider) in providers {
            let credentials = try await provider.credentials()
            #expect(credentials.secretAccessKey == "key+of/\(user)=" && credentials.sessionToken == "session of \(user)")
            #expect(try #require(credentials.expiration).timeIntervalSinceNow > 1800)
        }
        #expect(server.requestCount == 2 * service.requestCount)
    }

    @Test(arguments: CredentialsService.allCases) func `a cancelled wait ends, and others have the answer to the same request`(
        service: CredentialsService
    ) async throws {
        let gate = Gate()
        defer { gate.open() }
        let server = try service.server { user, connection in
            connection.wait(until: gate)
            return service.answer(.temporary(of: user))
        }
        defer { server.stop() }
        let provider = try service.provider(at: server.url(""), in: directory)
        let first = Task { try await provider.credentials() }
        #expect(await gate.arrivals())
        let second = Task { try await provider.credentials() }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(!gate.isOpen)
        gate.open()
        #expect(try await second.value.accessKeyID == "AKIDuser")
        #expect(server.requestCount == service.requestCount)
    }

    @Test func `services that do not answer are an error in time`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for service in CredentialsService.allCases { group.addTask { try await checkTimeout(of: service) } }
            try await group.waitForAll()
        }
    }

    private func checkTimeout(of service: CredentialsService) async throws {
        let gate = Gate()
        defer { gate.open() }
        let server = try service.server { _, connection in
            connection.wait(until: gate)
            return .status(500)
        }
        defer { server.stop() }
        let provider = try service.provider(at: server.url(""), user: "s3cr3t\(service)", in: directory, timeout: .seconds(2), attempts: 2)
        let error = try #require(await failure(of: provider))
        guard case .unreachable(let place, let reason) = error else {
            Issue.record("\(error)")
            return
        }
        #expect(place.hasSuffix("at http://127.0.0.1:\(server.port)") && reason.contains("totalTimeout"), "\(error)")
        #expect(!error.description.contains("s3cr3t"), "\(error)")
        #expect(gate.arrived == 2)
    }

    @Test(arguments: CredentialsService.allCases) func `a status of overload is repeated, and at last an error`(service: CredentialsService)
        async throws
    {
        let left = Monitor(2)
        let server = try service.server { user, _ in
            let fails = left.update { left in
                left -= 1
                return left >= 0
            }
            return fails ? .status(503) : service.answer(.temporary(of: user))
        }
        defer { server.stop() }
        let place = try service.provider(at: server.url(""), in: directory, attempts: 2)
        guard case .refused(_, statusCode: 503, code: nil)? = await failure(of: place) else {
            Issue.record("no refusal")
            return
        }
        #expect(server.requestCount == service.requestCount + 1)
        left.update { $0 = 1 }
        #expect(try await service.provider(at: server.url(""), in: directory, attempts: 2).credentials().accessKeyID == "AKIDuser")
    }

    @Test(arguments: CredentialsService.allCases, [301, 302, 303, 307, 308]) func `a redirect is refused`(
        service: CredentialsService, status: Int
    ) async throws {
        let other = try service.server { user, _ in service.answer(.temporary(of: user)) }
        defer { other.stop() }
        let place = other.url("/creds/user")
        let server = try service.server { _, _ in .redirect(to: place, status: status) }
        defer { server.stop() }
        guard case .refused(_, statusCode: status, code: nil)? = await failure(of: try service.provider(at: server.url(""), in: directory))
        else {
            Issue.record("no refusal")
            return
        }
        #expect(other.requestCount == 0)
        #expect(server.requestCount == service.requestCount)
    }

    @Test(arguments: CredentialsService.allCases) func `garbage is an error without secrets`(service: CredentialsService) async throws {
        let answer = Monitor(ServerResponse.ok())
        let server = try service.server { _, _ in answer.read { $0 } }
        defer { server.stop() }
        let expired = service.answer(.temporary(of: "s3cr3t", expiresIn: -10))
        let whole = service.answer(.temporary(of: "s3cr3t"))
        var text = ""
        if case .data(let data) = whole.body { text = String(decoding: data, as: UTF8.self) }
        func changed(_ old: String, _ new: String) -> ServerResponse { .ok(text.replacingOccurrences(of: old, with: new)) }
        let cases: [(ServerResponse, (AWSCredentialsError) -> Bool)] = [
            (.ok(), \.isInvalid), (.ok("<html><br></html>"), \.isInvalid), (.ok("[]"), \.isInvalid), (.ok("{}"), \.isInvalid),
            (.ok("<a></a>"), \.isInvalid), (.ok(Data([0xFF, 0x22])), \.isInvalid), (changed("AccessKeyId", "Other"), \.isInvalid),
            (changed("SecretAccessKey", "Other"), \.isInvalid), (changed("Token", "Other"), \.isInvalid),
            (changed("Expiration", "Other"), \.isInvalid), (changed("20", "x"), \.isInvalid), (.ok(String(text.dropLast())), \.isInvalid),
            (changed("session of", service == .webIdentity ? "a\nb" : "a\\nb"), \.isInvalid),
            (.ok(text + String(repeating: " ", count: 70_000)), \.isInvalid), (.status(400), \.isRefused), (.status(401), \.isRefused),
            (whole.misbehaving(.cut(after: 20)), \.isUnreachable), (whole.misbehaving(.reset(after: 0)), \.isUnreachable),
            (expired, { if case .expired = $0 { true } else { false } }),
        ]
        for (index, (response, isExpected)) in cases.enumerated() {
            answer.update { $0 = response }
            let error = await failure(of: try service.provider(at: server.url(""), user: "s3cr3tuser", in: directory))
            #expect(error.map(isExpected) == true, "\(index): \(String(describing: error))")
            #expect(error?.description.contains("s3cr3t") == false, "\(index)")
        }
    }

    @Test(arguments: CredentialsService.allCases, [-7200, -30, 0, 30, 7200] as [Double])
    func `credentials expire by the clock of their service`(
        service: CredentialsService, offset: Double
    ) async throws {
        let lifetime = Monitor(3600.0)
        let server = try service.server { user, _ in
            let date = HTTPDate.text(of: Date(timeIntervalSinceNow: offset)) ?? ""
            return service.answer(.temporary(of: user, expiresIn: lifetime.read { $0 } + offset)).header("Date", date)
        }
        defer { server.stop() }
        let credentials = try await service.provider(at: server.url(""), in: directory).credentials()
        let expected = abs(offset) < 60 ? 3600 + offset : 3600
        #expect(try abs(#require(credentials.expiration).timeIntervalSinceNow - expected) < 20)
        lifetime.update { $0 = -90 }
        guard case .expired(let date)? = await failure(of: try service.provider(at: server.url(""), in: directory)) else {
            Issue.record("not expired")
            return
        }
        #expect(abs(date.timeIntervalSinceNow - offset + 90) < 20)
    }

    @Test(arguments: CredentialsService.allCases) func `the code of a refusal is named, if it is one`(service: CredentialsService)
        async throws
    {
        func refusal(_ code: String) -> ServerResponse {
            var response = ServerResponse.ok(
                service == .webIdentity
                    ? "<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type><Code>\(code)</Code><Message>no</Message></Error></ErrorResponse>"
                    : "{\"Code\": \"\(code)\", \"Message\": \"no\"}")
            response.status = service == .instance ? 200 : 403
            return response
        }
        let answer = Monitor(refusal("AccessDenied"))
        let server = try service.server { _, _ in answer.read { $0 } }
        defer { server.stop() }
        for (sent, expected) in [("AccessDenied", "AccessDenied"), ("a b", nil), (String(repeating: "a", count: 65), nil)]
            as [(String, String?)]
        {
            answer.update { $0 = refusal(sent) }
            guard case .refused(_, _, let code)? = await failure(of: try service.provider(at: server.url(""), in: directory)) else {
                Issue.record("no refusal")
                continue
            }
            #expect(code == expected)
        }
    }

    @Test(arguments: CredentialsService.allCases) func `requests of two users in one session are signed with their own`(
        service: CredentialsService
    ) async throws {
        let source = try service.server { user, _ in service.answer(.temporary(of: user)) }
        let server = try LoopbackServer { _, _ in .ok() }
        defer {
            source.stop()
            server.stop()
        }
        var configuration = SessionConfiguration()
        configuration.callbackQueue = callbackQueue
        let manager = SessionManager(configuration: configuration)
        let signature = AWSSignatureV4(service: "s3", region: "eu-central-1")
        let signers = try ["a", "b"].map {
            AWSSigner(signature, credentials: try service.provider(at: source.url(""), user: $0, in: directory))
        }
        let requests = (0..<20).map { manager.request(server.url("/\($0)"), options: RequestOptions(signer: signers[$0 % 2])) }
        for request in requests { _ = try await request.serializingData().value }
        for request in server.requests {
            let user = try #require(Int(request.path.dropFirst())).isMultiple(of: 2) ? "a" : "b"
            #expect(request.header("Authorization")?.contains("Credential=AKID\(user)/") == true)
            #expect(request.header("X-Amz-Security-Token") == "session of \(user)")
        }
        #expect(server.requestCount == 20 && source.requestCount == 2 * service.requestCount)
        for signer in signers {
            var text = "\(signer) \(String(reflecting: signer))"
            dump(signer, to: &text)
            #expect(!text.contains("key+of") && !text.contains("session of"))
        }
    }
}

extension AWSCredentialsError {
    fileprivate var isInvalid: Bool { if case .invalidResponse = self { true } else { false } }
    fileprivate var isUnreachable: Bool { if case .unreachable = self { true } else { false } }
    fileprivate var isRefused: Bool { if case .refused = self { true } else { false } }
}
