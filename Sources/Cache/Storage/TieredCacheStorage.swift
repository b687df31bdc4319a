// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A store in memory in front of a slower or shared one.
///
/// Entries are written to both, and copied to the front when they are read. If the back is an ``ObservableCacheStorage``, what others change
/// in it leaves the front; otherwise the front may have entries that another process has replaced or removed, so that it should be used
/// only with a back that no other process writes.
///
/// An entry that is read from the front counts as used there only: the back evicts by its own reads and writes.
public final class TieredCacheStorage: CacheStorage {
    /// The store in front.
    public let front: MemoryCacheStorage
    /// The store behind it, which has all entries.
    public let back: any CacheStorage

    /// What is reported or written while an entry is read from the back must not be replaced by the older copy.
    private let changes: Changes
    private let observations: [CacheObservation?]

    /// The number of changes so far, changed under a lock together with the front.
    private final class Changes: Sendable {
        private let count = Lock(UInt64(0))

        var number: UInt64 { count.withLock { $0 } }

        func change(_ body: () throws -> Void) rethrows {
            try count.withLock { count in
                count += 1
                try body()
            }
        }

        func unlessChanged(since number: UInt64, _ body: () -> Void) {
            count.withLock { count in
                if count == number { body() }
            }
        }
    }

    /// Creates a store over two others.
    ///
    /// - Parameters:
    ///   - front: in memory.
    ///   - back: the store that has all entries.
    public init(front: MemoryCacheStorage, back: any CacheStorage) {
        self.front = front
        self.back = back
        let changes = Changes()
        self.changes = changes
        observations = [
            (back as? any ObservableCacheStorage)?.observeChanges { key in
                changes.change {
                    if let key { front.removeEntry(for: key) } else { front.removeAll() }
                }
            },
            (back as? any TaggingCacheStorage)?.observeRemovedTags { tag in changes.change { front.removeEntries(tagged: tag) } },
        ]
    }

    /// The capacity of the back, in bytes.
    public var capacity: Int64 { back.capacity }
    /// The size of the back, in bytes.
    public var size: Int64 { get throws { try back.size } }

    /// Returns the entry for a key from the front, or else from the back.
    public func entry(for key: CacheKey) throws -> CacheEntry? {
        if let entry = front.entry(for: key) { return entry }
        let number = changes.number
        guard let entry = try back.entry(for: key) else { return nil }
        changes.unlessChanged(since: number) { put(entry, key) }
        return entry
    }

    /// Returns the metadata for a key.
    public func metadata(for key: CacheKey) throws -> Data? {
        try front.metadata(for: key) ?? back.metadata(for: key)
    }

    /// Stores an entry in the back, then in the front.
    public func store(_ entry: CacheEntry, for key: CacheKey) throws {
        try write(entry, key) { try back.store(entry, for: key) }
    }

    /// Removes the entry for a key from both.
    public func removeEntry(for key: CacheKey) throws {
        defer { changes.change { front.removeEntry(for: key) } }
        changes.change { front.removeEntry(for: key) }
        try back.removeEntry(for: key)
    }

    /// Removes all entries of both.
    public func removeAll() throws {
        defer { changes.change { front.removeAll() } }
        changes.change { front.removeAll() }
        try back.removeAll()
    }

    /// Calls `visit` with each entry of the back.
    public func forEachEntry(_ visit: (_ key: CacheKey, _ metadata: Data, _ bodyLength: Int64) -> Bool) throws {
        try back.forEachEntry(visit)
    }

    /// Removes the copies of entries with a tag, here and in other processes: also of those that the back has evicted.
    func removeCopies(tagged tag: String) throws {
        changes.change { front.removeEntries(tagged: tag) }
        try (back as? any TaggingCacheStorage)?.announceRemoval(ofTag: tag)
    }

    /// Removes all copies, here and in other processes.
    func removeCopies() throws {
        changes.change { front.removeAll() }
        try (back as? any ObservableCacheStorage)?.announceChanges()
    }

    func write(_ entry: CacheEntry, _ key: CacheKey, _ body: () throws -> Void) throws {
        // Others see the old entry until the back has the new one, or has failed.
        changes.change { front.removeEntry(for: key) }
        let number = changes.number
        try body()
        changes.unlessChanged(since: number) { put(entry, key) }
    }

    /// An entry that is too large for the front is in the back only.
    private func put(_ entry: CacheEntry, _ key: CacheKey) {
        do { try front.store(entry, for: key) } catch { front.removeEntry(for: key) }
    }
}
