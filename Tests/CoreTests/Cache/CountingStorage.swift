// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP

/// A store in memory that counts the entries that are asked for, and may count as one on disk.
final class CountingStorage: CacheStorage {
    private let memory: MemoryCacheStorage
    private let count = Lock(0)
    let isInMemory: Bool

    init(isInMemory: Bool, capacity: Int64 = 16 << 20) {
        self.isInMemory = isInMemory
        memory = MemoryCacheStorage(capacity: capacity)
    }

    /// The entries that were asked for since the last call.
    func takeCount() -> Int {
        count.withLock { count in
            defer { count = 0 }
            return count
        }
    }

    /// Changes the metadata of the entries whose keys have a part; with `nil` they are removed.
    func change(_ part: String, to metadata: Data?) throws {
        var keys: [CacheKey] = []
        memory.forEachEntry { key, _, _ in
            if key.parts?.contains(part) ?? false { keys.append(key) }
            return true
        }
        for key in keys {
            if let metadata {
                try memory.store(CacheEntry(metadata: metadata, body: Data()), for: key)
            } else {
                memory.removeEntry(for: key)
            }
        }
    }

    var capacity: Int64 { memory.capacity }
    var size: Int64 { memory.size }
    func entry(for key: CacheKey) -> CacheEntry? {
        count.withLock { $0 += 1 }
        return memory.entry(for: key)
    }
    func metadata(for key: CacheKey) -> Data? { memory.metadata(for: key) }
    func store(_ entry: CacheEntry, for key: CacheKey) throws { try memory.store(entry, for: key) }
    func removeEntry(for key: CacheKey) { memory.removeEntry(for: key) }
    func removeAll() { memory.removeAll() }
    func forEachEntry(_ visit: (CacheKey, Data, Int64) -> Bool) { memory.forEachEntry(visit) }
}
