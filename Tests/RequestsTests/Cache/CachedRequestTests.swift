// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewRequests

@Suite(.timeLimit(.minutes(1))) struct CachedRequestTests {
    let stage: CacheStage

    init() throws {
        stage = try CacheStage()
    }

    /// Records the calls of accessories, delegate and hooks.
    private final class Noting: RequestAccessory, RequestDelegate {
        let log = Log()
        func requestWillStart(_ request: any RunnableRequest) { log.note("willStart") }
        func requestWillStop(_ request: any RunnableRequest) { log.note("willStop") }
        func requestDidStop(_ request: any RunnableRequest) { log.note("didStop") }
        func requestFinished(_ request: BaseRequest) { log.note("finished \((request as? CachedSample)?.count ?? 0)") }
        func requestFailed(_ request: BaseRequest) { log.note("failed") }
    }

    // MARK: Starting

    @Test func `a valid response is delivered asynchronously, without notifying accessories`() async throws {
        try await CachedSample(stage).response()
        let noting = Noting()
        let request = CachedSample(stage)
        request.delegate = noting
        request.addAccessory(noting)
        request.successCompletionBlock = { _ in noting.log.note("block") }
        #expect(await run(request) == .succeeded)
        #expect(noting.log.all == ["finished 1 @callback", "block @callback"])
        #expect(request.isDataFromCache && request.isFinished && request.responseStatusCode == 0)
        #expect(stage.count == 1)
    }

    @Test func `without a valid response the request is sent and its response cached before the block runs`() async throws {
        let request = CachedSample(stage)
        let isCached = Lock(false)
        request.setCompletionBlock(
            success: { [storage = stage.storage, key = try #require(request.cacheKey)] _ in
                isCached.withLock { $0 = storage.metadata(for: key) != nil }
            }, failure: nil)
        #expect(await run(request) == .succeeded)
        #expect(isCached.withLock { $0 })
        #expect(request.count == 1 && !request.isDataFromCache)
    }

    @Test func `a response may be written later`() async throws {
        let request = CachedSample(stage)
        request.isAsynchronous = true
        try await request.response()
        ResponseCaches.writingQueue.sync {}
        #expect(request.isResponseCached)
    }

    @Test(arguments: [(-1, false), (0, false), (1, true)])
    func `responses are written only if the time is greater than 0`(_ time: Int, _ isWritten: Bool) async throws {
        let request = CachedSample(stage)
        request.time = time
        try await request.response()
        #expect((stage.storage.size > 0) == isWritten)
    }

    @Test func `a start that ignores the cache sends the request and updates the cache`() async throws {
        let request = CachedSample(stage)
        try await request.response()
        try await request.response()
        #expect(request.count == 1)
        request.ignoreCache = true
        try await request.response()
        #expect(request.count == 2 && !request.isDataFromCache)
        request.useCacheResponse = true
        try await request.response()
        #expect(request.count == 2 && request.isDataFromCache)
        request.setCompletionBlock(success: nil, failure: nil)
        request.startWithoutCache()
        #expect(!request.isDataFromCache)
        #expect(await run(request) == .succeeded)
        #expect(request.count == 3)
    }

    @Test func `a cache-only start fails without a cached response and sends nothing`() async throws {
        let request = CachedSample(stage)
        request.cacheUse = .only
        await #expect(throws: RequestCacheError.invalidMetadata) { try await request.response() }
        #expect(request.isFailed && stage.count == 0)
        request.cacheUse = .whenValid
        try await request.response()
        request.cacheUse = .only
        try await request.response()
        #expect(stage.count == 1)
    }

    @Test func `preloading runs the callbacks with the cached response, then with the network's`() async throws {
        try await CachedSample(stage).response()
        let noting = Noting()
        let request = CachedSample(stage)
        request.preloadCache = true
        request.delegate = noting
        request.addAccessory(noting)
        #expect(await run(request) == .succeeded)
        #expect(
            noting.log.all == [
                "willStart @caller", "finished 1 @callback", "willStop @callback", "finished 2 @callback", "didStop @callback",
            ])
        #expect(request.count == 2 && !request.isDataFromCache)
    }

    @Test func `a stop between the cached and the network response ends it`() async throws {
        try await CachedSample(stage).response()
        let request = CachedSample(stage)
        request.preloadCache = true
        request.successCompletionBlock = { $0.stop() }
        #expect(await run(request) == .stopped)
        await stage.stage.settle()
        #expect(stage.count == 1 && request.isCancelled)
    }

    @Test func `a stop before the cached response is delivered suppresses all callbacks`() async throws {
        try await CachedSample(stage).response()
        let noting = Noting()
        let gate = Gate()
        stage.stage.configuration.callbackQueue.async { _ = gate.wait() }
        let request = CachedSample(stage)
        request.delegate = noting
        request.start()
        request.stop()
        gate.open()
        await stage.stage.settle()
        #expect(noting.log.all.isEmpty && request.isCancelled)
    }

    @Test func `of several concurrent preloading starts one calls back and nothing remains`() async throws {
        try await CachedSample(stage).response()
        let stage = stage
        for round in 1...20 {
            let (gate, count) = (Gate(), Lock(0))
            weak var observed: CachedSample?
            do {
                let request = CachedSample(stage)
                observed = request
                request.preloadCache = true
                request.successCompletionBlock = { _ in count.withLock { $0 += 1 } }
                // The callback queue is blocked until all starts have been made.
                stage.stage.configuration.callbackQueue.async { _ = gate.wait() }
                DispatchQueue.concurrentPerform(iterations: 4) { _ in request.start() }
                gate.open()
                #expect(await eventually { request.isFinished })
            }
            #expect(await eventually { observed == nil && stage.stage.agent.requests.isEmpty })
            #expect(count.withLock { $0 } == 2)
            #expect(stage.count == 1 + round)
        }
    }

    @Test(arguments: [(CachedRequest.CacheUse.beforeNetwork, 2), (.whenValid, 1), (.ignored, 1)])
    func `a start while another one reads the cache has no effect`(_ use: CachedRequest.CacheUse, _ calls: Int) async throws {
        try await CachedSample(stage).response()
        let (gate, count) = (Gate(), Lock(0))
        stage.stage.configuration.callbackQueue.async { _ = gate.wait() }
        let storage = BusyStorage(stage.storage)
        let request = CachedSample(stage)
        request.storage = storage
        request.cacheUse = use
        request.successCompletionBlock = { _ in count.withLock { $0 += 1 } }
        storage.onceReading { [weak request] in DispatchQueue.global().sync { request?.start() } }
        request.start()
        gate.open()
        #expect(await eventually { request.isFinished })
        await stage.stage.settle()
        #expect(count.withLock { $0 } == calls)
        #expect(stage.count == (use == .whenValid ? 1 : 2) && stage.stage.agent.requests.isEmpty)
    }

    @Test(arguments: [false, true])
    func `a preloading start can be cancelled before the request is sent`(_ isAlone: Bool) async throws {
        try await CachedSample(stage).response()
        let gate = Gate()
        stage.stage.configuration.callbackQueue.async { _ = gate.wait() }
        let request = CachedSample(stage)
        request.preloadCache = true
        request.startWithCompletion { _ in Issue.record("A cancelled request called back") }
        #expect(request.isExecuting)
        if isAlone { stage.stage.agent.cancelRequest(request) } else { stage.stage.agent.cancelAllRequests() }
        gate.open()
        await stage.stage.settle()
        #expect(request.isCancelled && stage.count == 1)
        // It may be started again.
        #expect(await run(request) == .succeeded)
        #expect(stage.count == 2)
    }

    @Test(.enabled(if: RequestsConfiguration.canMock)) func `a mocked response is not cached`() async throws {
        stage.stage.configuration.debugMockEnabled = true
        final class Mocked: CachedRequest, @unchecked Sendable {  // immutable
            let storage: any CacheStorage
            init(_ stage: CacheStage) {
                storage = stage.storage
                super.init()
                agent = stage.stage.agent
            }
            override func requestUrl() -> String { "status" }
            override func cacheTimeInSeconds() -> Int { 60 }
            override func writeCacheAsynchronously() -> Bool { false }
            override func cacheStorage() -> any CacheStorage { storage }
            override func responseMockValidator() -> Bool { true }
            override func responseMockProcessor() -> Bool {
                responseJSONObject = ["count": 5]
                return true
            }
        }
        struct Model: Decodable {
            let count: Int
        }
        #expect(try await Mocked(stage).responseModel(of: Model.self).count == 5)
        #expect(stage.storage.size == 0)
    }

    @Test func `a failure is not cached`() async throws {
        let request = CachedSample(stage, "status")
        #expect(await run(request) == .failed)
        #expect(stage.storage.size == 0)
    }

    @Test func `downloads are neither read nor written`() async throws {
        let directory = try TemporaryDirectory()
        let request = CachedSample(stage)
        try await request.response()
        request.resumableDownloadPath = directory.file("file").path
        try await request.response()
        #expect(stage.count == 2 && request.responseObject as? URL == directory.file("file"))
        #expect(try Data(contentsOf: directory.file("file")).count > 10)
        #expect(!request.isDataFromCache)
    }

    // MARK: Reading

    private func store(_ request: CachedSample, _ body: String = "{}", change: (inout CacheMetadata) -> Void = { _ in }) throws {
        try store(request, Data(body.utf8), change: change)
    }

    private func store(_ request: CachedSample, _ body: Data, change: (inout CacheMetadata) -> Void) throws {
        var metadata = CacheMetadata(
            version: 0, sensitiveDataDigest: nil, stringEncoding: .utf8, creationDate: Date(), appVersion: nil)
        change(&metadata)
        try stage.storage.store(CacheEntry(metadata: try metadata.data(), body: body), for: try #require(request.cacheKey))
    }

    @Test func `checks of a cached response run in order, each with its own error`() throws {
        stage.stage.configuration.appVersion = "2"
        let request = CachedSample(stage)
        request.time = -1
        // All checks fail at first; then they are made to pass one after the other.
        #expect(throws: RequestCacheError.invalidCacheTime) { try request.loadCache() }
        request.time = 60
        #expect(throws: RequestCacheError.invalidMetadata) { try request.loadCache() }
        try stage.storage.store(CacheEntry(metadata: Data("nonsense".utf8), body: Data("{".utf8)), for: try #require(request.cacheKey))
        #expect(throws: RequestCacheError.invalidMetadata) { try request.loadCache() }
        try store(request, "{") { $0.creationDate -= 61 }
        request.version = 1
        request.sensitive = ["user": "u"]
        #expect(throws: RequestCacheError.expired) { try request.loadCache() }
        try store(request, "{") { $0.creationDate += 10 }
        #expect(throws: RequestCacheError.expired) { try request.loadCache() }
        try store(request, "{")
        #expect(throws: RequestCacheError.versionMismatch) { try request.loadCache() }
        try store(request, "{") { $0.version = 1 }
        #expect(throws: RequestCacheError.sensitiveDataMismatch) { try request.loadCache() }
        let digest = CacheMetadata.digest(of: ["user": "u"])
        try store(request, "{") {
            $0.version = 1
            $0.sensitiveDataDigest = digest
        }
        #expect(throws: RequestCacheError.appVersionMismatch) { try request.loadCache() }
        try store(request, "{") {
            $0.version = 1
            $0.sensitiveDataDigest = digest
            $0.appVersion = "2"
        }
        #expect(throws: RequestCacheError.invalidCacheData) { try request.loadCache() }
        #expect(!request.isDataFromCache)
    }

    @Test(arguments: [
        (RequestCacheError.expired, -1), (.versionMismatch, -2), (.sensitiveDataMismatch, -3), (.appVersionMismatch, -4),
        (.invalidCacheTime, -5), (.invalidMetadata, -6), (.invalidCacheData, -7),
    ])
    func `errors have code and domain`(_ error: RequestCacheError, _ code: Int) {
        let error = error as NSError
        #expect(error.code == code && error.domain == "curlew.request.caching")
        #expect(!error.localizedDescription.isEmpty)
    }

    @Test func `the getters return the loaded response until the request is sent`() async throws {
        let request = CachedSample(stage)
        try store(request, #"{"count": 77}"#)
        try request.loadCache()
        #expect(request.isDataFromCache && request.count == 77)
        #expect(request.responseString == #"{"count": 77}"# && request.responseData == Data(#"{"count": 77}"#.utf8))
        #expect((request.responseObject as? [String: Any])?["count"] as? Int == 77)
        request.startWithoutCache()
        #expect(!request.isDataFromCache)
        #expect(await run(request) == .succeeded)
        #expect(request.count == 1)
    }

    @Test func `a request that its agent is given reports the network's response, which is cached`() async throws {
        let request = CachedSample(stage)
        try store(request, #"{"count": 77}"#)
        try await request.response()
        #expect(request.isDataFromCache)
        stage.stage.agent.addRequest(request)
        #expect(!request.isDataFromCache)
        #expect(await eventually { request.isFinished })
        // The callbacks have run.
        await stage.stage.settle()
        try request.loadCache()
        #expect(request.count == 1)
    }

    @Test(arguments: ResponseSerializerType.allCases)
    func `a cached response is serialized like any other`(_ serializer: ResponseSerializerType) throws {
        let request = CachedSample(stage)
        request.serializer = serializer
        try store(request, "[1]")
        try request.loadCache()
        switch serializer {
        case .http: #expect(request.responseObject as? Data == Data("[1]".utf8) && request.responseJSONObject == nil)
        case .json: #expect(request.responseObject as? [Int] == [1] && request.responseJSONObject != nil)
        case .xmlParser: #expect(request.responseObject is XMLParser && request.responseJSONObject == nil)
        }
    }

    @Test(
        arguments: [
            (0x8000_0631, [0xC4, 0xE3], "你"), (0x8000_0631, [0xFF, 0xFE, 0xE9, 0], "é"), (String.Encoding.isoLatin1.rawValue, [0xE9], "é"),
        ] as [(UInt, [UInt8], String)])
    func `cached text is read in the encoding that is stored with it`(_ encoding: UInt, _ bytes: [UInt8], _ text: String) throws {
        let request = CachedSample(stage)
        request.serializer = .http
        try store(request, Data(bytes)) { $0.stringEncoding = encoding }
        try request.loadCache()
        #expect(request.responseString == text)
    }

    @Test func `cached JSON with a lone surrogate is read with a replacement character`() throws {
        let request = CachedSample(stage)
        try store(request, #"{"a": "x\uD800y", "b": "\uD83D\uDE00", "c": "\\uD800", "d": "\uDC00"}"#)
        try request.loadCache()
        let members = try #require(request.responseJSONObject as? [String: String])
        #expect(members == ["a": "x\u{FFFD}y", "b": "😀", "c": #"\uD800"#, "d": "\u{FFFD}"])
    }

    @Test func `nulls are removed from cached JSON as well`() throws {
        stage.stage.configuration.removeNullValues = true
        let request = CachedSample(stage)
        try store(request, #"{"a": null, "count": 1}"#)
        try request.loadCache()
        #expect((request.responseJSONObject as? [String: Any])?.count == 1)
    }

    @Test func `another request's bytes may be stored for a request`() async throws {
        let request = CachedSample(stage)
        request.saveResponseDataToCacheFile(Data(#"{"count": 5}"#.utf8))
        try await request.response()
        #expect(request.count == 5 && stage.count == 0)
        // A response from the cache is not written back to it.
        request.saveResponseDataToCacheFile(Data("{}".utf8))
        try request.loadCache()
        #expect(request.count == 5)
    }

    @Test func `another version of the program does not use the cached response`() async throws {
        stage.stage.configuration.appVersion = "1"
        try await CachedSample(stage).response()
        #expect(CachedSample(stage).isResponseCached)
        stage.stage.configuration.appVersion = "1.1"
        #expect(!CachedSample(stage).isResponseCached)
        try await CachedSample(stage).response()
        #expect(stage.count == 2)
    }

    @Test func `sensitive data is not stored in the cache`() throws {
        let request = CachedSample(stage)
        request.sensitive = "precious"
        request.saveResponseDataToCacheFile(Data("{}".utf8))
        let key = try #require(request.cacheKey)
        let metadata = try #require(stage.storage.metadata(for: key))
        #expect(!String(decoding: metadata, as: UTF8.self).contains("precious"))
    }
}
