// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A store in memory, lost when the process exits.
public final class MemoryCacheStorage: CacheStorage {
    /// The maximum total size of all entries, in bytes: keys, metadata and bodies, plus an overhead for each.
    public let capacity: Int64
    /// The overhead that each entry is charged, in bytes.
    static let overhead: Int64 = 128

    private let entries = Lock(RecencyList())

    /// Creates an empty store.
    ///
    /// - Parameter capacity: in bytes; 16 MiB by default. With 0 or less nothing is stored.
    public init(capacity: Int64 = 16 << 20) {
        self.capacity = capacity
    }

    /// The total size of all entries, in bytes.
    public var size: Int64 { entries.withLock { $0.size } }

    /// `true`: no call blocks on I/O.
    public var isInMemory: Bool { true }

    /// Returns the entry for a key and marks it as used.
    public func entry(for key: CacheKey) -> CacheEntry? {
        entries.withLock { $0.use(key) }
    }

    /// Returns the metadata for a key. Does not mark the entry as used.
    public func metadata(for key: CacheKey) -> Data? {
        entries.withLock { $0.peek(key)?.metadata }
    }

    /// Calls `visit` with each entry, in no order, until it returns `false`; a copy taken before the first call.
    public func forEachEntry(_ visit: (_ key: CacheKey, _ metadata: Data, _ bodyLength: Int64) -> Bool) {
        for (key, entry) in entries.withLock({ $0.all }) {
            guard visit(key, entry.metadata, Int64(entry.body.count)) else { return }
        }
    }

    /// Stores an entry for a key, replacing the previous one.
    ///
    /// - Throws: ``CacheStorageError/entryTooLarge(size:capacity:)``, in which case the key has no entry afterwards.
    public func store(_ entry: CacheEntry, for key: CacheKey) throws {
        let size = Self.overhead + Int64(key.bytes.count + entry.metadata.count + entry.body.count)
        // Removed entries are released outside of the lock.
        let removed = entries.withLock { entries in
            var removed = [entries.remove(key)]
            guard size <= capacity else { return removed }
            while entries.size + size > capacity { removed.append(entries.removeOldest()) }
            entries.insert(entry, size: size, for: key)
            return removed
        }
        withExtendedLifetime(removed) {}
        if size > capacity { throw CacheStorageError.entryTooLarge(size: size, capacity: capacity) }
    }

    /// Removes the entry for a key, if there is one.
    public func removeEntry(for key: CacheKey) {
        let removed = entries.withLock { $0.remove(key) }
        withExtendedLifetime(removed) {}
    }

    /// Removes the entries that were stored with a tag. Looks at all.
    func removeEntries(tagged tag: String) {
        let removed = entries.withLock { entries in
            entries.all.filter { $0.1.tags.contains(tag) }.map { entries.remove($0.0) }
        }
        withExtendedLifetime(removed) {}
    }

    /// Removes all entries.
    public func removeAll() {
        let removed = entries.withLock { entries in
            defer { entries = RecencyList() }
            return entries
        }
        withExtendedLifetime(removed) {}
    }
}

/// Entries in order of use, as a list linked by keys, so that every operation takes constant time.
private struct RecencyList {
    private struct Node {
        let entry: CacheEntry
        let size: Int64
        var older: CacheKey?
        var newer: CacheKey?
    }

    private(set) var size: Int64 = 0
    private var nodes: [CacheKey: Node] = [:]
    private var oldest: CacheKey?
    private var newest: CacheKey?

    var all: [(CacheKey, CacheEntry)] { nodes.map { ($0.key, $0.value.entry) } }

    func peek(_ key: CacheKey) -> CacheEntry? { nodes[key]?.entry }

    mutating func use(_ key: CacheKey) -> CacheEntry? {
        guard let node = nodes[key] else { return nil }
        if newest != key {
            remove(key)
            insert(node.entry, size: node.size, for: key)
        }
        return node.entry
    }

    /// Inserts an entry as the most recently used. The key must have none.
    mutating func insert(_ entry: CacheEntry, size: Int64, for key: CacheKey) {
        nodes[key] = Node(entry: entry, size: size, older: newest, newer: nil)
        if let newest { nodes[newest]?.newer = key } else { oldest = key }
        newest = key
        self.size += size
    }

    @discardableResult
    mutating func remove(_ key: CacheKey) -> CacheEntry? {
        guard let node = nodes.removeValue(forKey: key) else { return nil }
        if let older = node.older { nodes[older]?.newer = node.newer } else { oldest = node.newer }
        if let newer = node.newer { nodes[newer]?.older = node.older } else { newest = node.older }
        size -= node.size
        return node.entry
    }

    mutating func removeOldest() -> CacheEntry? {
        oldest.flatMap { remove($0) }
    }
}
