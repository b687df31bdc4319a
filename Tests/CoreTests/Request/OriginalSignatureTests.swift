// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Testing

@testable import CurlewCore

/// Alamofire 4's signatures of adapter and retrier, in a type that has defaults for both.
private struct OriginalInterceptor: RequestInterceptor {
    let calls: Lock<[String]>

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        calls.withLock { $0.append("adapt") }
        return urlRequest
    }

    func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        calls.withLock { $0.append("should") }
        completion(request.retryCount < 1, 0)
    }
}

/// Methods with exactly the signatures of the original are called.
@Suite(.timeLimit(.minutes(1))) struct OriginalSignatureTests {
    @Test func `an interceptor's adapter and retrier, of a request and of its session`() async throws {
        let calls = Lock<[String]>([])
        let manager = SessionManager(mock: .answering(500))
        let interceptor = OriginalInterceptor(calls: calls)
        _ = await manager.request("http://a.example/", interceptor: interceptor).validate().serializingData().response
        #expect(calls.withLock { $0 } == ["adapt", "should", "adapt", "should"])
        manager.adapter = interceptor
        manager.retrier = interceptor
        _ = await manager.request("http://a.example/").validate().serializingData().response
        #expect(calls.withLock { $0.count } == 8)
    }
}
