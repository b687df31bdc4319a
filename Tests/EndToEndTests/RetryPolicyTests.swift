// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct RetryPolicyTests {
    private let manager = makeManager()

    /// Responds with 503 and these fields the first time, then with 200.
    private static func server(_ headers: [ServerField]) throws -> LoopbackServer {
        let isFirst = Lock(true)
        return try LoopbackServer { _, _ in
            let mustFail = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            return mustFail ? .status(503, headers: headers) : .ok("in")
        }
    }

    @Test("Retry-After determines the delay") func retryAfter() async throws {
        let server = try Self.server([ServerField("Retry-After", "1")])
        manager.retrier = RetryPolicy()
        let start = ContinuousClock.now
        let response = await manager.request(server.url("/")).validate().serializingString().response
        #expect(response.value == "in")
        #expect(start.duration(to: .now) >= .seconds(1))
    }

    @Test("a Retry-After beyond the limit prevents a retry") func longRetryAfter() async throws {
        let server = try Self.server([ServerField("Retry-After", "3600")])
        manager.retrier = RetryPolicy()
        let response = await manager.request(server.url("/")).validate().serializingString().response
        #expect(response.error?.unacceptableStatus == 503)
        #expect(server.requestCount == 1)
    }

    @Test("a Retry-After date in the past means no delay") func pastDate() async throws {
        let server = try Self.server([ServerField("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT")])
        let policy = RetryPolicy(exponentialBackoffScale: 3600, maximumDelay: 3600) { 1 }
        let response = await manager.request(server.url("/"), interceptor: policy).validate().serializingString().response
        #expect(response.value == "in")
    }

    @Test("a request on a lost connection is retried, a POST is not") func lostConnection() async throws {
        let server = try LoopbackServer { request, connection in
            guard request.sequence == 1, connection.number == 1 else { return .ok("in") }
            connection.close()
            return nil
        }
        manager.retrier = ConnectionLostRetryPolicy(exponentialBackoffScale: 0)
        #expect(await manager.request(server.url("/")).serializingString().response.value == "in")
        let other = try LoopbackServer { _, connection in
            connection.close()
            return nil
        }
        let response = await manager.upload(Data("a".utf8), to: other.url("/")).serializingString().response
        #expect(response.error?.transferFailure?.kind == .connectionLost)
        #expect(other.requestCount == 1)
    }
}
