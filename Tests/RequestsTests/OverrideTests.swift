// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewRequests

/// Overrides in subclasses in place of properties.
@Suite(.timeLimit(.minutes(1))) struct OverrideTests {
    private final class Told: RequestAccessory, RequestDelegate {
        let log = Log()
        var all: [String] { log.all.map { $0.replacing(" @callback", with: "").replacing(" @caller", with: "") } }
        func requestWillStart(_ request: any RunnableRequest) { log.note("willStart") }
        func requestWillStop(_ request: any RunnableRequest) { log.note("willStop") }
        func requestDidStop(_ request: any RunnableRequest) { log.note("didStop") }
        func requestFinished(_ request: BaseRequest) { log.note("finished") }
        func requestFailed(_ request: BaseRequest) { log.note("failed") }
    }

    /// Overrides every property.
    private class Own: BaseRequest, @unchecked Sendable {  // immutable
        let stage: Stage
        let told = Told()

        init(_ stage: Stage) {
            self.stage = stage
            super.init()
        }

        override func requestUrl() -> String { "json" }
        override var agent: RequestAgent {
            get { stage.agent }
            set {}
        }
        override var tag: Int {
            get { 77 }
            set {}
        }
        override var userInfo: [String: any Sendable]? {
            get { ["page": 1] }
            set {}
        }
        override var requestPriority: BaseRequest.Priority {
            get { .low }
            set {}
        }
        override var requestAccessories: [any RequestAccessory]? {
            get { [told] }
            set {}
        }
        override var delegate: (any RequestDelegate)? {
            get { told }
            set {}
        }
        override var successCompletionBlock: CompletionBlock? {
            get { { [log = told.log] _ in log.note("success") } }
            set {}
        }
    }

    private final class OwnForm: Own, @unchecked Sendable {  // immutable
        override func requestMethod() -> HTTPMethod { .post }
        override var constructingBodyBlock: ConstructingBlock? {
            get { { $0.append(Data("bytes".utf8), withName: "file") } }
            set {}
        }
        override var uploadProgressBlock: ProgressBlock? {
            get { { [log = told.log] in if $0.isFinished { log.note("sent") } } }
            set {}
        }
    }

    private final class OwnDownload: Own, @unchecked Sendable {  // immutable
        let target: URL
        let isTold = Gate()

        init(_ stage: Stage, _ target: URL) {
            self.target = target
            super.init(stage)
        }

        override var resumableDownloadPath: String? {
            get { target.path }
            set {}
        }
        override var resumableDownloadProgressBlock: ProgressBlock? {
            get { { [isTold] _ in isTold.open() } }
            set {}
        }
    }

    @Test func `a subclass's overrides apply at every start`() async throws {
        let stage = try Stage.standard()
        let request = Own(stage)
        for _ in 0..<2 { #expect(await run(request) == .succeeded) }
        let once = ["willStart", "willStop", "finished", "success", "didStop"]
        #expect(request.told.all == once + once)
        #expect(stage.server.requests.map { $0.header("Priority") } == ["u=5", "u=5"])
        #expect(request.userInfo?["page"] as? Int == 1)
        let gate = Gate()
        defer { gate.open() }
        let held = Own(
            try Stage { _, connection in
                connection.wait(until: gate)
                return .status(204)
            })
        held.start()
        #expect(held.stage.agent.requests.first === held)
        held.stage.agent.cancelRequests(tag: 77)
        #expect(held.isCancelled)
    }

    @Test func `a subclass may override the form`() async throws {
        let stage = try Stage.standard()
        let request = OwnForm(stage)
        for _ in 0..<2 { #expect(await run(request) == .succeeded) }
        #expect(try stage.server.requests.map { try MultipartBody($0).parts.count } == [1, 1])
        #expect(request.told.all.contains("sent"))
    }

    @Test func `a subclass may override the download path`() async throws {
        let directory = try TemporaryDirectory()
        let stage = try Stage { request, _ in .generated(length: 300_000, for: request) }
        let request = OwnDownload(stage, directory.file("file"))
        #expect(await run(request) == .succeeded)
        #expect(request.responseObject as? URL == directory.file("file"))
        await request.isTold.wait()
        #expect(try Data(contentsOf: directory.file("file")).count == 300_000)
    }

    @Test func `added accessories are notified along with those of a subclass`() async throws {
        let stage = try Stage.standard()
        let request = Own(stage)
        let added = Told()
        request.addAccessory(added)
        await withTrackedContinuation { continuation in
            request.start(willStart: { _ in added.log.note("block") }, didStop: { _ in continuation.resume() })
        }
        #expect(added.all == ["willStart", "block", "willStop", "didStop"])
        #expect(request.told.all.first == "willStart" && request.told.all.last == "didStop")
    }

    @Test func `accessories may be added from several threads`() throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage)
        DispatchQueue.concurrentPerform(iterations: 200) { _ in request.addAccessory(Told()) }
        #expect(request.requestAccessories?.count == 200)
    }

    @Test func `a subclass may override the use of the cache`() async throws {
        class Counted: CachedRequest, @unchecked Sendable {  // immutable
            let storage: any CacheStorage
            init(_ stage: CacheStage) {
                storage = stage.storage
                super.init()
                agent = stage.stage.agent
            }
            override func requestUrl() -> String { "count" }
            override func cacheTimeInSeconds() -> Int { 60 }
            override func writeCacheAsynchronously() -> Bool { false }
            override func cacheStorage() -> any CacheStorage { storage }
        }
        final class Ignoring: Counted, @unchecked Sendable {  // immutable
            override var ignoreCache: Bool {
                get { true }
                set {}
            }
        }
        final class NotUsing: Counted, @unchecked Sendable {  // immutable
            override var useCacheResponse: Bool {
                get { false }
                set {}
            }
        }
        final class Preloading: Counted, @unchecked Sendable {  // immutable
            override var preloadCache: Bool {
                get { true }
                set {}
            }
        }
        let stage = try CacheStage()
        for (count, request) in [Counted(stage), Counted(stage), Ignoring(stage), NotUsing(stage), Preloading(stage)].enumerated() {
            let calls = Lock(0)
            request.successCompletionBlock = { _ in calls.withLock { $0 += 1 } }
            #expect(await run(request) == .succeeded)
            #expect(stage.count == max(1, count) && calls.withLock { $0 } == (request is Preloading ? 2 : 1))
        }
    }

    // MARK: Further starts

    @Test func `a form is sent at every start, including after a stop and a failure`() async throws {
        let stage = try Stage { request, _ in request.path == "/bad" ? .status(500) : Stage.json("{}") }
        let request = SampleRequest(stage, "bad")
        request.method = .post
        request.constructingBodyBlock = { $0.append(Data("bytes".utf8), withName: "file") }
        #expect(await run(request) == .failed)
        request.path = "good"
        #expect(await run(request) == .succeeded)
        request.stop()
        #expect(await run(request) == .succeeded)
        #expect(await run(BatchRequest(requestArray: [request])) == .succeeded)
        #expect(try stage.server.requests.map { try MultipartBody($0).parts.count } == [1, 1, 1, 1])
    }

    @Test func `download progress is reported at every start`() async throws {
        let directory = try TemporaryDirectory()
        let stage = try Stage { request, _ in .generated(length: 300_000, for: request) }
        let request = SampleRequest(stage, "file")
        request.resumableDownloadPath = directory.file("file").path
        let count = Lock(0)
        request.resumableDownloadProgressBlock = { _ in count.withLock { $0 += 1 } }
        var last = 0
        for _ in 0..<2 {
            #expect(await run(request) == .succeeded)
            await stage.settle()
            let now = count.withLock { $0 }
            #expect(now > last)
            last = now
        }
    }
}
