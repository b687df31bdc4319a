// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Testing

@testable import CurlewCore

/// Responses with `No-Vary-Search` in sessions; with a store in memory, and with one that counts as on disk.
@Suite(.timeLimit(.minutes(1))) struct EquivalentURLTests {
    private static let places = [true, false]
    private let clock = VirtualClock()

    private func manager(_ cache: ResponseCache, _ mock: MockTransport) -> SessionManager {
        SessionManager(mock: mock) {
            $0.cache = cache
            $0.clock = clock
        }
    }

    private func cache(_ isInMemory: Bool) -> ResponseCache { ResponseCache(storage: CountingStorage(isInMemory: isInMemory)) }

    /// A transport whose bodies are the number of the request.
    private func counting(_ field: String?, _ more: HTTPHeaders = [:]) -> MockTransport {
        let count = Lock(0)
        return MockTransport { request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            var headers: HTTPHeaders = ["Cache-Control": "max-age=60"]
            if let field { headers.append(name: "No-Vary-Search", value: field) }
            headers.merge(more)
            return .response(200, headers, request.method == .head ? "" : "\(number)")
        }
    }

    private func load(
        _ manager: SessionManager, _ path: String, method: HTTPMethod = .get, headers: HTTPHeaders = [:],
        policy: URLRequest.CachePolicy = .useProtocolCachePolicy
    ) async throws -> DataResponse<String> {
        var request = try URLRequest(url: "http://mock/" + path, method: method, headers: headers)
        request.cachePolicy = policy
        return await manager.request(request).serializingString().response
    }

    private func outcome(_ response: DataResponse<String>) -> (TransferMetrics.CacheOutcome?, CacheReason?) {
        (response.metrics.last?.cacheOutcome, response.metrics.last?.cacheReason)
    }

    @Test(arguments: places) func `A response answers requests whose URL differs only in what it names`(isInMemory: Bool) async throws {
        let manager = manager(cache(isInMemory), counting("params=(\"utm\")"))
        #expect(try await load(manager, "a?q=1&utm=x").value == "1")
        for path in ["a?q=1&utm=y", "a?q=1", "a?utm=z&q=1&utm=z"] {
            let hit = try await load(manager, path)
            #expect(hit.value == "1" && outcome(hit) == (.hit, .fresh) && hit.response?.url?.absoluteString == "http://mock/" + path)
        }
        #expect(try await load(manager, "a?q=2&utm=x").value == "2")
        #expect(try await load(manager, "b?q=1&utm=x").value == "3")
        #expect(try await load(manager, "a?q=2").value == "2")
    }

    @Test(arguments: places) func `Without a valid field every query has its own response`(isInMemory: Bool) async throws {
        for field in [nil, "params=?1", "params=(utm)"] {
            let manager = manager(cache(isInMemory), counting(field))
            #expect(try await load(manager, "a?q=1&utm=x").value == "1")
            #expect(try await load(manager, "a?q=1&utm=y").value == "2")
            #expect(try await load(manager, "a?q=1&utm=x").value == "1")
        }
    }

    @Test(arguments: places) func `Vary and credentials distinguish responses of equivalent URLs`(isInMemory: Bool) async throws {
        let manager = manager(cache(isInMemory), counting("key-order, params=(\"u\")", ["Vary": "Accept-Language"]))
        let english: HTTPHeaders = ["Accept-Language": "en"], german: HTTPHeaders = ["Accept-Language": "de"]
        #expect(try await load(manager, "a?u=1", headers: english).value == "1")
        #expect(try await load(manager, "a?u=2", headers: german).value == "2")
        #expect(try await load(manager, "a?u=3", headers: english).value == "1")
        #expect(try await load(manager, "a?u=4", headers: german).value == "2")
        #expect(try await load(manager, "a?u=1", headers: german).value == "2")
        for (index, user) in ["a", "b"].enumerated() {
            for _ in 0..<2 {
                let own = try await load(manager, "a?u=\(index)", headers: ["Accept-Language": "en", "Authorization": user])
                #expect(own.value == "\(index + 3)")
            }
        }
        #expect(try await load(manager, "a?u=9", headers: ["Accept-Language": "en", "Authorization": "b"]).value == "4")
    }

    @Test(arguments: places) func `An unsafe method removes what would answer its URL`(isInMemory: Bool) async throws {
        let cache = cache(isInMemory)
        let manager = manager(cache, counting("params=(\"u\")"))
        #expect(try await load(manager, "a?q=1&u=1").value == "1")
        #expect(try await load(manager, "a?q=2&u=1").value == "2")
        _ = try await load(manager, "a?q=1&u=9", method: .post)
        #expect(try await load(manager, "a?q=1&u=9").value == "4")
        #expect(try await load(manager, "a?q=1&u=1").value == "4")
        #expect(try await load(manager, "a?q=2").value == "2")
        try cache.remove("http://mock/a?q=2&u=7")
        #expect(try await load(manager, "a?q=2&u=1").value == "5")
        // Closures remove what they name, and nothing else.
        #expect(try cache.remove { $0.url.hasSuffix("q=1&u=9") } == 1)
        #expect(try await load(manager, "a?q=2").value == "5")
        #expect(try await load(manager, "a?q=1").value == "6")
        try cache.removeAll()
        #expect(try cache.entries().isEmpty && cache.storage.size == 0)
    }

    @Test(arguments: places) func `A newer response takes the place of those for equivalent URLs`(isInMemory: Bool) async throws {
        let cache = cache(isInMemory)
        let manager = manager(cache, counting("params=(\"u\")", ["X": String(repeating: "x", count: 10)]))
        for number in 1...6 {
            let response = try await load(manager, "a?u=\(number)", policy: .reloadIgnoringLocalCacheData)
            #expect(response.value == "\(number)")
        }
        #expect(try cache.entries().map(\.url) == ["http://mock/a?u=6"])
        for number in 1...6 { #expect(try await load(manager, "a?u=\(number)").value == "6") }
    }

    @Test(arguments: places) func `A stale response of an equivalent URL is not validated, but loaded`(isInMemory: Bool) async throws {
        let mock = counting("params=(\"u\")", ["ETag": "\"1\""])
        let manager = manager(cache(isInMemory), mock)
        _ = try await load(manager, "a?u=1")
        await clock.advance(by: .seconds(61))
        let loaded = try await load(manager, "a?u=2")
        #expect(loaded.value == "2" && outcome(loaded) == (.miss, .notStored))
        #expect(mock.started.all.last?.request.headers["If-None-Match"] == nil)
        #expect(try await load(manager, "a?u=1").value == "2")
    }

    @Test(arguments: places) func `What a request or a response allows holds for equivalent URLs`(isInMemory: Bool) async throws {
        let mock = counting("params=(\"u\")", ["Cache-Control": "max-age=60, stale-while-revalidate=60"])
        let manager = manager(cache(isInMemory), mock)
        #expect(try await load(manager, "a?u=0", headers: ["Cache-Control": "only-if-cached"]).error != nil)
        _ = try await load(manager, "a?u=1")
        #expect(try await load(manager, "a?u=2", headers: ["Cache-Control": "only-if-cached"]).value == "1")
        #expect(try await load(manager, "a?u=2", policy: .returnCacheDataDontLoad).value == "1")
        let head = try await load(manager, "a?u=3", method: .head)
        #expect(outcome(head) == (.hit, .fresh))
        let part = try await load(manager, "a?u=3", headers: ["Range": "bytes=0-0"])
        #expect(part.value == "1" && part.response?.statusCode == 206 && mock.started.count == 1)
        #expect(try await load(manager, "a?u=4", headers: ["Cache-Control": "no-cache"]).value == "2")
        await clock.advance(by: .seconds(61))
        let stale = try await load(manager, "a?u=5")
        #expect(stale.value == "2" && outcome(stale) == (.stale, .staleWhileRevalidate))
        _ = await mock.started.first(3)
        #expect(mock.started.all.last?.request.url == "http://mock/a?u=5")
    }

    @Test(arguments: places) func `Validators are compared within one URL, and a part does not replace a whole response`(
        isInMemory: Bool
    ) async throws {
        let mock = MockTransport { request in
            let fields: HTTPHeaders = ["Cache-Control": "max-age=60", "ETag": "\"1\"", "No-Vary-Search": "params=(\"u\")"]
            guard request.headers["Range"] != nil else { return .response(200, fields, "0123") }
            return .response(206, HTTPHeaders(fields + [HTTPHeader(name: "Content-Range", value: "bytes 0-1/4")]), "01")
        }
        let manager = manager(cache(isInMemory), mock)
        _ = try await load(manager, "a?u=1")
        #expect(try await load(manager, "a?u=2", headers: ["If-None-Match": "\"1\""]).response?.statusCode == 200)
        #expect(try await load(manager, "a?u=3", headers: ["Range": "bytes=0-1", "If-Range": "\"1\""]).value == "01")
        #expect(mock.started.count == 3)
        let whole = try await load(manager, "a?u=4")
        #expect(whole.value == "0123" && outcome(whole) == (.hit, .fresh))
    }

    @Test(arguments: places) func `A validation that changes the field counts`(isInMemory: Bool) async throws {
        let mock = MockTransport { request in
            if request.headers["If-None-Match"] != nil { return .response(304, ["ETag": "\"1\"", "No-Vary-Search": "params=(\"v\")"]) }
            return .response(200, ["Cache-Control": "max-age=60", "ETag": "\"1\"", "No-Vary-Search": "params=(\"u\")"], request.url)
        }
        let manager = manager(cache(isInMemory), mock)
        _ = try await load(manager, "a?u=1")
        #expect(try await load(manager, "a?u=2").value == "http://mock/a?u=1")
        let validated = try await load(manager, "a?u=1", policy: .reloadRevalidatingCacheData)
        #expect(outcome(validated) == (.revalidated, .requestedByRequest))
        #expect(try await load(manager, "a?u=1&v=1").value == "http://mock/a?u=1")
        #expect(try await load(manager, "a?u=2").value == "http://mock/a?u=2")
    }

    @Test(arguments: places) func `Hints that are gone, damaged or wrong are misses`(isInMemory: Bool) async throws {
        var wrong = SearchHints()
        for url in ["http://mock/b?q=1", "http://mock/a?q=2", "http://mock/none"] { wrong.add(url) }
        for hints in [nil, Data("damaged".utf8), wrong.encoded] {
            for part in ["search-rules", "search-class"] {
                let storage = CountingStorage(isInMemory: isInMemory)
                let manager = manager(ResponseCache(storage: storage), counting("params=(\"u\")"))
                for path in ["b?q=1", "a?q=2", "a?q=1&u=1"] { _ = try await load(manager, path) }
                try storage.change(part, to: hints)
                #expect(try await load(manager, "a?q=1&u=2").value == "4")
                #expect(try await load(manager, "a?q=1&u=3").value == "4")
            }
        }
    }

    @Test(arguments: places) func `A look-up takes no longer with many URLs, and a hit reads one entry`(isInMemory: Bool) async throws {
        let storage = CountingStorage(isInMemory: isInMemory)
        let manager = manager(ResponseCache(storage: storage), counting("params=(\"u\")"))
        for number in 0..<300 { _ = try await load(manager, "a?q=\(number)&u=\(number)") }
        _ = storage.takeCount()
        #expect(try await load(manager, "a?q=17&u=17").value == "18")
        #expect(storage.takeCount() == 1)
        #expect(try await load(manager, "a?q=17&u=0").value == "18")
        // The URL, the rules, the class, and the response.
        #expect(storage.takeCount() == 4)
    }
}
