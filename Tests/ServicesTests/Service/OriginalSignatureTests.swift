// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewServices

/// Squid's signatures, with the library's names of types.
private final class OriginalHook: ServiceHook {
    let calls = Lock<[String]>([])

    private func note(_ call: String) { calls.withLock { $0.append(call) } }

    func onSchedule<R>(_ request: R, _ urlRequest: URLRequest) -> R.Result? where R: ServiceRequest {
        note("onSchedule")
        return nil
    }
    func onSuccess<R>(_ request: R, _ urlRequest: URLRequest, result: R.Result) where R: ServiceRequest { note("onSuccess \(result)") }
    func onFailure(_ error: ServiceError) { note("onFailure \(error.name)") }
}

private struct OriginalRetrier: ServiceRetrier {
    let calls: Lock<[String]>

    var allowsMultipleRetries: Bool { true }

    func retry<R>(_ request: R, failingWith error: ServiceError) async -> Bool where R: ServiceRequest {
        calls.withLock { $0.append("retry") }
        return calls.withLock { $0.count { $0 == "retry" } } < 3
    }
}

private struct OriginalFactory: ServiceRetrierFactory {
    let calls: Lock<[String]>

    func create<R>(for request: R) -> any ServiceRetrier where R: ServiceRequest { OriginalRetrier(calls: calls) }
}

/// Methods with exactly the signatures of the original are called.
@Suite(.timeLimit(.minutes(1))) struct OriginalSignatureTests {
    @Test func `hooks and retriers`() async throws {
        let server = try LoopbackServer { request, _ in request.path == "/missing" ? .status(404) : .ok("1") }
        defer { server.stop() }
        let hook = OriginalHook()
        var service = TestService(server)
        service.hook = hook
        service.retrierFactory = OriginalFactory(calls: hook.calls)
        #expect(try await TestRequest(routes: "a").schedule(with: service).value == "1")
        _ = await TestRequest(routes: "missing").schedule(with: service).result
        #expect(
            hook.calls.withLock { $0 } == [
                "onSchedule", "onSuccess 1", "onSchedule", "retry", "retry", "retry", "onFailure requestFailed",
            ])
    }
}
