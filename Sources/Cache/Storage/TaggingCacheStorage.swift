// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A store that finds its entries by their ``CacheEntry/tags`` without reading all of them, for ``ResponseCache/remove(tag:)``.
public protocol TaggingCacheStorage: CacheStorage {
    /// Calls `visit` with the key and the metadata of each entry that was stored with a tag, in no order, until it returns `false`. May
    /// visit entries that have had the tag before; misses none that has it, but for those that are stored meanwhile.
    func forEachEntry(tagged tag: String, _ visit: (_ key: CacheKey, _ metadata: Data, _ bodyLength: Int64) -> Bool) throws

    /// Notifies the other objects of the store, in this process and in others, that all entries with a tag were removed: they drop copies
    /// of entries that the store itself has lost already, because it evicts. Does nothing by default.
    func announceRemoval(ofTag tag: String) throws

    /// Reports the tags that other objects of the store have announced (``announceRemoval(ofTag:)``).
    ///
    /// - Parameter report: called on any thread, soon after the removal. Must not call the store.
    /// - Returns: what keeps the observation alive; `nil`, by default, if none are reported.
    func observeRemovedTags(_ report: @escaping @Sendable (_ tag: String) -> Void) -> CacheObservation?
}

extension TaggingCacheStorage {
    /// Does nothing.
    public func announceRemoval(ofTag tag: String) throws {}

    /// Returns `nil`.
    public func observeRemovedTags(_ report: @escaping @Sendable (_ tag: String) -> Void) -> CacheObservation? { nil }
}
