// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewRequests

/// A cached request configured by the test, stored in memory unless the test sets a store.
final class CachedSample: CachedRequest, @unchecked Sendable {  // its properties are set before it is started
    var path = "count"
    var method = HTTPMethod.get
    var argument: Any?
    var base = ""
    var serializer = ResponseSerializerType.json
    var time = 60
    var version: Int64 = 0
    var sensitive: Any?
    var isAsynchronous = false
    var storage: (any CacheStorage)?
    var isLate: (@Sendable () -> Void)?
    var volatile: String?
    var custom: URLRequest?

    init(_ stage: CacheStage, _ path: String = "count") {
        super.init()
        self.path = path
        agent = stage.stage.agent
        storage = stage.storage
    }

    override func requestUrl() -> String { path }
    override func requestMethod() -> HTTPMethod { method }
    override func requestArgument() -> Any? { argument }
    override func baseUrl() -> String { base }
    override func responseSerializerType() -> ResponseSerializerType { serializer }
    override func acceptableContentTypes() -> [String]? { nil }
    override func buildCustomUrlRequest() -> URLRequest? { custom }
    override func cacheTimeInSeconds() -> Int { time }
    override func cacheVersion() -> Int64 { version }
    override func cacheSensitiveData() -> Any? { sensitive }
    override func writeCacheAsynchronously() -> Bool { isAsynchronous }
    override func cacheStorage() -> any CacheStorage { storage ?? super.cacheStorage() }
    override func cacheFileNameFilter(forRequestArgument argument: Any?) -> Any? {
        guard let volatile, let members = argument as? [String: Any] else { return argument }
        return members.filter { $0.key != volatile }
    }

    /// The server's counter, from the response.
    var count: Int? { (responseJSONObject as? [String: Any])?["count"] as? Int }
}

/// A store and a server that counts its requests.
struct CacheStage {
    let stage: Stage
    let storage = MemoryCacheStorage()
    private let asked: Lock<Int>

    /// The number of requests the server received.
    var count: Int { asked.withLock { $0 } }

    init() throws {
        let asked = Lock(0)
        self.asked = asked
        stage = try Stage { request, _ in
            let count = asked.withLock { count in
                count += 1
                return count
            }
            if request.path.hasPrefix("/status") { return .status(500) }
            return Stage.json("{\"count\": \(count), \"null\": null}")
        }
    }
}

/// A store that runs a closure while an entry is read.
final class BusyStorage: CacheStorage {
    private let storage: MemoryCacheStorage
    private let action = Lock<(@Sendable () -> Void)?>(nil)

    init(_ storage: MemoryCacheStorage) { self.storage = storage }

    /// Sets the closure to run at the next read of an entry.
    func onceReading(_ action: @escaping @Sendable () -> Void) { self.action.withLock { $0 = action } }

    var capacity: Int64 { storage.capacity }
    var size: Int64 { storage.size }
    func metadata(for key: CacheKey) -> Data? { storage.metadata(for: key) }
    func store(_ entry: CacheEntry, for key: CacheKey) throws { try storage.store(entry, for: key) }
    func removeEntry(for key: CacheKey) { storage.removeEntry(for: key) }
    func removeAll() { storage.removeAll() }
    func forEachEntry(_ visit: (CacheKey, Data, Int64) -> Bool) { storage.forEachEntry(visit) }
    func entry(for key: CacheKey) -> CacheEntry? {
        action.withLock { $0.take() }?()
        return storage.entry(for: key)
    }
}
