// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

/// A store on which every call that can fail does.
struct FailingStorage: CacheStorage {
    struct Failure: Error {}

    let capacity: Int64 = 1 << 20
    var size: Int64 { get throws { throw Failure() } }
    func entry(for key: CacheKey) throws -> CacheEntry? { throw Failure() }
    func metadata(for key: CacheKey) throws -> Data? { throw Failure() }
    func store(_ entry: CacheEntry, for key: CacheKey) throws { throw Failure() }
    func removeEntry(for key: CacheKey) throws { throw Failure() }
    func removeAll() throws { throw Failure() }
    func forEachEntry(_ visit: (CacheKey, Data, Int64) -> Bool) throws { throw Failure() }
}

/// A store in memory that counts as one on disk.
private struct QueuedStorage: CacheStorage {
    private let memory = MemoryCacheStorage()

    var capacity: Int64 { memory.capacity }
    var size: Int64 { memory.size }
    func entry(for key: CacheKey) -> CacheEntry? { memory.entry(for: key) }
    func metadata(for key: CacheKey) -> Data? { memory.metadata(for: key) }
    func store(_ entry: CacheEntry, for key: CacheKey) throws { try memory.store(entry, for: key) }
    func removeEntry(for key: CacheKey) { memory.removeEntry(for: key) }
    func removeAll() { memory.removeAll() }
    func forEachEntry(_ visit: (CacheKey, Data, Int64) -> Bool) { memory.forEachEntry(visit) }
}

@Suite(.timeLimit(.minutes(1))) struct ResponseCacheTests {
    /// Whose thread looks up: the caller's, or the cache's queue.
    enum Place: CaseIterable, Sendable {
        case memory, queue

        var cache: ResponseCache {
            switch self {
            case .memory: ResponseCache(storage: MemoryCacheStorage(), tagHeader: "Cache-Tag")
            case .queue: ResponseCache(storage: QueuedStorage(), tagHeader: "Cache-Tag")
            }
        }
    }

    private func manager(
        _ cache: ResponseCache, _ mock: MockTransport, clock: VirtualClock? = nil, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        SessionManager(mock: mock) {
            $0.cache = cache
            $0.clock = clock
            change(&$0)
        }
    }

    private func load(
        _ manager: SessionManager, _ url: String = "http://mock/a", method: HTTPMethod = .get, headers: HTTPHeaders = [:],
        policy: URLRequest.CachePolicy = .useProtocolCachePolicy
    ) async throws -> DataResponse<String> {
        var request = try URLRequest(url: url, method: method, headers: headers)
        request.cachePolicy = policy
        return await manager.request(request).serializingString().response
    }

    /// A transport whose bodies are the number of the request, and which confirms the tag `"same"`.
    private func counting(_ headers: HTTPHeaders, status: Int = 200) -> MockTransport {
        let count = Lock(0)
        return MockTransport { request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if request.headers["If-None-Match"] == "\"same\"" { return .response(304, ["ETag": "\"same\"", "X": "\(number)"]) }
            return .response(status, headers, request.method == .head ? "" : "\(number)")
        }
    }

    private func outcome(_ response: DataResponse<String>) -> (TransferMetrics.CacheOutcome?, CacheReason?) {
        (response.metrics.last?.cacheOutcome, response.metrics.last?.cacheReason)
    }

    @Test("a fresh response is served, with its age, and counted", arguments: Place.allCases)
    func hit(_ place: Place) async throws {
        let cache = place.cache
        let mock = counting(["Cache-Control": "max-age=60", "Age": "5"])
        let manager = manager(cache, mock)
        let first = try await load(manager)
        #expect(first.value == "1" && outcome(first) == (.miss, .notStored))
        let second = try await load(manager)
        #expect(second.value == "1" && outcome(second) == (.hit, .fresh) && mock.started.count == 1)
        #expect(second.response?.value(forHTTPHeaderField: "Age").flatMap { Int($0) } ?? 0 >= 5)
        #expect(cache.statistics.hits == 1 && cache.statistics.misses == 1 && cache.statistics.stores == 1)
    }

    @Test("sessions with the same cache share its responses", arguments: Place.allCases)
    func shared(_ place: Place) async throws {
        let cache = place.cache
        let mock = counting(["Cache-Control": "max-age=60"])
        #expect(try await load(manager(cache, mock)).value == "1")
        #expect(try await load(manager(cache, mock)).value == "1")
    }

    @Test("variants are stored side by side, and removed together", arguments: Place.allCases)
    func variants(_ place: Place) async throws {
        let cache = place.cache
        let manager = manager(cache, counting(["Cache-Control": "max-age=60", "Vary": "Accept-Language"]))
        for _ in 0..<2 {
            #expect(try await load(manager, headers: ["Accept-Language": "en"]).value == "1")
            #expect(try await load(manager, headers: ["Accept-Language": "de"]).value == "2")
            #expect(try await load(manager, headers: ["Accept-Language": "fr"]).value == "3")
        }
        #expect(try cache.entries().count == 3)
        try cache.remove("http://mock/a#fragment")
        #expect(try cache.entries().isEmpty && cache.storage.size == 0)
        #expect(try await load(manager, headers: ["Accept-Language": "en"]).value == "4")
    }

    @Test("a URL is removed in each form of it, and a text that is none changes nothing") func removedForms() async throws {
        let cache = ResponseCache.memory()
        let manager = manager(cache, counting(["Cache-Control": "max-age=60"]))
        let forms: [any URLConvertible] = [
            "http://mock/a", try "HTTP://MOCK:80/a#fragment".asURL(), try #require(URLComponents(string: "http://mock/a")),
        ]
        for (index, form) in forms.enumerated() {
            #expect(try await load(manager).value == "\(index + 1)")
            try cache.remove("http://mock/\u{7F}")
            #expect(try cache.entries().count == 1)
            try cache.remove(form)
            #expect(try cache.entries().isEmpty)
        }
    }

    @Test("large bodies have entries of their own, replaced ones are removed", arguments: Place.allCases)
    func largeBodies(_ place: Place) async throws {
        let cache = place.cache
        let body = String(repeating: "x", count: 100_000)
        let manager = manager(cache, .answering(200, ["Cache-Control": "max-age=60"], body))
        #expect(try await load(manager).value == body)
        let size = try cache.storage.size
        for _ in 0..<3 { #expect(try await load(manager, policy: .reloadIgnoringLocalCacheData).value == body) }
        #expect(try cache.storage.size == size)
        let hit = try await load(manager)
        #expect(hit.value == body && outcome(hit) == (.hit, .fresh))
    }

    @Test("a response is for its credentials only", arguments: Place.allCases)
    func credentials(_ place: Place) async throws {
        let manager = manager(place.cache, counting(["Cache-Control": "max-age=60"]))
        for _ in 0..<2 {
            #expect(try await load(manager, headers: ["Authorization": "Bearer a"]).value == "1")
            #expect(try await load(manager, headers: ["Authorization": "Bearer b"]).value == "2")
            #expect(try await load(manager).value == "3")
        }
    }

    @Test("a response ages on the session's clock, and is validated when it is stale", arguments: Place.allCases)
    func aging(_ place: Place) async throws {
        let clock = VirtualClock()
        let mock = counting(["Cache-Control": "max-age=60", "ETag": "\"same\""])
        let manager = manager(place.cache, mock, clock: clock)
        _ = try await load(manager)
        await clock.advance(by: .seconds(59))
        let again = try await load(manager)
        #expect(outcome(again) == (.hit, .fresh))
        await clock.advance(by: .seconds(2))
        let validated = try await load(manager)
        #expect(validated.value == "1" && outcome(validated) == (.revalidated, .stale))
        #expect(validated.response?.value(forHTTPHeaderField: "X") == "2" && validated.response?.value(forHTTPHeaderField: "Age") == nil)
        #expect(mock.started.all.last?.request.headers["If-None-Match"] == "\"same\"")
    }

    @Test("stale-while-revalidate serves at once, and validates once in the background", arguments: Place.allCases)
    func staleWhileRevalidate(_ place: Place) async throws {
        let clock = VirtualClock()
        let cache = place.cache
        let mock = counting(["Cache-Control": "max-age=60, stale-while-revalidate=60", "ETag": "\"same\""])
        let manager = manager(cache, mock, clock: clock)
        _ = try await load(manager)
        await clock.advance(by: .seconds(61))
        let stale = try await load(manager)
        #expect(stale.value == "1" && outcome(stale) == (.stale, .staleWhileRevalidate))
        _ = await mock.started.first(2)
        #expect(await eventually { (try? cache.entries())?.first?.headers["X"] == "2" })
        let again = try await load(manager)
        #expect(outcome(again) == (.hit, .fresh) && mock.started.count == 2)
        #expect(mock.started.all.last?.request.headers["Cache-Control"] == nil)
    }

    @Test("a validation in the background has the limits of the session, and not those of the request", arguments: Place.allCases)
    func limitsInBackground(_ place: Place) async throws {
        let clock = VirtualClock()
        let mock = counting(["Cache-Control": "max-age=60, stale-while-revalidate=60", "ETag": "\"same\""])
        let manager = manager(place.cache, mock, clock: clock) { $0.totalTimeout = .seconds(70) }
        _ = try await load(manager)
        await clock.advance(by: .seconds(61))
        var options = RequestOptions(deadline: .seconds(1), firstByteTimeout: .seconds(1), totalTimeout: .seconds(2))
        options.deadlineHeader = "X-Left"
        // Also where options of connections are changed with them.
        options.httpVersion = .http1
        let response = await manager.request("http://mock/a", options: options).serializingString().response
        #expect(outcome(response) == (.stale, .staleWhileRevalidate))
        let validation = try #require(await mock.started.first(2).last).request
        #expect(validation.options.totalTimeout == .seconds(70) && validation.options.firstByteTimeout == nil)
        #expect(validation.headers["X-Left"] == nil)
    }

    @Test("a chain of redirects in memory does not use up the stack of the caller")
    func longChain() async throws {
        let mock = MockTransport { request in
            let number = Int(request.url.split(separator: "/").last ?? "") ?? 0
            return number == 0
                ? .response(200, ["Cache-Control": "max-age=60"], "end")
                : .response(301, ["Location": "/\(number - 1)", "Cache-Control": "max-age=60"])
        }
        let manager = manager(.memory(), mock) { $0.redirects.limit = 100 }
        #expect(try await load(manager, "http://mock/100").value == "end")
        let values = Log<String?>()
        let thread = Thread { manager.request("http://mock/100").responseString(queue: .global()) { values.append($0.value) } }
        thread.stackSize = 128 << 10
        thread.start()
        await values.wait(for: 1)
        #expect(values.elements == ["end"] && mock.started.count == 101)
    }

    @Test("stale-if-error serves in place of an error of the server or the network", arguments: Place.allCases, [500, 503, 0])
    func staleIfError(_ place: Place, status: Int) async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(200, ["Cache-Control": "max-age=0, stale-if-error=60"], "old"),
            status == 0 ? [.complete(CurlewError.failure(.connect))] : .response(status, [:], "error"),
            .response(404, [:], "gone"),
        ])
        let manager = manager(place.cache, mock)
        _ = try await load(manager)
        let stale = try await load(manager)
        #expect(stale.value == "old" && stale.response?.statusCode == 200 && outcome(stale) == (.stale, .staleIfError))
        #expect(try await load(manager).response?.statusCode == 404)
    }

    @Test("without stale-if-error an error is an error", arguments: Place.allCases)
    func error(_ place: Place) async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(200, ["Cache-Control": "max-age=0"], "old"), [.complete(CurlewError.failure(.connect))], .response(503, [:], "error"),
        ])
        let manager = manager(place.cache, mock)
        _ = try await load(manager)
        #expect(try await load(manager).error != nil)
        #expect(try await load(manager).response?.statusCode == 503)
    }

    @Test("must-revalidate makes an unreachable host an error, also where stale responses are allowed otherwise", arguments: Place.allCases)
    func mustRevalidate(_ place: Place) async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(
                200, ["Cache-Control": "max-age=0, must-revalidate, stale-if-error=60, stale-while-revalidate=60", "ETag": "\"a\""], "old"),
            [.complete(CurlewError.failure(.connect))], .response(503, [:], "busy"),
        ])
        let manager = manager(place.cache, mock)
        _ = try await load(manager)
        let failed = try await load(manager, headers: ["Cache-Control": "max-stale"])
        #expect(failed.error != nil && outcome(failed) == (.miss, .stale))
        #expect(try await load(manager).response?.statusCode == 503)
        #expect(mock.started.all.last?.request.headers["If-None-Match"] == "\"a\"")
    }

    @Test("HEAD is served from a stored GET, and updates or removes it", arguments: Place.allCases)
    func head(_ place: Place) async throws {
        let mock = counting(["Cache-Control": "max-age=60", "ETag": "\"a\""])
        let manager = manager(place.cache, mock)
        _ = try await load(manager)
        let head = try await load(manager, method: .head)
        #expect(outcome(head) == (.hit, .fresh) && mock.started.count == 1)
        _ = try await load(manager, method: .head, policy: .reloadIgnoringLocalCacheData)
        let again = try await load(manager)
        #expect(outcome(again) == (.hit, .fresh))
    }

    @Test("a HEAD that shows another tag removes the stored response", arguments: Place.allCases)
    func changedByHead(_ place: Place) async throws {
        let mock = MockTransport { request in
            .response(
                200, ["Cache-Control": "no-cache", "ETag": request.method == .head ? "\"b\"" : "\"a\""], request.method == .head ? "" : "x")
        }
        let cache = place.cache
        let manager = manager(cache, mock)
        _ = try await load(manager)
        #expect(try cache.entries().count == 1)
        _ = try await load(manager, method: .head)
        #expect(try cache.entries().isEmpty)
    }

    @Test("ranges are served from whole responses and from parts, which are combined", arguments: Place.allCases)
    func ranges(_ place: Place) async throws {
        let body = "0123456789"
        let mock = MockTransport { request in
            let fields: HTTPHeaders = ["Cache-Control": "max-age=60", "ETag": "\"a\""]
            guard let range = request.headers["Range"].flatMap({ RequestedByteRange($0) })?.resolved(total: 10) else {
                return .response(200, fields, body)
            }
            let part = String(body.dropFirst(Int(range.first)).prefix(Int(range.count)))
            return .response(
                206, HTTPHeaders(fields + [HTTPHeader(name: "Content-Range", value: "bytes \(range.first)-\(range.last)/10")]), part)
        }
        let manager = manager(place.cache, mock)
        #expect(try await load(manager, headers: ["Range": "bytes=0-3"]).value == "0123")
        let within = try await load(manager, headers: ["Range": "bytes=1-2"])
        #expect(within.value == "12" && within.response?.statusCode == 206 && mock.started.count == 1)
        #expect(within.response?.value(forHTTPHeaderField: "Content-Range") == "bytes 1-2/10")
        #expect(try await load(manager, headers: ["Range": "bytes=4-9"]).value == "456789")
        let whole = try await load(manager)
        #expect(whole.value == body && whole.response?.statusCode == 200 && mock.started.count == 2)
        #expect(try await load(manager, headers: ["Range": "bytes=-2"]).value == "89")
        #expect(try await load(manager, headers: ["Range": "bytes=10-"]).response?.statusCode == 200)
        #expect(mock.started.count == 3)
    }

    @Test("conditions of the request are answered from a fresh response", arguments: Place.allCases)
    func conditions(_ place: Place) async throws {
        let mock = counting(["Cache-Control": "max-age=60", "ETag": "\"a\""])
        let manager = manager(place.cache, mock)
        _ = try await load(manager)
        #expect(try await load(manager, headers: ["If-None-Match": "\"a\""]).response?.statusCode == 304)
        #expect(try await load(manager, headers: ["If-None-Match": "\"b\""]).value == "1")
        #expect(mock.started.count == 1)
        let preconditions = try await load(manager, headers: ["If-Match": "\"a\""])
        #expect(preconditions.value == "2" && outcome(preconditions) == (.bypass, .conditional))
    }

    @Test("reloadRevalidatingCacheData asks caches on the way to validate, too", arguments: Place.allCases)
    func reload(_ place: Place) async throws {
        let mock = counting(["Cache-Control": "max-age=60", "ETag": "\"same\""])
        let manager = manager(place.cache, mock)
        _ = try await load(manager)
        let reloaded = try await load(manager, policy: .reloadRevalidatingCacheData)
        #expect(reloaded.value == "1" && outcome(reloaded) == (.revalidated, .requestedByRequest))
        #expect(mock.started.all.last?.request.headers["Cache-Control"] == "max-age=0")
    }

    @Test("an unsafe method invalidates all variants", arguments: Place.allCases)
    func invalidation(_ place: Place) async throws {
        let cache = place.cache
        let manager = manager(cache, counting(["Cache-Control": "max-age=60", "Vary": "X"]))
        for value in ["1", "2"] { _ = try await load(manager, headers: ["X": value]) }
        _ = await manager.request("http://mock/a", method: .post).serializingData().response
        #expect(try await load(manager, headers: ["X": "1"]).value == "4")
    }

    @Test("what was requested before an unsafe method is not stored after it", arguments: Place.allCases)
    func overtaken(_ place: Place) async throws {
        let mock = MockTransport()
        let manager = manager(place.cache, mock)
        func start(_ method: HTTPMethod = .get) -> Task<String?, Never> {
            Task { await manager.request("http://mock/a", method: method).serializingString().response.value }
        }
        let first = start()
        let exchange = await mock.started[0]
        exchange.perform(.head(200, ["Cache-Control": "max-age=60"]), .bytes(Data("o".utf8)))
        let change = start(.post)
        await mock.started[1].respond(200, [:], "changed")
        #expect(await change.value == "changed")
        exchange.perform(.bytes(Data("ld".utf8)), .complete())
        #expect(await first.value == "old")
        let second = start()
        await mock.started[2].respond(200, ["Cache-Control": "max-age=60"], "new")
        #expect(await second.value == "new")
        #expect(await start().value == "new")
    }

    @Test("tags and closures remove responses", arguments: Place.allCases)
    func tags(_ place: Place) async throws {
        let cache = place.cache
        let mock = MockTransport { request in
            .response(200, ["Cache-Control": "max-age=60", "Cache-Tag": request.url.hasSuffix("a") ? "one, two" : "two"], "x")
        }
        let manager = manager(cache, mock)
        for name in ["a", "b", "c"] { _ = try await load(manager, "http://mock/\(name)") }
        #expect(try cache.entries().map(\.tags).sorted { $0.count < $1.count } == [["two"], ["two"], ["one", "two"]])
        #expect(try cache.remove(tag: "one") == 1)
        #expect(try Set(cache.entries().map(\.url)) == ["http://mock/b", "http://mock/c"])
        #expect(try cache.remove { $0.url.hasSuffix("c") } == 1)
        try cache.removeAll()
        #expect(try cache.entries().isEmpty)
    }

    @Test("Clear-Site-Data removes the responses of its origin only", arguments: Place.allCases)
    func clearSiteData(_ place: Place) async throws {
        let cache = place.cache
        let mock = MockTransport { request in
            request.url.hasSuffix("clear")
                ? .response(200, ["Clear-Site-Data": "\"cache\"", "Cache-Control": "no-store"], "x")
                : .response(200, ["Cache-Control": "max-age=60"], "x")
        }
        let manager = manager(cache, mock)
        for url in ["https://mock/a", "https://mock/b", "https://other/a", "https://mock/clear"] { _ = try await load(manager, url) }
        #expect(await eventually { (try? cache.entries().map(\.url)) == ["https://other/a"] })
    }

    @Test("a store that fails is a miss, and counted") func failures() async throws {
        let cache = ResponseCache(storage: FailingStorage())
        let mock = counting(["Cache-Control": "max-age=60"])
        let manager = manager(cache, mock)
        #expect(try await load(manager).value == "1")
        #expect(try await load(manager).value == "2")
        #expect(cache.statistics.failures >= 4 && cache.statistics.stores == 0)
    }

    @Test("requests of each kind are served from the cache", arguments: Place.allCases)
    func kinds(_ place: Place) async throws {
        let mock = counting(["Cache-Control": "max-age=60"])
        let manager = manager(place.cache, mock)
        _ = try await load(manager)
        #expect(await manager.download("http://mock/a").serializingData().response.value == Data("1".utf8))
        var streamed = Data()
        for try await piece in manager.streamRequest("http://mock/a").bodyStream() { streamed += piece }
        #expect(streamed == Data("1".utf8) && mock.started.count == 1)
    }

    @Test("a request that is cancelled or suspended before it starts is served or ends, whatever the store", arguments: Place.allCases)
    func control(_ place: Place) async throws {
        let mock = counting(["Cache-Control": "max-age=60"])
        let manager = manager(place.cache, mock)
        _ = try await load(manager)
        manager.startRequestsImmediately = false
        let suspended = manager.request("http://mock/a")
        let cancelled = manager.request("http://mock/a")
        cancelled.cancel()
        #expect(await cancelled.serializingString().response.error != nil)
        async let value = suspended.serializingString().response.value
        suspended.resume()
        #expect(await value == "1" && mock.started.count == 1)
    }

    @Test("a retry and a redirect meet the cache", arguments: Place.allCases)
    func followUps(_ place: Place) async throws {
        let mock = MockTransport { request in
            request.url.hasSuffix("a")
                ? .response(301, ["Location": "/b", "Cache-Control": "max-age=60"]) : .response(200, ["Cache-Control": "max-age=60"], "b")
        }
        let manager = manager(place.cache, mock)
        _ = try await load(manager)
        let second = try await load(manager)
        #expect(second.value == "b" && second.response?.url?.path == "/b" && mock.started.count == 2)
    }
}
