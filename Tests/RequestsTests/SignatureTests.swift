// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewRequests

// Methods with nearly matching signatures, as written by mistake.

private final class NearDelegate: RequestDelegate, BatchRequestDelegate, ChainRequestDelegate {
    func requestFinished(request: BaseRequest) {}
    func requestFail(_ request: BaseRequest) {}
    func batchRequestFinished(batchRequest: BatchRequest) {}
    func batchRequestFailed(_ batchRequest: Any) {}
    func chainRequestFinished(_ chainRequest: ChainRequest, request: BaseRequest) {}
    func chainRequestFailed(_ chainRequest: ChainRequest, failed: ChainStep) {}
}

private final class NearAccessory: RequestAccessory {
    func requestWillStart(_ request: BaseRequest) {}
    func requestWillStop(request: any RunnableRequest) {}
    func requestDidStop(_ request: BaseRequest) {}
}

private struct NearFilter: UrlFilter {
    func filterUrl(_ originUrl: String, withRequest request: BaseRequest) -> String { "never" }
    func filterUrlRequest(_ urlRequest: URLRequest, with request: BaseRequest) throws { throw UserError() }
    func filterResponse(of request: BaseRequest) throws { throw UserError() }
}

/// Methods that are never called because of their signature are reported.
@Suite(.timeLimit(.minutes(1))) struct SignatureTests {
    let stage: GroupStage
    private let lines = Lock<[String]>([])

    init() throws {
        stage = try GroupStage()
        stage.stage.configuration.debugLogEnabled = true
        stage.stage.configuration.logHandler = { [lines] line in lines.withLock { $0.append(line) } }
    }

    /// The methods a type is reported not to implement, by their base names.
    private func missing(_ type: String) -> [String] {
        let prefix = "\(type) does not implement "
        return lines.withLock { $0 }.filter { $0.hasPrefix(prefix) }.map { line in
            String(line.dropFirst(prefix.count).prefix { $0 != "(" })
        }
    }

    @Test func `delegates`() async throws {
        let delegate = NearDelegate()
        for path in ["a", "bad", "a", "bad"] {
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
            Set(missing("NearDelegate")) == [
                "requestFinished", "requestFailed", "batchRequestFinished", "batchRequestFailed", "chainRequestFinished",
                "chainRequestFailed",
            ])
        // Once per type, regardless of the number of calls.
        #expect(missing("NearDelegate").count == 6)
    }

    @Test func `accessories`() async throws {
        let request = stage.request("a")
        request.addAccessory(NearAccessory())
        #expect(await run(request) == .succeeded)
        #expect(Set(missing("NearAccessory")) == ["requestWillStart", "requestWillStop", "requestDidStop"])
        let batch = BatchRequest(requestArray: [stage.request("a")])
        batch.addAccessory(NearAccessory())
        #expect(await run(batch) == .succeeded)
        #expect(missing("NearAccessory").count == 3)
    }

    @Test func `filters`() async throws {
        stage.stage.configuration.addUrlFilter(NearFilter())
        #expect(await run(stage.request("a")) == .succeeded)
        #expect(Set(missing("NearFilter")) == ["filterUrl", "filterUrlRequest", "filterResponse"])
    }

    @Test func `types that implement everything and the library's own types are not named`() async throws {
        final class Quiet: ActivityPresenter {
            func show(_ activity: Activity) {}
            func update(_ activity: Activity, fraction: Double) {}
            func hide(_ activity: Activity) {}
        }
        let log = GroupLog()
        stage.stage.configuration.addUrlFilter(UrlArgumentsFilter(arguments: ["a": "b"]))
        let chain = ChainRequest()
        chain.delegate = log
        chain.addAccessory(log)
        chain.addAccessory(ActivityAccessory(presenter: Quiet()))
        chain.addAccessory(RequestEventAccessory())
        chain.addRequest(stage.request("bad"))
        #expect(await run(chain) == .failed)
        #expect(lines.withLock { $0 }.allSatisfy { !$0.contains("does not implement") })
    }

    @Test func `a chain's delegate may implement the method with the failed request`() async throws {
        final class Delegate: ChainRequestDelegate {
            let failed = Lock<BaseRequest?>(nil)
            func chainRequestFinished(_ chainRequest: ChainRequest) {}
            func chainRequestFailed(_ chainRequest: ChainRequest, failedBaseRequest: BaseRequest) {
                failed.withLock { $0 = failedBaseRequest }
            }
        }
        let delegate = Delegate()
        let chain = ChainRequest()
        let request = stage.request("bad")
        chain.addBatch(BatchRequest(requestArray: [stage.request("a"), request]))
        chain.delegate = delegate
        #expect(await run(chain) == .failed)
        #expect(delegate.failed.withLock { $0 } === request)
    }
}
