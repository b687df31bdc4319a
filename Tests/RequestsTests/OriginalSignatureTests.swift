// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewRequests

// The signatures of YTKNetwork's and FWFramework's protocols, as Swift imports them, with the library's names of types.

private final class OriginalDelegate: RequestDelegate, BatchRequestDelegate, ChainRequestDelegate {
    let calls = Lock<[String]>([])

    private func note(_ call: String) { calls.withLock { $0.append(call) } }

    func requestFinished(_ request: BaseRequest) { note("requestFinished") }
    func requestFailed(_ request: BaseRequest) { note("requestFailed") }
    func batchRequestFinished(_ batchRequest: BatchRequest) { note("batchRequestFinished") }
    func batchRequestFailed(_ batchRequest: BatchRequest) { note("batchRequestFailed") }
    func chainRequestFinished(_ chainRequest: ChainRequest) { note("chainRequestFinished") }
    func chainRequestFailed(_ chainRequest: ChainRequest, failedBaseRequest request: BaseRequest) { note("chainRequestFailed") }
}

private final class OriginalAccessory: RequestAccessory {
    let calls = Lock<[String]>([])

    func requestWillStart(_ request: Any) { calls.withLock { $0.append("willStart \(request is BaseRequest)") } }
    func requestWillStop(_ request: Any) { calls.withLock { $0.append("willStop \(request is BaseRequest)") } }
    func requestDidStop(_ request: Any) { calls.withLock { $0.append("didStop \(request is BaseRequest)") } }
}

private struct OriginalFilter: UrlFilter {
    let calls: Lock<[String]>

    private func note(_ call: String) { calls.withLock { $0.append(call) } }

    func filterUrl(_ originUrl: String, with request: BaseRequest) -> String {
        note("filterUrl")
        return originUrl
    }
    func filterUrlRequest(_ urlRequest: inout URLRequest, with request: BaseRequest) { note("filterUrlRequest") }
    func filterResponse(_ request: BaseRequest) throws {
        note("filterResponse")
        throw UserError()
    }
}

/// Methods with exactly the signatures of the originals are called.
@Suite(.timeLimit(.minutes(1))) struct OriginalSignatureTests {
    private let stage: GroupStage

    init() throws {
        stage = try GroupStage()
    }

    @Test func `delegates of requests, batches and chains`() async throws {
        let delegate = OriginalDelegate()
        for path in ["a", "bad"] {
            let request = stage.request(path)
            request.delegate = delegate
            _ = await run(request)
            let batch = BatchRequest(requestArray: [stage.request(path)])
            batch.delegate = delegate
            _ = await run(batch)
            let chain = ChainRequest()
            chain.addRequest(stage.request(path))
            chain.delegate = delegate
            _ = await run(chain)
        }
        #expect(
            delegate.calls.withLock { $0 } == [
                "requestFinished", "batchRequestFinished", "chainRequestFinished", "requestFailed", "batchRequestFailed",
                "chainRequestFailed",
            ])
    }

    @Test func `accessories, whose parameter is of any type`() async throws {
        let accessory = OriginalAccessory()
        let request = stage.request("a")
        request.addAccessory(accessory)
        #expect(await run(request) == .succeeded)
        let batch = BatchRequest(requestArray: [stage.request("a")])
        batch.addAccessory(accessory)
        #expect(await run(batch) == .succeeded)
        #expect(
            accessory.calls.withLock { $0 } == [
                "willStart true", "willStop true", "didStop true", "willStart false", "willStop false", "didStop false",
            ])
    }

    @Test func `filters`() async throws {
        let filter = OriginalFilter(calls: Lock([]))
        stage.stage.configuration.addUrlFilter(filter)
        let request = stage.request("a")
        #expect(await run(request) == .failed)
        #expect(request.error is UserError)
        #expect(filter.calls.withLock { $0 } == ["filterUrl", "filterUrlRequest", "filterResponse"])
    }
}
