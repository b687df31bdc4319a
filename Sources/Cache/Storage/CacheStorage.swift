// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A cache entry: a body and its metadata.
public struct CacheEntry: Sendable, Hashable {
    /// The metadata of the body, opaque to the store.
    public var metadata: Data
    /// The body.
    public var body: Data
    /// What a ``TaggingCacheStorage`` finds the entry by; empty by default. Other stores may drop it, and all may return entries without.
    public var tags: [String]

    /// Creates an entry.
    public init(metadata: Data = Data(), body: Data, tags: [String] = []) {
        self.metadata = metadata
        self.body = body
        self.tags = tags
    }
}

/// Stores entries by key, up to a total size, and evicts the least recently used.
///
/// A store is not aware of HTTP, age or validity, which are up to the caller. All members are thread-safe, and may block on disk I/O.
public protocol CacheStorage: Sendable {
    /// The maximum total size of all entries, in bytes.
    var capacity: Int64 { get }
    /// The total size of all entries, in bytes, including the store's overhead for each.
    var size: Int64 { get throws }

    /// Returns the entry for a key and marks it as used; `nil` if there is none, or only a damaged one.
    ///
    /// - Throws: if the entry can't be read, for lack of permission or of file descriptors for example.
    func entry(for key: CacheKey) throws -> CacheEntry?
    /// Returns the metadata for a key without reading or checking the body. Does not mark the entry as used.
    func metadata(for key: CacheKey) throws -> Data?
    /// Stores an entry for a key, replacing the previous one atomically: readers see the old entry or the new one.
    ///
    /// - Throws: ``CacheStorageError/entryTooLarge(size:capacity:)``, in which case the key has no entry afterwards; file system errors,
    ///   in which case the old entry is kept.
    func store(_ entry: CacheEntry, for key: CacheKey) throws
    /// Removes the entry for a key, if there is one.
    func removeEntry(for key: CacheKey) throws
    /// Removes all entries.
    func removeAll() throws
    /// Calls `visit` with the key and the metadata of each entry, in no order, until it returns `false`. Entries that are stored or
    /// removed meanwhile may be missed.
    func forEachEntry(_ visit: (_ key: CacheKey, _ metadata: Data, _ bodyLength: Int64) -> Bool) throws
    /// Whether the store keeps its entries in this process' memory, so that no call blocks on I/O; `false` by default.
    var isInMemory: Bool { get }
}

extension CacheStorage {
    /// `false`: calls may block on I/O.
    public var isInMemory: Bool { false }
}

/// Why a store rejected an entry. Later versions may add cases, so a `switch` needs a `default`.
public enum CacheStorageError: Error, Sendable, Hashable {
    /// The entry alone exceeds the store's capacity; both sizes are in bytes.
    case entryTooLarge(size: Int64, capacity: Int64)
    /// The lease under which the entry was to be stored has ended, and another one was granted since (``LeasingCacheStorage``).
    case leaseEnded
}

extension CacheStorageError: LocalizedError, CustomStringConvertible {
    /// The reason, as a sentence.
    public var description: String {
        switch self {
        case .entryTooLarge(let size, let capacity): "An entry of \(size) bytes exceeds the cache's capacity of \(capacity) bytes."
        case .leaseEnded: "The entry's lease has ended, and another process has claimed its key."
        }
    }

    /// The description.
    public var errorDescription: String? { description }
}
