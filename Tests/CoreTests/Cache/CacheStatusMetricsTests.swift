// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Testing

@testable import CurlewCore

/// What `TransferMetrics.cacheStatus` tells, for each way in which a cache handles a request.
@Suite(.timeLimit(.minutes(1))) struct CacheStatusMetricsTests {
    /// Where the responses are stored.
    enum Place: CaseIterable, Sendable {
        case memory, queue, urlCache

        func set(_ configuration: inout SessionConfiguration) {
            switch self {
            case .memory: configuration.cache = .memory()
            case .queue: configuration.cache = ResponseCache(storage: CountingStorage(isInMemory: false))
            case .urlCache: configuration.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil)
            }
        }
    }

    private let clock = VirtualClock()

    private func manager(_ place: Place, _ mock: MockTransport) -> SessionManager {
        SessionManager(mock: mock) {
            place.set(&$0)
            $0.clock = clock
        }
    }

    /// Loads a URL, and returns the status as the field has it; checks that it reads as it is written.
    private func status(
        _ manager: SessionManager, _ url: String = "http://mock/", headers: HTTPHeaders = [:], method: HTTPMethod = .get,
        policy: URLRequest.CachePolicy = .useProtocolCachePolicy, _ location: SourceLocation = #_sourceLocation
    ) async throws -> String? {
        var request = try URLRequest(url: url, method: method, headers: headers)
        request.cachePolicy = policy
        let response = await manager.request(request).serializingData().response
        guard let status = response.metrics.last?.cacheStatus else { return nil }
        #expect((["Cache-Status": status.description] as HTTPHeaders).cacheStatus == [status], sourceLocation: location)
        #expect(!status.isHit || status.forward == nil, "a hit is not forwarded (RFC 9211, section 2.2)", sourceLocation: location)
        return status.description
    }

    @Test(arguments: Place.allCases) func `A hit tells the freshness that is left, a miss whether it was stored`(_ place: Place)
        async throws
    {
        let mock = MockTransport { request in
            .response(200, ["Cache-Control": request.url.hasSuffix("no-store") ? "no-store" : "max-age=60", "Vary": "X"], "x")
        }
        let manager = manager(place, mock)
        #expect(try await status(manager) == "Curlew; fwd=uri-miss; stored; detail=\"not-stored\"")
        #expect(try await status(manager) == "Curlew; hit; ttl=60; detail=\"fresh\"")
        await clock.advance(by: .seconds(10))
        #expect(try await status(manager) == "Curlew; hit; ttl=50; detail=\"fresh\"")
        #expect(try await status(manager, method: .head) == "Curlew; hit; ttl=50; detail=\"fresh\"")
        #expect(try await status(manager, headers: ["X": "1"]) == "Curlew; fwd=vary-miss; stored; detail=\"other-variant\"")
        #expect(try await status(manager, "http://mock/no-store") == "Curlew; fwd=uri-miss; detail=\"not-stored\"")
    }

    @Test(arguments: Place.allCases) func `A validation tells whether the stored response was confirmed or replaced`(
        _ place: Place
    ) async throws {
        let isChanged = Lock(false)
        let mock = MockTransport { request in
            let tag = isChanged.withLock { $0 } ? "\"2\"" : "\"1\""
            if request.headers["If-None-Match"] == tag { return .response(304, ["ETag": tag]) }
            return .response(200, ["Cache-Control": request.url.hasSuffix("no-cache") ? "no-cache" : "max-age=60", "ETag": tag], "x")
        }
        let manager = manager(place, mock)
        _ = try await status(manager)
        #expect(
            try await status(manager, policy: .reloadRevalidatingCacheData)
                == "Curlew; fwd=request; fwd-status=304; detail=\"requested-by-request\"")
        #expect(
            try await status(manager, headers: ["Cache-Control": "no-cache"])
                == "Curlew; fwd=request; fwd-status=304; detail=\"requested-by-request\"")
        await clock.advance(by: .seconds(61))
        #expect(try await status(manager) == "Curlew; fwd=stale; fwd-status=304; detail=\"stale\"")
        await clock.advance(by: .seconds(61))
        isChanged.withLock { $0 = true }
        // A miss: the status of the forwarded request's response is that of the delivered one.
        #expect(try await status(manager) == "Curlew; fwd=stale; stored; detail=\"stale\"")
        _ = try await status(manager, "http://mock/no-cache")
        #expect(
            try await status(manager, "http://mock/no-cache") == "Curlew; fwd=stale; fwd-status=304; detail=\"required-by-response\"")
    }

    @Test(arguments: Place.allCases) func `A stale response is a hit, unless it takes the place of an error`(_ place: Place) async throws {
        let error = Lock(0)
        let mock = MockTransport { request in
            switch error.withLock({ $0 }) {
            case 0: .response(200, ["Cache-Control": "max-age=60, stale-if-error=600, stale-while-revalidate=10"], "x")
            case 1: .response(503, [:], "busy")
            default: [.complete(CurlewError.failure(.connect))]
            }
        }
        let manager = manager(place, mock)
        _ = try await status(manager)
        await clock.advance(by: .seconds(100))
        #expect(
            try await status(manager, headers: ["Cache-Control": "max-stale"]) == "Curlew; hit; ttl=-40; detail=\"allowed-by-request\"")
        #expect(try await status(manager, policy: .returnCacheDataElseLoad) == "Curlew; hit; ttl=-40; detail=\"allowed-by-request\"")
        error.withLock { $0 = 1 }
        #expect(try await status(manager) == "Curlew; fwd=stale; fwd-status=503; detail=\"stale-if-error\"")
        error.withLock { $0 = 2 }
        #expect(try await status(manager) == "Curlew; fwd=stale; detail=\"stale-if-error\"")
        error.withLock { $0 = 0 }
        #expect(try await status(manager) == "Curlew; fwd=stale; stored; detail=\"stale\"")
        await clock.advance(by: .seconds(61))
        #expect(try await status(manager) == "Curlew; hit; ttl=-1; detail=\"stale-while-revalidate\"")
        manager.settle()
    }

    @Test(arguments: Place.allCases) func `A bypass tells why`(_ place: Place) async throws {
        let manager = manager(place, .answering(200, ["Cache-Control": "max-age=60", "ETag": "\"1\""], "x"))
        _ = try await status(manager)
        #expect(
            try await status(manager, policy: .reloadIgnoringLocalCacheData) == "Curlew; fwd=bypass; stored; detail=\"ignored\"")
        #expect(try await status(manager, headers: ["If-Match": "\"1\""]) == "Curlew; fwd=bypass; stored; detail=\"conditional\"")
        #expect(try await status(manager, "http://user:password@mock/") == "Curlew; fwd=bypass; detail=\"not-cacheable\"")
        #expect(try await status(manager, method: .put) == "Curlew; fwd=method; detail=\"method\"")
        let plain = SessionManager(mock: .answering(200))
        #expect(try await status(plain) == nil)
    }

    @Test(arguments: Place.allCases) func `A request that forbids asking the host is a hit, or neither hit nor forwarded`(
        _ place: Place
    ) async throws {
        let mock = MockTransport.answering(200, ["Cache-Control": "max-age=60"], "x")
        let manager = manager(place, mock)
        let failed = "Curlew; detail=\"only-if-cached\""
        #expect(try await status(manager, headers: ["Cache-Control": "only-if-cached"]) == failed)
        #expect(try await status(manager, policy: .returnCacheDataDontLoad) == failed)
        #expect(try await status(manager, method: .delete, policy: .returnCacheDataDontLoad) == failed)
        #expect(mock.started.count == 0)
        _ = try await status(manager)
        #expect(try await status(manager, headers: ["Cache-Control": "only-if-cached"]) == "Curlew; hit; ttl=60; detail=\"fresh\"")
        await clock.advance(by: .seconds(61))
        #expect(try await status(manager, headers: ["Cache-Control": "only-if-cached"]) == failed)
        #expect(try await status(manager, policy: .returnCacheDataDontLoad) == "Curlew; hit; ttl=-1; detail=\"allowed-by-request\"")
        #expect(mock.started.count == 1)
    }

    @Test func `A range that is not stored is partial, and a store that fails misses`() async throws {
        let mock = MockTransport { request in
            request.headers["Range"] == nil
                ? .response(200, ["Cache-Control": "max-age=60", "ETag": "\"1\""], "0123")
                : .response(206, ["Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Range": "bytes 0-1/4"], "01")
        }
        let manager = manager(.memory, mock)
        #expect(try await status(manager, headers: ["Range": "bytes=0-1"]) == "Curlew; fwd=uri-miss; stored; detail=\"not-stored\"")
        #expect(try await status(manager, headers: ["Range": "bytes=0-0"]) == "Curlew; hit; ttl=60; detail=\"fresh\"")
        #expect(try await status(manager) == "Curlew; fwd=partial; stored; detail=\"other-range\"")
        let failing = SessionManager(mock: mock) { $0.cache = ResponseCache(storage: FailingStorage()) }
        #expect(try await status(failing) == "Curlew; fwd=miss; detail=\"store-failed\"")
    }

    @Test func `The statistics count each outcome`() async throws {
        let cache = ResponseCache.memory()
        let manager = SessionManager(mock: .answering(200, ["Cache-Control": "max-age=60"], "x")) { $0.cache = cache }
        _ = try await status(manager, headers: ["Cache-Control": "only-if-cached"])
        for _ in 0..<2 { _ = try await status(manager) }
        _ = try await status(manager, method: .post)
        let statistics = cache.statistics
        #expect(statistics.misses == 2 && statistics.hits == 1 && statistics.bypasses == 1 && statistics.stores == 1)
    }
}
