// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewServices
import CurlewTestSupport
import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ServiceRetrierTests {
    private let server: LoopbackServer

    init() throws {
        let count = Lock(0)
        server = try LoopbackServer { request, _ in
            let number = count.next()
            if request.path == "/always" { return .status(503) }
            if request.path == "/busy" { return number < 4 ? .status(429) : .ok("served") }
            if request.path == "/later" {
                let time = ["7", "Thu, 01 Jan 1970 00:00:00 GMT", "600"][min(number, 3) - 1]
                return .status(503, headers: [ServerField("Retry-After", time), ServerField("Date", "Thu, 01 Jan 1970 00:00:00 GMT")])
            }
            return number == 1 ? .status(503) : .ok("\(number) \(request.header("Authorization") ?? "")")
        }
    }

    private func service(_ factory: any ServiceRetrierFactory) -> TestService {
        var service = TestService(server)
        service.retrierFactory = factory
        return service
    }

    @Test func nothingIsRetriedWithoutARetrier() async throws {
        defer { server.stop() }
        #expect(await serviceError { try await TestRequest().schedule(with: TestService(server)).value }?.name == "requestFailed")
        #expect(server.requestCount == 1)
    }

    @Test func retryIsSentImmediately() async throws {
        defer { server.stop() }
        let service = service(TestRetrier.factory { _ in true })
        #expect(try await TestRequest().schedule(with: service).value == "2 ")
    }

    @Test(arguments: [(false, 2, 1), (true, 5, 5)])
    func retryIsSingleUnlessTheRetrierAllowsMore(_ allowsMultiple: Bool, _ requests: Int, _ asked: Int) async throws {
        defer { server.stop() }
        let count = Lock(0)
        let service = service(TestRetrier.factory(allowsMultipleRetries: allowsMultiple) { _ in count.next() < 5 })
        #expect(await serviceError { try await TestRequest(routes: "always").schedule(with: service).value }?.name == "requestFailed")
        #expect(server.requestCount == requests && count.value == asked)
    }

    @Test func decodingErrorReachesTheRetrier() async throws {
        defer { server.stop() }
        let seen = Lock<[String]>([])
        let decoded = Lock(0)
        let service = service(
            TestRetrier.factory(allowsMultipleRetries: true) { error in
                seen.withLock { $0.append(error.name) }
                return true
            })
        let request = TestRequest(make: { data in
            if decoded.next() == 1 { throw UserError() }
            return String(decoding: data, as: UTF8.self)
        })
        #expect(try await request.schedule(with: service).value == "3 ")
        #expect(seen.withLock { $0 } == ["requestFailed", "unknown"])
    }

    @Test func headersAreEvaluatedForEachAttempt() async throws {
        defer { server.stop() }
        let token = Lock("old")
        var service = service(
            TestRetrier.factory { _ in
                token.withLock { $0 = "new" }
                return true
            })
        service.makeAsyncHeader = { ["Authorization": "Bearer \(token.withLock { $0 })"] }
        #expect(try await TestRequest().schedule(with: service).value == "2 Bearer new")
        #expect(server.requests.map { $0.header("Authorization") } == ["Bearer old", "Bearer new"])
    }

    @Test func asyncHeaderErrorReachesTheRetrier() async throws {
        defer { server.stop() }
        let attempts = Lock(0)
        var service = service(TestRetrier.factory { _ in true })
        service.makeAsyncHeader = {
            if attempts.next() == 1 { throw UserError() }
            return [:]
        }
        #expect(await serviceError { try await TestRequest().schedule(with: service).value }?.name == "requestFailed")
        #expect(attempts.value == 2)
    }

    @Test func retrierIsMadeOncePerRequestAndOnlyOnFailure() async throws {
        defer { server.stop() }
        let made = Lock(0)
        let service = service(
            AnyServiceRetrierFactory { _ in
                _ = made.next()
                return TestRetrier(allowsMultipleRetries: true) { _ in true }
            })
        #expect(try await TestRequest().schedule(with: service).value == "2 ")
        #expect(made.value == 1)
        #expect(try await TestRequest().schedule(with: service).value == "3 ")
        #expect(made.value == 1)
    }

    @Test func cancellingEndsARetriersDelay() async throws {
        defer { server.stop() }
        let gate = Gate()
        defer { gate.open() }
        let service = service(
            BackoffServiceRetrier.factory(
                strategy: .init { _ in
                    gate.open()
                    return .seconds(500)
                }
            ) { _, _ in true })
        let task = Task { await serviceError { try await TestRequest().schedule(with: service).value } }
        await gate.wait()
        task.cancel()
        #expect(await task.value?.name == "cancelled")
        #expect(server.requestCount == 1)
    }

    // MARK: Backoff

    @Test func backoffDoublesItsDelays() async throws {
        defer { server.stop() }
        let clock = VirtualClock(.automatic)
        let service = service(BackoffServiceRetrier.factory(clock: clock))
        #expect(try await TestRequest(routes: "busy").schedule(with: service).value == "served")
        #expect(clock.sleeps == [.seconds(1), .seconds(2), .seconds(4)])
    }

    @Test func backoffEndsAtTheMaximumDelay() async throws {
        defer { server.stop() }
        let clock = VirtualClock(.automatic)
        let service = service(BackoffServiceRetrier.factory(maxBackoff: .seconds(8), clock: clock) { _, _ in true })
        #expect(await serviceError { try await TestRequest(routes: "always").schedule(with: service).value }?.name == "requestFailed")
        #expect(clock.sleeps == [.seconds(1), .seconds(2), .seconds(4)])
    }

    @Test(arguments: [
        (ServiceError.noConnection, true), (.timeout, true), (.unknown(UserError()), true),
        (.requestFailed(statusCode: 408, response: Data()), true), (.requestFailed(statusCode: 429, response: Data()), true),
        (.requestFailed(statusCode: 500, response: Data()), true), (.requestFailed(statusCode: 502, response: Data()), true),
        (.requestFailed(statusCode: 503, response: Data()), true), (.requestFailed(statusCode: 504, response: Data()), true),
        (.requestFailed(statusCode: 501, response: Data()), false), (.requestFailed(statusCode: 404, response: Data()), false),
        (.unknown(CurlewError.transferFailed(TransferFailure(kind: .secureConnection, url: "", phase: .securing, message: ""))), true),
        (.unknown(CurlewError.transferFailed(TransferFailure(kind: .serverCertificate, url: "", phase: .securing, message: ""))), false),
        (.unknown(DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: ""))), false),
        (.unknown(CurlewError.responseSerializationFailed(reason: .inputDataNil)), false),
        (.unknown(CocoaError(.fileReadNoSuchFile)), false), (.unknown(AuthenticationError.excessiveRefresh), false),
        (.invalidURL, false), (.decodingFailed, false), (.unknownHost, false), (.cancelled, false),
    ])
    func backoffRetriesTransientErrorsOnly(_ error: ServiceError, _ expected: Bool) async {
        #expect(BackoffServiceRetrier.isWorthARetry(error) == expected)
        let retrier = BackoffServiceRetrier.factory(clock: VirtualClock(.automatic)).create(for: TestRequest())
        #expect(await retrier.retry(TestRequest(), failingWith: error) == expected)
    }

    @Test func backoffRepeatsIdempotentRequestsOnly() async {
        defer { server.stop() }
        let busy = ServiceError.requestFailed(statusCode: 503, response: Data())
        for (method, header, expected) in [
            (HTTPMethod.get, [:], true), (.put, [:], true), (.delete, [:], true), (.post, [:], false), (.patch, [:], false),
            (.post, ["Idempotency-Key": "1"], true),
        ] as [(HTTPMethod, HTTPHeaders, Bool)] {
            let request = TestRequest(method: method, header: header)
            let retrier = BackoffServiceRetrier.factory(clock: VirtualClock(.automatic)).create(for: request)
            #expect(await retrier.retry(request, failingWith: busy) == expected, "\(method)")
        }
    }

    @Test func backoffDoesNotRepeatAnUndecodableResponse() async {
        defer { server.stop() }
        let clock = VirtualClock(.automatic)
        let request = TestRequest(make: { try JSONDecoder().decode(String.self, from: $0) })
        let service = service(BackoffServiceRetrier.factory(clock: clock))
        #expect(await serviceError { try await request.schedule(with: service).value }?.name == "unknown")
        // The first response is a 503, the second can't be decoded.
        #expect(clock.sleeps == [.seconds(1)] && server.requestCount == 2)
    }

    @Test func backoffWaitsAsLongAsTheResponseAsks() async {
        defer { server.stop() }
        let clock = VirtualClock(.automatic)
        let service = service(BackoffServiceRetrier.factory(clock: clock))
        #expect(await serviceError { try await TestRequest(routes: "later").schedule(with: service).value }?.name == "requestFailed")
        // The third response asks for as long as the limit.
        #expect(clock.sleeps == [.seconds(7), .zero] && server.requestCount == 3)
    }

    @Test(arguments: [(3, 3), (1, 2), (nil, 2), (9, nil)] as [(Int?, Int?)])
    func backoffWaitsForARefusalAsLongAsItSays(_ seconds: Int?, _ wait: Int?) async {
        let clock = VirtualClock(.automatic)
        var refusal = TransferFailure(kind: .rateLimited, url: "", phase: .queued, message: "")
        refusal.retryAfter = seconds.map { .seconds($0) }
        let factory = BackoffServiceRetrier.factory(strategy: .init { _ in .seconds(2) }, maxBackoff: .seconds(8), clock: clock) { _, _ in
            true
        }
        let isRetried = await factory.create(for: TestRequest())
            .retry(TestRequest(), failingWith: .unknown(CurlewError.transferFailed(refusal)))
        #expect(isRetried == (wait != nil) && clock.sleeps == (wait.map { [.seconds($0)] } ?? []))
    }

    @Test func jitterShortensADelay() async {
        let clock = VirtualClock(.automatic)
        let retrier = BackoffServiceRetrier.factory(strategy: .jittered(), clock: clock).create(for: TestRequest())
        for _ in 1...3 { _ = await retrier.retry(TestRequest(), failingWith: .timeout) }
        let waits = clock.sleeps
        #expect(zip(waits, [1, 2, 4]).allSatisfy { $0 >= .zero && $0 <= .seconds($1) } && waits.count == 3)
    }
}
