// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A store that finds its entries by their ``CacheEntry/tags`` without reading all of them, for ``ResponseCache/remove(tag:)``.
public protocol TaggingCacheStorage: CacheStorage {
    /// Calls `visit` with the key and the metadata of each entry that was stored with a tag, in no order, until it returns `false`. May
    /// visit entries that have had the tag before; misses none that has it, but for those that are stored meanwhile.
    func forEachEntry(tagged tag: String, _ visit: (_ key: CacheKey, _ metadata: Data, _ bodyLength: Int64) -> Bool) throws
}
