// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewRequests

/// Records every hook and callback of a request.
private final class NotingRequest: BaseRequest, @unchecked Sendable {  // immutable but for the counter behind a lock
    let path: String
    let log: Log
    let isMocked: Bool
    let stopsInFilter: Bool

    init(_ path: String, _ log: Log, isMocked: Bool = false, stopsInFilter: Bool = false) {
        self.path = path
        self.log = log
        self.isMocked = isMocked
        self.stopsInFilter = stopsInFilter
        super.init()
    }

    override func requestUrl() -> String { path }
    override func requestRetryCount() -> Int { path.hasPrefix("flaky") ? 1 : 0 }
    override func filterUrlRequest(_ urlRequest: inout URLRequest) { log.note("filterUrlRequest") }
    override func requestRetryValidator(_ response: HTTPURLResponse?, responseObject: Any?, error: (any Error)?) -> Bool {
        log.note("retryValidator")
        return super.requestRetryValidator(response, responseObject: responseObject, error: error)
    }
    override func requestRetryProcessor(
        _ response: HTTPURLResponse?, responseObject: Any?, error: (any Error)?, completionHandler: @escaping @Sendable (Bool) -> Void
    ) {
        log.note("retryProcessor")
        completionHandler(true)
    }
    override func statusCodeValidator() -> Bool {
        log.note("statusCodeValidator")
        return super.statusCodeValidator()
    }
    override func jsonValidator() -> Any? {
        log.note("jsonValidator")
        return nil
    }
    override func responseMockValidator() -> Bool {
        log.note("mockValidator")
        return super.responseMockValidator()
    }
    override func responseMockProcessor() -> Bool {
        log.note("mockProcessor")
        return isMocked
    }
    override func filterResponse() { log.note("filterResponse") }
    override func requestCompletePreprocessor() { log.note("completePreprocessor") }
    override func requestCompleteFilter() {
        log.note("completeFilter")
        if stopsInFilter { stop() }
    }
    override func requestFailedPreprocessor() { log.note("failedPreprocessor") }
    override func requestFailedFilter() { log.note("failedFilter") }
}

private final class NotingDelegate: RequestDelegate {
    let log: Log
    init(_ log: Log) { self.log = log }
    func requestFinished(_ request: BaseRequest) { log.note("requestFinished") }
    func requestFailed(_ request: BaseRequest) { log.note("requestFailed") }
}

private final class NotingAccessory: RequestAccessory {
    let log: Log
    let name: String
    init(_ name: String, _ log: Log) {
        self.log = log
        self.name = name
    }
    func requestWillStart(_ request: any RunnableRequest) { log.note("\(name).willStart") }
    func requestWillStop(_ request: any RunnableRequest) { log.note("\(name).willStop") }
    func requestDidStop(_ request: any RunnableRequest) { log.note("\(name).didStop") }
}

private struct NotingFilter: UrlFilter {
    let log: Log
    func filterUrl(_ originUrl: String, with request: BaseRequest) -> String {
        log.note("config.filterUrl")
        return originUrl
    }
    func filterUrlRequest(_ urlRequest: inout URLRequest, with request: BaseRequest) { log.note("config.filterUrlRequest") }
    func filterResponse(with request: BaseRequest) { log.note("config.filterResponse") }
}

@Suite(.timeLimit(.minutes(1)))
struct CallbackOrderTests {
    private static let built = ["config.filterUrl @caller", "filterUrlRequest @caller", "config.filterUrlRequest @caller"]
    private static let rebuilt = ["config.filterUrl @agent", "filterUrlRequest @agent", "config.filterUrlRequest @agent"]
    private static let succeeded = [
        "statusCodeValidator @agent", "jsonValidator @agent", "filterResponse @agent", "config.filterResponse @agent",
        "completePreprocessor @agent", "a.willStop @callback", "b.willStop @callback", "completeFilter @callback",
        "requestFinished @callback", "success @callback", "a.didStop @callback", "b.didStop @callback",
    ]
    private static let failed = [
        "failedPreprocessor @agent", "a.willStop @callback", "b.willStop @callback", "failedFilter @callback",
        "requestFailed @callback", "failure @callback", "a.didStop @callback", "b.didStop @callback",
    ]
    private static let started = ["a.willStart @caller", "b.willStart @caller"]

    private struct Scene {
        let stage: Stage
        let log: Log
        let request: NotingRequest
        let delegate: NotingDelegate

        init(_ path: String, isMocked: Bool = false, stopsInFilter: Bool = false) throws {
            stage = try Stage.standard()
            log = Log()
            delegate = NotingDelegate(log)
            let log = log
            request = NotingRequest(path, log, isMocked: isMocked, stopsInFilter: stopsInFilter)
            stage.configuration.addUrlFilter(NotingFilter(log: log))
            request.agent = stage.agent
            request.delegate = delegate
            request.addAccessory(NotingAccessory("a", log))
            request.addAccessory(NotingAccessory("b", log))
            request.setCompletionBlock(success: { _ in log.note("success") }, failure: { _ in log.note("failure") })
        }
    }

    @Test func `a success`() async throws {
        let scene = try Scene("json")
        #expect(await run(scene.request) == .succeeded)
        #expect(scene.log.all == Self.started + Self.built + Self.succeeded)
    }

    @Test func `a failure by status`() async throws {
        let scene = try Scene("status/500")
        #expect(await run(scene.request) == .failed)
        #expect(scene.log.all == [Self.started, Self.built, ["statusCodeValidator @agent"], Self.failed].flatMap(\.self))
    }

    @Test func `a failure before anything is sent`() async throws {
        let scene = try Scene("json")
        scene.stage.configuration.baseUrl = ""
        #expect(await run(scene.request) == .failed)
        #expect(scene.log.all == Self.started + ["config.filterUrl @caller"] + Self.failed)
    }

    @Test func `a successful retry is rebuilt and validated once`() async throws {
        let scene = try Scene("flaky/1")
        #expect(await run(scene.request) == .succeeded)
        let retry = ["retryValidator @agent", "retryProcessor @agent"]
        #expect(scene.log.all == [Self.started, Self.built, retry, Self.rebuilt, Self.succeeded].flatMap(\.self))
    }

    @Test func `a retry that fails`() async throws {
        let scene = try Scene("flaky/2")
        #expect(await run(scene.request) == .failed)
        let retry = ["retryValidator @agent", "retryProcessor @agent"]
        let expected = [Self.started, Self.built, retry, Self.rebuilt, ["statusCodeValidator @agent"], Self.failed]
        #expect(scene.log.all == expected.flatMap(\.self))
    }

    @Test(.enabled(if: RequestsConfiguration.canMock))
    func `a mocked failure is filtered and delivered as a success`() async throws {
        let scene = try Scene("status/404", isMocked: true)
        scene.stage.configuration.debugMockEnabled = true
        #expect(await run(scene.request) == .succeeded)
        let mocked = ["statusCodeValidator @agent", "mockValidator @agent", "mockProcessor @agent"]
        #expect(scene.log.all == [Self.started, Self.built, mocked, Array(Self.succeeded.dropFirst(2))].flatMap(\.self))
    }

    @Test func `a stop notifies only the accessories`() async throws {
        let gate = Gate()
        let stage = try Stage { _, connection in
            connection.wait(until: gate)
            return .status(200)
        }
        let scene = try Scene("json")
        scene.request.agent = stage.agent
        scene.request.start()
        #expect(await gate.arrivals())
        scene.request.stop()
        gate.open()
        await stage.settle()
        // Built without filters, because the request has another agent.
        let stopped = ["a.willStop @caller", "b.willStop @caller", "a.didStop @caller", "b.didStop @caller"]
        #expect(scene.log.all == Self.started + ["filterUrlRequest @caller"] + stopped)
        #expect(scene.request.isCancelled && !scene.request.isFinished && !scene.request.isFailed && !scene.request.isExecuting)
        #expect(scene.request.delegate == nil)
    }

    @Test func `a stop in a callback suppresses the others and notifies accessories once`() async throws {
        let scene = try Scene("json", stopsInFilter: true)
        #expect(await run(scene.request) == .stopped)
        let kept = Self.succeeded.filter { !$0.hasPrefix("requestFinished") && !$0.hasPrefix("success") }
        #expect(scene.log.all == Self.started + Self.built + kept)
    }

    @Test func `a cache hit notifies no accessory and runs no checks`() async throws {
        let scene = try Scene("json")
        await withTrackedContinuation { continuation in
            scene.request.state.withLock { $0.waiters.append { _ in continuation.resume() } }
            scene.request.deliverFromCache()
        }
        #expect(
            scene.log.all == [
                "completePreprocessor @callback", "completeFilter @callback", "requestFinished @callback", "success @callback",
            ])
    }

    @Test func `stopping a request that never ran notifies no accessory`() throws {
        let scene = try Scene("json")
        scene.request.stop()
        #expect(scene.log.all.isEmpty && scene.request.isCancelled)
    }

    @Test func `the agent's own calls notify of a whole run or of nothing`() async throws {
        let scene = try Scene("json")
        let gate = Gate()
        let stage = try Stage { _, connection in
            connection.wait(until: gate)
            return .status(200)
        }
        scene.request.agent = stage.agent
        scene.request.start()
        #expect(await gate.arrivals())
        stage.agent.cancelRequest(scene.request)
        gate.open()
        let stopped = ["a.willStop @caller", "b.willStop @caller", "a.didStop @caller", "b.didStop @caller"]
        #expect(scene.log.all == Self.started + ["filterUrlRequest @caller"] + stopped)
        let other = try Scene("json")
        other.stage.agent.addRequest(other.request)
        #expect(await eventually { other.request.isFinished })
        await other.stage.settle()
        #expect(!other.log.all.contains { $0.hasPrefix("a.") || $0.hasPrefix("b.") })
    }

    @Test func `a run notifies the accessories that it began with`() async throws {
        let gate = Gate()
        let stage = try Stage { _, connection in
            connection.wait(until: gate)
            return .status(200)
        }
        let request = SampleRequest(stage)
        let log = Log()
        request.addAccessory(NotingAccessory("early", log))
        request.start()
        #expect(await gate.arrivals())
        request.requestAccessories = [NotingAccessory("late", log)]
        request.stop()
        gate.open()
        #expect(log.all == ["early.willStart @caller", "early.willStop @caller", "early.didStop @caller"])
    }

    @Test func `blocks of a start run once each, in the order of their names`() async throws {
        let scene = try Scene("json")
        let log = Log()
        await withTrackedContinuation { continuation in
            scene.request.state.withLock { $0.waiters.append { _ in continuation.resume() } }
            scene.request.start(
                willStart: { _ in log.note("willStart") }, willStop: { _ in log.note("willStop") },
                success: { _ in log.note("success") }, didStop: { _ in log.note("didStop") })
        }
        #expect(await run(scene.request) == .succeeded)
        #expect(log.all == ["willStart @caller", "willStop @callback", "success @callback", "didStop @callback"])
    }
}
