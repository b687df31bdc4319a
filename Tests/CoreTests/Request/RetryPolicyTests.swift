// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct RetryPolicyTests {
    /// Records the delays, and retries at once.
    private final class Impatient: RetryPolicy, @unchecked Sendable {
        let delays = Inbox<TimeInterval?>()

        override func delay(beforeRetrying request: Request) -> TimeInterval? {
            let delay = super.delay(beforeRetrying: request)
            delays.put(delay)
            return delay.map { _ in 0 }
        }
    }

    /// Sends a request to a server that always responds in the same way.
    private func attempts(
        _ steps: [MockTransport.Step], method: HTTPMethod = .get, policy: RetryPolicy = Impatient()
    ) async -> Int {
        let mock = MockTransport { _ in steps }
        let manager = SessionManager(mock: mock)
        manager.retrier = policy
        _ = await manager.request("http://mock/", method: method).validate().serializingData().response
        return mock.started.count
    }

    @Test("transient statuses are retried, others are not")
    func statuses() async {
        for status in [408, 429, 500, 502, 503, 504] { #expect(await attempts(.response(status)) == 3, "\(status)") }
        for status in [200, 204, 400, 401, 404, 409, 501, 505] { #expect(await attempts(.response(status)) == 1, "\(status)") }
    }

    // A5.1
    @Test("statuses of providers are retried where they are named") func providerStatuses() async {
        let statuses = RetryPolicy.defaultRetryableHTTPStatusCodes.union(RetryPolicy.providerHTTPStatusCodes)
        for status in [520, 521, 522, 523, 524, 529] {
            #expect(await attempts(.response(status)) == 1, "\(status)")
            #expect(await attempts(.response(status), policy: Impatient(retryableHTTPStatusCodes: statuses)) == 3, "\(status)")
        }
        #expect(await attempts(.response(525), policy: Impatient(retryableHTTPStatusCodes: statuses)) == 1)
        #expect(await attempts(.response(503), policy: Impatient(retryableHTTPStatusCodes: statuses)) == 3)
    }

    @Test("a status is not retried without validation")
    func unvalidated() async {
        let mock = MockTransport.answering(503)
        let manager = SessionManager(mock: mock)
        manager.retrier = Impatient()
        let response = await manager.request("http://mock/").serializingData().response
        #expect(response.error == nil)
        #expect(mock.started.count == 1)
    }

    @Test("transient failures are retried, others are not")
    func kinds() async {
        let passing: [TransferFailure.Kind] = [
            .nameResolution, .connect, .secureConnection, .connectTimeout, .firstByteTimeout, .idleTimeout, .totalTimeout, .queueTimeout,
            .connectionLost,
        ]
        for kind in passing { #expect(await attempts(.failure(kind)) == 3, "\(kind)") }
        let lasting: [TransferFailure.Kind] = [
            .invalidURL, .unsupportedScheme, .proxy, .serverCertificate, .clientCertificate, .protocolViolation, .decoding, .tooLarge,
            .requestBody, .configuration, .other,
        ]
        for kind in lasting { #expect(await attempts(.failure(kind)) == 1, "\(kind)") }
    }

    @Test("only idempotent methods are retried")
    func methods() async {
        for method in [HTTPMethod.get, .head, .put, .delete, .options, .trace, .query] {
            #expect(await attempts(.failure(), method: method) == 3, "\(method)")
        }
        for method in [HTTPMethod.post, .patch] { #expect(await attempts(.failure(), method: method) == 1, "\(method)") }
        #expect(await attempts(.failure(), method: .post, policy: Impatient(retryableHTTPMethods: [.post])) == 3)
    }

    @Test("a redirect's target does not make a POST idempotent")
    func redirectedPost() async {
        let mock = MockTransport { request in
            request.url.hasSuffix("next") ? .response(503) : .response(303, ["Location": "/next"])
        }
        let manager = SessionManager(mock: mock)
        manager.retrier = Impatient()
        _ = await manager.request("http://mock/", method: .post).validate().serializingData().response
        #expect(mock.started.count == 2)
    }

    @Test("a request whose body stream has been read is not retried")
    func stream() async {
        let mock = MockTransport { _ in .failure(.connectionLost, readsBody: true) }
        let manager = SessionManager(mock: mock)
        manager.retrier = Impatient()
        _ = await manager.upload(InputStream(data: Data("abc".utf8)), to: "http://mock/", method: .put).serializingData().response
        #expect(mock.started.count == 1)
    }

    @Test("the backoff grows exponentially up to the maximum, and is multiplied by the jitter")
    func backoff() async {
        let policy = Impatient(retryLimit: 6, maximumDelay: 6) { 1 }
        #expect(await attempts(.failure(), policy: policy) == 7)
        #expect(policy.delays.all == [0.5, 1, 2, 4, 6, 6])
        let half = Impatient(retryLimit: 3, exponentialBackoffBase: 10, exponentialBackoffScale: 0.2) { 0.5 }
        _ = await attempts(.failure(), policy: half)
        #expect(half.delays.all.map { ($0 ?? 0) * 1000 }.map { $0.rounded() } == [100, 1000, 10_000])
    }

    @Test("the default is full jitter")
    func fullJitter() async {
        let policy = Impatient(retryLimit: 100, exponentialBackoffBase: 1, exponentialBackoffScale: 1)
        _ = await attempts(.failure(), policy: policy)
        let delays = policy.delays.all.compactMap { $0 }
        #expect(delays.count == 100)
        #expect(delays.allSatisfy { (0...1).contains($0) })
        #expect(delays.contains { $0 < 0.3 } && delays.contains { $0 > 0.7 })
    }

    @Test("invalid settings are clamped")
    func oddSettings() async {
        let policy = Impatient(retryLimit: 2, exponentialBackoffBase: 0, exponentialBackoffScale: -1, maximumDelay: -5) { 7 }
        #expect(await attempts(.failure(), policy: policy) == 3)
        #expect(policy.delays.all == [0, 0])
        #expect(await attempts(.failure(), policy: Impatient(retryLimit: 0)) == 1)
        let endless = Impatient(retryLimit: 2, exponentialBackoffScale: .infinity) { 0 }
        _ = await attempts(.failure(), policy: endless)
        #expect(endless.delays.all == [0, 0])
    }

    @Test("Retry-After replaces the backoff; one beyond the maximum ends the request")
    func retryAfter() async {
        let policy = Impatient(maximumDelay: 10) { 1 }
        #expect(await attempts(.response(503, ["Retry-After": "7"]), policy: policy) == 3)
        #expect(policy.delays.all == [7, 7])
        let patient = Impatient(maximumDelay: 10) { 1 }
        #expect(await attempts(.response(429, ["Retry-After": "11"]), policy: patient) == 1)
        #expect(patient.delays.all == [nil])
        let past = Impatient()
        #expect(await attempts(.response(503, ["Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"]), policy: past) == 3)
        #expect(past.delays.all == [0, 0])
    }

    @Test("ConnectionLostRetryPolicy retries lost connections only")
    func connectionLost() async {
        let policy = ConnectionLostRetryPolicy(exponentialBackoffScale: 0)
        #expect(await attempts(.failure(.connectionLost), policy: policy) == 3)
        #expect(await attempts(.failure(.connect), policy: policy) == 1)
        #expect(await attempts(.response(503), policy: policy) == 1)
    }

    @Test("a policy passed to one request does not affect others")
    func perRequest() async {
        let mock = MockTransport { _ in .failure() }
        let manager = SessionManager(mock: mock)
        _ = await manager.request("http://mock/", interceptor: Impatient()).serializingData().response
        #expect(mock.started.count == 3)
        _ = await manager.request("http://mock/").serializingData().response
        #expect(mock.started.count == 4)
    }
}
