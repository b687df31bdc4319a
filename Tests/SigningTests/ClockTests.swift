// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

/// A computer whose clock is not that of the service.
// A3.1
@Suite(.timeLimit(.minutes(1))) struct ClockTests {
    /// A refusal of a signature for its time.
    enum Refusal: CaseIterable, Sendable {
        case s3, query, json

        var response: ServerResponse {
            var response: ServerResponse
            switch self {
            case .s3:
                response = .ok("<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>")
                response.status = 403
            case .query:
                response = .ok(
                    "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code><Message>Signature expired: 20261129T000000Z is now earlier"
                        + " than 20261129T005500Z</Message></Error></ErrorResponse>")
                response.status = 403
            case .json:
                response = .ok(
                    #"{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature not yet current: 1 is still later"}"#
                )
                response.status = 400
            }
            return response
        }
    }

    private static let credentials = AWSCredentials(accessKeyID: "AKID", secretAccessKey: "secret")

    private static func signer() -> AWSSigner {
        AWSSigner(AWSSignatureV4(service: "s3", region: "eu-central-1"), credentials: credentials)
    }

    private static func manager(_ signer: AWSSigner) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = callbackQueue
        configuration.proxy = .none
        configuration.signer = signer
        return SessionManager(configuration: configuration, interceptor: signer)
    }

    private static func date(in seconds: TimeInterval) -> ServerField {
        ServerField("Date", HTTPDate.text(of: Date(timeIntervalSinceNow: seconds)) ?? "")
    }

    /// By how many seconds the time of a signature is ahead of this computer's.
    private static func offset(of request: ServerRequest) throws -> TimeInterval {
        let style = Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted)
        return try style.parse(try #require(request.header("X-Amz-Date"))).timeIntervalSinceNow
    }

    /// A service whose clock is ahead.
    private static func server(ahead seconds: TimeInterval, _ refusal: ServerResponse) throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            var response = abs(try Self.offset(of: request) - seconds) < 300 ? ServerResponse.ok() : refusal
            if request.method == "HEAD" { response.body = .none }
            response.headers.append(Self.date(in: seconds))
            return response
        }
    }

    @Test(arguments: Refusal.allCases, [3600.0, -86_400.0])
    func `a refused request is repeated with the time of the service, which is kept`(refusal: Refusal, seconds: Double) async throws {
        let server = try Self.server(ahead: seconds, refusal.response)
        defer { server.stop() }
        let signer = Self.signer()
        let manager = Self.manager(signer)
        _ = try await manager.upload(Data("a".utf8), to: server.url("/"), method: .put).validate().serializingData().value
        #expect(server.requestCount == 2)
        #expect(abs(signer.clockOffset.seconds - seconds) < 60)
        _ = try await manager.request(server.url("/")).validate().serializingData().value
        #expect(server.requestCount == 3)
    }

    @Test func `all requests that were sent with the old time are repeated once`() async throws {
        let server = try Self.server(ahead: 3600, Refusal.s3.response)
        defer { server.stop() }
        let manager = Self.manager(Self.signer())
        let requests = (0..<20).map { manager.request(server.url("/\($0)")).validate() }
        for request in requests { _ = try await request.serializingData().value }
        #expect((21...40).contains(server.requestCount))
    }

    @Test func `refusals without a body of requests that were sent at once are all repeated`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let server = try LoopbackServer { request, connection in
            var response = ServerResponse.ok()
            if try Self.offset(of: request) < 3000 {
                // All are signed before the first is refused.
                connection.wait(until: gate)
                response = .status(403).header("x-amz-request-id", "1")
            }
            response.headers.append(Self.date(in: 3600))
            return response
        }
        defer { server.stop() }
        let manager = Self.manager(Self.signer())
        let requests = (0..<4).map { manager.request(server.url("/\($0)"), method: .head).validate() }
        for request in requests { request.resume() }
        #expect(await gate.arrivals(4))
        gate.open()
        for request in requests { _ = try await request.serializingData().value }
        #expect(server.requestCount == 8)
    }

    @Test(arguments: [.get, .head] as [HTTPMethod])
    func `a request that was repeated for another reason is repeated for the time, too`(method: HTTPMethod) async throws {
        let number = Monitor(0)
        let server = try LoopbackServer { request, _ in
            let count = number.update { number in
                number += 1
                return number
            }
            guard count > 2 else { return .status(503) }
            var response = ServerResponse.ok()
            if try Self.offset(of: request) < 3000 {
                response = request.method == "HEAD" ? .status(403).header("x-amz-request-id", "1") : Refusal.s3.response
            }
            response.headers.append(Self.date(in: 3600))
            return response
        }
        defer { server.stop() }
        let policy = RetryPolicy(jitter: { 0 })
        let request = Self.manager(Self.signer()).request(server.url("/"), method: method, interceptor: policy)
        _ = try await request.validate().serializingData().value
        #expect(server.requestCount == 4)
    }

    @Test func `an unsigned request, a response without TLS and one of a cache change nothing`() async throws {
        let server = try LoopbackServer { request, _ in
            var response = Refusal.s3.response
            response.headers.append(Self.date(in: 3600))
            return request.path == "/old" ? response.header("Age", "3600") : response
        }
        defer { server.stop() }
        let signer = Self.signer()
        let manager = Self.manager(signer)
        let requests = [
            manager.request(server.url("/"), options: RequestOptions().withoutCredentials(of: "https://example.org")),
            manager.request(server.url("/old")),
            manager.request("http://bucket.example/", options: RequestOptions(proxy: .url(server.url("")))),
        ]
        for request in requests { #expect(await request.validate().serializingData().response.responseHead?.statusCode == 403) }
        #expect(server.requestCount == 3 && signer.clockOffset == .zero)
        _ = await manager.request(server.url("/")).validate().serializingData().response
        #expect(server.requestCount == 5 && signer.clockOffset > .seconds(3000))
    }

    @Test func `a refusal without a body is one of the time if the clocks differ`() async throws {
        let early = try Self.server(ahead: 3600, .status(403).header("x-amz-request-id", "1"))
        let denying = try LoopbackServer { _, _ in .status(403, headers: [ServerField("x-amz-request-id", "1"), Self.date(in: 10)]) }
        defer { for server in [early, denying] { server.stop() } }
        let manager = Self.manager(Self.signer())
        _ = try await manager.request(early.url("/"), method: .head).validate().serializingData().value
        #expect(early.requestCount == 2)
        let other = Self.manager(Self.signer())
        #expect(await other.request(denying.url("/"), method: .head).validate().serializingData().response.error != nil)
        #expect(denying.requestCount == 1)
    }

    @Test func `a wrong date is tried once`() async throws {
        let number = Monitor(0)
        let server = try LoopbackServer { _, _ in
            let count = number.update { number in
                number += 1
                return number
            }
            var response = Refusal.s3.response
            response.headers.append(Self.date(in: TimeInterval(count) * 1e6))
            return response
        }
        defer { server.stop() }
        let manager = Self.manager(Self.signer())
        for count in [2, 4] {
            let response = await manager.request(server.url("/")).validate().serializingData().response
            #expect(response.responseHead?.statusCode == 403 && response.error != nil)
            #expect(server.requestCount == count)
        }
    }

    @Test(arguments: ["", "now", "Thu, 01 Jan 1970 25:00:00 GMT"]) func `a refusal without a date changes nothing`(text: String)
        async throws
    {
        let server = try LoopbackServer { _, _ in
            var response = Refusal.s3.response
            response.headers.append(ServerField("Date", text))
            return response
        }
        defer { server.stop() }
        let signer = Self.signer()
        #expect(await Self.manager(signer).request(server.url("/")).validate().serializingData().response.error != nil)
        #expect(server.requestCount == 1 && signer.clockOffset == .zero)
    }

    @Test func `another refusal, another signer's request and another origin change nothing`() async throws {
        let denied = try LoopbackServer { _, _ in
            var response = ServerResponse.ok("<Error><Code>AccessDenied</Code></Error>").header("x-amz-request-id", "1")
            response.status = 403
            response.headers.append(Self.date(in: 7200))
            return response
        }
        let skewed = try Self.server(ahead: 7200, Refusal.s3.response)
        let unsigned = try LoopbackServer { _, _ in
            var response = Refusal.s3.response
            response.headers.append(Self.date(in: 7200))
            return response
        }
        let elsewhere = unsigned.url("/")
        let redirecting = try LoopbackServer { _, _ in .redirect(to: elsewhere, status: 307) }
        defer { for server in [denied, skewed, unsigned, redirecting] { server.stop() } }
        let signer = Self.signer()
        let manager = Self.manager(signer)
        for url in [denied.url("/"), redirecting.url("/")] {
            #expect(await manager.request(url).validate().serializingData().response.error != nil)
        }
        let options = RequestOptions(signer: Self.signer())
        #expect(await manager.request(skewed.url("/"), options: options).validate().serializingData().response.error != nil)
        #expect(denied.requestCount == 1 && redirecting.requestCount == 1 && unsigned.requestCount == 1 && skewed.requestCount == 1)
        #expect(signer.clockOffset == .zero)
    }

    @Test func `a body that can't be sent twice is not`() async throws {
        let server = try Self.server(ahead: 3600, Refusal.s3.response)
        defer { server.stop() }
        let manager = Self.manager(Self.signer())
        let body = AsyncStream<Data> { continuation in
            continuation.yield(Data("a".utf8))
            continuation.finish()
        }
        #expect(await manager.upload(body, length: 1, to: server.url("/"), method: .put).validate().serializingData().response.error != nil)
        #expect(server.requestCount == 1)
        _ = try await manager.request(server.url("/")).validate().serializingData().value
        #expect(server.requestCount == 3)
    }
}
